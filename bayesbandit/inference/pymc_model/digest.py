"""The digest of a built model: two declarations are the same if their digests are equal.

It covers the graph of the model: operations, constants, fixed data, transforms and dimensions, but
not the rows. Whatever the declaration read when it was built (a setting, a shared variable, a
DataFrame) is in the graph as numbers. A digest is the same in every process.

Functions behind an operation, such as the `logp` of a CustomDist, count by their code and by the
values that they refer to. If these cannot be seen, there is no digest.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from operator import attrgetter
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.traversal import toposort
from pytensor.graph.type import Type
from pytensor.tensor.random.type import RandomType

from bayesbandit.inference.graph_analysis.density import containers, lengths, row_dimension
from bayesbandit.runtime.fingerprints import does, installed, names

if TYPE_CHECKING:
    import pymc as pm


@runtime_checkable
class HasSettings(Protocol):
    """An operation that lists its settings in `__props__`."""

    def _props(self) -> tuple[object, ...]: ...


@runtime_checkable
class Table(Protocol):
    """A table, or a column of a table, of any library."""

    def to_numpy(self) -> np.ndarray: ...


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
    named = {v: ("row data", role) for role, v in data.items()}
    named |= {model.rvs_to_values[v]: ("value", v.name) for v in model.free_RVs}
    random = [*model.free_RVs, *model.observed_RVs]
    outputs = [
        *(*random, *model.potentials, *model.deterministics),
        *(model.rvs_to_values[v] for v in model.observed_RVs),
    ]
    row = row_dimension(model)
    coords = sorted((str(k), _of(tuple(v))) for k, v in model.coords.items() if v and k != row)
    shapes = lengths(model, but=row)
    return (
        [v.name for v in (*random, *model.potentials, *model.deterministics)],
        [(v.name, _of(model.rvs_to_transforms[v])) for v in model.free_RVs],
        sorted((k, tuple(map(str, dims))) for k, dims in model.named_vars_to_dims.items()),
        (data["x"].get_value(borrow=True).shape[1], coords, sorted(shapes.items())),
        _graph(outputs, named),
    )


def _graph(outputs: Sequence[Variable], named: Mapping[Variable, Any]) -> tuple[Any, ...]:
    """Return the nodes in order, each by its operation and by the sources of its inputs."""
    at: dict[Variable, Any] = dict(named)
    nodes = []

    def of(variable: Variable) -> Any:
        if variable not in at:
            at[variable] = _root(variable)
        return at[variable]

    for i, node in enumerate(toposort(outputs, blockers=list(named))):
        nodes.append((_op(node.op), tuple(of(v) for v in node.inputs)))
        for j, v in enumerate(node.outputs):
            at[v] = i, j, str(v.type)
    return tuple(nodes), tuple(of(v) for v in outputs)


def _root(variable: Variable) -> Any:
    if isinstance(variable, Constant):
        return "constant", str(variable.type), _of(variable.data)
    if isinstance(variable, SharedVariable):
        if isinstance(variable.type, RandomType):
            return "random numbers"
        return "shared", str(variable.type), _of(variable.get_value(borrow=True))
    raise Unseen(f"the input {variable}")


def _op(op: Op) -> Any:
    """Return an operation: its class, its settings, and the graph or the functions in it."""
    kind = _class(type(op))
    inner = None
    if isinstance(op, HasInnerGraph):
        keys = {v: ("inner", i) for i, v in enumerate(op.inner_inputs)}
        inner = _graph(op.inner_outputs, keys)
    if isinstance(op, HasSettings):
        return kind, tuple(map(_of, op._props())), inner
    return kind, inner if inner is not None or _ours(type(op)) else _of(vars(op))


def _ours(kind: type) -> bool:
    """Return whether a class is found in an installed package under its own name."""
    try:
        there = attrgetter(kind.__qualname__)(sys.modules.get(kind.__module__))
    except AttributeError:
        return False
    return there is kind and installed(kind.__module__)


def _class(kind: type, seen: tuple[Any, ...] = ()) -> Any:
    """Return a class by its name; a class made at run time, and a user's class, also by its
    functions."""
    name = kind.__module__, kind.__qualname__
    if _ours(kind):
        return name
    within = (*seen, kind)
    from pymc.logprob.abstract import _logprob

    members = {k: v for k, v in vars(kind).items() if k[:2] != "__" and k != "_abc_impl"}
    members |= {k: v for k, v in vars(kind).items() if isinstance(v, FunctionType)}
    bases = tuple(_class(base, within) for base in kind.__bases__)
    return name, _of(members, within), _of(_logprob.dispatch(kind), within), bases


def _of(value: object, seen: tuple[Any, ...] = ()) -> Any:
    """Return a key of a value: numbers and arrays by content, functions by code."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return type(value).__name__, repr(value)
    if any(value is other for other in seen):
        return "itself"
    within = (*seen, value)
    match value:
        case np.ndarray() | np.generic():
            return _array(np.asarray(value), within)
        case tuple() | list():
            return type(value).__name__, tuple(_of(v, within) for v in value)
        case Mapping():
            return "mapping", tuple((_of(k, within), _of(v, within)) for k, v in value.items())
        case set() | frozenset():
            return "set", tuple(sorted(repr(_of(v, within)) for v in value))
        case slice():
            return "slice", tuple(_of(v, within) for v in (value.start, value.stop, value.step))
        case Constant() | SharedVariable():
            return _root(value)
        case Op():
            return _op(value)
        case Type() | np.dtype():
            return str(value)
        case Enum():
            return _class(type(value), seen), value.name
        case ModuleType() if installed(value.__name__):
            return "module", value.__name__
        case staticmethod() | classmethod():
            return type(value).__name__, _of(value.__func__, within)
        case property():
            return "property", _of((value.fget, value.fset), within)
        case type():
            return _class(value, seen)
        case FunctionType():
            return _function(value, within)
        case MethodType():
            return _of(value.__func__, within), _of(value.__self__, within)
        case partial():
            return "partial", _of((value.func, value.args, value.keywords), within)
        case BuiltinFunctionType() | np.ufunc():
            return "built in", value.__name__
    return _object(value, within)


