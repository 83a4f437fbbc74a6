"""Contexts whose columns have names: x["age"] beside x[:, 0]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any


def name_columns(x: Any, features: Sequence[str]) -> None:
    """Let the variable x (n, d) take columns by name: x["age"] (n,), x[["age", "income"]] (n, 2).

    Raise ValueError if there are not d names.
    """
    d = x.type.shape[1]
    if d is not None and d != len(features):
        raise ValueError(f"contexts have {d} columns; features name {len(features)}")
    x.tag.features = tuple(features)
    kind: Any = type(x)
    x.__class__ = _with_names(kind)


@cache
def _with_names(kind: Any) -> type:
    """Return the class of variables of this kind that take columns by name."""

    def getitem(self: Any, index: Any) -> Any:
        if isinstance(index, str):
            index = slice(None), _number(self.tag.features, index)
        elif isinstance(index, list) and index and isinstance(index[0], str):
            index = slice(None), [_number(self.tag.features, name) for name in index]
        return kind.__getitem__(self, index)

    return type(kind.__name__, (kind,), {"__getitem__": getitem})


def _number(features: Sequence[str], name: str) -> int:
    if name not in features:
        raise ValueError(f"x has no column {name!r}; its columns: {', '.join(features)}")
    return features.index(name)
