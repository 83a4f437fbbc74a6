"""Tables from files: hostile ones are read rightly, or refused with the option that decides."""

import gzip
import io
import json
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesbandit.environments import KnownRewards, from_csv
from bayesbandit.ope import read_log
from bayesbandit.scale.learning import table_of
from bayesbandit.tables.files import read
from bayesbandit.tables.inputs import is_dask
from tests.cases import in_gate

NAN = float("nan")
DAY = pd.Timestamp("2026-03-04")

# a file's text, the options, and what its columns are, or what the refusal says
FILES = {
    "tabs": ("a\tb\n1\tx, y\n2\tz\n", {"sep": r"\t"}, {"a": [1, 2], "b": ["x, y", "z"]}),
    "two separators": ("a;b,c\n1;u,v\n", {"sep": ";"}, {"a": [1], "b,c": ["u,v"]}),
    "the wrong one": ("a;b\n1;2\n3;4\n", {}, "one column, 'a;b': sep=';', or --sep ';'"),
    "no character": ("a;b\n1;2\n", {"sep": ", "}, "sep must be one character"),
    "one column": ("x\n1\n2\n", {}, {"x": [1, 2]}),
    "a mark of the order of bytes": ("\ufeffa,b\n1,2\n", {}, {"a": [1], "b": [2]}),
    "Windows' lines": ("a,b\r\n1,x\r\n2,y\r\n", {}, {"a": [1, 2], "b": ["x", "y"]}),
    "blank lines": ("\n\na,b\n\n1,x\n", {}, {"a": [1], "b": ["x"]}),
    "quotes": ('a,b\n"x, y","two\nlines"\n"say ""hi""",5" pipe\n', {},
               {"a": ["x, y", 'say "hi"'], "b": ["two\nlines", '5" pipe']}),
    "a long value": ('a,b\n1,"' + "word\n" * 50_000 + '"\n', {},
                     {"a": [1], "b": ["word\n" * 50_000]}),
    # rows that would be swallowed, or read under the names of others
    "an open quote": ('a,b\n1,x\n2,"open\n3,y\n', {}, "row that begins in line 3 has a quote"),
    "a quote that another shuts": ('a,b\n1,"open\n3,"shut"\n', {}, "in line 2 has a quote"),
    "a title in front": ("May\n\na,b\n1,x\n", {}, "the first row must have the columns' names"),
    "a NUL": ("a,b\n1,x\n2,y\0z\n", {}, "line 3 has a NUL"),
    "too wide": ("a,b\n1,2,u\n1,3,v\n", {}, "Expected 2 columns, got 3"),
    "an empty end": ("a,b\n1.5,u,\n2.5,v,\n", {}, "Expected 2 columns, got 3"),
    "too narrow": ("a,b\n1,2\n3\n", {}, "Expected 2 columns, got 1"),
    "one name twice": ("a,a\n1,2\n", {}, "columns of one name: a"),
    "nothing": ("", {}, "Empty CSV"),
    # decimal marks: what is no number with the mark of the file is text
    "between commas": ('a,b\n"0,5",1\n"1,5",2\n', {"decimal": ","}, {"a": [0.5, 1.5], "b": [1, 2]}),
    "unsaid commas": ("a;b\n0,5;7\n\n1,25;8\n", {"sep": ";"}, "'a' has '0,5': decimal=','"),
    "unsaid, beside whole ones": ("a;b\n1;7\n1,5;8\n2;9\n", {"sep": ";"}, "'a' has '1,5': decimal"),
    "lists of numbers": ("a;b\n1;7\n1,2,3;8\n", {"sep": ";"}, {"a": ["1", "1,2,3"], "b": [7, 8]}),
    "unsaid, one missing": ("a;b\n0,5;7\nNA;8\n1,5;9\n", {"sep": ";"}, "'a' has '0,5': decimal"),
    "said to be text": ("a;b\n0,5;7\n1,25;8\n", {"sep": ";", "decimal": "."},
                        {"a": ["0,5", "1,25"], "b": [7, 8]}),
    "beside points": ("a;b\n0,5;0.125\n1,25;2\n", {"sep": ";", "decimal": ","},
                      {"a": [0.5, 1.25], "b": ["0.125", "2"]}),
    "points between thousands": ("a;b\n900;1\n1.500;2,5\n", {"sep": ";", "decimal": ","},
                                 "'a' has '1.500': points between thousands must be removed"),
    "such points and commas": ("a;b\n1.500,5;1\n", {"sep": ";", "decimal": ","},
                               "'a' has '1.500,5'"),
    "versions": ("a;b\n1.500;1\n1.25;2\n", {"sep": ";", "decimal": ","},
                 {"a": ["1.500", "1.25"], "b": [1, 2]}),
    "thousands": ('a,b\n900,2\n"1,234",1\n', {}, "'a' has '1,234'.*thousands must be removed"),
    "thousands and a point": ('a,b\n2.5,2\n"1,234.5",1\n', {}, "'a' has '1,234.5'.*thousands"),
    "thousands as text": ('a,b\n"1,234",1\n900,2\n', {"decimal": "."},
                          {"a": ["1,234", "900"], "b": [1, 2]}),
    "points": ("a;b\n900;1\n1.500;2\n", {"sep": ";"}, {"a": [900, 1.5], "b": [1, 2]}),
    "signs": ('a,b\n"$1,200",12%\n"$900",2%\n', {}, {"a": ["$1,200", "$900"], "b": ["12%", "2%"]}),
    "no mark": ("a\n1\n", {"decimal": "'"}, "decimal must be one of '.', ','; got \"'\""),
    # dates
    "ISO": ("a,b\n2026-03-04,1\n,2\n", {}, {"a": [DAY, pd.NaT], "b": [1, 2]}),
    "with and without fractions": ("a\n2026-03-04T00:00:00.5\n2026-03-04 00:00:00\n", {},
                                   {"a": [DAY + pd.Timedelta("500ms"), DAY]}),
    "days first": ("a,b\n04/03/2026,x\n31/12/2026,\n", {"dates": "%d/%m/%Y"},
                   {"a": [DAY, pd.Timestamp("2026-12-31")], "b": ["x", NAN]}),
    "days first, or none": ("a\n04/03/2026\nNA\n", {"dates": "%d/%m/%Y"}, {"a": [DAY, pd.NaT]}),
    "ISO, but days first": ("a\n2026-04-03\n", {"dates": "%Y-%d-%m"}, {"a": [DAY]}),
    "without a mark": ("a,b\n20260304,7\n", {"dates": "%Y%m%d"}, {"a": [DAY], "b": [7]}),
    "days and months": ("a;b\n04.03;1,5\n31.12;2\n",
                        {"sep": ";", "dates": "%d.%m", "decimal": ","},
                        {"a": [pd.Timestamp("1900-03-04"), pd.Timestamp("1900-12-31")],
                         "b": [1.5, 2]}),
    "another format": ("a\n04/03/2026\n31/12/2026\n", {"dates": "%m/%d/%Y"}, "no column has this"),
    "no format": ("a\n04/03/2026\n", {"dates": "dayfirst"}, "dates must be a format"),
    "a time of the day": ("a\n12:30:00\n", {}, {"a": ["12:30:00"]}),
    # missing values, and names
    "missing numbers": ("a,b\n1,2.5\nNA,None\n,nan\n3,null\n", {},
                        {"a": [1, NAN, NAN, 3], "b": [2.5, NAN, NAN, NAN]}),
    "words": ("a\nNA\nFR\nNone\nnan\n", {}, {"a": ["NA", "FR", "None", "nan"]}),
    "an empty word": ('a,b\n,x\n"",y\nz,\n', {}, {"a": [NAN, NAN, "z"], "b": ["x", "y", NAN]}),
    "names": ("a,b\n1,NA\nNA,2\n", {"text": ["a"]}, {"a": ["1", "NA"], "b": [NAN, 2]}),
    "codes": ("a,b\n007,7\n7,8\n", {"text": ["a"]}, {"a": ["007", "7"], "b": [7, 8]}),
    "codes of features": ("a,b,c\n007,01.5,08:30\n120,2.5,10:00\n", {},
                          {"a": [7, 120], "b": [1.5, 2.5], "c": ["08:30", "10:00"]}),
    "a text of no rows": ("a,b\n", {"text": ["a"]}, {"a": [], "b": []}),
    "names that are dates": ("a,b\n04/03/2026,04/03/2026\n", {"text": ["a"], "dates": "%d/%m/%Y"},
                             {"a": ["04/03/2026"], "b": [DAY]}),
    "names of any kind": ("a,b\n1e5,2026-03-04\n2,2026-03-05\n", {"text": ["a", "b"]},
                          {"a": ["1e5", "2"], "b": ["2026-03-04", "2026-03-05"]}),
    "whole names": ("a\n1.0\n2.0\n", {"text": ["a"]}, {"a": [1, 2]}),
    "long codes": ("a,b\n12345678901234567890,1\n12345678901234567891,2\n", {"text": ["a"]},
                   {"a": ["12345678901234567890", "12345678901234567891"], "b": [1, 2]}),
    "numbers for names": ("a\n1\n2\n", {"text": ["a"]}, {"a": [1, 2]}),
    "logical": ("a,b\nTrue,true\nFalse,\n", {}, {"a": [True, False], "b": [True, None]}),
    "exact": ("a,b\n9007199254740993,0.1\n1,0.30000000000000004\n", {},
              {"a": [9007199254740993, 1], "b": [0.1, 0.30000000000000004]}),
    "no name": (",b\n5,1\n7,2\n", {}, {"Unnamed: 0": [5, 7], "b": [1, 2]}),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
@in_gate(99)
def test_a_file_is_read_rightly_or_refused(case, tmp_path):
    text, options, expected = FILES[case]
    for name, packed in (
        ("file.csv", text.encode()),
        ("file.csv.gz", gzip.compress(text.encode())),
    ):
        path = tmp_path / name
        path.write_bytes(packed)
        if isinstance(expected, str):
            with pytest.raises(ValueError, match="cannot be read as a table") as error:
                read(path, **options)
            assert re.search(expected, str(error.value)), error.value
            continue
        found, whole = read(path, **options), pd.DataFrame(expected)
        for column in found.select_dtypes("datetime"):
            found[column] = found[column].dt.as_unit("us")
            whole[column] = whole[column].dt.as_unit("us")
        pd.testing.assert_frame_equal(found, whole, check_dtype=False, check_column_type=False)


def twice():
    """The bytes of a Parquet file with two columns of one name."""
    file = io.BytesIO()
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), file)
    return file.getvalue()


