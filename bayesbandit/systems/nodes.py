"""Trees as arrays of nodes, and what a file must hold of them: every path ends in a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesbandit.forms import Form, Numbers, State, check, demand


def nodes_form(state: State, most: int, ends: Callable[[], np.ndarray]) -> Form:
    """Return the forms of `feature`, `threshold`, `left` and `right` (N,), by name.

    A leaf has feature −1. most: the largest feature. ends: returns where the tree of each node ends
    (N,); children are behind their parents, and in the same tree.
    """
    N = len(state["feature"])

    def children(value: Any, where: str) -> None:
        check(value, Numbers((N,), dtype="<i8"), where)
        [split] = np.nonzero(state["feature"] >= 0)
        behind = (value[split] > split) & (value[split] < ends()[split])
        demand(N > 0 and behind.all(), f"{where}: a node must be in its parent's tree, behind it")

    return {
        "feature": Numbers((N,), -1, most, dtype="<i8"),
        "threshold": Numbers((N,)),
        "left": children,
        "right": children,
    }
