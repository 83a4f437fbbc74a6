"""Tables from files: CSV, JSON lines and Parquet, compressed or not."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit.tables.words import ABSENT, POINTS, looks_like_numbers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PARQUET, LINES = (".parquet", ".pq"), (".json", ".jsonl", ".ndjson", ".dsjson")
CSV = (".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".zst", ".lz4")  # which pyarrow unpacks
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
TOLD = r'"?sep=(.)"?\r?\n'  # a first line that names the separator
CODE = r"[+-]?0\d+"  # a code of digits, such as 007, which would be 7
WHOLE = r"-?(0|[1-9]\d{0,17})(\.0+)?"  # a whole number, among names
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

    The ending of the name says which one it is; a file of any other ending is CSV. An unnamed
    column k is called "Unnamed: k". What follows is about CSV, which pyarrow reads.

    sep: the separator. None: the only one of , ; tab | that splits the first rows evenly.
    decimal: the decimal mark, "." or ",". None: ".", but numbers as 1.500 between
        semicolons are refused.
    dates: the format of dates, such as "%d/%m/%Y", for columns of text in which all values have
        it. Dates of ISO 8601 need none.
    text: columns of names, such as the arms. They are text, unless all are whole numbers.
    drop: columns that may be written in any way, because they are not used.

    An empty cell is missing. In a column of numbers so are "NA", "None", "null", "nan" …; elsewhere
    they are texts. A column with codes such as 007 is text.

    Raise FileNotFoundError, or ValueError for a file that cannot be read, or that can be read in
    two ways.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if kind_of(path) in (*PARQUET, *LINES):
            given = {"sep": sep, "decimal": decimal, "dates": dates}
            if lost := [name for name, value in given.items() if value is not None]:
                raise ValueError(f"{lost[0]}={given[lost[0]]!r} is for CSV files")
            return _parquet(path) if kind_of(path) in PARQUET else _lines(path)
        return _csv(path, sep, decimal, dates, text, drop)
    except ValueError as error:  # those of pyarrow, pandas and Unicode too
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def columns_of(path: str | Path, sep: str | None = None) -> list[str]:
    """Return the names of the columns of a file, before unnamed ones are called "Unnamed: k"."""
    path = Path(path)
    if kind_of(path) in (*PARQUET, *LINES) or not path.is_file():
        return read(path).columns.tolist()
    found, content = separator(text_of(path), sep)
    return header_of(content, found)


def header_of(content: str, sep: str) -> list[str]:
    """Return the values of the first row of a CSV text that is not blank."""
    return next(filter(None, _rows(content, sep)), [])


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
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            content = stream.read()
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise ValueError(
            f"it is not text in UTF-8 ({error}); save it as UTF-8, not packed or as "
            f"{', '.join(PACKED)}"
        ) from error
    except OSError as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    from pyarrow import ArrowException

    try:
        return pd.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"it is not a whole Parquet file: {error}") from error


def _lines(path: Path) -> pd.DataFrame:
    """Return the table of JSON objects, one a line; a value that an object lacks is missing."""
    import pyarrow as pa
    from pyarrow import json

    content = text_of(path).encode()
    options = json.ReadOptions(use_threads=False, block_size=len(content) + 1)
    try:
        table = json.read_json(pa.BufferReader(content), options)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"each line must be a JSON object, with values of the same types: {error}"
        ) from error
    return table.to_pandas(date_as_object=False)


def _csv(
    path: Path,
    sep: str | None,
    decimal: str | None,
    dates: str | None,
    text: Collection[str],
    drop: Collection[Any],
) -> pd.DataFrame:
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    content = text_of(path)
    if (at := content.find("\0")) >= 0:
        line = content.count("\n", 0, at) + 1
        raise ValueError(f"line {line} has a NUL character; save it as UTF-8")
    found, content = separator(content, sep)
    if sep is None and found not in (",", "\t"):
        warnings.warn(
            f"{path.name} is read with {SEPARATORS[found]} as the separator; sep={found!r}, or "
            f"--sep {found!r}, says so without a word",
            skip_file_prefixes=HERE,
        )
    check_quotes(content, found)
    table = _table(content, found, decimal or ".")
    frame = table.to_pandas(date_as_object=False)
    coded = re.search(rf'(?m)(?:^|["{re.escape(found)}])[+-]?0\d', content) is not None
    doubtful = found == ";" and decimal is None
    texts = [c for c, kind in zip(frame, table.schema.types, strict=True) if kind in _words()]
    dated = [c for c in frame if frame[c].dtype.kind in "iM"] if dates is not None else []
    numbers = [c for c in frame if frame[c].dtype.kind in "if"] if coded or doubtful else []
    names = [c for c in frame if c in text]
    needed = list(dict.fromkeys([*texts, *dated, *numbers, *names]))
    written = _table(content, found, ".", as_text=True).select(needed).to_pandas()
    written = written.where(written != "")
    for name in needed:
        known = written[name].dropna()
        is_name = name in names and not known.str.fullmatch(WHOLE).all()
        if name in texts or is_name or (name in numbers and known.str.fullmatch(CODE).any()):
            frame[name] = written[name]
    if dates is not None:
        _read_dates(frame, written[[*texts, *dated]], dates)
    for name in [c for c in needed if c not in names and c not in drop]:
        kind = frame[name].dtype.kind
        if (kind == "f" and doubtful) or kind not in "biufM":
            _check_marks(name, written[name].dropna(), decimal, kind == "f")
    return frame


def _words() -> list[Any]:
    """Return pyarrow's types of columns that are read as they are written."""
    import pyarrow as pa

    return [pa.string(), pa.binary(), pa.null(), pa.time32("s"), pa.time64("ns")]


