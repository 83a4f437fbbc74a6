"""Tables as text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """The frame as a Markdown table, numbers to `digits` decimals, "–" for NaN.

    The index is left out if it only counts rows; column levels are joined by a space.
    """
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    columns = []
    for place, name in enumerate(frame.columns):
        head = [level for level in (name if isinstance(name, tuple) else (name,)) if level != ""]
        values = frame.iloc[:, place]
        right = values.dtype.kind in "iuf"
        cells = _numerals(values.to_numpy(np.float64), digits) if right else _words(values)
        cells = [" ".join(_words(head)), *cells]
        width = max(3, *map(len, cells))
        cells = [cell.rjust(width) if right else cell.ljust(width) for cell in cells]
        columns.append([cells[0], "-" * (width - right) + ":" * right, *cells[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def _numerals(values: np.ndarray, digits: int) -> list[str]:
    finite = values[np.isfinite(values)]
    digits = 0 if (finite == np.round(finite)).all() else digits
    texts = (f"{value:.{digits}f}" for value in values)
    return [text.replace("nan", "–").replace("inf", "∞") for text in texts]


def _words(values: Iterable[object]) -> list[str]:
    texts = ("–" if value is None or value != value else str(value) for value in values)
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]