SAVE_AS = r"save it as text in UTF-8 .in a spreadsheet: CSV UTF-8"
NO_TABLES = [  # a file's name and its content, and what is said
    ("file.csv", "länge,b\n1,2\n".encode("latin-1"), ""),
    ("file.csv", "a\tb\n".encode("utf-16"), SAVE_AS),
    ("file.csv", b"PK\x03\x04\x14\x00\x06\x00", SAVE_AS),
    ("file.csv.gz", b"a,b\n1,2\n", ""),
    ("file.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], ""),
    ("file.csv.gz", gzip.compress("a,b\n1,2\n".encode("utf-16"), mtime=0), ""),
    ("file.zip", b"PK\x03\x04\xff\xfe", ""),
    ("file.xlsx", b"PK\x03\x04\x14\x00\x06\x00", ""),
    ("file.json", b'[{"a": 1}, {"a": 2}]', ""),
    ("file.jsonl", b'{"a": 1}\n{"a": ', "line 2 is no JSON"),
    ("file.jsonl", b'{"a": 1},\n', "line 1 is no JSON, or cut off: Extra data"),
    ("file.jsonl", b'{"a": 1}\n[1]\n', r"line 2 is no JSON object: '\[1\]'"),
    ("file.jsonl", b'{"a": 1, "a": 2}\n', "line 1 is an object with a name twice"),
    ("file.jsonl", b'{"a": true}\n{"a": 1}\n', "column 'a' has both true or false and numbers"),
    ("file.jsonl", b"\n\n", "it is empty"),
    ("file.json", b'{"a": {"0": 1, "1": 2}, "b": {"0": "u", "1": "v"}}', "orient='records', li"),
    ("file.json", b'{"columns": ["a"], "index": [0], "data": [[1]]}', "orient='records', lines"),
    ("file.parquet", b"a,b\n", ""),
    ("file.parquet", twice(), "columns of one name: a"),
]


@pytest.mark.parametrize(("name", "content", "said"), NO_TABLES)
@in_gate(20)
def test_what_is_no_table_is_a_sentence(name, content, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    refusal = re.escape(f"{path} cannot be read as a table: ")
    with pytest.raises(ValueError, match=f"(?s){refusal}.*{said}"):
        read(path)


PIECES = [
    "a", "1", "2.5", ",", ";", "\t", '"', "\n", "\r\n", "NA", "", "-", "0x", "é", "%", "$1,200",
    " ", "2026-01-02", "T10:00:00Z", "true", "12:30", "sep=", "1e999", "9" * 30,
]  # fmt: skip
WRITTEN = {
    "sep": st.sampled_from([",", ";", "|", '"', "ab", "", r"\t", "é", " "]),
    "decimal": st.sampled_from([".", ",", ";", ""]),
    "dates": st.sampled_from(["%d/%m/%Y", "x", "%", "%Q", "%Y-%m-%d", ""]),
    "text": st.just(["a"]),
}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    start=st.sampled_from(["", "a,b\n", "a\n"]),
    pieces=st.lists(st.sampled_from(PIECES), max_size=40),
    options=st.fixed_dictionaries({}, optional=WRITTEN),
)
def test_any_text_is_a_table_or_a_sentence(start, pieces, options, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes((start + "".join(pieces)).encode())
    try:
        found = read(path, **options)
    except ValueError as error:
        assert "cannot be read as a table: " in str(error)  # noqa: PT017
    else:
        assert found.columns.is_unique


LINES = {  # the values of a column, as JSON has them, and what is read
    "dates are texts": (["2026-01-01", "2026-01-02"], ["2026-01-01", "2026-01-02"]),
    "long numbers": ([2**63, 2**63 + 1], [2**63, 2**63 + 1]),
    "mixed": ([1, "b"], [1, "b"]),
    "missing": ([None, "NA"], [None, "NA"]),
    "logical": ([True, False], [True, False]),
}


@pytest.mark.parametrize("case", LINES)
def test_values_of_json_lines_stay_what_they_are(case, tmp_path):
    """pyarrow made dates of such texts, and one number of both long ones."""
    values, expected = LINES[case]
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(json.dumps({"a": value}) for value in values))
    found = read(path)["a"]
    assert [None if pd.isna(value) else value for value in found] == expected


def test_a_parquet_file_is_known_by_its_content(tmp_path):
    path = tmp_path / "part-0000"
    frame = pd.DataFrame({"a": [1, 2]})
    frame.to_parquet(path)
    pd.testing.assert_frame_equal(read(path), frame)


def computed(path):
    """The table of a file as Dask reads it, where there is Dask."""
    table = table_of(path, None, None)
    return table.compute() if is_dask(table) else table


@pytest.mark.parametrize("of", [read, computed])
def test_an_index_with_a_name_is_a_column_of_a_parquet_file(of, tmp_path):
    """A log by its times, or by time and arm, loses neither; an index without a name is none."""
    path = tmp_path / "t.parquet"
    table = pd.DataFrame(
        {"time": pd.date_range("2026", periods=4), "arm": [*"abab"], "x": range(4)}
    )
    for index in (["time"], ["time", "arm"]):
        table.set_index(index).to_parquet(path)
        pd.testing.assert_frame_equal(of(path)[[*table]], table, check_dtype=False)
    table[::-1].to_parquet(path)
    assert [*of(path)] == [*table]


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.ndjson.gz", "t.parquet"]
)
def test_every_kind_of_file_gives_the_same_table(name, tmp_path):
    path = tmp_path / name
    table = pd.DataFrame({"x": [0.5, 2.0, 0.1], "k": [3, 1, 2], "y": ["u", "NA", "u"]})
    if "sv" in name:
        table.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
    elif "parquet" in name:
        table.to_parquet(path)
    else:
        table.to_json(path, orient="records", lines=True)
    pd.testing.assert_frame_equal(read(path, text=["y"]), table, check_dtype=False)
    assert from_csv(path, "y").arms == ("NA", "u")
    assert from_csv(path, "y").name == "t"


