"""A declared model's log density as graphs of explicit inputs: nothing shared, nothing mutated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType
from pytensor.xtensor import as_xtensor

if TYPE_CHECKING:
    import pymc as pm

Graph = Any  # a PyTensor variable, whose attributes depend on its type
ROLES = ("x", "reward", "weight", "arm")  # the data that a declaration is a function of


@dataclass(frozen=True)
class Term:
    """One variable's or potential's log density; `label` is how a refusal names it."""

    name: str
    label: str
    graph: Graph
    on_data: bool  # whether it depends on rows: a part of the likelihood, else of the prior


@dataclass(frozen=True)
class Density:
    """The terms of a log density, and the mean reward, as functions of values and data.

    values: one input for each free variable, of known shape. inputs: x (n, d), reward (n,),
    weight (n,), arm (n,), each present only if the model has it. own: the model's own data, at the
    time it was read. n_arms: K, where the declaration takes the arm.
    """

    terms: tuple[Term, ...]
    mean: Graph
    values: dict[str, Graph]
    inputs: dict[str, Graph]
    own: dict[str, np.ndarray]
    n_arms: int | None

    @property
    def n_features(self) -> int:
        """d, the width of a context."""
        return self.own["x"].shape[1]

    def label(self, name: str) -> str:
        """How a refusal names a free variable: its name and its distribution."""
        return next(term.label for term in self.terms if term.name == name)


def containers(model: pm.Model) -> dict[str, Any]:
    """The model's data containers by role.

    PyMC lets a container share its name neither with a variable nor with a dimension. So a role is
    the container of its name, or the one that is named after it ("arm_index", "observed_reward");
    the rewards may also be the one other container that the observed values come from.
    """
    shared: dict[str, Any] = {
        k: v for k, v in model.named_vars.items() if isinstance(v, SharedVariable)
    }
    found = {role: shared[role] for role in ROLES if role in shared}
    for role in set(ROLES) - set(found):
        named = [v for k, v in shared.items() if role in k.split("_")]
        if len(named) == 1:
            found[role] = named[0]
    if "reward" not in found:
        values = [model.rvs_to_values[v] for v in model.observed_RVs]
        observed = set(ancestors(values)) & (set(shared.values()) - set(found.values()))
        if len(observed) == 1:
            found["reward"] = observed.pop()
    if "x" not in found:
        raise ValueError(f"the model has no data named 'x'; found {sorted(shared)}")
    return {role: found[role] for role in ROLES if role in found}


def read(model: pm.Model) -> Density:
    """The model's log density, in its variables' own (untransformed) values.

    All other shared values (fixed designs, lengths of dimensions) become constants.
    """
    found = containers(model)
    own = {role: np.asarray(v.get_value()) for role, v in found.items()}
    inputs = {role: _input(role, v) for role, v in found.items()}
    shapes = lengths(model)
    values = {
        v.name: pt.tensor(v.name, shape=shapes[v.name], dtype=v.dtype) for v in model.free_RVs
    }
    variables = [*model.free_RVs, *model.observed_RVs]
    raw = model.logp(vars=[*variables, *model.potentials], jacobian=False, sum=False)
    [mean] = model.replace_rvs_by_values([_bare(model["mean_reward"])])
    swap: dict[Graph, Graph] = {v: _like(v, inputs[role]) for role, v in found.items()}
    for v in model.free_RVs:
        swap[model.rvs_to_values[v]] = _like(model.rvs_to_values[v], values[v.name])
    for v in ancestors([*raw, mean]):
        if isinstance(v, SharedVariable) and v not in swap and not isinstance(v.type, RandomType):
            swap[v] = v.type.constant_type(v.type, v.get_value())
    graphs: Graph = clone_replace([*raw, mean], swap, rebuild_strict=False)
    graphs = [g.values if hasattr(g.type, "dims") else g for g in graphs]  # of pymc.dims
    graphs = rewrite_graph(graphs, include=("lower_xtensor", "merge"))
    *graphs, mean = graphs
    labels = [f"'{v.name}' ~ {distribution(v)}" for v in variables]
    labels += [f"potential '{p.name}'" for p in model.potentials]
    data = set(inputs.values())
    terms = tuple(
        Term(v.name, label, graph, not data.isdisjoint(ancestors([graph])))
        for v, label, graph in zip([*variables, *model.potentials], labels, graphs, strict=True)
    )
    n_arms = None
    if "arm" in inputs:
        n_arms = len(model.coords.get("arm") or range(own["arm"].max(initial=0) + 1))
    return Density(terms, mean, values, inputs, own, n_arms)


def _input(role: str, container: SharedVariable) -> Graph:
    """A container's replacement: the features are fixed in number, the rows are not."""
    if role == "x":
        return pt.tensor(role, shape=(None, container.get_value(borrow=True).shape[1]))
    return pt.tensor(role, shape=(None,), dtype="int64" if role == "arm" else "float64")


def _like(variable: Graph, tensor: Graph) -> Graph:
    """A tensor in the place of a variable, with the names of its dimensions if it has them."""
    dims = getattr(variable.type, "dims", None)
    return tensor if dims is None else as_xtensor(tensor, dims=dims)


def _bare(variable: Graph) -> Graph:
    """What a `pm.Deterministic` is a view of."""
    while variable.owner is not None and isinstance(variable.owner.op, ViewOp):
        variable = variable.owner.inputs[0]
    return variable


def lengths(model: pm.Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the free variables, from their types and dimensions if these tell."""
    shapes, point = {}, None
    for v in model.free_RVs:
        shape: Sequence[int | None] = v.type.shape
        dims = model.named_vars_to_dims.get(v.name)
        if None in shape and dims and all(model.coords.get(k) is not None for k in dims):
            shape = [len(model.coords[k]) for k in dims]
        if None in shape:
            point = point or model.eval_rv_shapes()
            shape = point[v.name]
        shapes[v.name] = tuple(int(k) for k in shape if k is not None)
    return shapes


def distribution(variable: Graph) -> str:
    """The name of a variable's distribution."""
    if variable.owner is None:
        return "unknown"
    op: Any = getattr(variable.owner.op, "core_op", variable.owner.op)
    name = getattr(op, "_print_name", (type(op).__name__,))[0]
    return "CustomDist" if name.startswith("CustomDist") else name.removesuffix("RV")


def row_dimension(model: pm.Model) -> str | None:
    """The name of the dimension along which observations come."""
    dims = model.named_vars_to_dims.get("x")
    return dims[0] if dims else None
