"""Tables from files: CSV, JSON lines and Parquet, compressed or not."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit.tables.words import ABSENT, CODE, POINTS, looks_like_numbers

if TYPE_CHECKING:
    import pandas as pd

PARQUET, LINES = (".parquet", ".pq"), (".json", ".jsonl", ".ndjson", ".dsjson")
CSV = (".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".zst", ".lz4")  # which pyarrow unpacks
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
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
    text: columns of names, such as the arms. "NA", "None" and "007" are names there. In a column
        of numbers "NA", "None", "null", "nan" … are missing, and in a column of text they are
        texts. An empty cell is missing everywhere.
    drop: columns that may be written in any way, because they are not used.

    Raise FileNotFoundError, or ValueError for a file that cannot be read, or that can be read in
    two ways.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if kind_of(path) in PARQUET:
            return _parquet(path)
        if kind_of(path) in LINES:
            return table_of(objects(text_of(path)))
        return _csv(path, sep, decimal, dates, text, drop)
    except ValueError as error:  # those of pyarrow, pandas and Unicode too
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def columns_of(path: str | Path, sep: str | None = None) -> list[str]:
    """Return the names of the columns of a file, as `read` finds them; of JSON, those of a line."""
    path = Path(path)
    if kind_of(path) in PARQUET or not path.is_file():
        return read(path).columns.tolist()
    if kind_of(path) in LINES:
        return list(objects(text_of(path).strip().split("\n")[0])[0])
    content = text_of(path)
    return list(next(_rows(content, separator(content, sep), strict=False), []))


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
        raise ValueError(f"it is not text in UTF-8 ({error}); save it as UTF-8") from error
    except OSError as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    from pyarrow import ArrowException

    try:
        return pd.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"it is not a whole Parquet file: {error}") from error


def objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of JSON lines; raise ValueError with the number of a line that is none."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found.append(object_of(line, number))
    return found


def object_of(line: str, number: int) -> dict[str, Any]:
    """Return the object of a line of JSON; raise ValueError with its number if it is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number} is no JSON: {error}") from error
    if not isinstance(event, dict):
        raise ValueError(f"line {number} is no JSON object; got {line[:30]!r}")
    return event


def table_of(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the table of JSON objects; a value that an object lacks is missing."""
    import pandas as pd

    if not rows:
        raise ValueError("there is no object in it")
    return pd.DataFrame(rows)


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
    found = separator(content, sep)
    if sep is None and found not in (",", "\t"):
        warnings.warn(
            f"{path.name} is read with {SEPARATORS[found]} as the separator; sep={found!r}, or "
            f"--sep {found!r}, says so without a word",
            skip_file_prefixes=HERE,
        )
    check_quotes(content, found)
    frame = _typed(content, found, decimal or ".")
    written = _typed(content, found, decimal or ".", as_text=list(frame.columns))
    frame, written = named(frame), named(written)
    written = written.where(written != "")
    for name in frame.columns:
        if frame[name].dtype.kind not in "biufM" or (name in text and _is_coded(written[name])):
            frame[name] = written[name]
    if dates is not None:
        _read_dates(frame, written, dates)
    doubtful = found == ";" and decimal is None
    for name in frame.columns.difference([*drop, *text]):
        kind = frame[name].dtype.kind
        if (kind == "f" and doubtful) or kind not in "biufM":
            _check_marks(name, written[name].dropna(), decimal)
    return frame


def _is_coded(written: pd.Series) -> bool:
    """Return whether names would change as numbers: "NA" is missing there, and "007" is 7."""
    return bool(written.isin(ABSENT).any() or written.str.match(CODE).any())


def _check_marks(name: str, known: pd.Series, decimal: str | None) -> None:
    """Raise ValueError if the points of texts may be decimal points or stand between thousands.

    decimal: the decimal mark by which they were read.
    """
    points = known[known.str.contains(".", regex=False)]
    if decimal is None and len(points) and points.str.fullmatch(POINTS).all():
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


def _typed(content: str, sep: str, decimal: str, as_text: Iterable[str] = ()) -> pd.DataFrame:
    """Return the columns of a CSV text with the types of their values.

    as_text: columns that are read as they are written.
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
            column_types=dict.fromkeys(as_text, pa.string()),
        ),
    )  # fmt: skip
    return table.to_pandas(date_as_object=False)


def named(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns have different names; an unnamed column k is "Unnamed: k"."""
    names = [name or f"Unnamed: {k}" for k, name in enumerate(frame.columns)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"columns of one name: {', '.join(repeated)}")
    return frame.set_axis(names, axis=1)


def _read_dates(frame: pd.DataFrame, written: pd.DataFrame, dates: str) -> None:
    """Replace the columns of which all values have this format by dates."""
    import pandas as pd

    if "%" not in dates:
        raise ValueError(f"dates must be a format, such as '%d/%m/%Y'; got {dates!r}")
    found = False
    for name in frame.columns:
        known = written[name].dropna()
        if frame[name].dtype.kind in "buf" or known.empty:
            continue
        moments = pd.to_datetime(known, format=dates, errors="coerce", utc="%z" in dates)
        if moments.notna().all():
            frame[name], found = moments.reindex(frame.index), True
    if not found:
        raise ValueError(f"dates={dates!r}: no column has this format in all its rows")


def separator(content: str, given: str | None = None) -> str:
    """Return the separator of a CSV text. Raise ValueError if it can be split in two ways.

    given: the separator that the user named.
    """
    widths = {sep: _widths(content, sep) for sep in SEPARATORS}
    even = [sep for sep, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    said = " and ".join(f"{SEPARATORS[sep]}, sep={sep!r}" for sep in even)
    if given is not None:
        given = "\t" if given == r"\t" else given
        if len(given) != 1 or given in '"\r\n':
            raise ValueError(f"sep must be one character, such as ',' or ';'; got {given!r}")
        if even and given not in even and _widths(content, given)[:1] == [1]:
            raise ValueError(f"sep={given!r} finds one column; rows are split evenly by {said}")
        return given
    if len(even) > 1:
        raise ValueError(f"its rows are split evenly by {said}: say which one it is")
    if even:
        return even[0]
    return max(SEPARATORS, key=lambda sep: widths[sep][:1])  # of one column, or of uneven rows


def _widths(content: str, sep: str) -> list[int]:
    """Return how many values the first rows have."""
    rows = islice(_rows(content, sep, strict=False), ROWS_TO_SEE_THE_SEPARATOR)
    return [len(row) for row in rows if row]


def _rows(content: str, sep: str, strict: bool) -> Any:
    csv.field_size_limit(LONGEST)  # which is of the whole process
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