WORDS = st.sampled_from(["red", "NA", "None", "a;b", "c,d", "e|f", 'say "hi"', "two\nlines", "é"])
FLOATS = st.floats(-1e12, 1e12, allow_nan=False).map(lambda v: v + 0.5 if v == int(v) else v)
DATES = st.datetimes(pd.Timestamp("1950-01-01"), pd.Timestamp("2090-01-01")).map(
    lambda d: pd.Timestamp(d).floor("D")
)
FORMATS = st.sampled_from([None, "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d", "%d.%m.%Y"])


@st.composite
def written(draw):
    """A frame, and the options by which pandas writes it."""
    n = draw(st.integers(2, 8))

    def column(values, gaps=True):
        some = st.one_of(values, st.none()) if gaps else values
        return draw(st.lists(some, min_size=n, max_size=n))

    frame = pd.DataFrame(
        {
            "whole": column(st.integers(-(2**53), 2**53), gaps=False),
            "number": pd.Series(column(FLOATS), dtype=float),
            "word": pd.Series(column(WORDS), dtype=object),
            "day": pd.to_datetime(pd.Series(column(DATES))),
            "logical": column(st.booleans(), gaps=False),
        }
    )
    form = {"sep": draw(st.sampled_from(",;\t|")), "decimal": draw(st.sampled_from(".,"))}
    return frame, form, draw(FORMATS)


