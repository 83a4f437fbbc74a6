"""Reading CSV files with the separators and decimal marks of different countries."""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit.tables.words import GROUPED

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = ",;\t|"
TRIED = 20  # rows used to recognise the separator
SHOWN = 20  # characters that an error shows after a position
QUOTED = re.compile(r'"(?:[^"]++|"")*+"')  # a quoted value; a quote within it is doubled
THOUSANDS = r"\s*[+-]?\d{1,3}(\.\d{3})*\s*"  # with points, or a number below 1,000
DECIMAL_COMMA = r"\s*[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?\s*"


def read(path: str | Path, target: str | None = None) -> pd.DataFrame:
    """Return the table of a CSV file with a header.

    Values are separated by commas, semicolons, tabs or bars. With semicolons, numbers may have
    decimal commas; where a column has them, 1.500 is 1500 in all columns that may mean it. An
    unnamed first column that numbers the rows is left out. In features, missing values are
    recognised as in pandas. In the target only an empty cell is missing, so that "NA" or "None" is
    a class. Raise FileNotFoundError, or ValueError for a file that cannot be read.
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        form: dict[str, Any] = {"sep": separator(path)}
        check_text(path.read_text(encoding="utf-8-sig"), form["sep"])
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, **form).iloc[0]
        if repeated := sorted(set(header[header.duplicated() & header.notna()])):
            raise ValueError(f"columns of one name: {', '.join(repeated)}")
        df = pd.read_csv(path, **form)
        _check_width(df, path, len(header), form)
        if target is not None and target in df:
            df[target] = pd.read_csv(path, keep_default_na=False, na_values=[""], **form)[target]
    except UnicodeError as error:
        raise ValueError(
            f"{path} cannot be read as comma-separated text: {error}; save it as UTF-8"
        ) from error
    except ValueError as error:  # pandas' errors are ValueErrors
        raise ValueError(f"{path} cannot be read as comma-separated text: {error}") from error
    first = df.columns[0]
    if str(first).startswith("Unnamed: ") and df[first].equals(pd.Series(range(len(df)))):
        df = df.drop(columns=first)  # the index that `DataFrame.to_csv` wrote, not a feature
    if form["sep"] == ";":
        read_as = {name: df[name] for name in df.columns.drop(target, errors="ignore")}
        plain = {name: with_points(column) for name, column in read_as.items()}
        commas = any(plain[name] is not column for name, column in read_as.items())
        written = pd.read_csv(path, dtype=str, **form) if commas else None
        for name, column in plain.items():
            df[name] = column if written is None else without_points(column, written[name])
    return df


def separator(path: Path) -> str:
    """Return the separator of a file, judged by its first rows.

    It splits them into the most values, the same number in each row. Without such a separator, it
    is the one that splits the first row into the most values. Of equals, the comma comes first.
    """
    widths = {}
    for sep in SEPARATORS:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = []
            with suppress(csv.Error):  # for example a value longer than 131,072 characters
                for row in islice(csv.reader(file, delimiter=sep), TRIED):
                    rows += [len(row)] if row else []
        first = rows[0] if rows else 0
        widths[sep] = first > 1 and len(set(rows)) == 1, first
    return max(widths, key=widths.__getitem__)


def check_text(text: str, sep: str) -> None:
    """Raise ValueError for a NUL character, or for a quote that would swallow the rows after it.

    Readers stop at NUL characters or skip them. A quote swallows rows if it is never closed, or is
    closed by the quote that opens another value.
    """
    if (at := text.find("\0")) >= 0:
        raise ValueError(f"line {_line(text, at)} has a NUL character: {_around(text, at)}")
    opening, end = re.compile(rf'(?:^|(?<=[{re.escape(sep)}\n]))"'), 0
    while match := opening.search(text, end):
        start = match.start()
        if (closed := QUOTED.match(text, start)) is None:
            raise ValueError(
                f"line {_line(text, start)} opens a quote that is never closed: "
                f"{_around(text, start)}"
            )
        end = closed.end()
        if "\n" in closed[0] and text[end : end + 1] not in ("", "\n", sep):
            raise ValueError(
                f"line {_line(text, start)} opens a quote, {_around(text, start)}, that is closed "
                f"within a value of line {_line(text, end)}: {_around(text, end)}"
            )


def _line(text: str, at: int) -> int:
    """Return the line number of a position in the text, from 1."""
    return text.count("\n", 0, at) + 1


def _around(text: str, at: int) -> str:
    """Return the text around a position, from its line only."""
    line = text[text.rfind("\n", 0, at) + 1 : at + SHOWN].split("\n")[0]
    return repr(line[-2 * SHOWN :])


def _check_width(df: pd.DataFrame, path: Path, width: int, form: dict[str, Any]) -> None:
    """Raise ValueError if rows have more values than the header has names.

    pandas then reads the first values of a row as its index, and shifts the others to wrong
    columns.
    """
    import pandas as pd

    if isinstance(df.index, pd.RangeIndex) or not len(df):
        wider = len(df) and df.iloc[:, -1].isna().all() and _is_wider(path, width, form)
    else:
        empty = df.iloc[:, -1].isna().all()  # of rows that end with a separator
        wider = df.index.nlevels > 1 or not df.index.is_unique or empty
    if wider:
        raise ValueError(
            f"rows have more values than the {width} names of the header: name every column, and "
            "take away what separates at the ends of rows"
        )


def _is_wider(path: Path, width: int, form: dict[str, Any]) -> bool:
    """Return whether the first row of a file has more values than the header has names."""
    import pandas as pd

    return pd.read_csv(path, header=None, skiprows=1, nrows=1, dtype=str, **form).shape[1] > width


def with_points(column: pd.Series) -> pd.Series:
    """Return a column of texts with decimal commas as numbers.

    Any other column is returned unchanged, and so is one whose commas may separate thousands.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    known = column.dropna().astype(str)
    commas = known.str.contains(",", regex=False)
    if not (commas.any() and known.str.fullmatch(DECIMAL_COMMA).all()):
        return column
    if known[commas].str.fullmatch(GROUPED).all():
        return column
    plain = known.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return pd.to_numeric(plain).reindex(column.index)


def without_points(column: pd.Series, written: pd.Series) -> pd.Series:
    """Return a column of numbers, with 1.500 as 1500 if all its points may separate thousands.

    written: the column as text.
    """
    import pandas as pd

    known = written.dropna()
    points = known.str.contains(".", regex=False)
    plain = known.str.fullmatch(r"\s*[+-]?\d*\s*") | known.str.fullmatch(THOUSANDS)
    if not (pd.api.types.is_float_dtype(column) and points.any() and plain.all()):
        return column
    return pd.to_numeric(known.str.replace(".", "", regex=False)).reindex(column.index)
