"""Laws of encoders, over tables of mixed columns."""

import copy
import datetime
import enum
import json
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayesbandit as bb
from bayesbandit.tables.encoder import fitted
from bayesbandit.tables.stored import digest
from tests.cases import few, in_gate
from tests.tables.mixed import marketing, mixed, same_bits

NAN = float("nan")
SEEDS = range(6)


def by_scikit_learn(frame):
    """The features of `mixed` by its transformers alone, as the studies were computed."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = frame.drop(columns=["constant", "empty"])
    numbers = [c for c in frame if c in ("age", "visits", "income", "amount", 3)]
    texts = {c: frame[c].astype(object).map(str, na_action="ignore") for c in frame}
    levels = {c: v.where(v.notna(), NAN) for c, v in texts.items() if c not in numbers}
    p = np.column_stack([frame[c].to_numpy(np.float64, na_value=NAN) for c in numbers])
    typed = pd.concat([pd.DataFrame(p), *levels.values()], axis=1)
    typed.columns = range(typed.shape[1])
    one_hot = OneHotEncoder(
        drop="if_binary", min_frequency=2, max_categories=20, sparse_output=False
    )
    standard = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    at = [*range(len(numbers))], [*range(len(numbers), typed.shape[1])]
    return ColumnTransformer([("n", standard, at[0]), ("l", one_hot, at[1])]).fit_transform(typed)


@pytest.mark.parametrize("seed", SEEDS)
@few("[0]", "[3]")
def test_the_features_of_the_fit(seed):
    """Bit for bit those of scikit-learn's transformers, and of `transform`, row by row too."""
    frame = mixed(seed)
    before = frame.copy(deep=True)
    encoder, features, said = fitted(frame)
    assert not said
    assert encoder.transform(frame.iloc[:0]).shape == (0, len(encoder.features))
    same_bits(by_scikit_learn(frame), features)
    same_bits(encoder.transform(frame), features)
    assert features.shape[1] == len(encoder.features) == len(set(encoder.features))
    assert set(encoder.columns) == set(frame.columns) - {"constant", "empty"}
    for i in range(10):
        row = frame.iloc[i]
        same_bits(encoder.transform(row), features[[i]])
        same_bits(encoder.transform(row.to_dict()), features[[i]])
        same_bits(encoder.transform(frame.iloc[[i]]), features[[i]])
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("seed", SEEDS)
@few("[1]", "[4]")
def test_the_order_of_columns_and_rows_does_not_matter(seed):
    frame, rng = mixed(seed), np.random.default_rng(seed)
    encoder = bb.Encoder.fit(frame)
    rows, columns = rng.permutation(len(frame)), rng.permutation(frame.shape[1])
    same_bits(encoder.transform(frame.iloc[rows, columns]), encoder.transform(frame)[rows])
    other = bb.Encoder.fit(frame.iloc[:, columns])
    place = [other.features.index(name) for name in encoder.features]
    np.testing.assert_allclose(other.transform(frame)[:, place], encoder.transform(frame))


@pytest.mark.parametrize("seed", SEEDS)
@few("[1]")
def test_json_keeps_every_bit(seed):
    frame = mixed(seed)
    encoder = bb.Encoder.fit(frame)
    again = bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    assert hash(again) == hash(encoder)
    assert again.features == encoder.features
    assert again.columns == encoder.columns
    same_bits(again.transform(frame), encoder.transform(frame))
    pd.testing.assert_frame_equal(again.summary(), encoder.summary())
    assert pickle.loads(pickle.dumps(encoder)) == encoder
    assert copy.deepcopy(encoder) is encoder
    assert bb.Encoder.fit(frame.assign(age=2.0 * frame["visits"])) != encoder


@few("[5]")
@pytest.mark.parametrize("seed", SEEDS)
def test_polars_is_as_pandas(seed):
    pandas = mixed(seed)
    pandas.columns = [str(name) for name in pandas.columns]
    pandas["grade"] = pandas["grade"].astype(str)
    pandas["word"] = [f"w{k % 15}" for k in range(60)]
    table = {c: [None if pd.isna(v) else v for v in pandas[c]] for c in pandas}
    polars = pl.DataFrame(table, strict=False)
    one, other = bb.Encoder.fit(pandas), bb.Encoder.fit(polars)
    assert one == other
    same_bits(one.transform(polars), one.transform(pandas))
    same_bits(one.transform(polars.row(5, named=True)), one.transform(pandas.iloc[5]))
    with pytest.raises(TypeError, match="got a LazyFrame"):
        bb.Encoder.fit(polars.lazy())
    with pytest.raises(TypeError, match="got a LazyFrame"):
        one.transform(polars.lazy())


