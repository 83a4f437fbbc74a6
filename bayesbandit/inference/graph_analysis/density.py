"""A declared model's log density as graphs of explicit inputs: nothing shared, nothing mutated."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.ops import TypeCastingOp, ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import Output
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import RandomType
from pytensor.xtensor.basic import TensorFromXTensor

from bayesbandit.checks import Array
from bayesbandit.declaring.declaration import DATA_NAMES, ROLE_ATTRIBUTE
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.graph_analysis.rewrites import (
    by_rows,
    floating,
    like,
    lowered,
)
from bayesbandit.runtime.pytensor_lock import COMPILE

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True)
class Term:
    """The log density of one variable or potential. label: its name in a refusal."""

    name: str
    label: str
    graph: Variable
    given_mean: Variable  # the same, with `Density.mean_input` in the place of the mean reward
    on_data: bool  # whether it depends on rows: a part of the likelihood, else of the prior


@dataclass(frozen=True)
class Density:
    """The terms of a log density, and the mean reward, as functions of values and data.

    values: one input for each free variable, of known shape, but along the rows (`row_axes`).
    inputs: x (n, d), reward (n,), weight (n,), arm (n,), by role, each present only if the model
    has it. mean_input: an input that stands for the mean reward. own: the model's own data, at the
    time it was read. n_arms: K, where the declaration takes the arm.
    """

    terms: tuple[Term, ...]
    mean: Variable
    mean_input: Variable
    values: dict[str, Variable]
    inputs: dict[str, Variable]
    own: dict[str, Array]
    n_arms: int | None

    @property
    def n_features(self) -> int:
        """d, the width of a context."""
        return self.own["x"].shape[1]

    @property
    def by_row(self) -> tuple[str, ...]:
        """The variables that have a value for each row."""
        return tuple(k for k, v in self.values.items() if None in v.type.shape)

    @property
    def likelihood(self) -> tuple[Term, ...]:
        """The terms on rows, but for priors of variables that have a value for each row."""
        return tuple(t for t in self.terms if t.on_data and t.name not in self.by_row)

    def arguments(self, data: Rows) -> list[Array]:
        """Return the rows x (n, d), reward, weight, arm (n,) that the model has, as arguments of
        functions of `inputs`."""
        return [data[role] for role in self.inputs]

    def label(self, name: str) -> str:
        """Return a free variable's name and distribution, as a refusal names it."""
        return next(term.label for term in self.terms if term.name == name)


def containers(model: pm.Model) -> dict[str, Any]:
    """Return the model's data containers by role."""
    by_role = {role: model.named_vars[k] for role, k in DATA_NAMES.items() if k in model.named_vars}
    for role in ("x", "reward"):
        if role not in by_role:
            raise ValueError(f"the model has no data named {DATA_NAMES[role]!r}")
    return by_role


def rows_of(model: pm.Model) -> dict[str, Array]:
    """Return the rows of a built model, by role."""
    return {role: np.asarray(v.get_value()) for role, v in containers(model).items()}


class Mark(TypeCastingOp):
    """The identity, applied to the mean reward so that PyMC's rewrites leave it alone."""

    __props__ = ()

    def make_node(self, *inputs: Variable) -> Apply:
        [x] = inputs
        return Apply(self, [x], [x.type()])

    def infer_shape(self, *arguments: object) -> object:
        return arguments[-1]  # the shapes, after the node and, in older PyTensor, its graph


def whole_graph(model: pm.Model) -> tuple[Any, dict[Variable, Variable]]:
    """Return the model as one graph, and its copies of the model's variables.

    Initial values are left out, since PyMC copies no model that has some. Its warning that Gaussian
    processes keep the variables of the original is of no use to someone who sees no copy.
    """
    from pymc.model.fgraph import fgraph_from_model

    with COMPILE, warnings.catch_warnings():  # one thread at a time: the model changes meanwhile
        warnings.filterwarnings("ignore", "Detected variables likely created by GP", UserWarning)
        initial = model.rvs_to_initial_values
        try:
            model.rvs_to_initial_values = dict.fromkeys(initial)
            return fgraph_from_model(model)
        finally:
            model.rvs_to_initial_values = initial


def graph_of(model: pm.Model) -> tuple[Any, dict[Variable, Variable]]:
    """Return the model as one graph, and its copies of the model's variables.

    The mean reward is its only deterministic quantity, because PyMC merges two of them with one
    value.
    """
    from pymc.model.fgraph import ModelDeterministic

    graph, copies = whole_graph(model)
    mean = copies[model["mean_reward"]]
    for v in list(graph.outputs):
        if isinstance(v.owner.op, ModelDeterministic) and v is not mean:
            graph.remove_output(graph.outputs.index(v))
            graph.replace(v, v.owner.inputs[0], reason="deterministic", import_missing=True)
    return graph, copies


def marked(model: pm.Model) -> pm.Model:
    """Return a copy of the model in which everything depends on the mean reward through a
    `Mark`."""
    from pymc.model.fgraph import model_from_fgraph

    graph, copies = graph_of(model)
    MergeOptimizer().rewrite(graph)  # what is written twice, as the mean that is returned, is one
    mean = unviewed(copies[model["mean_reward"]].owner.inputs[0])
    mark = Mark()(mean)
    for node, i in list(graph.clients[mean]):
        if not isinstance(node.op, Output):
            graph.change_node_input(node, i, mark, reason="mark", import_missing=True)
    return model_from_fgraph(graph, mutate_fgraph=True)


_READ: WeakKeyDictionary[pm.Model, Density] = WeakKeyDictionary()


