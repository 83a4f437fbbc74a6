"""The digest of a built model: two declarations are the same if their digests are equal.

It covers the graph of the model: operations, constants, fixed data, transforms and dimensions, but
not the rows. Whatever the declaration read when it was built (a setting, a shared variable, a
DataFrame) is in the graph as numbers. Of a distribution made at run time, such as a CustomDist, the
graph of the log density is in it, too. A digest is the same in every process.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
from pymc import logp
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.traversal import toposort
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from bayesbandit.inference.graph_analysis.density import containers, row_dimension, shapes_of
from bayesbandit.inference.uncompiled import UNCOMPILED_MODE
from bayesbandit.runtime.fingerprints import fingerprint, installed

if TYPE_CHECKING:
    import pymc as pm


class Unseen(Exception):
    """A value for which equality cannot be decided; the message names it."""


def digest(model: pm.Model) -> str | None:
    """Return a text that is equal for equal built models, whatever their rows; None if equality
    cannot be decided."""
    try:
        return hashlib.sha256(repr(_model(model)).encode()).hexdigest()
    except Unseen:
        return None


def _model(model: pm.Model) -> tuple[Any, ...]:
    data = containers(model)
    row = row_dimension(model)
    named = {v: ("row data", role) for role, v in data.items()}
    named |= {model.rvs_to_values[v]: ("value", v.name) for v in model.free_RVs}
    variables = [*model.free_RVs, *model.observed_RVs, *model.deterministics, *model.potentials]
    graphs = [*variables, *(model.rvs_to_values[v] for v in model.observed_RVs)]
    backward = [
        derive(model.rvs_to_values[v], *v.owner.inputs)
        for v in model.free_RVs
        if (transform := model.rvs_to_transforms[v]) is not None
        for derive in (transform.backward, transform.log_jac_det)
    ]
    graphs += backward
    # each call of pm.CustomDist makes a new class, so its name says nothing: compare its density
    for v in model.basic_RVs:
        others = [other for other in model.basic_RVs if other is not v]
        if not all(_found(type(node.op)) for node in toposort([v], blockers=others)):
            graphs.append(logp(v, v, warn_rvs=False))
    dims = sorted((k, tuple(map(str, of))) for k, of in model.named_vars_to_dims.items())
    coords = sorted((str(k), _of(tuple(v))) for k, v in model.coords.items() if v and k != row)
    shapes = sorted(shapes_of(model, but=row).items())
    width = data["x"].get_value(borrow=True).shape[1]
    initial = model.rvs_to_initial_values
    starts = [initial[v] for v in model.free_RVs]
    graphs += [start for start in starts if isinstance(start, Variable)]
    start_keys = [None if isinstance(start, Variable) else _of(start) for start in starts]
    return (
        [v.name for v in variables],
        dims,
        coords,
        shapes,
        width,
        start_keys,
        _graph(graphs, named, backward),
    )


def _graph(
    outputs: Sequence[Variable], named: Mapping[Variable, Any], shared: Sequence[Variable] = ()
) -> tuple[Any, ...]:
    """Return the nodes in order, each by its operation and by the sources of its inputs.

    shared: graphs that models may share, as those of a transform. There a compiler replaces what
    constants alone determine by its value, and so does the digest.
    """
    # a node is known by its place in the order: equal graphs, built one after the other, have
    # equal texts
    at: dict[Variable, Any] = dict(named)
    order = list(toposort(outputs, blockers=list(named)))
    if shared:
        at.update(_constants(order, outputs, toposort(shared, blockers=list(named))))
    nodes: list[Any] = []
    for node in order:
        if node.outputs[0] in at:
            continue
        inputs = tuple(at[v] if v in at else _root(v) for v in node.inputs)
        at.update({v: (len(nodes), j, str(v.type)) for j, v in enumerate(node.outputs)})
        nodes.append((_op(node.op), inputs))
    return tuple(nodes), tuple(at[v] if v in at else _root(v) for v in outputs)


def _constants(
    order: Sequence[Apply], outputs: Sequence[Variable], shared: Iterable[Apply]
) -> dict[Variable, Any]:
    """Return the keys of what constants alone determine in shared nodes: its value, where other
    nodes take it."""
    fixed: set[Variable] = set()
    for node in shared:
        if node.inputs and all(isinstance(v, Constant) or v in fixed for v in node.inputs):
            fixed.update(node.outputs)
    entering = [v for node in order if node.outputs[0] not in fixed for v in node.inputs]
    to_evaluate = [v for v in dict.fromkeys((*entering, *outputs)) if v in fixed]
    if not to_evaluate:
        return {}
    values = pytensor.function([], to_evaluate, mode=UNCOMPILED_MODE)()
    keys = {v: ("constant", _of(value)) for v, value in zip(to_evaluate, values, strict=True)}
    return dict.fromkeys(fixed, "inside a constant") | keys


def _root(variable: Variable) -> Any:
    if isinstance(variable, Constant):
        return "constant", _of(variable.data)
    if isinstance(variable, SharedVariable):
        if isinstance(variable.type, RandomType):
            return "random numbers"
        return "shared", str(variable.type), _of(variable.get_value(borrow=True))
    raise Unseen(f"the input {variable}")


def _op(op: Op) -> Any:
    """Return an operation: its class, its settings, and the graph in it.

    A class made at run time is a distribution's, whose functions draw; its density is in the graph.
    """
    kind = type(op)
    print_of_class = "" if _found(kind) else fingerprint(*vars(kind).values())
    if print_of_class and not isinstance(op, RandomVariable | SymbolicRandomVariable):
        raise Unseen(f"the operation {op}")
    inner = None
    if isinstance(op, HasInnerGraph):
        keys = {v: ("inner", i) for i, v in enumerate(op.inner_inputs)}
        inner = _graph(op.inner_outputs, keys)
    listed = getattr(op, "_props", None)  # of an operation with `__props__`
    settings = listed() if listed else ()
    if listed is None and not isinstance(op, HasInnerGraph | ScalarOp | RandomVariable):
        raise Unseen(f"the operation {op}: its settings are not known")
    return kind.__module__, kind.__qualname__, print_of_class, tuple(map(_of, settings)), inner


def _found(kind: type) -> bool:
    """Return whether a class is found in an installed package under its own name."""
    try:
        installed_class = attrgetter(kind.__qualname__)(sys.modules.get(kind.__module__))
    except AttributeError:
        return False
    return installed_class is kind and installed(kind.__module__)


def _of(value: object) -> Any:
    """Return a key of a setting or of a constant, by its content."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | Enum):
        return type(value).__name__, repr(value)
    match value:
        case np.ndarray() | np.generic() if value.dtype.kind != "O":
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return "array", value.shape, value.dtype.str, content
        case tuple() | list():
            return type(value).__name__, tuple(map(_of, value))
        case Mapping():
            return "mapping", tuple((_of(k), _of(v)) for k, v in value.items())
        case slice():
            return "slice", _of((value.start, value.stop, value.step))
        case Op():
            return _op(value)
        case Constant() | SharedVariable():
            return _root(value)
        case Type() | np.dtype():
            return str(value)
        case type() | FunctionType() | BuiltinFunctionType() | np.ufunc():
            return value.__name__, fingerprint(value)
    raise Unseen(f"{value!r}")