WORDS, LOGICAL = [*"xyzxyz", None], [True, False, True, False]
DECIMALS = [Decimal(one) for one in (4, 1, 7, 2, 4)]
DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
KINDS_OF_ONE = {  # values, and the types of columns in which they are the same
    "float": ([4.0, 1.0, 7.0, 2.0, 4.0], ["int8", "Int64", "Float32", "int64[pyarrow]", object]),
    "Decimal": (DECIMALS, [float, object]),
    "text": (WORDS, ["str", "string", "string[pyarrow]", "category", object]),
    "bool": (LOGICAL, ["bool", "boolean", "bool[pyarrow]", object, "category"]),
    "numbers and gaps": ([1.0, 0.0, None] * 40, ["Int64", "Float64", "int8[pyarrow]", object]),
    "logical and gaps": ([True, False, None] * 40, ["boolean", "bool[pyarrow]", object]),
    "text and gaps": (["x", "y", None] * 40, ["category", "string[pyarrow]", DICTIONARY]),
}


@pytest.mark.parametrize("kind", KINDS_OF_ONE)
@few("text", "bool", "gaps")
def test_a_column_is_its_values_whatever_their_type(kind):
    """A missing value is missing as NaN is: in contexts by an encoder, and in a log's rewards."""
    values, types = KINDS_OF_ONE[kind]
    plain = pd.DataFrame({"a": values})
    encoder = bb.Encoder.fit(plain)
    x = encoder.transform(plain)
    others = [plain.astype(dtype) for dtype in types]
    for other in (*others, *(one.astype(object) for one in others)):  # pd.NA among objects, too
        assert bb.Encoder.fit(other) == encoder
        same_bits(encoder.transform(other), x)
        same_bits(encoder.transform(other.to_dict("records")), x)
        same_bits(np.vstack([encoder.transform(row) for row in other.iloc]), x)
        if kind in ("numbers and gaps", "logical and gaps"):
            log = {"arm": [0, 1] * 60, "propensity": 0.5, "reward": other["a"]}
            found = bb.ope.Log.of(pd.DataFrame(log)).reward
            np.testing.assert_array_equal(found, np.tile([1.0, 0.0, np.nan], 40))
            with pytest.raises(ValueError, match="propensities are missing in 40 of 120 rounds"):
                bb.ope.Log(None, log["arm"], np.ones(120), propensity=other["a"])
    if kind == "text":
        assert encoder.features == ("a=x", "a=y", "a=z", "a=other")  # the one gap is rare
    if kind == "text and gaps":
        assert encoder.features == ("a=x", "a=y", "a=missing")


def test_levels_that_the_fit_did_not_see():
    """Are pooled ones where there are any, else none; so is a missing value."""
    none = bb.Encoder.fit(pd.DataFrame({"a": list("xyzxyz")}))
    pooled = bb.Encoder.fit(pd.DataFrame({"a": list("xyzxyzq")}))
    pair = bb.Encoder.fit(pd.DataFrame({"a": list("xyxy")}))
    gap = bb.Encoder.fit(pd.DataFrame({"a": [*"xyxy", None, None]}))
    assert pooled.features == ("a=x", "a=y", "a=z", "a=other")
    assert gap.features == ("a=x", "a=y", "a=missing")
    assert pair.features == ("a=y",)
    for new in ("new", 7, 1e300, None, NAN, pd.NA, pd.NaT, True):
        same_bits(none.transform({"a": new}), np.zeros((1, 3)))
        same_bits(pooled.transform({"a": new}), np.array([[0.0, 0, 0, 1]]))
        same_bits(pair.transform({"a": new}), np.zeros((1, 1)))
    same_bits(pooled.transform({"a": "q"}), pooled.transform({"a": "new"}))
    for missing in (None, NAN, pd.NA):
        same_bits(gap.transform({"a": missing}), np.array([[0.0, 0, 1]]))
    same_bits(gap.transform({"a": "new"}), np.zeros((1, 3)))


