"""What a Gibbs sampler may draw in turn: a Gaussian block, and the positive variables beside it.

The declared model is rewritten to mixtures first (`rewrite_mixtures`). A real variable belongs to
the block; a positive or an auxiliary one does not, and the block must be quadratic whatever their
values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from bayesbandit.inference.base import refuse
from bayesbandit.inference.gibbs.rewrite_mixtures import mixed
from bayesbandit.inference.graph_analysis.density import (
    Density,
    Term,
    distribution,
    read,
)
from bayesbandit.inference.graph_analysis.eligibility import check_eligible
from bayesbandit.inference.graph_analysis.transforms import ends, transform_name

if TYPE_CHECKING:
    import pymc as pm
    from pymc.logprob.transforms import Transform

ENGINE = "gibbs"


@dataclass(frozen=True)
class Blocks:
    """A density, and which of its variables are outside the Gaussian block.

    positive: the bounds of these variables. auxiliary: for each variable that was mixed over, the
    declared one that it belongs to.
    """

    density: Density
    positive: Mapping[str, tuple[float, float]]
    auxiliary: Mapping[str, str]


def blocks(model: pm.Model) -> Blocks:
    """Return the density of a built model; refuse a variable that fits neither part."""
    check_eligible(model, ENGINE, unsuited=unsuited)
    rewritten, auxiliary = mixed(model)
    transforms = {v.name: model.rvs_to_transforms[v] for v in model.free_RVs}
    density = read(rewritten)
    terms = tuple(_as_declared(t, model, auxiliary) for t in density.terms)
    # an intercept, whose prior no noise scales, comes after what it scales (`common_scale`)
    values = dict(sorted(density.values.items(), key=lambda item: -item[1].type.ndim))
    density = replace(density, terms=terms, values=values)
    # a transform tells a positive variable: log for (0, ∞), interval for constant bounds
    between = {k: bounds(model[k], t) for k, t in transforms.items() if t is not None}
    between |= dict.fromkeys(auxiliary, (0.0, np.inf))
    positive = {k: ends for k in density.values if (ends := between.get(k)) is not None}
    if len(positive) == len(density.values):
        raise refuse(ENGINE, "no real variable that could be Gaussian given the rest")
    return Blocks(density, positive, auxiliary)


def without_mean(density: Density) -> Density:
    """Return a density without its mean reward, which is then computed from draws: of
    log-normal rewards it is not affine in Gaussian variables, and their likelihood is Gaussian."""
    terms = tuple(replace(t, given_mean=t.graph) for t in density.terms)
    zero = pt.zeros_like(pt.as_tensor_variable(density.inputs["reward"]))
    return replace(density, terms=terms, mean=zero)


def unsuited(variable: Variable, transform: Transform | None, by_row: bool) -> str:
    """Return why a variable can be drawn neither in the Gaussian block nor as a positive variable;
    "" where it can."""
    if transform is not None and bounds(variable, transform) is None:
        return f"{transform.name} transform"
    alone = transform is not None and variable.type.ndim == 1
    return "one value for each row" if by_row and not alone else ""


def bounds(variable: Variable, transform: Transform) -> tuple[float, float] | None:
    """Return the bounds of a transformed variable: positive by a logarithm, or between constants
    of an interval; None where it may be negative, or its bounds are no constants."""
    low, high = ends(variable, transform)
    if transform_name(transform) not in ("log", "interval") or low is None or high is None:
        return None
    return (low, high) if low >= 0.0 else None


def _as_declared(term: Term, model: pm.Model, auxiliary: Mapping[str, str]) -> Term:
    """Return a term that a refusal names by what was declared, not by what it was rewritten to."""
    if term.name in auxiliary:
        declared = distribution(model[auxiliary[term.name]])
        return replace(term, label=f"'{auxiliary[term.name]}' ~ {declared}, as a mixture")
    if term.label.startswith("potential"):
        return term
    return replace(term, label=f"'{term.name}' ~ {distribution(model[term.name])}")
