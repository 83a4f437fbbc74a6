"""Numbers and dates that are written as text, and levels however their values are written."""

import datetime
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame({"z": RNG.normal(size=N)})
AMOUNTS = RNG.integers(1, 99_999, N)


def fit(values, **settings):
    return bb.Encoder.fit(X.assign(a=values), **settings)


def kind(encoder):
    return encoder.summary().set_index("column").loc["a", "kind"]


def of(encoder, value):
    return encoder.transform({"z": 0.0, "a": value})


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["{}", "{}.25", "-{}e3", "${}", "$ {:,}", "{} €", "{}%", "{} %"])
def test_many_numbers_as_text_are_refused(text):
    """The types of a table decide; of text there would be levels, most of them pooled."""
    texts = [text.format(value) for value in AMOUNTS]
    with pytest.raises(ValueError, match=r"column 'a' has \d+ different numbers as text, such as"):
        fit(texts)
    with (
        pytest.warns(UserWarning, match="are one level, 'other'")
        if len(set(texts)) < N
        else (pytest.raises(ValueError, match="no text in it occurs twice"))
    ):
        fit(texts, keep=["a"])


@pytest.mark.parametrize("odd", ["unknown", "?", "12 kg", "1,2,3"])
def test_what_keeps_a_column_from_being_numbers_is_named(odd):
    texts = [f"{value}" for value in AMOUNTS]
    with pytest.raises(
        ValueError, match=r"column 'a' has numbers, but for .* in row 4.*keep=\['a'"
    ):
        fit([odd if k == 3 else text for k, text in enumerate(texts)])


@pytest.mark.parametrize("text", ["0,{}", "{},5", "1,{}", "-{},25e3", "1.234,{}", "{:,}"])
@pytest.mark.parametrize("n", [2, N])
def test_a_comma_in_all_numbers_is_refused_with_the_option(text, n):
    """It may be a decimal mark, or stand between thousands."""
    texts = [text.format(1_000 + value % n) for value in AMOUNTS]
    for settings in ({}, {"keep": ["a"]}) if n == 2 else ({},):
        if settings:
            assert kind(fit(texts, **settings)) == "levels"
            continue
        with pytest.raises(ValueError, match=r"column 'a' has '.*' as text: .* decimal=','"):
            fit(texts)


@pytest.mark.parametrize(
    "values",
    [
        [f"{k}" for k in AMOUNTS % 12],
        [f"{k / 10}" for k in AMOUNTS % 12],
        [f"{k:05}" for k in AMOUNTS % 12_345 // 1_000],  # codes, as of posts
        [k if k % 2 else f"{k}" for k in AMOUNTS % 12],
        pd.Categorical([f"{k}" for k in AMOUNTS % 50]),
    ],
)
@pytest.mark.filterwarnings("ignore:of the .* different texts")
def test_few_numbers_as_text_are_levels(values):
    assert kind(fit(values)) == "levels"


def test_an_encoder_of_before_is_read_unless_it_read_numbers_as_text():
    from bayesbandit.tables.stored import digest

    encoder = fit(AMOUNTS)
    plain = encoder.to_dict()
    for column in plain["columns"]:
        column |= {"written": False, "unit": ""}
    assert bb.Encoder.from_dict({**plain, "digest": digest(plain)}) == encoder
    plain["columns"][1]["written"] = True
    with pytest.raises(ValueError, match=r"column 'a' was fitted to numbers as text.*fit .* again"):
        bb.Encoder.from_dict({**plain, "digest": digest(plain)})


# ---- dates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y %H:%M", "%m/%d/%y"]
)
def test_dates_as_people_write_them_are_left_out(text):
    dates = pd.date_range("2024-01-01", periods=N, freq="31h").strftime(text)
    with pytest.warns(UserWarning, match=r"left out 'a' \(dates that may be .*dates='%d/%m/%Y'"):
        assert fit(dates).columns == ("z",)
    with pytest.raises(ValueError, match=r"read in more than one way; dates=.*pandas\.to_datetime"):
        fit(dates, keep=["a"])


# ---- levels -------------------------------------------------------------------------------------


def categories(values):
    return pd.Categorical([values[k % len(values)] for k in range(N)])