def _check_marks(name: str, known: pd.Series, decimal: str | None, numbers: bool) -> None:
    """Raise ValueError if points of texts may be decimal points or stand between thousands.

    decimal: the decimal mark that the user named. numbers: whether they were read as numbers.
    """
    points = known[known.str.contains(".", regex=False)]
    if numbers and len(points) and points.str.fullmatch(POINTS).all():
        raise ValueError(
            f"column {name!r} has {points.iloc[0]!r}, which may have a decimal point or a point "
            "between thousands: decimal='.', or --decimal '.', says that it is a decimal point; "
            "points between thousands have to go"
        )
    if decimal == "," and len(points) and looks_like_numbers(known).all():
        raise ValueError(
            f"column {name!r} has {points.iloc[0]!r}, and decimal=',' says that numbers have "
            "decimal commas: write all numbers with one mark, and none between thousands"
        )


def _table(content: str, sep: str, decimal: str, as_text: bool = False) -> pa.Table:
    """Return a CSV text as pyarrow reads it, with columns of different names.

    as_text: all columns as they are written. An unnamed column k is "Unnamed: k".
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    encoded = content.encode()
    table = arrow.read_csv(
        pa.BufferReader(encoded),
        arrow.ReadOptions(use_threads=False, block_size=len(encoded) + 1),  # types of all rows
        arrow.ParseOptions(delimiter=sep, newlines_in_values=True),
        arrow.ConvertOptions(
            decimal_point=decimal, null_values=["", *ABSENT], strings_can_be_null=False,
            column_types=dict.fromkeys(header_of(content, sep), pa.string()) if as_text else None,
        ),
    )  # fmt: skip
    names = [name or f"Unnamed: {k}" for k, name in enumerate(table.column_names)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"columns of one name: {', '.join(repeated)}")
    return table.rename_columns(names)


def _read_dates(frame: pd.DataFrame, written: pd.DataFrame, dates: str) -> None:
    """Replace the columns of which all values have this format by dates."""
    import pandas as pd

    if "%" not in dates:
        raise ValueError(f"dates must be a format, such as '%d/%m/%Y'; got {dates!r}")
    found = False
    for name in written:
        known = written[name][~written[name].isin(ABSENT)].dropna()
        if known.empty:
            continue
        moments = pd.to_datetime(known, format=dates, errors="coerce", utc="%z" in dates)
        if moments.notna().all():
            frame[name], found = moments.reindex(frame.index), True
    if not found:
        raise ValueError(f"dates={dates!r}: no column has this format in all its rows")


def separator(content: str, given: str | None = None) -> tuple[str, str]:
    """Return the separator of a CSV text, and the text without a first line that only names it.

    given: the separator that the user named. Raise ValueError if rows can be split in two ways.
    """
    if told := re.match(TOLD, content):
        given, content = given or told[1], content[told.end() :]
    widths = {sep: _widths(content, sep) for sep in SEPARATORS}
    even = [sep for sep, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    said = " and ".join(f"{SEPARATORS[sep]}, sep={sep!r}" for sep in even)
    if given is None:
        if len(even) > 1:
            raise ValueError(f"its rows are split evenly by {said}: say which one it is")
        return max(SEPARATORS, key=lambda sep: (sep in even, widths[sep][:1])), content
    given = "\t" if given == r"\t" else given
    if len(given) != 1 or given in '"\r\n':
        raise ValueError(f"sep must be one character, such as ',' or ';'; got {given!r}")
    if even and given not in even and _widths(content, given)[:1] == [1]:
        raise ValueError(f"sep={given!r} finds one column; rows are split evenly by {said}")
    return given, content


def _widths(content: str, sep: str) -> list[int]:
    """Return how many values the first rows have."""
    rows = islice(_rows(content, sep), ROWS_TO_SEE_THE_SEPARATOR)
    return [len(row) for row in rows if row]


def _rows(content: str, sep: str, strict: bool = False) -> Any:
    """Return csv's reader. strict: it raises csv.Error for quotes that are not closed rightly."""
    csv.field_size_limit(LONGEST)  # of the whole process
    return csv.reader(io.StringIO(content, newline=""), delimiter=sep, strict=strict)


def check_quotes(content: str, sep: str) -> None:
    """Raise ValueError for a quote that would swallow the rows after it.

    It is never closed, or it is closed by the quote that opens another value.
    """
    if '"' not in content:
        return
    before = 0
    reader = _rows(content, sep, strict=True)
    try:
        for _ in reader:
            before = reader.line_num
    except csv.Error as error:
        raise ValueError(
            f"the row that begins in line {before + 1} has a quote that is not closed, or not "
            f"before a separator ({error})"
        ) from error