@pytest.mark.parametrize("to", [pd.DataFrame, pl.DataFrame])
def test_a_table_of_no_level_of_the_fit_is_encoded_with_a_warning(to):
    frame = pd.DataFrame({"country": ["DE", "FR", "US", "DE"] * 10})
    lower = frame.apply(lambda column: column.str.lower())
    encoder = bb.Encoder.fit(frame)
    message = "column 'country': none of 40 rows has a level of the fit, 'DE', 'FR', 'US'; got 'de'"
    with pytest.warns(UserWarning, match=message):
        assert not encoder.transform(to(lower.to_dict("list"))).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform(to(pd.concat([lower, frame[-1:]]).to_dict("list")))
        encoder.transform(lower[:3])


def test_missing_numbers_take_the_median_of_the_fit():
    encoder = bb.Encoder.fit(pd.DataFrame({"a": [1.0, 2, 4, 100], "b": [1, 2, 3, 5]}))
    for missing in (None, NAN, pd.NA, Decimal("NaN"), Decimal("sNaN")):
        same_bits(encoder.transform({"a": missing, "b": 2}), encoder.transform({"a": 3, "b": 2}))
    gaps = pd.DataFrame({"a": [None, None], "b": pd.array([None, 1], dtype="Int64")})
    same_bits(encoder.transform(gaps), encoder.transform(pd.DataFrame({"a": 3, "b": [2.5, 1]})))


NUMBERS = pd.DataFrame({"a": [1.0, 2.0, 4.0], "t": ["x", "y", "x"]})


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"a": np.inf, "t": "x"}, ValueError, "infinite or beyond .* column 'a'; got inf"),
        ({"a": 1e300, "t": "x"}, ValueError, "infinite or beyond .* column 'a'; got 1e.300"),
        ({"a": 10**400, "t": "x"}, ValueError, "infinite or beyond .* column 'a'; got inf"),
        ({"a": 1e99, "t": "x"}, ValueError, "feature 'a' must be finite and at most 1e.50"),
        ({"a": "4", "t": "x"}, ValueError, "column 'a' holds numbers; got '4'"),
        ({"a": 1j, "t": "x"}, ValueError, "column 'a' holds numbers; got 1j"),
        ({"a": [1, 2], "t": "x"}, ValueError, r"column 'a' holds numbers; got \[1, 2\]"),
        ({"a": pd.Timestamp(0), "t": "x"}, ValueError, "column 'a' holds numbers; got Timestamp"),
        ({"a": 1, "t": ["x"]}, ValueError, r"column 't' holds levels; got \['x'\]"),
        ({"a": 1}, ValueError, "lacks the column 't'; the fit was on 'a', 't'"),
        ({"a": 1, "t": "x", "u": 0}, ValueError, "unknown column 'u'"),
        ({}, ValueError, "lacks the column 'a', 't'"),
        (np.ones(2), TypeError, r"knows columns by name, and got an array of shape \(2,\)"),
        ([[1, "x"]], TypeError, "knows columns by name, and got a list without names"),
        (pd.Series([1, "x"], index=["a", "a"]), ValueError, "a row has a name more than once"),
        (pd.DataFrame([[1, "x", 2]], columns=["a", "t", "a"]), ValueError, "'a' more than once"),
        (pl.Series("a", [1.0]), TypeError, "knows columns by name"),
        (None, TypeError, "knows columns by name, and got a NoneType"),
        (7, TypeError, "knows columns by name, and got a int"),
    ],
)
@in_gate(30)
def test_rows_that_cannot_be_read(row, error, message):
    with pytest.raises(error, match=message):
        bb.Encoder.fit(NUMBERS).transform(row)


N = 200
Z = np.random.default_rng(1).normal(size=N)


def in_turn(values):
    """A table with a column `a` of these values, in turn, beside a number."""
    values = list(values)
    return pd.DataFrame({"z": Z, "a": pd.Series([values[i % len(values)] for i in range(N)])})


def kind(encoder, column="a"):
    return encoder.summary().set_index("column").loc[column, "kind"]


WRITTEN = ["{}", "{}.25", "-{}e3", "${}", "{:,}", "{} %", "{},5", "2024-03-{}", "{}/03/2024", "w{}"]


