"""Tables as text."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from bayesbandit.checks import Array

# Characters with a meaning in Markdown or HTML. An underscore within a word has none, nor has "<"
# before a blank.
MARKDOWN_CHARACTERS = r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
ESCAPES = {"<": "&lt;", "&": "&amp;"}
SCIENTIFIC_FROM = 1e15  # numbers of this size or more are written with powers of ten


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """Return the frame as a Markdown table. Texts are escaped, and NaN is "–".

    digits: significant digits of the largest number in a column. If it is below 1, all numbers
    have as many decimals. Powers of ten are used if the largest number would be rounded to 0, or
    has more than 15 digits. A RangeIndex is left out. Column levels are joined by a space.
    """
    columns = []
    for right, plain in cells(frame, digits):
        column = [escaped(cell) for cell in plain]
        width = max(3, *map(len, column))
        column = [cell.rjust(width) if right else cell.ljust(width) for cell in column]
        columns.append([column[0], "-" * (width - right) + ":" * right, *column[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))


def escaped(text: str) -> str:
    """Return the text on one line, escaped: Markdown reads no HTML, links or emphasis in it."""
    return re.sub(
        MARKDOWN_CHARACTERS,
        lambda match: ESCAPES.get(match[0], "\\" + match[0]),
        " ".join(text.splitlines()),
    )


def cells(frame: pd.DataFrame, digits: int = 4) -> list[tuple[bool, list[str]]]:
    """Return for each column of `markdown` whether to align it right, and its heading and cells."""
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
    """Return "mean ± standard error" as text.

    Without a standard error (NaN) it is the mean alone; without a mean it is "–". Numbers with more
    than 15 digits are written with powers of ten. sign: whether to write "+".
    """
    if mean != mean:
        return "–"
    numbers = [abs(number) for number in (mean, se) if number == number]
    form = f".{digits}f" if max(numbers) < SCIENTIFIC_FROM else ".3g"
    text = f"{mean:{'+' if sign else ''}z{form}}"
    return (text if se != se else f"{text} ± {se:{form}}").replace("inf", "∞")


def span(values: pd.Series) -> str:
    """Return the least and the largest of some integers as text; one number if they are equal."""
    least, most = values.agg(["min", "max"])
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def is_numeric(values: pd.Series) -> bool:
    """Return whether a column has numbers, which are aligned right."""
    return values.dtype.kind in "iuf"


def texts(values: pd.Series, digits: int = 4) -> list[str]:
    """Return the cells of a column as texts, with numbers as in `markdown`."""
    if is_numeric(values):
        return _numerals(values.to_numpy(np.float64), digits)
    missing = values.isna()
    return ["–" if gap else str(value) for value, gap in zip(values, missing, strict=True)]


def _numerals(values: Array, digits: int) -> list[str]:
    finite = values[np.isfinite(values)]
    largest = np.abs(finite).max(initial=0.0)
    if largest >= SCIENTIFIC_FROM or 0.0 < largest < 0.5 * 10.0**-digits:
        numbers = [f"{value:.{digits}g}" for value in values]
    else:
        digits = max(0, digits - (len(str(int(largest))) if largest >= 1 else 0))
        while digits > 0 and (np.round(finite, digits) == np.round(finite, digits - 1)).all():
            digits -= 1
        numbers = [f"{value:z.{digits}f}" for value in values]
    return [number.replace("nan", "–").replace("inf", "∞") for number in numbers]
