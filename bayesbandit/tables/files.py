"""Tables from files: CSV, JSON lines and Parquet, compressed or not."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from codecs import BOM_UTF8
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.tables.words import ABSENT

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PARQUET, LINES = (".parquet", ".pq"), (".json", ".jsonl", ".ndjson", ".dsjson")
CSV = (".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".zst", ".lz4")  # which pyarrow unpacks
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
TOLD = rb'"?sep=(.)"?\r?\n'  # a first line that names the separator
CODE = r"^[+-]?0([0-9]+|[xX][0-9a-fA-F]+)$"  # a code, such as 007 or 0x1f, which would be a number
WHOLE = r"^(-?(0|[1-9]\d{0,17})(\.0+)?)?$"  # a whole number, or nothing, among names
POINTS = r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*"  # a number whose points may separate thousands
MARKED = (  # a number with any decimal mark, and any or none between thousands; no IP address
    r"(?!(\d{1,3}\.){3}\d{1,3}$)\s*[+-]?(?=[.,]?\d)"
    r"(\d{1,3}([.,'\u0020\u00a0\u202f]\d{3})+|\d*)([.,]\d*)?([eE][+-]?\d+)?\s*"
)
SAVE_AS_TEXT = (
    "save it as text in UTF-8 (in a spreadsheet: CSV UTF-8), not packed or as " + ", ".join(PACKED)
)
LONGEST = 2**31 - 1  # characters of a value
ROWS_TO_SEE_THE_SEPARATOR = 1_000
HERE = (str(Path(__file__).parents[1]),)  # a warning is of the line that called the package


def read(
    path: str | Path,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    text: Collection[str] = (),
    drop: Collection[Any] = (),
) -> pd.DataFrame:
    """Return the table of a CSV file with a header, of JSON lines, or of a Parquet file.

    The ending of the name says which one it is; a file of any other ending is CSV, unless it begins
    as Parquet does. An unnamed column k is called "Unnamed: k". What follows is about CSV, which
    pyarrow reads.

    sep: the separator. None: the only one of , ; tab | that splits the first rows evenly.
    decimal: the decimal mark, "." or ",". None: ".", but a column of numbers as 0,5, or as 1.500
        between semicolons, is refused.
    dates: the format of dates, such as "%d/%m/%Y", for columns of text in which all values have
        it. Dates of ISO 8601 need none.
    text: columns of names, such as the arms. They are text, unless all are whole numbers.
    drop: columns that may be written in any way, because they are not used.

    An empty cell is missing. In a column of numbers so are "NA", "None", "null", "nan" …; elsewhere
    they are texts. A column with codes such as 007 or 0x1f is text.

    Raise FileNotFoundError, or ValueError for a file that cannot be read, or that can be read in
    two ways.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if is_parquet(path) or kind_of(path) in LINES:
            only_of_csv({"sep": sep, "decimal": decimal, "dates": dates})
            return _parquet(path) if is_parquet(path) else _lines(text_of(path))
        return _csv(path, sep, decimal, dates, text, drop)
    except ValueError as error:  # those of pyarrow, pandas and Unicode too
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def only_of_csv(form: Mapping[str, str | None]) -> None:
    """Raise ValueError for an option that says how a CSV file is written."""
    for name, value in form.items():
        if value is not None:
            raise ValueError(f"{name}={value!r} is for CSV files")


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by the ending of its name or by its first bytes."""
    if kind_of(path) in PARQUET:
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def kind_of(path: Path) -> str:
    """Return the ending of a file's name without that of its compression, in lower case."""
    packed = path.suffix.lower() in PACKED
    return (Path(path.stem).suffix if packed else path.suffix).lower()


def stem_of(path: str | Path) -> str:
    """Return a file's name without its endings."""
    path = Path(path)
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


def text_of(path: Path) -> str:
    """Return the text of a file in UTF-8, unpacked; raise ValueError for any other."""
    return bytes_of(path).decode()


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a text in UTF-8, unpacked and without a mark of the order of bytes."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data = stream.read().removeprefix(BOM_UTF8)
    except OSError as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    try:
        data.decode()
    except UnicodeError as error:
        raise ValueError(f"it is not text in UTF-8 ({error}): {SAVE_AS_TEXT}") from error
    if (at := data.find(0)) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise ValueError(f"line {line} has a NUL character, which text has not: {SAVE_AS_TEXT}")
    return data


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    from pyarrow import ArrowException, parquet

    try:
        check_differ(parquet.read_schema(path).names)
        return pd.read_parquet(path)
    except (ArrowException, OSError) as error:
        raise ValueError(f"it is not a whole Parquet file: {error}") from error


