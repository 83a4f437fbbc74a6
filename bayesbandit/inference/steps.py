"""The operations of a compiled graph, one after the other, as calls of NumPy.

PyTensor's own machine in Python takes several microseconds an operation to store and to check,
where a few hundred numbers are computed in one. (Its `fgraph_to_python` would do the same, and
leaves a file on disk for each function.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.basic import Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from scipy import special

from bayesbandit.checks import Array
from bayesbandit.inference.graph_analysis.operations import kind

Call = Callable[..., Any]
PLAIN_CLASSES = {"check", "move", "product", "put", "reduction", "shape", "take"}
NAMES = {"AllocEmpty", "ARange", "CumOp"}  # and others, by name


def _log1mexp(x: Array) -> Array:
    # log(1 − e^x): next to 0 the difference 1 − e^x cancels, and far below 0 the logarithm does
    return np.where(x < np.log(0.5), np.log1p(-np.exp(x)), np.log(-np.expm1(x)))


def _second(like: Array, x: Array) -> Array:
    shape = tuple([m if n == 1 else n for n, m in zip(like.shape, x.shape, strict=True)])
    out = np.empty(shape, x.dtype)  # quicker than `np.broadcast_to`
    out[...] = x
    return out


ELEMENTWISE: dict[str, Call] = {  # what PyTensor computes number by number
    "Clip": np.clip,
    "Log1mexp": _log1mexp,
    "Second": _second,
    "Softplus": lambda x: np.logaddexp(0.0, x),
}


def steps(graph: FunctionGraph) -> Call | None:
    """Return a graph as a function of arrays of its inputs' types; None where an operation has no
    plain call.

    Shared variables, as the length of a named dimension, have the values of the moment.
    """
    calls = {node: _call(node) for node in graph.toposort()}
    place: dict[Variable, int] = {}
    constants: list[Any] = []  # by place; None for what is computed

    def at(v: Variable) -> int:
        if v not in place:
            place[v] = len(place)
            constants.append(v.data if isinstance(v, Constant) else None)
        return place[v]

    for v in graph.inputs:  # shared ones are the last of them
        at(v)
    inputs = len(place)
    shared = [v for v in graph.inputs if isinstance(v, SharedVariable)]
    plain = [(f, [*map(at, n.inputs)], at(n.outputs[0])) for n, f in calls.items() if f is not None]
    outputs = [at(v) for v in graph.outputs]
    if len(plain) < len(calls):
        return None

    def run(*arguments: Array) -> list[Any]:
        values = constants.copy()  # of this call alone, so that threads may share the rest
        values[:inputs] = *arguments, *[v.get_value(borrow=True) for v in shared]
        with np.errstate(all="ignore"):
            for call, given, out in plain:
                values[out] = call(*[values[i] for i in given])
        return [values[i] for i in outputs]

    return run


def _call(node: Apply) -> Call | None:
    op = node.op
    if len(node.outputs) > 1:
        return None
    if isinstance(op, Blockwise):
        return _joined(node) if isinstance(op.core_op, Join) else None
    if type(op).__name__ == "LogSumExp":
        return lambda values: np.asarray(special.logsumexp(values, axis=op.axis))
    if isinstance(op, Elemwise):
        return _elementwise(node)
    plain = kind(node) in PLAIN_CLASSES or type(op).__name__ in NAMES
    return _performed(node) if plain else None


def _elementwise(node: Apply) -> Call | None:
    """Return NumPy's function, as PyTensor has prepared it."""
    op = node.op
    dtype = np.dtype(node.outputs[0].type.dtype)
    if op.inplace_pattern:
        return None
    if own := ELEMENTWISE.get(type(op.scalar_op).__name__):
        return lambda *values: np.asarray(own(*values), dtype)
    known = op.nfunc is not None and op.nfunc_spec[1] == len(node.inputs)
    function: Any = op.nfunc if known else node.tag.ufunc if op.ufunc is None else op.ufunc
    if known and (signature := getattr(node.tag, "sig", None)):
        return lambda *values: np.asarray(function(*values, sig=signature), dtype)
    return lambda *values: np.asarray(function(*values), dtype)


def _joined(node: Apply) -> Call | None:
    """Return arrays side by side along one of their last axes; those before are broadcast."""
    batch = node.op.batch_ndim(node)
    axis = node.op.core_op._props_dict().get("axis")
    if axis is None:  # older versions take it as an input
        return None

    def call(*values: Array) -> Array:
        shape = np.broadcast_shapes(*(v.shape[:batch] for v in values))
        parts = [np.broadcast_to(v, (*shape, *v.shape[batch:])) for v in values]
        return np.concatenate(parts, axis=batch + axis)

    return call


def _performed(node: Apply) -> Call:
    """Return what PyTensor does."""
    perform = node.op.perform

    def call(*values: Any) -> Any:
        cell = [None]
        perform(node, values, [cell])
        return cell[0]

    return call