def same(found, frame):
    """Whether two tables have the same values; empty columns have no type."""
    for name in frame:
        one, other = found[name], frame[name]
        if not np.array_equal(one.isna(), other.isna()):
            return False
        known = other.notna()
        if known.any() and one.dtype.kind != other.dtype.kind:
            return False
        if not (one[known].astype(object) == other[known].astype(object)).all():
            return False
    return list(found) == list(frame)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(case=written(), other=st.fixed_dictionaries({}, optional={"sep": st.sampled_from(",;\t|"),
       "decimal": st.sampled_from(".,")}))  # fmt: skip
def test_a_frame_comes_back_or_is_refused(case, other, tmp_path_factory):
    """With the options by which it was written it is the same frame; with others or none it is the
    same, or it is refused where it is read or fitted, or columns are texts as they are written."""
    frame, form, dates = case
    path = tmp_path_factory.mktemp("law") / "frame.csv"
    frame.to_csv(path, index=False, date_format=dates, **form)
    texts = frame["day"].dropna().dt.strftime(dates or "%Y-%m-%d")
    if dates is not None and len(texts):
        assert same(read(path, dates=dates, **form), frame)
    if dates in (None, "%Y-%m-%d") or texts.empty:
        assert same(read(path, **form), frame)
    try:
        with warnings.catch_warnings(action="ignore"):
            found = read(path, **other)
            assert list(found) == list(frame)
    except ValueError:
        return
    for name in frame:
        if not same(found[[name]], frame[[name]]):
            assert found[name].dtype.kind not in "biufM", (name, found[name])
    numbers = frame["number"].dropna()
    if not same(found[["number"]], frame[["number"]]) and numbers.nunique() > 1:
        assert other.get("decimal", ".") != form["decimal"]


