"""Values as text, and numbers that are written as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

STRAY = 0.1  # the share of words at most in a column that is taken to be meant as numbers
MAX_LEVELS = 20  # one-hot columns that one column may become
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"  # dates
GROUPED = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"  # a number with thousands separators
# a number with a decimal comma; of dates, versions and IP addresses, which have points too, none is
COMMA = r"(?!(\d{1,3}\.){3}\d{1,3}$)[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?"


def text_of(value: object) -> str:
    """A level's or a label's text; of an enumeration's member that is a text, that text."""
    if isinstance(value, str):
        return str.__str__(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def texts(column: pd.Series, name: Any) -> pd.Series:
    """A column's values as text, NaN where one is missing."""
    try:
        text = column.astype(object).map(text_of, na_action="ignore")
    except UnicodeDecodeError as error:
        raise ValueError(f"column {name!r} has bytes that are no text: {error}") from error
    return text.where(text.notna(), np.nan)


def plain_or_grouped(text: pd.Series) -> tuple[pd.Series, bool]:
    """Texts as numbers, NaN where one is none; and whether thousands separators were read, which
    they are where more than a tenth of the texts have them in the right places."""
    import pandas as pd

    plain = pd.to_numeric(text, errors="coerce")
    grouped = pd.to_numeric(text.where(text.str.fullmatch(GROUPED)).str.replace(",", ""))
    separated = bool(grouped.notna().sum() > STRAY * len(text))
    return (plain.fillna(grouped) if separated else plain), separated


def written_number(text: str) -> float:
    """The number that a text with or without thousands separators is; NaN of another."""
    import re

    import pandas as pd

    plain = text.replace(",", "") if re.fullmatch(GROUPED, text) else text
    return float(pd.to_numeric(pd.Series([plain], dtype=object), errors="coerce").iloc[0])


def numbers_in(name: Any, text: pd.Series) -> pd.Series | None:
    """A column of text as the numbers that all of it is, with thousands separators; None of one of
    words. An error of one of numbers which a few words, or decimal commas, keep from being read."""
    import pandas as pd

    known = text.dropna().astype(str)
    usual, separated = plain_or_grouped(known)
    comma = known.where(known.str.strip().str.fullmatch(COMMA))
    commas = comma.str.replace(".", "", regex=False).str.replace(",", ".", n=1, regex=False)
    for number in usual, usual.fillna(pd.to_numeric(commas, errors="coerce")):
        odd = known[usual.isna()]
        meant = number.isna().sum() <= STRAY * len(known) and number.nunique() > MAX_LEVELS
        if meant and len(odd):
            at = np.flatnonzero(np.asarray(text.isin(odd)))[:3].tolist()
            shown = ", ".join(
                f"{value!r} in row {row + 1}" for row, value in zip(at, odd.head(3), strict=True)
            )
            more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
            raise ValueError(
                f"column {name!r} has numbers, but for {shown}{more}: mend them, or leave them "
                "empty where they are missing"
            )
    return usual.reindex(text.index) if separated and usual.notna().all() else None
