"""PyTensor's mode of functions that run a few times: ready at once, by NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytensor.tensor as pt
from pytensor.compile.mode import get_mode, register_mode
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph

UNCOMPILED_MODE = "BAYESBANDIT_UNCOMPILED"
MAX_OPERANDS = 31  # NumPy's functions take 32 arrays, with the result


@node_rewriter([pt.add, pt.mul])
def _in_parts(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Return a long sum or product as one of shorter ones, which NumPy can take."""
    parts = node.inputs
    if len(parts) <= MAX_OPERANDS:
        return None
    while len(parts) > MAX_OPERANDS:
        groups = [parts[i : i + MAX_OPERANDS] for i in range(0, len(parts), MAX_OPERANDS)]
        parts = [node.op(*few) for few in groups]
    return [node.op(*parts)]


AFTER_SUMS_ARE_FLAT = 48.95  # the place among PyTensor's rewrites, before those that work in place
register_mode(
    UNCOMPILED_MODE,
    get_mode("FAST_COMPILE").register((dfs_rewriter(_in_parts), AFTER_SUMS_ARE_FLAT)),
)
