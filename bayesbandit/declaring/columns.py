"""Contexts whose columns have names: x["age"] beside x[:, 0]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytensor.tensor.variable import TensorVariable


def name_columns(x: TensorVariable, features: Sequence[str]) -> None:
    """Let the variable x (n, d) take columns by its d names: x["age"] (n,), x[["age", "income"]]
    (n, 2)."""
    x.tag.features = tuple(features)
    x.__class__ = _with_names(type(x))


@cache
def _with_names(kind: type[TensorVariable]) -> type[TensorVariable]:
    """Return the class of variables of this kind that take columns by name."""

    def getitem(self: TensorVariable, index: object) -> TensorVariable:
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