RNG = np.random.default_rng(0)
N = 60


def log_text(arms=("a", "b"), time="2026-01-02T00:00:00Z", p="0.5", extra=""):
    names = [arms[k % len(arms)] for k in range(N)]
    rows = [f"{name},{k % 2},{p},{time}{extra and f',{k % 7 / 8}'}" for k, name in enumerate(names)]
    return "\n".join([f"arm,reward,propensity,timestamp{extra and f',{extra}'}", *rows, ""])


@pytest.mark.parametrize("names", [("None", "offer"), ("NA", "EU"), ("null", "nan"), ("1", "None")])
def test_arms_that_look_missing_are_names(names, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(log_text(names))
    assert set(read_log(path).arms) == set(names)
    path.write_text(log_text(names).replace("arm,", "offer,", 1))
    assert set(read_log(path, arm="offer").arms) == set(names)


@pytest.mark.parametrize("time", ["02/01/2026", "1.2.2026 10:00", "now", "2026/01/02"])
def test_a_time_that_can_be_read_in_two_ways_is_refused(time, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(log_text(time=time))
    with pytest.raises(ValueError, match=r"'timestamp' \(time\) must be times.*dates='%d/%m/%Y'"):
        read_log(path)


def test_a_file_of_decimal_commas_is_refused_by_every_reader(tmp_path):
    """And read by each with the same option."""
    path, form = tmp_path / "file.csv", {"sep": ";", "decimal": ","}
    values = np.round(RNG.normal(size=N), 3)
    frame = pd.DataFrame({"x": values, "y": RNG.choice(["u", "v"], N), "u": values, "v": -values})
    frame.to_csv(path, index=False, **form)
    with pytest.raises(ValueError, match=r"'x' has '-?\d,\d+': decimal=','"):
        from_csv(path, "y", sep=";")
    assert from_csv(path, "y", **form).n_features == 3
    assert KnownRewards(read(path, **form), ["u", "v"]).n_features == 2
    log = pd.DataFrame({"arm": frame["y"], "reward": values, "propensity": 0.5, "x": values})
    log.to_csv(path, index=False, **form)
    with pytest.raises(ValueError, match=r"'reward'.*decimal=','"):
        read_log(path, sep=";", x=[])
    np.testing.assert_array_equal(read_log(path, **form).reward, values)


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson.gz", "log.json"])
def test_a_log_in_json_lines(name, tmp_path):
    frame = pd.DataFrame(
        {
            "arm": [("None", "b")[k % 2] for k in range(N)],
            "reward": RNG.normal(size=N),
            "propensity": 0.5,
            "age": RNG.normal(size=N),
            "time": "2026-01-02T10:00:00Z",
        }
    )
    path = tmp_path / name
    frame.to_json(path, orient="records", lines=True, double_precision=15)
    log = read_log(path)
    assert set(log.arms) == {"None", "b"}
    assert log.features == ("age",)
    np.testing.assert_allclose(log.reward, frame["reward"], atol=1e-14)
    rows = [json.dumps({"arm": "a", "reward": 1.0, "propensity": 0.5, "user": {"age": 3}})] * 2
    path.write_bytes(gzip.compress("\n".join(rows).encode()) if "gz" in name else
                     "\n".join(rows).encode())  # fmt: skip
    with pytest.raises(TypeError, match="column 'user' holds"):
        read_log(path)
