"""CSV files as programs of any country write them."""

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


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_refused_with_advice(encoding, tmp_path):
    path = tmp_path / "coded.csv"
    TABLE.drop(columns="room type").to_csv(path, index=False, encoding=encoding, errors="replace")
    with pytest.raises(ValueError, match=r"coded\.csv cannot be read .*; save it as UTF-8"):
        read(path)
