"""Tables as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

# What Markdown and HTML would read; underscores within a word and "<" before blanks mean nothing.
MARKUP = r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
ESCAPES = {"<": "&lt;", "&": "&amp;"}
LONG = 1e15  # from which on a number is written with powers of ten


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """Return the frame as a Markdown table, "–" for NaN; numbers to `digits` digits of their
    column's largest, or as many decimals where that is below 1; with powers of ten where nothing
    would be left of it, or where it has more than 15 digits. Texts are escaped.

    The index is left out if it only counts rows; column levels are joined by a space.
    """
    columns = []
    for right, plain in cells(frame, digits):
        column = [escaped(cell) for cell in plain]
        width = max(3, *map(len, column))
        column = [cell.rjust(width) if right else cell.ljust(width) for cell in column]
        columns.append([column[0], "-" * (width - right) + ":" * right, *column[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def escaped(text: str) -> str:
    """Return a text of one line that Markdown shows as it is: no HTML, links or emphasis."""
    return re.sub(
        MARKUP, lambda found: ESCAPES.get(found[0], "\\" + found[0]), " ".join(text.splitlines())
    )


def cells(frame: pd.DataFrame, digits: int = 4) -> list[tuple[bool, list[str]]]:
    """Return for each column of `markdown` whether it stands to the right, and its heading and
    cells."""
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    columns = []
    for place, name in enumerate(frame.columns):
        head = [level for level in (name if isinstance(name, tuple) else (name,)) if level != ""]
        values = frame.iloc[:, place]
        heading = " ".join(texts(pd.Series(head, dtype=object)))
        columns.append((is_numeric(values), [heading, *texts(values, digits)]))
    return columns


def within(mean: float, se: float, digits: int = 0, sign: bool = False) -> str:
    """Return a mean ± its standard error; alone where that is not known, "–" where neither is; with
    powers of ten where there are more than 15 digits."""
    if mean != mean:
        return "–"
    numbers = [abs(number) for number in (mean, se) if number == number]
    form = f".{digits}f" if max(numbers) < LONG else ".3g"
    text = f"{mean:{'+' if sign else ''}z{form}}"
    return (text if se != se else f"{text} ± {se:{form}}").replace("inf", "∞")


def with_errors(frame: pd.DataFrame, digits: int | Mapping[str, int] = 2) -> pd.DataFrame:
    """Return the frame to be read: each column that has one of standard errors, `NAME_se`, is one
    with it, "mean ± error"; other numbers are rounded. digits: of all, or by column, else 2."""
    found = {}
    for place, name in enumerate(frame.columns):
        values, error = frame.iloc[:, place], f"{name}_se"
        n = digits if isinstance(digits, int) else digits.get(str(name), 2)
        if str(name).endswith("_se") and str(name).removesuffix("_se") in frame.columns:
            continue
        if error in frame.columns:
            pairs = zip(values, frame[error], strict=True)
            found[name] = pd.Series([within(mean, se, n) for mean, se in pairs], frame.index)
        elif values.dtype.kind == "f":
            found[name] = pd.Series([within(mean, np.nan, n) for mean in values], frame.index)
        else:
            found[name] = values
    return pd.DataFrame(found, index=frame.index)


def share(k: int, n: int, digits: int = 0) -> str:
    """Return k of n in %, ± its standard error, with more digits where it would be 0 or 100
    without; at the ends, where the error is 0, with Wilson's 95 % limit."""
    from scipy.stats import binomtest

    p = k / n
    if 0 < k < n:
        while round(100 * p, digits) in (0, 100):
            digits += 1
        return within(100 * p, 100 * np.sqrt(p * (1 - p) / n), digits)
    limits = binomtest(k, n).proportion_ci(method="wilson")
    bound = f"≤ {100 * limits.high:.{digits}f}" if k == 0 else f"≥ {100 * limits.low:.{digits}f}"
    return f"{100 * p:.0f} ({bound})"


def is_numeric(values: pd.Series) -> bool:
    """Return whether a column has numbers, which stand to the right."""
    return values.dtype.kind in "iuf"


def texts(values: pd.Series, digits: int = 4) -> list[str]:
    """Return the cells of a column, its numbers as `markdown` has them."""
    if is_numeric(values):
        return _numerals(values.to_numpy(np.float64), digits)
    return ["–" if value is None or value != value else str(value) for value in values]


def _numerals(values: np.ndarray, digits: int) -> list[str]:
    finite = values[np.isfinite(values)]
    largest = np.abs(finite).max(initial=0.0)
    if largest >= LONG or 0.0 < largest < 0.5 * 10.0**-digits:
        found = [f"{value:.{digits}g}" for value in values]
    else:
        digits = max(0, digits - (len(str(int(largest))) if largest >= 1 else 0))
        while digits > 0 and (np.round(finite, digits) == np.round(finite, digits - 1)).all():
            digits -= 1
        found = [f"{value:z.{digits}f}" for value in values]
    return [text.replace("nan", "–").replace("inf", "∞") for text in found]