@pytest.mark.parametrize("text", WRITTEN)
def test_text_is_levels_up_to_20_and_else_left_out(text):
    """However it is written: no number and no date is read from a text."""
    few_of_them = in_turn(text.format(k) for k in range(10, 30))
    with warnings.catch_warnings(action="error"):
        assert kind(bb.Encoder.fit(few_of_them)) == "levels"
    many = in_turn(text.format(k) for k in range(10, 31))
    with pytest.warns(UserWarning, match=r"left out 'a' .text with 21 different values, such as"):
        assert bb.Encoder.fit(many).columns == ("z",)
    with warnings.catch_warnings(action="error"):
        assert kind(bb.Encoder.fit(many, keep=["a"])) == "levels"
        assert kind(bb.Encoder.fit(many.astype({"a": "category"}))) == "levels"
        assert bb.Encoder.fit(many, drop=["a"]).columns == ("z",)


DATES = pd.date_range("2024-01-01", periods=30)


@pytest.mark.parametrize(
    "dates",
    [
        DATES.to_series(),
        pd.date_range("2024-01-01", periods=30, tz="Europe/Berlin").to_series(),
        pd.date_range("1700-01-01", periods=30, freq="YS", unit="s").to_series(),
        pd.Series(pd.period_range("2024-01", periods=30, freq="M")),
        pd.Series(DATES.date),
        pd.Series(DATES).astype("timestamp[us][pyarrow]"),
        pd.Series(DATES).where(lambda v: v.index != 4),
    ],
    ids=["plain", "zone", "old", "period", "date", "arrow", "gap"],
)
def test_dates_are_left_out_with_a_word_and_kept_as_days(dates):
    frame = pd.DataFrame({"when": dates.to_numpy() if dates.dtype.kind == "O" else dates})
    frame = frame.reset_index(drop=True).assign(x=np.arange(30.0) % 7)
    with pytest.warns(UserWarning, match=r"left out 'when' \(dates\)"):
        assert bb.Encoder.fit(frame).columns == ("x",)
    encoder = bb.Encoder.fit(frame, keep=["when"])
    x = encoder.transform(frame)
    there = frame["when"].notna()
    assert (np.diff(x[there, 0]) > 0).all()
    assert x[~there, 0] == pytest.approx(0.0, abs=0.02)  # the median of evenly spaced dates
    for i in (0, 17, 29):
        same_bits(encoder.transform(frame.iloc[i].to_dict()), x[[i]])
    assert bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


def test_a_row_may_have_a_date_in_any_writing_that_has_one_reading():
    frame = pd.DataFrame({"signup": pd.date_range("2024-01-01", periods=N, freq="7h"), "z": Z})
    encoder = bb.Encoder.fit(frame, keep=["signup"])
    when = frame["signup"][3]
    expected = encoder.transform(frame)[[3]]
    days = (frame["signup"] - frame["signup"].min()) / pd.Timedelta(days=1)
    np.testing.assert_allclose(expected[0, 0], (days[3] - days.mean()) / days.std(ddof=0))
    for one in (when, when.to_pydatetime(), when.isoformat(), f"{when.isoformat()}Z",
                when.tz_localize("UTC").tz_convert("Asia/Tokyo"), np.datetime64(when)):  # fmt: skip
        same_bits(encoder.transform({"signup": one, "z": Z[3]}), expected)
    for wrong in ("now", "", "NaT", "01.02.2026", "2026", b"2026-11-22", 5, [1]):
        with pytest.raises(ValueError, match="column 'signup' holds dates"):
            encoder.transform({"signup": wrong, "z": 0.0})


IDENTIFIERS = {
    "customer_id": [11, 12, 13],
    "orderId": [1.0, 2.0, NAN],
    "ID": [f"d{k}" for k in range(30)],
    "CUSTOMER_ID": range(50),
    "userid": ["c7", "c8"],
    "session-uuid": ["a", "b"],
    "Unnamed: 0": range(N),
    "Unnamed: 3": [3, 7],
    "row": np.random.default_rng(0).permutation(N),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_no_identifier_is_a_feature_without_a_word(name):
    """However often its values repeat; drop= and keep= say it."""
    frame = in_turn(IDENTIFIERS[name]).rename(columns={"a": name}).convert_dtypes()
    with pytest.warns(UserWarning, match=f"left out '{name}' .*keep=.* uses one; drop="):
        assert bb.Encoder.fit(frame).columns == ("z",)
    with warnings.catch_warnings(action="error"):
        assert bb.Encoder.fit(frame, drop=[name]).columns == ("z",)
        assert bb.Encoder.fit(frame, keep=[name]).columns == ("z", name)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("customer_id", [0.5, 1.5, 2.25, 9.0]),
        ("customer_id", np.random.default_rng(0).permutation(N) + 0.5),
        ("idle", [7, 9, 1, 5]),
        ("humidity", np.arange(30)),
        ("age", np.arange(99)),
        ("row", np.arange(N) * 2),
        ("row", np.arange(float(N))),
    ],
)
def test_measurements_are_no_identifiers(name, values):
    frame = pd.DataFrame({name: values}).assign(x=lambda f: np.arange(len(f)) % 3 / 2)
    assert not fitted(frame)[2]


