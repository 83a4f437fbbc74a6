"""Rewrites that bring a log density's graph into the few forms that the analyses read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import (
    GraphRewriter,
    MergeOptimizer,
    dfs_rewriter,
    node_rewriter,
)
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.xtensor import as_xtensor
from pytensor.xtensor.type import XTensorType, XTensorVariable

from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    number,
    operands,
    operation,
)
from bayesbandit.inference.graph_analysis.rows import ALONG, DATA_ROW, RowWalk

EXPANDING = ("DimShuffle", "ExpandDims")


def plain(graphs: Sequence[Variable]) -> list[Variable]:
    """Return graphs with plain tensors in the place of `pymc.dims` variables."""
    return [g.values if isinstance(g, XTensorVariable) else g for g in graphs]


def like(variable: Variable, tensor: Variable) -> Variable:
    """Return a tensor in a variable's place, with the names of its dimensions if it has them."""
    named = isinstance(variable.type, XTensorType)
    return as_xtensor(tensor, dims=variable.type.dims) if named else tensor


def lowered(graphs: list[Variable]) -> list[Variable]:
    """Return graphs of plain tensors, without functions that contain graphs."""
    graphs = plain(graphs)
    if any(isinstance(v.type, XTensorType) for v in ancestors(graphs)):
        # on a copy, because this rewrite changes graphs in place
        graphs = rewritten(clone_replace(graphs, {}), "lower_xtensor")
    return unfolded(graphs)


def unfolded(graphs: list[Variable]) -> list[Variable]:
    """Return graphs in which each call of a function that contains a graph is replaced by that
    graph.

    Proofs about a graph must not depend on whether a part of it is in a function.
    """
    folded = [
        v for v in ancestors(graphs) if v.owner is not None and _inner(v.owner.op) is not None
    ]
    if not folded:
        return graphs
    return rewritten(clone_replace(graphs, {}), by=UNFOLD)


def merged(graphs: list[Variable]) -> list[Variable]:
    """Return graphs in which equal computations are one node."""
    return rewritten(clone_replace(graphs, {}), by=MergeOptimizer())


def floating(graphs: list[Variable]) -> list[Variable]:
    """Return graphs in which whole numbers become floating before they meet floating ones.

    PyTensor rewrites (a / k) / k as a / k², and an int8 of 20 has the square −112.
    """
    return rewritten(graphs, by=dfs_rewriter(_whole_to_floating))


def simplified(*graphs: Variable) -> list[Variable]:
    """Return equal graphs, without what cancels."""
    return rewritten(clone_replace(graphs, {}), "canonicalize")


def guarded(graphs: list[Variable]) -> list[Variable]:
    """Return log densities that are −∞, and raise no error, if a parameter is out of its bounds."""
    from pymc.logprob.utils import local_check_parameter_to_ninf_switch as guard

    return rewritten(clone_replace(graphs, {}), by=dfs_rewriter(guard))


def rewritten(
    graphs: Sequence[Variable], *include: str, by: GraphRewriter | None = None
) -> list[Variable]:
    """Rewrite graphs in place, by the PyTensor rewrites of these names and by another one."""
    rewritten = rewrite_graph(list(graphs), include=include, custom_rewrite=by)
    assert isinstance(rewritten, Sequence)
    return list(rewritten)


def _inner(op: Op) -> OpFromGraph | None:
    """Return the function with a graph that an operation is, or applies along batches."""
    core = op.core_op if isinstance(op, Blockwise) else op
    return core if isinstance(core, OpFromGraph) else None


@node_rewriter(None)
def _unfold(_: FunctionGraph, node: Apply) -> list[Variable] | None:
    inner = _inner(node.op)
    if inner is None:
        return None
    # PyTensor before 3.2 has no immutable graphs
    graph: Any = getattr(inner.fgraph, "unfreeze", lambda: inner.fgraph)()
    given = dict(zip(graph.inputs, node.inputs, strict=True))
    if isinstance(node.op, Blockwise):
        return list(vectorize_graph(graph.outputs, replace=given))
    return list(clone_replace(graph.outputs, given, rebuild_strict=False))


UNFOLD = dfs_rewriter(_unfold)


@node_rewriter([Elemwise])
def _whole_to_floating(_: FunctionGraph, node: Apply) -> list[Variable] | None:
    whole = [str(v.type.dtype).startswith(("int", "uint")) for v in node.inputs]
    switch = elementwise_name(node.outputs[0]) in ("Switch", "Cast")
    dtype = node.outputs[0].type.dtype
    if not dtype.startswith("float") or not any(whole) or switch:
        return None
    pairs = zip(node.inputs, whole, strict=True)
    inputs = [pt.cast(v, dtype) if is_whole else v for v, is_whole in pairs]
    return list(node.op.make_node(*inputs).outputs)


def by_rows(
    terms: list[Variable], mean: Variable, m: Variable, inputs: Sequence[Variable]
) -> list[Variable]:
    """Return a log density's terms with m (n,) in the place of a mean reward that is one number.

    A term stays as it is if it is not proved that each row then has its own m. In the other terms,
    row i's value depends on m_i alone, and for equal m it is the value before.
    """
    if _number(mean) is None:
        return terms
    *shared, same = merged([*terms, mean])
    scalar = _number(same)
    seeds = dict.fromkeys([*inputs, m], DATA_ROW)
    assert scalar is not None
    spread_out = []
    for term, graph in zip(terms, shared, strict=True):
        # where one mean for all rows becomes an array of length 1 it gets an m of each row
        # instead
        spread = [v for v in ancestors([graph]) if _expands(v) and scalar in ancestors([v])]
        each = vectorize_graph([v.owner.inputs[0] for v in spread], {scalar: m}) if spread else []
        new = clone_replace(graph, dict(zip(spread, each, strict=True)), rebuild_strict=False)
        apart = spread and scalar not in ancestors([new])
        spread_out.append(new if apart and RowWalk([new], seeds).of(new).kind == ALONG else term)
    return spread_out


def _number(mean: Variable) -> Variable | None:
    """Return the number behind a mean reward that is one number, spread over the rows by zeros;
    else None."""
    if elementwise_name(mean) != "Add":
        return None
    for zeros, spread in (operands(mean), operands(mean)[::-1]):
        if _expands(spread) and _is_zero(zeros):
            return spread.owner.inputs[0]
    return None


def _expands(v: Variable) -> bool:
    """Return whether a node turns a number into an array of length 1."""
    if v.owner is None or operation(v.owner)[1] not in EXPANDING:
        return False
    return v.type.ndim == 1 and v.owner.inputs[0].type.ndim == 0


def _is_zero(v: Variable) -> bool:
    if elementwise_name(v) == "Second":
        v = operands(v)[1]
    return number(v) == 0.0
