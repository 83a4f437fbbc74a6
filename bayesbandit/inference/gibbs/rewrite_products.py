"""Products τ z of a scale and a normal variable, rewritten on the model's graph as one normal.

    z ~ N(0, s²)  and  τ z    become    v ~ N(0, (τ s)²)  and  v,    with z = v/τ

So a hierarchy in its non-centred form, θ = μ + τ z, is normal given τ (Papaspiliopoulos, Roberts
and Sköld 2007, Statist. Sci. 22, 59–73). v has the name of z until its draws are divided by τ. z
must stand nowhere else; τ is computed of positive variables and constants, and may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors
from pytensor.xtensor.type import XTensorType

from bayesbandit.inference.base import COMPILE, Compiled
from bayesbandit.inference.draws import Draws as Draws
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import distribution, graph_of
from bayesbandit.inference.graph_analysis.operations import (
    MATRIX_PRODUCTS,
    SHAPE_CHANGES,
    bare,
    elementwise_name,
    kind,
    number,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.transforms import support

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True)
class Use:
    """A product of v, which is z or linear in it, and a scale."""

    v: Variable
    product: Variable
    scale: Variable


def without_products(model: pm.Model) -> tuple[pm.Model, Callable[[Draws], Draws] | None]:
    """Return an equal model without products τ z, and a function of its draws, which returns those
    with z = v/τ in the place of v; None where it has none."""
    from pymc.model.fgraph import model_from_fgraph

    if not any(_has_mean_zero(v) for v in model.free_RVs):
        return model, None
    with COMPILE:
        graph, copies = graph_of(model)
        MergeOptimizer().rewrite(graph)  # what is written twice, as the mean reward is, is one
        positive = {
            copies[v]: v.type.clone(shape=(None, *v.type.shape))(v.name)
            for v in model.free_RVs
            if support(v, model.rvs_to_transforms[v])[0] >= 0.0
        }
        names: list[str] = []
        scales: list[Variable] = []
        while (done := _rewrite_one(graph, positive)) is not None:
            names.append(done[0])
            scales.append(done[1])
        if not names:
            return model, None
        draws = list(positive.values())
        compiled = Compiled(draws, list(vectorize_graph(scales, positive)))

    def divided(values: Draws) -> Draws:
        out = dict(values)
        given = [values[str(v.name)] for v in draws]
        taus = compiled(*[v.reshape(-1, *v.shape[2:]) for v in given])
        for name, tau in zip(names, taus, strict=True):
            v = out[name]
            # z = v / τ; a τ of each draw, for all elements of v
            wide = tau.reshape(*tau.shape, *(1,) * (v.ndim - 1 - tau.ndim))
            out[name] = (v.reshape(-1, *v.shape[2:]) / wide).reshape(v.shape)
        return out

    return model_from_fgraph(graph, mutate_fgraph=True), divided


def _has_mean_zero(rv: Variable) -> bool:
    """Return whether a variable is normal with mean 0."""
    if isinstance(rv.type, XTensorType) or distribution(rv) != "Normal":
        return False
    return number(rv.owner.op.dist_params(rv.owner)[0]) == 0.0


def _rewrite_one(
    graph: FunctionGraph, positive: Collection[Variable]
) -> tuple[str, Variable] | None:
    """Rewrite the products of one z in place; return its name, and τ. None if there are none."""
    import pymc as pm
    from pymc.model.fgraph import ModelFreeRV, model_free_rv

    for node in graph.toposort():
        if not isinstance(node.op, ModelFreeRV) or node.op.transform is not None:
            continue
        rv, value = node.inputs
        [z] = node.outputs
        if not _has_mean_zero(rv):
            continue
        uses = _uses(graph, z, z, positive)
        if not uses or (scale := _common_scale(z, uses)) is None:
            continue
        # z ~ N(0, s²): τ z ~ N(0, (τ s)²)
        sigma = rv.owner.op.dist_params(rv.owner)[1]
        scaled = rv.type.filter_variable(
            pm.Normal.dist(0.0, scale * sigma, size=tuple(pt.as_tensor_variable(rv).shape))
        )
        v = model_free_rv(scaled, value, None, node.op.name, *node.op.dims)
        # all products at once, so that z stands nowhere any more
        swaps = [(use.product, use.product.type.filter_variable(use.v)) for use in uses]
        graph.replace_all([*swaps, (z, v)], import_missing=True, reason="product")
        return node.op.name, scale
    return None


def _uses(
    graph: FunctionGraph, v: Variable, z: Variable, positive: Collection[Variable]
) -> list[Use] | None:
    """Return the products with scales of v, which is z or linear in it; None if it stands
    elsewhere, too."""
    found: list[Use] = []
    for node, i in graph.clients[v]:
        if isinstance(node.op, Output):
            if v is z:  # it is a variable of the model
                continue
            return None
        others = [u for k, u in enumerate(node.inputs) if k != i]
        if z in set(ancestors(others)):
            return None
        out = node.outputs[0]
        if elementwise_name(out) == "Mul" and len(others) == 1 and _is_scale(others[0], positive):
            found.append(Use(v, out, others[0]))
            continue
        more = _uses(graph, out, z, positive) if _is_linear(node, i) else None
        if more is None:
            return None
        found += more
    return found


def _is_scale(v: Variable, positive: Collection[Variable]) -> bool:
    """Return whether a node is positive, of positive variables and constants alone."""
    roots = [u for u in ancestors([v], blockers=positive) if u.owner is None or u in positive]
    if not all(u in positive or isinstance(u, Constant) for u in roots):
        return False
    analysis = Analytic([v], dict.fromkeys(positive, 1.0))
    # above 0 whatever the positive variables are, and not the same for all of their values
    return v in analysis.positive and analysis.of(v) > 0.0


def _is_linear(node: Apply, i: int) -> bool:
    """Return whether a node is linear in its input i, and 0 where that is 0."""
    match kind(node):
        case "elementwise":
            name = elementwise_name(node.outputs[0])
            return name in ("Mul", "Neg", "Identity") or (name == "TrueDiv" and i == 0)
        case "reduction":
            return reduced_by(node) == "Add"
    name = operation(node)[1]
    return name in MATRIX_PRODUCTS or (name in SHAPE_CHANGES and i == 0)


def _common_scale(z: Variable, uses: list[Use]) -> Variable | None:
    """Return the scale that all uses of z have: a number, or one for each element of z, which
    then is multiplied itself."""
    [first, *others] = uses
    scale = bare(first.scale)
    if any(bare(use.scale) is not scale for use in others):
        return None
    if scale.type.ndim > 0:
        scale = first.scale
        if any(
            use.v is not z
            or use.scale is not scale
            or use.product.type.broadcastable != z.type.broadcastable
            for use in uses
        ):
            return None
    return scale
