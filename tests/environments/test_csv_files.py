"""CSV files as programs of any country write them."""

import re

import numpy as np
import pandas as pd
import pytest

from bayesbandit.environments import from_csv
from bayesbandit.environments.csv_files import read, separator

RNG = np.random.default_rng(0)
N = 40
TABLE = pd.DataFrame(
    {
        "room type": RNG.choice(["single, small", "double", "дача"], N),
        "länge?": RNG.integers(1, 9, N),
        "price": [f"${value:,}" for value in RNG.integers(100, 9999, N)],
        "weight": RNG.normal(5, 2, N).round(2),
        "empty": np.nan,
        "offer": RNG.choice(["a;b", "c|d"], N),
    }
)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_the_separator_is_seen(sep, mark, tmp_path):
    path = tmp_path / "hotel.csv"
    path.write_text(mark + TABLE.to_csv(index=False, sep=sep), encoding="utf-8")
    assert separator(path) == sep
    pd.testing.assert_frame_equal(read(path, "offer"), TABLE)
    assert from_csv(path, "offer").arms == ("a;b", "c|d")


def test_a_column_alone_and_rows_of_both_are_of_commas(tmp_path):
    path = tmp_path / "one.csv"
    for text in ("x\n1\n2\n", "a;b,c\n1;2,3\n1,2;3\n", ""):
        path.write_text(text)
        assert separator(path) == ","


def test_decimal_commas_between_semicolons(tmp_path):
    """As Excel writes them in most of Europe: the same numbers, also with thousands points."""
    path = tmp_path / "comma.csv"
    values = RNG.gamma(2.0, 2_000.0, N).round(2)
    values[4] = np.nan
    numbers = pd.DataFrame({"x": values, "r": -values, "kind": RNG.choice(["u", "v"], N)})
    point = str.maketrans(",.", ".,")
    for form in ("{:.2f}", "{:,.2f}"):
        text = numbers.assign(
            **{
                name: [form.format(v).translate(point) if v == v else "" for v in numbers[name]]
                for name in "xr"
            }
        )
        text.to_csv(path, index=False, sep=";")
        pd.testing.assert_frame_equal(read(path, "kind"), numbers)


def test_commas_that_may_be_of_thousands_or_of_words_stay(tmp_path):
    path = tmp_path / "comma.csv"
    text = pd.DataFrame({"x": ["1,234", "56", "7,890"], "y": ["1,2", "a", "3,4"], "k": ["1,5"] * 3})
    text.to_csv(path, index=False, sep=";")
    pd.testing.assert_frame_equal(read(path, "k"), text)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2,3,u\n4,5,6,v\n",  # two more
        "a,b\n1,2,u\n1,3,v\n",  # one, which is no name of a row
        "a;b\n1;2;u\n1;3;v\n",
        "a,b\n1.5,u,\n2.5,v,\n",  # one, which is empty
    ],
)
def test_rows_wider_than_the_header_are_refused(text, tmp_path):
    """Their values were read under the names of others."""
    path = tmp_path / "wide.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="rows have more values than the 2 names of the header"):
        read(path)


def test_names_of_rows_are_no_feature(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("a,b\nx1,2,u\nx2,3,v\n")
    assert list(read(path).columns) == ["a", "b"]


def test_points_separate_thousands_beside_decimal_commas(tmp_path):
    path = tmp_path / "german.csv"
    x = {"price": ["900", "1.500", ""], "size": ["1,5", "2", "3"], "share": ["0.25", "1.500", "2"]}
    pd.DataFrame(x | {"self": list("uvw")}).to_csv(path, index=False, sep=";")
    found = read(path, "self")
    assert found["price"].tolist()[:2] == [900, 1500]
    assert np.isnan(found["price"][2])
    assert found["share"].tolist() == [0.25, 1.5, 2.0]  # these are no thousands
    pd.DataFrame({"price": x["price"], "self": list("uvw")}).to_csv(path, index=False, sep=";")
    assert read(path, "self")["price"].tolist()[:2] == [900, 1.5]  # no number has a decimal comma


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_refused_with_advice(encoding, tmp_path):
    path = tmp_path / "coded.csv"
    TABLE.drop(columns="room type").to_csv(path, index=False, encoding=encoding, errors="replace")
    with pytest.raises(ValueError, match=r"coded\.csv cannot be read .*; save it as UTF-8"):
        read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,x\n2,y\0z\n", r"line 3 has a NUL character: '2,y\\x00z'"),
        ('a,b\n1,x\n2,"open\n3,y\n', "line 3 opens a quote that is never closed: '2,\"open'"),
        ('"a,b\n1,x\n', "line 1 opens a quote that is never closed: '\"a,b'"),
        (
            'a;b\n1;"open\n2;y\n3;"shut";\n4;z\n',
            "line 2 opens a quote, '1;\"open', that is closed within a value of line 4: '3;\"shut",
        ),
        ('a,b\r\n1,x\r\n2,"open', "line 3 opens a quote"),
    ],
)  # fmt: skip
def test_what_would_swallow_rows_is_named(text, said, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(text, newline="")
    with pytest.raises(ValueError, match="cannot be read as comma-separated text") as error:
        read(path)
    assert re.search(said, str(error.value)), error.value


def test_quotes_that_are_right_stay(tmp_path):
    """Also of several lines, doubled, within words, and where nothing but a blank follows."""
    path = tmp_path / "quotes.csv"
    path.write_text('"a","b"\n"x, y","two\nlines"\n5" pipe,"say ""hi"""\n"c" ,""\n')
    assert read(path).fillna("").to_numpy().tolist() == [
        ["x, y", "two\nlines"],
        ['5" pipe', 'say "hi"'],
        ["c ", ""],
    ]


def test_long_values_between_quotes_are_no_open_ones(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text('a,b\n1,"' + "word\n" * 50_000 + '"\n2,x\n')
    assert read(path)["b"].str.len().tolist() == [250_000, 1]
