"""Labels of classes as arms: their names, and the place of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.tables.words import text_of

if TYPE_CHECKING:
    import pandas as pd

type Labels = Sequence[Any] | Array | pd.Series

FEW_CLASSES = 20  # more classes must be at most half as many as the rows


def classes(y: Labels) -> tuple[Array, tuple[str | int, ...]]:
    """Return the index of each label's class, (n,), and the names of the classes, as `levels_of`.

    Raise ValueError for labels of one class, or of nearly as many as there are rows.
    """
    index, arms = levels_of(y)
    if len(arms) < 2:
        raise ValueError(f"there must be two classes or more; every label is {arms[0]!r}")
    if len(arms) > max(FEW_CLASSES, len(index) / 2):
        raise ValueError(
            f"{len(index)} rows have {len(arms)} different labels, which looks like a measurement "
            "or an identifier rather than a class; cut it into classes first"
        )
    return index, arms


def levels_of(y: Labels) -> tuple[Array, tuple[str | int, ...]]:
    """Return the index of each label's level, (n,), and the sorted names of the levels, (K,).

    Whole numbers stay ints. All other labels become texts; floats are sorted by value. Labels with
    the same text, such as 1 and "1" in one column, are one level.
    """
    import pandas as pd

    if np.ndim(y) != 1:
        raise ValueError(f"y must be one column of labels; got shape {np.shape(y)}")
    labels = pd.Series(y)
    if labels.empty:
        raise ValueError("the data set is empty")
    if missing := int(labels.isna().sum()):
        raise ValueError(f"{missing} of the {len(labels)} labels are missing; drop those rows")
    codes, levels = pd.factorize(np.asarray(labels))
    kind = pd.api.types.infer_dtype(levels)
    names = [int(level) if kind == "integer" else text_of(level) for level in levels]
    by_value = kind in ("floating", "mixed-integer-float")
    arms = tuple(sorted(set(names), key=float if by_value else None))
    index = {arm: k for k, arm in enumerate(arms)}
    return np.array([index[name] for name in names])[codes], arms