@pytest.mark.parametrize("to", ["str", "category", object])
def test_text_whose_values_all_differ_is_left_out_with_a_word(to):
    texts = [f"c{k}@example.org" for k in range(N)]
    for values in (texts, [*texts[:-9], *[None] * 9]):
        frame = pd.DataFrame({"z": Z, "mail": pd.Series(values).astype(to)})
        with pytest.warns(UserWarning, match=r"left out 'mail' \(all of its values differ\)"):
            assert bb.Encoder.fit(frame).columns == ("z",)
        with pytest.raises(ValueError, match="'mail' cannot be kept: no text in it occurs twice"):
            bb.Encoder.fit(frame, keep=["mail"])


def test_all_that_is_left_out_is_one_warning_of_the_line_that_called():
    frame = marketing().rename(columns={"customer_id": "customer id"})
    uses = "--column context='customer id', uses one; .*--column drop='c"
    with pytest.warns(UserWarning, match=uses) as told:
        encoder = bb.Encoder.fit(frame)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert all(name in str(told[0].message) for name in ("email", "signup", "last_seen"))
    assert encoder.columns == ("country", "spend")
    assert list(encoder.summary()["kind"]) == ["left out"] * 4 + ["levels", "number"]
    same_bits(encoder.transform(frame), encoder.transform(frame[["spend", "country"]]))


@pytest.mark.parametrize("name", ["user_id", "Unnamed: 0", "sessionId"])
def test_no_identifier_becomes_a_context_by_default(name):
    """Where all other columns are contexts as they are; the argument that names them decides."""
    frame = pd.DataFrame({"arm": [0, 1] * 30, "reward": 1.0, "propensity": 0.5, "z": np.arange(60)})
    frame[name] = np.arange(60) % 7

    def learned(features=None):
        new = bb.Bandit(2, bb.Ridge(), bb.Thompson(), n_features=len(features or ["z"]))
        return bb.learn(frame, new, features=features).layout.features or ("z",)

    calls = {"x": lambda **x: bb.ope.Log.of(frame, **x).features, "features": learned}
    for option, call in calls.items():
        said = rf"column '{name}' is an .* would be a context: {option}=\[…\] names"
        with pytest.raises(ValueError, match=said):
            call()
        assert call(**{option: ["z"]}) == ("z",)
        call(**{option: ["z", name]})


@pytest.mark.parametrize(
    ("levels", "same"),
    [
        (
            [1.5, 2.0, 3.0],
            [(1.5, "1.5"), (2.0, "2"), (2.0, 2), (3.0, np.int8(3)), (1.5, Decimal("1.50"))],
        ),
        (["1", "2", "12"], [("1", 1), ("2", 2.0), ("12", np.int8(12)), ("2", b"2")]),
        (["07", "7", "9"], [("7", 7.0), ("9", 9), ("07", "07")]),
        ([1, 2, 3], [(2, 2.0), (2, np.int8(2)), (2, Decimal(2)), (2, "2"), (2, b"2")]),
    ],
    ids=["floats", "texts", "codes", "whole"],
)
def test_levels_are_found_by_text_and_numbers_by_value(levels, same):
    encoder = bb.Encoder.fit(in_turn(levels).astype({"a": "category"}))
    with warnings.catch_warnings(action="error"):
        for level, value in same:
            row = encoder.transform({"z": 0.0, "a": value})
            same_bits(row, encoder.transform({"z": 0.0, "a": level}))
            assert row[0, 1:].sum() == 1
    with warnings.catch_warnings(action="ignore"):
        for value in ("1e0", "01", "0x1", "1_0", "one"):
            assert not encoder.transform({"z": 0.0, "a": value})[0, 1:].any()


def test_an_enumeration_is_its_text():
    names = ["basic", "plus", "pro"]
    plans = [*enum.Enum("Plan", {name: name for name in names}, type=str)]
    encoder = bb.Encoder.fit(in_turn(names))
    assert bb.Encoder.fit(in_turn(plans)) == encoder
    rows = [encoder.transform({"z": 0.0, "a": value}) for value in (plans[1], names[1])]
    same_bits(*rows)