def read(model: pm.Model) -> Density:
    """Return the model's log density, read once: see `_read`. `Density.own` are its rows now."""
    if model not in _READ:
        with COMPILE:
            _READ[model] = _read(model)
    return replace(_READ[model], own=rows_of(model))


def _read(model: pm.Model) -> Density:
    """Return the model's log density in its variables' own (untransformed) values.

    Shared values other than the rows (fixed designs, lengths of dimensions) become constants.
    """
    from pymc.model.transform.conditioning import remove_value_transforms

    order = [v.name for v in model.free_RVs]  # a copy of the model may have another
    model = marked(model)
    model = remove_value_transforms(model, model.free_RVs) if order else model
    free = [model[name] for name in order]
    shared = containers(model)
    own = rows_of(model)
    inputs = {role: _input(role, v) for role, v in shared.items()}
    shapes: dict[str, tuple[int | None, ...]] = {**shapes_of(model)}
    for name, axis in row_axes(model).items():
        shapes[name] = (*shapes[name][:axis], None, *shapes[name][axis + 1 :])
    values: dict[str, Variable] = {
        v.name: pt.TensorType(v.type.dtype, shapes[v.name])(v.name) for v in free
    }
    variables = [*free, *model.observed_RVs]
    # element by element, in the variables' own space: no Jacobian, and no sum over rows yet
    raw = model.logp(vars=[*variables, *model.potentials], jacobian=False, sum=False)
    raw += model.replace_rvs_by_values([model["mean_reward"]])
    raw = floating(raw)
    swap: dict[Variable, Variable] = {v: like(v, inputs[role]) for role, v in shared.items()}
    for v in free:
        swap[model.rvs_to_values[v]] = like(model.rvs_to_values[v], values[v.name])
    for v in ancestors(raw):
        if isinstance(v, SharedVariable) and v not in swap and not isinstance(v.type, RandomType):
            role = getattr(
                v.tag, ROLE_ATTRIBUTE, None
            )  # a density may hold the data of what was copied
            constant = v.type.constant_type(v.type, v.get_value())
            swap[v] = constant if role is None else like(v, inputs[role])
    graphs = clone_replace(raw, swap, rebuild_strict=False)
    marks = [v for v in ancestors(graphs) if v.owner is not None and isinstance(v.owner.op, Mark)]
    m = pt.tensor("m", shape=(None,) * marks[0].type.ndim)
    # twice the same graphs: with the mean reward as it is, and with m in its place
    whole = clone_replace(graphs, {v: v.owner.inputs[0] for v in marks})
    cut = clone_replace(graphs, {v: like(v, m) for v in marks}, rebuild_strict=False)
    *whole, mean = lowered(list(whole))
    cut = by_rows(lowered(list(cut))[:-1], mean, m, list(inputs.values()))
    labels = [f"'{v.name}' ~ {distribution(v)}" for v in variables]
    labels += [f"potential '{p.name}'" for p in model.potentials]
    names = [v.name for v in (*variables, *model.potentials)]
    data = set(inputs.values())
    terms = tuple(
        Term(name, label, graph, given_mean, not data.isdisjoint(ancestors([graph])))
        for name, label, graph, given_mean in zip(names, labels, whole, cut, strict=True)
    )
    n_arms = None
    if "arm" in inputs:
        n_arms = len(model.coords.get("arm") or range(own["arm"].max(initial=0) + 1))
    return Density(terms, mean, m, values, inputs, own, n_arms)


def _input(role: str, container: SharedVariable) -> Variable:
    """Return a container's replacement: the number of features is fixed, the number of rows is
    not."""
    if role == "x":
        return pt.tensor(role, shape=(None, container.get_value(borrow=True).shape[1]))
    return pt.tensor(role, shape=(None,), dtype="int64" if role == "arm" else "float64")


def unviewed(variable: Variable) -> Variable:
    """Return the variable beneath views."""
    views = (ViewOp, TensorFromXTensor)
    while variable.owner is not None and isinstance(variable.owner.op, views):
        variable = variable.owner.inputs[0]
    return variable


def shapes_of(model: pm.Model, but: str | None = None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the free variables by name, from their types and dimensions if possible.

    but: a dimension; variables that have it are left out.
    """
    shapes = {}
    point = None
    for v in model.free_RVs:
        shape: Sequence[int | None] = v.type.shape
        dims = model.named_vars_to_dims.get(v.name)
        if but is not None and but in (dims or ()):
            continue
        if None in shape and dims and all(model.coords.get(k) is not None for k in dims):
            shape = [len(model.coords[k]) for k in dims]
        if None in shape:
            point = point or model.eval_rv_shapes()
            shape = point[v.name]
        shapes[v.name] = tuple(int(k) for k in shape if k is not None)
    return shapes


def distribution(variable: Variable) -> str:
    """Return the name of a variable's distribution."""
    if variable.owner is None:
        return "unknown"
    op = variable.owner.op
    op = getattr(op, "core_op", op)  # of a `pymc.dims` variable
    name = str(getattr(op, "_print_name", [type(op).__name__])[0])
    return "CustomDist" if name.startswith("CustomDist") else name.removesuffix("RV")


def row_dimension(model: pm.Model) -> str | None:
    """Return the name of the dimension of the observations."""
    dims = model.named_vars_to_dims.get("x")
    return dims[0] if dims else None


def row_axes(model: pm.Model) -> dict[str, int]:
    """Return the axis along the rows of each free variable that has a value for each row."""
    row = row_dimension(model)
    dims = model.named_vars_to_dims
    named = {str(v.name): dims.get(v.name) or () for v in model.free_RVs}
    return {name: of.index(row) for name, of in named.items() if row is not None and row in of}