def _array(array: np.ndarray, seen: tuple[Any, ...]) -> Any:
    if array.dtype.kind == "O":
        return "objects", array.shape, tuple(_of(v, seen) for v in array.ravel())
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return "array", array.shape, array.dtype.str, content


def _object(value: object, seen: tuple[Any, ...]) -> Any:
    """Return the key of a table by its content, and of an object by its attributes, if it has no
    other content."""
    kind = type(value)
    if isinstance(value, Table):
        labels = [getattr(value, a, None) for a in ("columns", "index", "name")]
        labels = [list(n) if isinstance(n, Iterable) else n for n in labels]
        return _class(kind, seen), _of(labels, seen), _of(value.to_numpy(), seen)
    slots = any(vars(base).get("__slots__") for base in kind.__mro__)
    attributes = None if slots or isinstance(value, Variable) else _attributes(value)
    if attributes is None:
        raise Unseen(f"{value!r}")
    return _class(kind, seen), _of(attributes, seen)


def _attributes(value: object) -> dict[str, object] | None:
    """Return the attributes of an object; None if it has no `__dict__`."""
    try:
        return dict(vars(value))
    except TypeError:
        return None


def _function(function: FunctionType, seen: tuple[Any, ...]) -> Any:
    if installed(function.__module__ or ""):  # PyMC's way to a user's `logp` is a closure
        inside = [cell.cell_contents for cell in function.__closure__ or ()]
        within = [_of(v, seen) for v in inside if not _symbolic(v)]
        return function.__module__, function.__qualname__, within
    around = tuple(
        (name, _of(function.__globals__[name], seen))
        for name in sorted(set(names(function.__code__)))
        if name in function.__globals__
    )
    cells = tuple(_cell(cell, seen) for cell in function.__closure__ or ())
    defaults = _of([*(function.__defaults__ or ()), function.__kwdefaults__ or {}], seen)
    attributes = _of(vars(function), seen)
    return function.__name__, does(function.__code__), around, cells, defaults, attributes


def _symbolic(value: object) -> bool:
    """Return whether a value is a variable of the graph, or several, which the graph covers."""
    if isinstance(value, tuple | list):
        return bool(value) and all(map(_symbolic, value))
    return isinstance(value, Variable)


def _cell(cell: CellType, seen: tuple[Any, ...]) -> Any:
    try:
        return _of(cell.cell_contents, seen)
    except ValueError:  # not filled yet
        return "empty"
