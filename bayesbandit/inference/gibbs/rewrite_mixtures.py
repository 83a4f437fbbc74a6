"""Distributions rewritten, on the model's graph, as the mixtures of normals that they are.

    Laplace(μ, b)         θ | t ~ N(μ, b² t)         t ~ Exponential with mean 2
    StudentT(ν, μ, σ)     θ | q ~ N(μ, σ²/q)         q ~ Gamma(ν/2, ν/2)
    Cauchy(μ, σ)          StudentT(1, μ, σ)
    HalfStudentT(ν, σ)    s | q ~ HalfNormal(σ/√q)   q ~ Gamma(ν/2, ν/2)
    HalfCauchy(σ)         HalfStudentT(1, σ)

The declared variables keep their names, values and distributions; those that are mixed over are
auxiliary. Andrews and Mallows (1974), Scale mixtures of normal distributions; West (1987).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.xtensor.type import XTensorType

from bayesbandit.inference.graph_analysis.density import distribution, graph_of, row_dimension

if TYPE_CHECKING:
    import pymc as pm

Mixture = Callable[[list[Any], tuple[Any, ...]], tuple[Any, Callable[[Any], Any]]]
"""From parameters and a size: the mixing variable, and the mixed one given it."""


def exponential(parameters: list[Any], size: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]]:
    """Rewrite a Laplace distribution as a mixture of normals whose variance is exponential."""
    import pymc as pm

    # e^{−|θ−μ|/b} / 2b = ∫ N(θ | μ, b² t) Exp(t | mean 2) dt (Andrews and Mallows)
    mu, b = parameters
    mixing = pm.Exponential.dist(scale=2.0, size=size)
    return mixing, lambda t: pm.Normal.dist(mu, b * pt.sqrt(t), size=size)


def gamma(parameters: list[Any], size: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]]:
    """Rewrite a Student-t distribution, or a half one, as a mixture of normals, or half-normals,
    whose precision is gamma."""
    import pymc as pm

    # t_ν(θ | μ, σ) = ∫ N(θ | μ, σ²/q) Gamma(q | ν/2, ν/2) dq; of |θ| the same
    nu, *mu, sigma = parameters
    half = 0.5 * pt.as_tensor(nu, dtype="float64")
    normal = pm.Normal if mu else pm.HalfNormal
    mixing = pm.Gamma.dist(half, half, size=size)
    return mixing, lambda q: normal.dist(*mu, sigma / pt.sqrt(q), size=size)


SCALE_MIXTURES: dict[str, tuple[Mixture, str]] = {
    "Laplace": (exponential, "variance"),
    "StudentT": (gamma, "precision"),
    "Cauchy": (lambda p, size: gamma([1.0, *p], size), "precision"),
    "HalfStudentT": (gamma, "precision"),
    "HalfCauchy": (lambda p, size: gamma([1.0, *p], size), "precision"),
}


def mixed(model: pm.Model) -> tuple[pm.Model, dict[str, str]]:
    """Return an equal model of mixtures, and its auxiliary variables: to each the one that it
    mixes.

    Observed variables are rewritten where they have one value for each row.
    """
    from pymc.model.fgraph import (
        ModelFreeRV,
        ModelObservedRV,
        model_free_rv,
        model_from_fgraph,
        model_observed_rv,
    )

    row = row_dimension(model)
    graph, _ = graph_of(model)
    auxiliary: dict[str, str] = {}
    for node in list(graph.toposort()):
        if not isinstance(node.op, ModelFreeRV | ModelObservedRV):
            continue
        rv, value = node.inputs
        name = node.op.name
        dims = node.op.dims
        free = isinstance(node.op, ModelFreeRV)
        if isinstance(rv.type, XTensorType):  # of pymc.dims, which has operations of its own
            continue
        if distribution(rv) not in SCALE_MIXTURES or not (free or (rv.type.ndim == 1 and row)):
            continue
        mixture, role = SCALE_MIXTURES[distribution(rv)]
        mixing, given = mixture(list(rv.owner.op.dist_params(rv.owner)), tuple(rv.shape))
        # the new variable is an input of the graph, under a name that no other has
        helper = f"{name}_{role}"
        while helper in model.named_vars:
            helper += "_"
        v = mixing.type(name=helper)
        graph.add_input(v)
        among = dims or (() if free else (row,))
        mixing = model_free_rv(mixing, v, None, helper, *among)
        new = given(mixing)
        if new.type != rv.type:  # less may be known of its shape
            new = rv.type.filter_variable(new)
        auxiliary[helper] = name
        whole = (
            model_free_rv(new, value, node.op.transform, name, *dims)
            if free
            else model_observed_rv(new, value, name, *dims)
        )
        graph.replace_all([(node.outputs[0], whole)], import_missing=True, reason="mixture")
        graph.add_output(mixing)
    return (model_from_fgraph(graph, mutate_fgraph=True) if auxiliary else model), auxiliary
