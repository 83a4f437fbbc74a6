"""Tables from files: CSV as pyarrow reads it, JSON lines and Parquet, compressed or not."""

from __future__ import annotations

import csv
import io
import json
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import Name, one_of
from bayesbandit.tables.role_names import DEFAULTS
from bayesbandit.tables.words import MISSING_WORDS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from bayesbandit.tables.encoder import Encoder

PARQUET = (".parquet", ".pq")
LINES = (".json", ".jsonl", ".ndjson", ".dsjson")
PACKED = (".gz", ".bz2", ".zst", ".lz4")  # which pyarrow unpacks
SEPARATORS = ",;\t|"  # which no header of a single column has
# a number, as it may stand in one column with numbers that have commas
MAYBE_COMMA = r"[+-]?(\d+([.,]\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)"
# a number with decimal commas, and maybe with points between its thousands
MAYBE_POINTS = r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?"
WHOLE = r"(-?(0|[1-9]\d{0,17})(\.0+)?)?"  # a whole number, or nothing, among names
SAVE_AS_TEXT = (
    "save it as text in UTF-8 (in a spreadsheet: CSV UTF-8), not packed or as " + ", ".join(PACKED)
)
MAX_CHARACTERS = 2**31 - 1  # of a value


def read(
    path: str | Path,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    text: Collection[str] = (),
    levels: Collection[str] = (),
) -> pd.DataFrame:
    """Return the table of a CSV file with a header, of JSON lines, or of a Parquet file.

    The ending of the name says which one it is; a file of any other ending is CSV, unless it begins
    as Parquet does. An unnamed column k is called "Unnamed: k". What follows is about CSV, which
    pyarrow reads: whole numbers, numbers, true and false, and dates of ISO 8601 get their types if
    all values of a column have it; any other column is text.

    sep: the separator. None: a comma, or a tab in a file that is called .tsv.
    decimal: the decimal mark, "." or ",". None: ".", and a column of numbers with commas is
        refused. If it is ",", a column of numbers with points is text, or refused where all of
        them may stand between thousands.
    dates: the format of dates, such as "%d/%m/%Y", for columns in which all values have it. Dates
        of ISO 8601 need none.
    text: columns of names, such as the arms. They are text, unless all are whole numbers.
    levels: columns of text, whatever their values are, as `Encoder.texts`.

    An empty cell is missing. In a column of numbers so are "NA", "None", "null", "nan" …; elsewhere
    they are texts.

    Raise FileNotFoundError, or ValueError for a file that cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if is_parquet(path) or kind_of(path) in LINES:
            only_of_csv({"sep": sep, "decimal": decimal, "dates": dates})
            return _parquet(path) if is_parquet(path) else _lines(bytes_of(path).decode())
        usual = "\t" if kind_of(path) == ".tsv" else ","
        sep = usual if sep is None else sep
        return _csv(bytes_of(path), sep, decimal, dates, text, levels)
    except ValueError as error:  # those of pyarrow, pandas and Unicode too
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def read_rounds(
    path: str | Path, arm: Name | None, encoder: Encoder | None, **form: str | None
) -> pd.DataFrame:
    """Return the table of a file with a row for each round.

    arm: the column of the chosen arms, which is read as text; None: a usual name. encoder: of the
    contexts, if there is one, whose levels are read as they were for its fit. form: sep, decimal
    and dates of a CSV file.
    """
    arms = DEFAULTS["arm"] if arm is None else [str(arm)]
    frame = read(path, **form, text=arms, levels=() if encoder is None else encoder.texts)
    return frame.set_axis([str(column) for column in frame.columns], axis=1)


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
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in PACKED]
    return endings[-1] if endings else ""


def stem_of(path: str | Path) -> str:
    """Return a file's name without its endings."""
    path = Path(path)
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


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
        names = parquet.read_schema(path).names
        check_differ(names)
        frame = pd.read_parquet(path)
    except (ArrowException, OSError) as error:
        raise ValueError(f"it is not a whole Parquet file: {error}") from error
    # what was an index in pandas is a column of the file
    return frame.reset_index([name for name in frame.index.names if name in names])