def check_differ(names: list[str]) -> None:
    """Raise ValueError for columns of one name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"columns of one name: {', '.join(repeated)}")


def _lines(content: str) -> pd.DataFrame:
    """Return the table of JSON objects, one a line; a value that an object lacks is missing."""
    import pandas as pd

    rows = []
    for number, line in enumerate(content.split("\n"), 1):
        try:
            if line.strip():
                rows.append(json_object(line))
        except ValueError as error:
            raise ValueError(f"each line must be a JSON object; line {number} is {error}") from None
    if not rows:
        raise ValueError("it is empty")
    return pd.DataFrame(rows)


def json_object(line: str) -> dict[str, Any]:
    """Return the object of a line of JSON. Raise ValueError, with what the line is instead."""
    try:
        found = json.loads(line, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"no JSON, or cut off: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"no JSON object: {line[:30]!r}")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"an object with a name twice: {[name for name, _ in pairs]}")
    return found


def _csv(
    path: Path,
    sep: str | None,
    decimal: str | None,
    dates: str | None,
    text: Collection[str],
    drop: Collection[Any],
) -> pd.DataFrame:
    import pandas as pd
    import pyarrow.types as kinds

    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    found, data = separator(bytes_of(path), sep)
    if sep is None and found not in (",", "\t"):
        warnings.warn(
            f"{path.name} is read with {SEPARATORS[found]} as the separator; sep={found!r}, or "
            f"--sep {found!r}, says so without a word",
            skip_file_prefixes=HERE,
        )
    check_quotes(data, found)
    table = _table(data, found, decimal or ".")
    written = _table(data, found, ".", words=table.column_names).columns
    names = [name or f"Unnamed: {k}" for k, name in enumerate(table.column_names)]
    check_differ(names)
    frame = table.rename_columns(names).to_pandas(date_as_object=False)
    doubtful = found == ";" and decimal is None
    words, dated = dict[str, pd.Series](), dict[str, pd.Series]()
    for name, kind, values in zip(names, table.schema.types, written, strict=True):
        number = kinds.is_integer(kind) or kinds.is_floating(kind)
        coded = number and _matches(values, CODE).any()
        typed = number or kinds.is_boolean(kind) or kinds.is_timestamp(kind) or kinds.is_date(kind)
        if coded or not typed or (name in text and not _matches(values, WHOLE).all()):
            frame[name] = words[name] = _words(values)
        elif doubtful and kinds.is_floating(kind) and name not in (*text, *drop):
            _check_points(name, _words(values))
        if dates is not None and name not in text and not kinds.is_floating(kind):
            dated[name] = _words(values)
    if dates is not None:
        _read_dates(frame, dated, dates)
    for name, values in words.items():
        checked = decimal != "." and name not in (*text, *drop) and frame[name].dtype.kind != "M"
        if checked:
            _check_marks(name, values.dropna(), "," if decimal is None else ".")
    return frame


def _table(data: bytes, sep: str, decimal: str, words: Collection[str] = ()) -> pa.Table:
    """Return a CSV text as pyarrow reads it. words: columns that are read as they are written."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    try:
        return arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(use_threads=False, block_size=len(data) + 1),  # types of all rows
            arrow.ParseOptions(delimiter=sep, newlines_in_values=True),
            arrow.ConvertOptions(
                decimal_point=decimal, null_values=["", *ABSENT], strings_can_be_null=False,
                column_types=dict.fromkeys(words, pa.string()),
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        raise ValueError(
            "the first row must have the columns' names, and each row as many values: "
            f"{str(error).removeprefix('CSV parse error: ')}"
        ) from error


def _words(values: pa.ChunkedArray) -> pd.Series:
    """Return texts as they are written; an empty one is missing."""
    found = values.to_pandas()
    return found.where(found != "")


def _matches(values: pa.ChunkedArray, pattern: str) -> np.ndarray:
    """Return which texts (n,) have a pattern."""
    import pyarrow.compute as pc

    return np.asarray(pc.match_substring_regex(values, pattern))


def _check_points(name: str, written: pd.Series) -> None:
    """Raise ValueError if the points of numbers may be decimal points, or be between thousands."""
    points = written[written.str.contains(".", regex=False)]
    if len(points) and points.str.fullmatch(POINTS).all():
        raise ValueError(
            f"column {name!r} has {points.iloc[0]!r}, which may have a decimal point or a point "
            "between thousands: decimal='.', or --decimal '.', says that it is a decimal point; "
            "points between thousands have to go"
        )


def _check_marks(name: str, known: pd.Series, mark: str) -> None:
    """Raise ValueError if all texts are numbers, and some have a mark that is no decimal mark.

    One text in all rows tells nothing, however it is read.
    """
    marked = known[known.str.contains(mark, regex=False)]
    if marked.empty or known.nunique() == 1:
        return
    if (known.str.fullmatch(MARKED) | known.isin(ABSENT)).all():
        seen = f"column {name!r} has {marked.iloc[0]!r}"
        if mark == ",":
            raise ValueError(
                f"{seen}: if that is a decimal comma, decimal=',', or --decimal ',', reads it; "
                "decimal='.' leaves it as text; marks between thousands have to go"
            )
        raise ValueError(
            f"{seen}, and decimal=',' says that numbers have decimal commas: write all numbers "
            "with one mark, and none between thousands"
        )


def _read_dates(frame: pd.DataFrame, written: Mapping[str, pd.Series], dates: str) -> None:
    """Turn columns into dates where every value has this format."""
    import pandas as pd

    if "%" not in dates:
        raise ValueError(f"dates must be a format, such as '%d/%m/%Y'; got {dates!r}")
    found = False
    for name, values in written.items():
        known = values[~values.isin(ABSENT)].dropna()
        if known.empty:
            continue
        moments = pd.to_datetime(known, format=dates, errors="coerce", utc="%z" in dates)
        if moments.notna().all():
            frame[name], found = moments.reindex(frame.index), True
    if not found:
        raise ValueError(f"dates={dates!r}: no column has this format in all its rows")


def separator(data: bytes, given: str | None = None) -> tuple[str, bytes]:
    """Return the separator of a CSV text, and the text without a first line that only names it.

    given: the separator that the user named. Raise ValueError if rows can be split in two ways.
    """
    if told := re.match(TOLD, data):
        given, data = given or told[1].decode(), data[told.end() :]
    widths = {sep: _widths(data, sep) for sep in SEPARATORS}
    even = [sep for sep, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    said = " and ".join(f"{SEPARATORS[sep]}, sep={sep!r}" for sep in even)
    if given is None:
        if len(even) > 1:
            raise ValueError(f"its rows are split evenly by {said}: say which one it is")
        return max(SEPARATORS, key=lambda sep: (sep in even, widths[sep][:1])), data
    given = "\t" if given == r"\t" else given
    if len(given) != 1 or given in '"\r\n':
        raise ValueError(f"sep must be one character, such as ',' or ';'; got {given!r}")
    if even and given not in even and _widths(data, given)[:1] == [1]:
        raise ValueError(f"sep={given!r} finds one column; rows are split evenly by {said}")
    return given, data


def _widths(data: bytes, sep: str) -> list[int]:
    """Return how many values the first rows have."""
    rows = islice(_rows(data, sep), ROWS_TO_SEE_THE_SEPARATOR)
    return [len(row) for row in rows if row]


def _rows(data: bytes, sep: str, strict: bool = False) -> Any:
    """Return csv's reader. strict: it raises csv.Error for quotes that are not closed rightly."""
    csv.field_size_limit(LONGEST)  # of the whole process
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    return csv.reader(text, delimiter=sep, strict=strict)


def check_quotes(data: bytes, sep: str) -> None:
    """Raise ValueError for a quote that would swallow the rows after it.

    It is never closed, or it is closed by the quote that opens another value.
    """
    if b'"' not in data:
        return
    before = 0
    reader = _rows(data, sep, strict=True)
    try:
        for _ in reader:
            before = reader.line_num
    except csv.Error as error:
        raise ValueError(
            f"the row that begins in line {before + 1} has a quote that is not closed, or not "
            f"before a separator ({error})"
        ) from error
