"""Numbers and dates that are written as text, and levels however their values are written."""

import datetime
import json
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${:,}", ", written as text with $"),
        ("$ {}", ", written as text with $"),
        ("-{} €", ", written as text with €"),
        ("£{}.5", ", written as text with £"),
        ("{}%", ", written as text with %"),
        ("{} %", ", written as text with %"),
        ("{}.25", ", written as text"),
        ("{:,}", ", written as text"),
    ],
)
def test_numbers_are_read_through_their_signs(text, said):
    """As if the sign had not been there; the table tells that it was, and so does the file."""
    texts = [text.format(value) for value in AMOUNTS]
    plain = [float(value.translate(str.maketrans("", "", "$€£%, "))) for value in texts]
    encoder, usual = fit(texts), fit(plain)
    assert (kind(encoder), kind(usual)) == ("number" + said, "number")
    frame = X.assign(a=texts)
    assert np.array_equal(encoder.transform(frame), usual.transform(X.assign(a=plain)))
    assert np.array_equal(encoder.transform(frame.iloc[3].to_dict()), encoder.transform(frame)[[3]])
    again = bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    assert np.array_equal(again.transform(frame), encoder.transform(frame))
    assert np.array_equal(of(encoder, None), of(usual, None))


@pytest.mark.parametrize("value", [12, 0.12, True, "12", "$12", "12 %%", "%", "a%"])
def test_a_value_without_the_sign_of_its_column_is_refused(value):
    """A share of .12 is no 12%."""
    encoder = fit([f"{k % 101}%" for k in range(N)])
    for x in ({"z": 0.0, "a": value}, pd.DataFrame({"z": 0.0, "a": [value]})):
        with pytest.raises(ValueError, match="column 'a' holds numbers with %, as text; got"):
            encoder.transform(x)


@pytest.mark.parametrize("odd", ["€5", "12", "unknown", "$1,20"])
def test_what_keeps_a_column_from_being_numbers_is_named(odd):
    texts = [f"${value:,}" for value in AMOUNTS]
    with pytest.raises(ValueError, match=r"column 'a' has numbers with \$, but for .* in row 4"):
        fit([odd if k == 3 else text for k, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"{k}" for k in AMOUNTS % 50], "number, written as text"),
        ([f"{k}" for k in AMOUNTS % 12], "levels"),
        ([f"{k / 10}" for k in AMOUNTS % 12], "levels"),
        ([f"{k:05}" for k in AMOUNTS % 12_345], "levels"),  # codes, as of posts
        ([f"{k}.5" for k in range(N)], "number, written as text"),
        ([f"{10 * k}" for k in range(N)], "left out"),  # never repeats
        ([k if k % 2 else f"{k}" for k in AMOUNTS % 50], "number, written as text"),
    ],
)
@pytest.mark.filterwarnings("ignore:of the .* different texts", "ignore:left out 'a'")
def test_plain_numbers_in_text_measure_unless_they_are_codes(values, expected):
    assert kind(fit(pd.Series(values, dtype=object))) == expected


def test_numbers_that_never_repeat_can_be_kept():
    texts = [f"{10 * k}" for k in range(N)]
    with pytest.warns(UserWarning, match="left out 'a'"):
        assert "a" not in fit(texts).columns
    kept = fit(texts, keep=["a"])
    assert np.array_equal(of(kept, "30"), of(fit([10 * k for k in range(N)], keep=["a"]), 30))


def test_an_encoder_of_before_has_no_units():
    from bayesbandit.tables.stored import digest

    encoder = fit([f"{value:,}" for value in AMOUNTS])
    plain = encoder.to_dict()
    for column in plain["columns"]:
        column.pop("unit", None)
    assert bb.Encoder.from_dict({**plain, "digest": digest(plain)}) == encoder
    for unit in ("EUR", 5, None, "x", "$€"):
        broken = encoder.to_dict()
        broken["columns"][1]["unit"] = unit
        with pytest.raises(ValueError, match=r"column 'a'.*unit"):
            bb.Encoder.from_dict({**broken, "digest": digest(broken)})


# ---- dates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y %H:%M"])
def test_dates_as_people_write_them_are_left_out(text):
    dates = pd.date_range("2024-01-01", periods=N, freq="31h").strftime(text)
    with pytest.warns(UserWarning, match=r"left out 'a' \(dates, day and month in any order\)"):
        assert fit(dates).columns == ("z",)
    with pytest.raises(ValueError, match=r"read in more than one way.*pandas\.to_datetime\(frame"):
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