def test_a_logical_value_is_true_or_false():
    """ "yes" had the features of False."""
    for values in ([True, False], ["True", "False"], [True, False, None]):
        encoder = bb.Encoder.fit(in_turn(values))
        expected = encoder.transform({"z": 0.0, "a": True})
        for text in ("true", "True", "TRUE", b"true", 1, 1.0, np.True_):
            same_bits(encoder.transform({"z": 0.0, "a": text}), expected)
        for other in ("yes", "1", "", 2, 0.5):
            with pytest.raises(ValueError, match="column 'a' holds True and False; got"):
                encoder.transform({"z": 0.0, "a": other})


def test_a_logical_value_beside_a_pooled_one_is_true_or_false():
    """A single missing value is pooled; 1 was of that level then."""
    for values in ([True, False, True, True, False, None], [True] * 5 + [False]):
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        encoder = bb.Encoder.fit(frame)
        assert "a=other" in encoder.features or len(encoder.features) == 1
        for text, value in (
            ("true", True),
            (1, True),
            (np.True_, True),
            ("FALSE", False),
            (0, False),
        ):
            same_bits(encoder.transform({"a": text}), encoder.transform({"a": value}))
        for other in ("yes", 2):
            same_bits(encoder.transform({"a": other}), encoder.transform({"a": None}))


def test_a_sparse_matrix_is_refused_with_the_remedy():
    from scipy import sparse

    x = sparse.random(60, 3, density=0.5, format="csr", random_state=0)
    bandit = bb.LinTS(2, n_features=3)
    calls = [
        lambda x: bandit.choose(x),
        lambda x: bandit.update(x, [0] * 60, np.ones(60)),
        lambda x: bb.ope.Log(x, [0, 1] * 30, np.ones(60), propensity=[0.5] * 60),
    ]
    for call in calls:
        for one in (x, sparse.csr_array(x)):
            with pytest.raises((TypeError, ValueError), match=r"sparse .*\.?toarray\(\)"):
                call(one)


@pytest.mark.parametrize("what", ["drop", "keep"])
def test_columns_to_drop_and_to_keep_are_names(what):
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)))
    settings = [{what: names} for names in (1, np.int64(1), [1], {1}, np.array([1]))]
    assert len({bb.Encoder.fit(x, **setting) for setting in settings}) == 1
    with pytest.raises(TypeError, match=rf"{what} must be a list of columns' names; got None"):
        bb.Encoder.fit(x, **{what: None})
    for unknown in ([[1]], [True], True, [1.0], ["1"], b"1"):
        with pytest.raises(ValueError, match=f"{what}: there is no column "):
            bb.Encoder.fit(x, **{what: unknown})


@pytest.mark.parametrize(
    ("frame", "settings", "error", "message"),
    [
        (pd.DataFrame({"a": []}), {}, ValueError, r"rows and columns; got shape \(0, 1\)"),
        (pd.DataFrame(index=[0, 1]), {}, ValueError, "must have rows and columns"),
        (pd.DataFrame({"a": [1.0]}), {}, ValueError, r"no column tells .*'a': it never varies"),
        (pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]), {}, ValueError, "one name: 'a'"),
        (pd.DataFrame({("a", "b"): [1, 2]}), {}, TypeError, "must be a text or an integer; got"),
        (pd.DataFrame({1.5: [1, 2]}), {}, TypeError, "must be a text or an integer; got 1.5"),
        (pd.DataFrame({"a": [1, np.inf]}), {}, ValueError, "column 'a'; got inf"),
        (pd.DataFrame({"a": [1, -1e300]}), {}, ValueError, "column 'a'; got -1e"),
        (pd.DataFrame({"a": [[1], [2]]}), {}, TypeError, "column 'a' holds mixed"),
        (pd.DataFrame({"a": [1j, 2]}), {}, TypeError, "column 'a' holds complex"),
        (pd.DataFrame({"a": pd.to_timedelta([1, 2])}), {}, TypeError, "'a' holds timedelta64"),
        (pd.DataFrame({"a": [b"\xff", b"a"]}), {}, ValueError, "'a' has values that are no text"),
        (NUMBERS, {"drop": ["q"]}, ValueError, "drop: there is no column 'q'; there are 'a', 't'"),
        (NUMBERS, {"keep": "q"}, ValueError, "keep: there is no column 'q'"),
        (NUMBERS, {"keep": ["a"], "drop": ["a"]}, ValueError, "both to drop and to keep: 'a'"),
        (NUMBERS, {"max_features": 0}, ValueError, "max_features must be an integer ≥ 1; got 0"),
        (NUMBERS, {"drop": ["a", "t"]}, ValueError, "no column tells the rows apart"),
        (NUMBERS["a"], {}, TypeError, "must have columns with names; got a Series"),
        ({"a": [1, 2]}, {}, TypeError, "must have columns with names; got a dict"),
        (pd.DataFrame(np.zeros((0, 3))), {}, ValueError, r"got shape \(0, 3\)"),
        (pd.DataFrame(np.eye(9)), {"max_features": 8}, ValueError, "9 features, over max_feat"),
        ("hotel.csv", {}, TypeError, r"got a str: pandas\.read_csv"),
        (np.eye(3), {}, TypeError, r"must have columns with names; got an array of shape"),
    ],
)
@in_gate(30)
def test_tables_that_cannot_be_fitted(frame, settings, error, message):
    with pytest.raises(error, match=message):
        bb.Encoder.fit(frame, **settings)