def check_differ(names: list[str]) -> None:
    """Raise ValueError for columns of one name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"columns of one name: {', '.join(repeated)}")


def _lines(content: str) -> pd.DataFrame:
    """Return the table of JSON objects, one a line; a value that an object lacks is missing."""
    import pandas as pd

    rows = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        where = f"each line must be a JSON object; line {number} is"
        try:
            rows.append(json.loads(line, object_pairs_hook=_without_repeats))
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{where} no JSON, or cut off: {error}") from None
        except ValueError as error:
            raise ValueError(f"{where} {error}") from None
        if not isinstance(rows[-1], dict):
            raise ValueError(f"{where} no JSON object: {line[:30]!r}")
    if not rows:
        raise ValueError("it is empty")
    if len(rows) == 1 and rows[0] and all(isinstance(v, dict | list) for v in rows[0].values()):
        raise ValueError(
            "its only object has columns and not values, as DataFrame.to_json writes it: "
            "to_json(path, orient='records', lines=True) writes an object a row"
        )
    table = pd.DataFrame(rows)
    for name, column in table.items():
        kinds = {type(value) for value in column.dropna()} if column.dtype == object else set()
        if bool in kinds and not kinds.isdisjoint((int, float)):
            raise ValueError(f"column {name!r} has both true or false and numbers")
    return table


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError(f"an object with a name twice: {[name for name, _ in pairs]}")
    return item


def _csv(
    data: bytes,
    sep: str,
    decimal_given: str | None,
    dates: str | None,
    text: Collection[str],
    levels: Collection[str],
) -> pd.DataFrame:
    import pandas as pd
    import pyarrow.types as kinds

    decimal = one_of("." if decimal_given is None else decimal_given, "decimal", (".", ","))
    sep = "\t" if sep == r"\t" else sep
    if len(sep) != 1 or sep in '"\r\n':
        raise ValueError(f"sep must be one character, such as ',' or ';'; got {sep!r}")
    check_separator(data, sep)
    check_quotes(data, sep)
    as_written = [*text, *levels]
    table = _table(data, sep, decimal, as_written)
    untyped = [
        one.name for one in table.schema if kinds.is_time(one.type) or kinds.is_null(one.type)
    ]
    if untyped:  # a time of the day, or none but missing values
        table = _table(data, sep, decimal, [*as_written, *untyped])
    names = [name or f"Unnamed: {k}" for k, name in enumerate(table.column_names)]
    check_differ(names)
    frame = table.rename_columns(names).to_pandas(date_as_object=False)
    for name, kind in zip(names, table.schema.types, strict=True):
        if not kinds.is_string(kind):
            continue
        frame[name] = frame[name].where(frame[name] != "")
        if name not in as_written:
            values = frame[name].dropna()
            check_decimal_mark(values[~values.isin(MISSING_WORDS)], decimal_given)
        if name in text and frame[name].dropna().str.fullmatch(WHOLE).all():
            frame[name] = pd.to_numeric(frame[name])
    if dates is not None:
        written = _table(data, sep, decimal, table.column_names).rename_columns(names).to_pandas()
        floats = frame.select_dtypes("floating").columns
        _read_dates(
            frame, written.drop(columns=[*floats, *frame.columns.intersection(as_written)]), dates
        )
    return frame


def _table(data: bytes, sep: str, decimal: str, text: Iterable[str]) -> pa.Table:
    """Return a CSV text as pyarrow reads it. text: columns that stay as they are written."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    try:
        return arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(use_threads=False, block_size=len(data) + 1),  # types of all rows
            arrow.ParseOptions(delimiter=sep, newlines_in_values=True),
            arrow.ConvertOptions(
                decimal_point=decimal, null_values=["", *MISSING_WORDS], strings_can_be_null=False,
                column_types=dict.fromkeys(text, pa.string()),
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        raise ValueError(
            "the first row must have the columns' names, and each row as many values: "
            f"{str(error).removeprefix('CSV parse error: ')}"
        ) from error


def check_separator(data: bytes, sep: str) -> None:
    """Raise ValueError for a header that only another separator would split."""
    header = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode().strip()
    seen = [mark for mark in SEPARATORS if mark in header]
    if seen and sep not in header:
        raise ValueError(
            f"it has one column, {header!r:.80}: sep={seen[0]!r}, or --sep {seen[0]!r}, says "
            "which character separates columns"
        )


def check_decimal_mark(values: pd.Series, decimal: str | None) -> None:
    """Raise ValueError for texts of a column that are numbers, some with commas, or with points
    between thousands, which would be decimal points elsewhere.

    decimal: the mark that was given; with a point, texts stay as they are.
    """
    if decimal == "," and values.str.fullmatch(MAYBE_POINTS).all():
        points = values[values.str.contains(".", regex=False)]
        if points.size:
            raise ValueError(
                f"column {values.name!r} has {points.iloc[0]!r}: points between thousands must be "
                "removed"
            )
    if decimal is not None or not values.str.fullmatch(MAYBE_COMMA).all():
        return
    if (commas := values[values.str.contains(",")]).size:
        raise ValueError(
            f"column {values.name!r} has {commas.iloc[0]!r}: decimal=',', or --decimal ',', reads "
            "numbers with decimal commas, and decimal='.' leaves them as text; commas between "
            "thousands must be removed"
        )


def _read_dates(frame: pd.DataFrame, written: pd.DataFrame, dates: str) -> None:
    """Turn columns into dates where every value has this format. written: the texts."""
    import pandas as pd

    if "%" not in dates:
        raise ValueError(f"dates must be a format, such as '%d/%m/%Y'; got {dates!r}")
    any_dates = False
    for name in written:
        texts = written[name][~written[name].isin(["", *MISSING_WORDS])]
        moments = pd.to_datetime(texts, format=dates, errors="coerce", utc="%z" in dates)
        if len(texts) and moments.notna().all():
            frame[name] = moments.reindex(frame.index)
            any_dates = True
    if not any_dates:
        raise ValueError(f"dates={dates!r}: no column has this format in all its rows")


def check_quotes(data: bytes, sep: str) -> None:
    """Raise ValueError for a quote that would swallow the rows after it.

    It is never closed, or it is closed by the quote that opens another value.
    """
    if b'"' not in data:
        return
    csv.field_size_limit(MAX_CHARACTERS)  # of the whole process
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    rows = csv.reader(text, delimiter=sep, strict=True)
    before = 0
    try:
        for _ in rows:
            before = rows.line_num
    except csv.Error as error:
        raise ValueError(
            f"the row that begins in line {before + 1} has a quote that is not closed, or not "
            f"before a separator ({error})"
        ) from error
