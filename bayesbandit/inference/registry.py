"""The list of engines, the fastest first: the toolkit's own, and registered ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bayesbandit.checks import one_of
from bayesbandit.inference import nuts
from bayesbandit.inference.approximate import advi, has_mode, laplace
from bayesbandit.inference.base import ENGINE_GROUPS, Engine, Kind, Method, Refusal
from bayesbandit.inference.exact import conjugate, gaussian, normal_inverse_gamma
from bayesbandit.inference.gibbs import sampler as gibbs
from bayesbandit.inference.gibbs.rewrite_products import without_products
from bayesbandit.inference.gibbs.sampler import Gibbs
from bayesbandit.inference.glm import augmented
from bayesbandit.inference.glm.augmented import Augmented
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.target import Draw, Fits, match

if TYPE_CHECKING:
    import pymc as pm


AUGMENTED = (
    "these take a Bernoulli, binomial or negative binomial reward of known alpha, whose logit, "
    "probit or log mean is linear, as 0.5 + x @ theta, under priors that are normal, or mixtures "
    "of normals"
)


def _gibbs(model: pm.Model) -> Method | Refusal:
    """Match what is conditionally normal, in its centred form."""
    rewritten, divided = without_products(model)
    sampler = _conditional(rewritten)
    if not isinstance(sampler, Refusal):
        sampler.divided = divided
    return sampler


def _conditional(model: pm.Model) -> Gibbs | Augmented | Refusal:
    """Match what is conditionally normal, or is so given the variables of an augmentation."""
    conditional = gibbs.match(model)
    if not isinstance(conditional, Refusal):
        return conditional
    other = augmented.match(model)
    if not isinstance(other, Refusal):
        return other
    # of a mean that is a polynomial a second reason, about links, would only mislead
    density = read(model)
    degree = Degrees([density.mean], dict.fromkeys(density.values.values(), 1.0)).of(density.mean)
    if degree < math.inf:  # no generalised linear model: its mean is a polynomial
        return conditional
    why = f"by Pólya–Gamma or Albert–Chib variables: {other.reason} ({AUGMENTED})"
    return replace(conditional, reason=f"{conditional.reason}; {why}")


CLOSED = "the fastest: a closed form, no draws"
engines: list[Engine] = [  # with what an effective draw takes, as `benchmarks/engines.py` measures
    Engine("exact_gaussian", gaussian.match, CLOSED, "exact"),
    Engine("normal_inverse_gamma", normal_inverse_gamma.match, CLOSED, "exact"),
    Engine("conjugate", conjugate.match, CLOSED, "exact"),
    Engine(
        "gibbs",
        _gibbs,
        "compiled conditionals: more effective draws a second than by gradients, no tuning",
        knobs=("tune",),
    ),
    Engine(
        "nuts",
        nuts.match,
        "gradients of the log density, compiled in seconds",
        knobs=("tune", "target_accept", "cores"),
        least_tune=1,
    ),
]


def register(engine: Engine, before: str | None = None) -> Engine:
    """Add an engine, or replace the engine of the same name.

    before: the engine before which it is tried; None: it is tried last.
    """
    if not isinstance(engine, Engine):
        raise TypeError(f"an engine is an `Engine(name, match, cost)`; got {engine!r}")
    if engine.name in ENGINE_GROUPS:
        raise ValueError(f"{engine.name!r} is no name of an engine; it means any that fits")
    others = [other for other in engines if other.name != engine.name]
    names = [other.name for other in others]
    place = len(others) if before is None else names.index(one_of(before, "before", names))
    engines[:] = [*others[:place], engine, *others[place:]]
    return engine


def sampler(
    name: str,
    cost: str,
    *,
    fits: Fits | None = None,
    kind: Kind = "sampler",
    independent: bool = False,
    knobs: tuple[str, ...] = (),
    before: str | None = None,
) -> Callable[[Draw], Draw]:
    """Register a function of a `Target` and a `Run` as an engine of models of continuous variables.

    name, cost, kind, knobs: see `Engine`. fits: a function that returns why the engine does not fit
    a model, or None if it does. before: see `register`. independent: whether the draws are
    independent, so that each counts whole; else their ESS and R̂ are estimated. A `Normal` is drawn
    from independently.
    """

    def registered(draw: Draw) -> Draw:
        matched = partial(match, name, draw, fits, independent)
        register(Engine(name, matched, cost, kind, knobs), before)
        return draw

    return registered


sampler(
    "laplace",
    "an approximation: a normal about the mode",
    fits=has_mode,
    kind="approximation",
)(laplace)
sampler("advi", "an approximation: independent normals", kind="approximation", independent=True)(
    advi
)


def choices() -> tuple[str, ...]:
    """Return the allowed values of the argument `engine`."""
    return (*ENGINE_GROUPS, *(engine.name for engine in engines))


def candidates(name: str) -> tuple[Engine, ...]:
    """Return the engines to try for this value of the argument `engine`, in order."""
    one_of(name, "engine", choices())
    kinds = {"auto": ("exact", "sampler"), "exact": ("exact",)}
    if name in kinds:
        return tuple(engine for engine in engines if engine.kind in kinds[name])
    return tuple(engine for engine in engines if engine.name == name)