@pytest.mark.parametrize(
    ("levels", "same"),
    [
        ([1.5, 2.0, 3.0], [(1.5, "1.5"), (2.0, "2"), (2.0, "2.0"), (3.0, 3), (3.0, np.int8(3))]),
        (["1", "2", "12"], [("1", 1), ("2", 2.0), ("12", "12.0")]),
        (["07", "7", "9"], [("7", 7.0), ("7", "7.0"), ("9", 9)]),
        (
            list(pd.date_range("2024-01-01", periods=3)),
            [
                (pd.Timestamp("2024-01-02"), "2024-01-02"),
                (pd.Timestamp("2024-01-02"), datetime.date(2024, 1, 2)),
                (pd.Timestamp("2024-01-03"), np.datetime64("2024-01-03")),
                (pd.Timestamp("2024-01-03"), "2024-01-03T00:00:00Z"),
            ],
        ),
    ],
    ids=["floats", "texts", "codes", "dates"],
)
def test_levels_are_found_by_value(levels, same):
    encoder = fit(categories(levels))
    assert kind(encoder) == "levels"
    with warnings.catch_warnings(action="error"):
        for level, value in same:
            assert np.array_equal(of(encoder, level), of(encoder, value)), value
            assert of(encoder, value)[0, 1:].sum() == 1


@pytest.mark.parametrize("value", ["1e0", "01", "0x1", "1_0", "one", "2024-01-01"])
def test_codes_are_no_numbers(value):
    encoder = fit([f"{1 + k % 3}" for k in range(N)])
    with warnings.catch_warnings(action="ignore"):
        assert not of(encoder, value)[0, 1:].any()


@pytest.mark.parametrize(
    ("levels", "odd", "usual"),
    [
        (["no", "yes"], [True, 1, 0.5, datetime.date(2024, 1, 1)], ["YES", "1", b"yes", None]),
        ([1, 2, 3], ["b", pd.Timestamp("2024-01-01")], [7, "8", 9.5]),
        (["1", "b", "c"], [], [True, 5, "d", pd.Timestamp("2024-01-01")]),
    ],
    ids=["words", "numbers", "both"],
)
def test_a_value_of_another_kind_is_told(levels, odd, usual):
    """Once a table, however many there are; True is no "yes"."""
    encoder = fit(categories(levels))
    for value in odd:
        frame = X.assign(a=pd.Series([value] * N, dtype=object))
        with pytest.warns(UserWarning, match="column 'a': .* is of another kind") as told:
            encoder.transform(frame)
        assert len(told) == 1
    with warnings.catch_warnings(action="error"):
        for value in usual:
            of(encoder, value)


# ---- what is said of a fit ----------------------------------------------------------------------


def test_levels_that_are_mostly_pooled_are_told():
    notes = [f"note {k // 2}" for k in range(N)]
    with pytest.warns(
        UserWarning, match=r"of the 100 different texts of 'a' the rarest 81, 81% of"
    ):
        assert "a=other" in fit(notes).features
    with warnings.catch_warnings(action="error"):
        fit([f"note {k // 2 % 20}" for k in range(N)])
        fit(notes, drop=["a"])


def test_columns_that_repeat_another_are_told():
    words = RNG.choice(["u", "v", None], N)
    frame = X.assign(a=X["z"], b=words, c=words, d=-X["z"])
    with pytest.warns(UserWarning, match="repeats") as told:
        encoder = bb.Encoder.fit(frame)
    said = "'a' repeats 'z', 'c' repeats 'b' in every row"
    assert [str(one.message).split(";")[0] for one in told] == [said]
    assert encoder.columns == ("z", "a", "b", "c", "d")


def test_the_advice_can_be_pasted():
    with pytest.warns(UserWarning, match="--keep 'order id', uses one; .*or --drop 'order id'"):
        bb.Encoder.fit(X.assign(**{"order id": [f"B{k}" for k in range(N)]}))


def test_of_many_columns_that_repeat_others_few_are_named():
    frame = pd.DataFrame(np.repeat(X.to_numpy(), 30, axis=1)).add_prefix("x")
    with pytest.warns(UserWarning, match="'x5' repeats 'x0', and 24 more repeat others") as told:
        bb.Encoder.fit(frame)
    assert len(told) == 1


def test_a_warning_is_of_the_line_that_called():
    encoder = fit([("yes", "no")[k % 2] for k in range(N)])
    bandit = bb.LinTS(["u", "v"], encoder=encoder)
    with pytest.warns(UserWarning, match="is of another kind") as told:
        bandit.choose({"z": 0.0, "a": True})
    assert told[0].filename == __file__


@pytest.mark.parametrize("path", ["hotel.csv", b"hotel.csv", Path("hotel.csv")])
def test_a_file_is_no_table(path):
    with pytest.raises(TypeError, match=r"got .*hotel\.csv.*: pandas\.read_csv reads it"):
        bb.Encoder.fit(path)