def arrow(values, dtype):
    return pd.Series(values).astype(pd.ArrowDtype(dtype))


def objects(*values):
    values = [None, *values]
    return pd.Series([values[i % len(values)] for i in range(N)], dtype=object)


HOSTILE = {  # columns, and the kind that they become, or what an error says
    "missing": (pd.Series([None] * N, dtype=object), "left out"),
    "missing of Arrow": (arrow([None] * N, pa.null()), "left out"),
    "missing categories": (pd.Series(pd.Categorical([None] * N)), "left out"),
    "one number, and gaps": (pd.Series(np.where(Z > 1, NAN, 2.0)), "left out"),
    "one text": (pd.Series(["same"] * N), "left out"),
    "True alone": (pd.Series([True] * N), "left out"),
    "infinite": (pd.Series(np.where(Z > 2, np.inf, Z)), "column 'a'; got inf"),
    "mixed": (objects(1, "x", 2.5, True), "levels"),
    "True beside 1": (objects(True, 1, "1"), "levels"),
    "huge": (objects(10**400, 1e300, "x", np.inf), "levels"),
    "beyond numbers": (objects(10**400, *range(9)), "infinite or beyond .* in column 'a'"),
    "an integer of 30 digits": (objects(10**30, *range(9)), "number"),
    "an integer of too many digits": (objects(10**5000, "x"), "column 'a' has values that are no"),
    "dates beside text": (objects(pd.Timestamp("2024-01-01"), "x"), "levels"),
    "dates with and without a zone": (
        objects(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02", tz="Asia/Tokyo")), "date"
    ),
    "dates far away": (objects(DATES[0], datetime.datetime(9999, 1, 1)), "date"),
    "dates of Arrow": (arrow([DATES[k % 9] for k in range(N)], pa.timestamp("us", "UTC")), "date"),
    "times of the day": (objects(DATES[0].time()), "column 'a' holds time"),
    "durations": (arrow(pd.to_timedelta([1, 2] * (N // 2)), pa.duration("us")), "'a' holds timed"),
    "decimals of Arrow": (arrow([1, 2] * (N // 2), pa.decimal128(25, 2)), "number"),
    "bytes of Arrow": (arrow([b"x", b"y"] * (N // 2), pa.binary()), "levels"),
    "structs of Arrow": (arrow([{"b": 1}] * N, pa.struct([("b", pa.int64())])), "'a' holds unknow"),
    "lists": (pd.Series([None, [1]] * (N // 2)), "column 'a' holds mixed"),
    "intervals": (pd.Series(pd.cut(Z, 4)), "levels"),
    "infinite categories": (pd.Series(pd.Categorical([np.inf, 0.0, -0.0, 1e300] * 50)), "levels"),
    "sparse": (pd.Series(pd.arrays.SparseArray(np.where(Z > 1, Z, 0.0))), "number"),
    "money": (in_turn(["1,200", "900", "12%", "$5"])["a"], "levels"),
    "objects": (pd.Series([object() for _ in range(N)]), "cannot be kept"),
    "a lone surrogate": (objects("\ud800", "x"), "column 'a' has values that are no text"),
    "a rare lone surrogate": (objects("x", "y").where(lambda v: v.index != 7, "\ud800"), "levels"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
@in_gate(30)
def test_a_hostile_column_is_encoded_or_refused_by_name(case):
    """What is encoded is the same for a row, and after it was saved."""
    column, expected = HOSTILE[case]
    frame = pd.DataFrame({"z": Z, "a": column})
    if expected not in ("number", "date", "levels", "left out"):
        with pytest.raises((TypeError, ValueError), match=expected):
            bb.Encoder.fit(frame, keep=["a"])
        return
    encoder = bb.Encoder.fit(frame, keep=["a"])
    assert kind(encoder) == expected
    x = encoder.transform(frame)
    assert np.isfinite(x).all()
    for i in range(5):
        same_bits(encoder.transform({name: frame[name].iloc[i] for name in frame}), x[[i]])
    same_bits(bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))).transform(frame), x)


def test_names_of_features_are_all_different():
    frame = pd.DataFrame({"a": list("xyzxyz"), "a=x": [1, 2, 3, 4, 4, 4], 1: [1, 2, 2, 1, 1, 4]})
    frame["1"] = frame[1] ** 2
    encoder = bb.Encoder.fit(frame)
    assert set(encoder.features) == {"a=x", "a=x (2)", "a=y", "a=z", "1", "1 (2)"}


def test_a_constant_is_the_first_feature_where_asked_for(rng):
    frame = pd.DataFrame({"age": rng.normal(40, 9, 30), "constant": rng.normal(size=30)})
    plain, encoder = bb.Encoder.fit(frame), bb.Encoder.fit(frame, constant=True)
    assert plain.features == ("age", "constant")
    assert encoder.features == ("constant (2)", "age", "constant")  # a column keeps its name
    x = encoder.transform(frame)
    same_bits(x[:, 1:], plain.transform(frame))
    assert (x[:, 0] == 1.0).all()
    assert (encoder.transform(frame.iloc[3].to_dict()) == x[3]).all()
    assert encoder != plain
    assert encoder.summary().iloc[-1].tolist() == ["(none)", "constant", "constant (2)"]
    with pytest.raises(ValueError, match="constant must be one of"):
        bb.Encoder.fit(frame, constant=1)


@pytest.mark.parametrize(
    ("formula", "features"),
    [
        ("~ 1 + age", ("constant", "age")),
        ("age + 1", ("constant", "age")),
        ("~ 0 + 1 + age", ("constant", "age")),
        ("~ 1 + plan", ("constant", "plan[T.b]")),
        ("~ age", ("age",)),
        ("~ 1:age", ("age",)),
        ("~ 0 + age", ("age",)),
        ("~ 1 + age - 1", ("age",)),
        ("~ {age + 1}", ("age + 1",)),
    ],
)
def test_a_formula_has_a_constant_where_it_names_it(formula, features):
    frame = pd.DataFrame({"age": [20.0, 31.0, 45.0, 58.0], "plan": [*"abab"]})
    encoder = bb.Encoder.formula(formula, frame)
    assert encoder.features == features
    if features[0] == "constant":
        assert (encoder.transform(frame)[:, 0] == 1.0).all()
    assert bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


def test_contexts_lie_row_by_row_and_stored_numbers_may_be_any_integers():
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "sex": ["f", "m", "f", "m"]})
    encoder = bb.Encoder.fit(frame)
    assert encoder.transform(frame).flags.c_contiguous
    stored = encoder.to_dict()
    stored["columns"][0]["median"] = 10**30
    stored["digest"] = digest(stored)
    other = bb.Encoder.from_dict(stored)
    np.testing.assert_array_equal(other.transform(frame), encoder.transform(frame))


def test_levels_of_a_category_are_in_its_own_order():
    """Of one that Polars numbers as it meets it, and of text, they are sorted."""
    sizes = ["middle", "low", "high", "low", "middle", "high"]
    declared = ["low", "middle", "high"]
    frame = pd.DataFrame({"size": sizes})
    met = pl.DataFrame(frame).cast(pl.Categorical)
    for table, order in (
        (frame.astype(pd.CategoricalDtype([*declared, "none"])), declared),
        (pl.DataFrame(frame).cast(pl.Enum(declared)), declared),
        (met, sorted(declared)),
        (frame, sorted(declared)),
    ):
        encoder = bb.Encoder.fit(table)
        assert encoder.features == tuple(f"size={level}" for level in order)
        np.testing.assert_array_equal(encoder.transform(table).argmax(axis=1), [
            order.index(size) for size in sizes
        ])  # fmt: skip
