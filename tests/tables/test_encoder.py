"""Laws of encoders, over tables of mixed columns."""

import copy
import json
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesbandit as bb
from bayesbandit.tables.encoder import fitted
from tests.cases import few
from tests.tables.mixed import marketing, mixed

NAN = float("nan")
SEEDS = range(6)


def same_bits(one, other):
    assert one.dtype == other.dtype == np.float64
    assert one.shape == other.shape
    assert one.tobytes() == np.ascontiguousarray(other).tobytes()


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
    encoder, features, said = fitted(frame)
    assert not said
    same_bits(by_scikit_learn(frame), features)
    same_bits(encoder.transform(frame), features)
    assert features.shape[1] == len(encoder.features) == len(set(encoder.features))
    assert set(encoder.columns) == set(frame.columns) - {"constant", "empty"}
    for i in range(10):
        row = frame.iloc[i]
        same_bits(encoder.transform(row), features[[i]])
        same_bits(encoder.transform(row.to_dict()), features[[i]])
        same_bits(encoder.transform(frame.iloc[[i]]), features[[i]])


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
@pytest.mark.parametrize("max_features", [8, 100])
@few("8-0", "100-1")
def test_json_keeps_every_bit(seed, max_features):
    frame = mixed(seed)
    encoder = bb.Encoder.fit(frame, max_features=max_features)
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
    table = {c: [None if pd.isna(v) else v for v in pandas[c]] for c in pandas}
    polars = pl.DataFrame(table, strict=False)
    one, other = bb.Encoder.fit(pandas), bb.Encoder.fit(polars)
    assert one == other
    same_bits(one.transform(polars), one.transform(pandas))
    same_bits(one.transform(polars.row(5, named=True)), one.transform(pandas.iloc[5]))
    with pytest.raises(TypeError, match=r"lazy .*collect it first"):
        bb.Encoder.fit(polars.lazy())
    with pytest.raises(TypeError, match=r"lazy .*collect it first"):
        one.transform(polars.lazy())


KINDS = {
    "int8": lambda v: v.astype("int8"),
    "Int64": lambda v: v.astype("Int64"),
    "Float32": lambda v: v.astype("Float32"),
    "int64[pyarrow]": lambda v: v.astype("int64[pyarrow]"),
    "object": lambda v: v.astype(object),
    "Decimal": lambda v: v.map(lambda one: Decimal(int(one))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_numbers_are_one(kind):
    plain = pd.Series([4.0, 1.0, 7.0, 2.0, 4.0])
    encoder = bb.Encoder.fit(plain.to_frame("a"))
    other = KINDS[kind](plain).to_frame("a")
    same_bits(encoder.transform(other), encoder.transform(plain.to_frame("a")))
    assert bb.Encoder.fit(other) == encoder


@pytest.mark.parametrize("kind", ["str", "string", "string[pyarrow]", "category", object])
def test_kinds_of_text_are_one(kind):
    text = pd.DataFrame({"a": ["x", "y", "z", "x", "y", "z", None]})
    encoder = bb.Encoder.fit(text)
    same_bits(
        bb.Encoder.fit(text.astype(kind)).transform(text.astype(kind)), encoder.transform(text)
    )
    assert encoder.features == ("a=x", "a=y", "a=z", "a=other")  # the one gap is rare


@pytest.mark.parametrize("kind", ["bool", "boolean", "bool[pyarrow]", object, "category"])
def test_kinds_of_logical_values_are_one(kind):
    logical = pd.DataFrame({"a": [True, False, True, False]})
    encoder = bb.Encoder.fit(logical.astype(kind))
    same_bits(encoder.transform(logical), np.array([[1.0], [0], [1], [0]]))
    for one in (True, np.True_, 1, 1.0, "True"):
        same_bits(encoder.transform({"a": one}), np.array([[1.0]]))


def test_numbers_as_categories_are_found_however_they_are_written():
    encoder = bb.Encoder.fit(pd.DataFrame({"a": pd.Categorical([1, 2, 3, 1, 2, 3])}))
    for two in (2, 2.0, np.int8(2), Decimal(2), "2", b"2"):
        same_bits(encoder.transform({"a": two}), np.array([[0.0, 1, 0]]))


# ---- what the fit did not see --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*is of another kind")
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


def test_missing_numbers_take_the_median_of_the_fit():
    encoder = bb.Encoder.fit(pd.DataFrame({"a": [1.0, 2, 4, 100], "b": [1, 2, 3, 5]}))
    for missing in (None, NAN, pd.NA, Decimal("NaN")):
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
def test_rows_that_cannot_be_read(row, error, message):
    with pytest.raises(error, match=message):
        bb.Encoder.fit(NUMBERS).transform(row)


@pytest.mark.slow
def test_no_rows_make_no_contexts():
    encoder = bb.Encoder.fit(mixed())
    assert encoder.transform(mixed().iloc[:0]).shape == (0, len(encoder.features))


def test_arrays_go_by_position():
    x = np.random.default_rng(0).normal(size=(30, 3))
    encoder, features, _ = fitted(x)
    assert encoder.features == ("x0", "x1", "x2")
    same_bits(encoder.transform(x), features)
    same_bits(encoder.transform(x[4]), features[[4]])
    same_bits(encoder.transform(x.tolist()), features)
    assert bb.Encoder.from_dict(encoder.to_dict()) == encoder
    with pytest.raises(ValueError, match=r"must have shape \(3,\) or \(n, 3\); got \(30, 2\)"):
        encoder.transform(x[:, :2])


# ---- dates and identifiers -----------------------------------------------------------------------


def test_dates_and_identifiers_are_left_out_with_a_word():
    frame = marketing()
    with pytest.warns(
        UserWarning, match=r"left out 'customer_id' \(an identifier.*keep=\["
    ) as told:
        encoder = bb.Encoder.fit(frame)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert all(name in str(told[0].message) for name in ("email", "signup", "last_seen"))
    assert encoder.columns == ("country", "spend")
    kinds = encoder.summary().set_index("column")["kind"]
    assert list(kinds) == ["left out"] * 4 + ["levels", "number"]
    same_bits(encoder.transform(frame), encoder.transform(frame[["spend", "country"]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped = ["customer_id", "email", "signup", "last_seen"]
        silent = bb.Encoder.fit(frame, drop=dropped)
    same_bits(silent.transform(frame), encoder.transform(frame))
    assert silent.columns == encoder.columns


def test_kept_dates_are_days_since_the_first():
    frame = marketing()
    with pytest.warns(UserWarning, match="email"):
        encoder = bb.Encoder.fit(frame, keep=["customer_id", "signup", "last_seen"])
    days = (frame["signup"] - frame["signup"].min()) / pd.Timedelta(days=1)
    seen = pd.to_datetime(frame["last_seen"])
    by_hand = pd.DataFrame({"customer_id": frame["customer_id"], "signup": days,
                            "last_seen": (seen - seen.min()) / pd.Timedelta(days=1)})  # fmt: skip
    standard = (by_hand - by_hand.mean()) / by_hand.std(ddof=0)
    at = [encoder.features.index(name) for name in standard]
    np.testing.assert_allclose(encoder.transform(frame)[:, at], standard, atol=1e-12)
    assert bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder
    row = frame.iloc[3].to_dict()
    expected = encoder.transform(frame)[[3]]
    for moment in (row["signup"], row["signup"].to_pydatetime(), row["signup"].isoformat(),
                   row["signup"].tz_localize("UTC").tz_convert("Asia/Tokyo"),
                   np.datetime64(row["signup"])):  # fmt: skip
        same_bits(encoder.transform(row | {"signup": moment}), expected)
    same_bits(
        encoder.transform(row | {"last_seen": pd.Timestamp(row["last_seen"]).date()}), expected
    )
    gap = encoder.transform(row | {"signup": None})[0, encoder.features.index("signup")]
    assert gap == pytest.approx(0.0, abs=1e-9)  # the median of evenly spaced dates
    for wrong in ("yesterday", 5, [1]):
        with pytest.raises(ValueError, match="column 'signup' holds dates"):
            encoder.transform(row | {"signup": wrong})


@pytest.mark.parametrize(
    "dates",
    [
        pd.date_range("2024-01-01", periods=30, tz="Europe/Berlin").to_series(),
        pd.date_range("1700-01-01", periods=30, freq="YS", unit="s").to_series(),
        pd.Series(pd.period_range("2024-01", periods=30, freq="M")),
        pd.Series(pd.date_range("2024-01-01", periods=30).date),
        pd.Series(pd.date_range("2024-01-01", periods=30)).astype("timestamp[us][pyarrow]"),
        pd.Series([f"2024-01-{d:02}T10:00:00Z" for d in range(1, 31)]),
        pd.Series([f"2024-01-{d:02} 10:00" for d in range(1, 30)] + [None]),
        pd.Series(pd.date_range("2024-01-01", periods=30)).where(lambda v: v.index != 4),
    ],
    ids=["zone", "old", "period", "date", "arrow", "text with zone", "text", "gap"],
)
def test_kinds_of_dates(dates):
    frame = pd.DataFrame({"when": dates.to_numpy() if dates.dtype.kind == "O" else dates})
    frame = frame.reset_index(drop=True).assign(x=np.arange(30.0) % 7)
    with pytest.warns(UserWarning, match=r"left out 'when' \(dates\)"):
        assert bb.Encoder.fit(frame).columns == ("x",)
    encoder = bb.Encoder.fit(frame, keep=["when"])
    x = encoder.transform(frame)
    order = x[frame["when"].notna(), 0]
    assert (np.diff(order) > 0).all()
    for i in (0, 17, 29):
        same_bits(encoder.transform(frame.iloc[i].to_dict()), x[[i]])


@pytest.mark.parametrize(
    ("name", "values", "left"),
    [
        ("customer_id", [7, 9, 1, 5], True),
        ("orderId", [1.0, 2.0, NAN, 9.0], True),
        ("ID", ["a7", "b9", "c1", "a7", *(f"d{k}" for k in range(30))], True),
        ("uuid", [f"{k:032x}" for k in range(9)], True),
        ("row", np.random.default_rng(0).permutation(150), True),
        ("row", np.arange(150) * 3 // 3 + (np.arange(150) > 70) * 5, True),
        ("customer_id", [0.5, 1.5, 2.25, 9.0], False),
        ("store_id", [1, 2, 1, 2, 1, 2], True),
        ("idle", [7, 9, 1, 5], False),
        ("width", [7, 9, 1, 5], False),
        ("humidity", np.arange(30), False),
        ("age", np.arange(99), False),
        ("row", np.arange(150) * 2, False),
        ("row", np.arange(150.0), False),
    ],
)
def test_identifiers_are_told_from_measurements(name, values, left):
    frame = pd.DataFrame({name: values})
    frame["x"] = np.arange(len(frame)) % 3 / 2
    _, _, said = fitted(frame)
    assert [sentence.startswith(f"left out {name!r} (an identifier") for sentence in said] == (
        [True] * left
    )
    if left and name != "uuid":
        assert name in fitted(frame, keep=[name])[0].columns


@pytest.mark.parametrize("seed", range(20))
def test_a_measurement_with_a_fraction_is_never_left_out(seed):
    rng = np.random.default_rng(seed)
    values = rng.permutation(500) + rng.choice([0.0, 0.5], 500)
    assert fitted(pd.DataFrame({"customer_id": values}))[0].columns == ("customer_id",)


# ---- tables that cannot be fitted ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "settings", "error", "message"),
    [
        (
            pd.DataFrame({"a": []}),
            {},
            ValueError,
            r"must have rows and columns; got shape \(0, 1\)",
        ),
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
        (pd.DataFrame({"a": [b"\xff", b"a"]}), {}, ValueError, "'a' has bytes that are no text"),
        (NUMBERS, {"drop": ["q"]}, ValueError, "drop: there is no column 'q'; there are 'a', 't'"),
        (NUMBERS, {"keep": "q"}, ValueError, "keep: there is no column 'q'"),
        (NUMBERS, {"keep": ["a"], "drop": ["a"]}, ValueError, "both to drop and to keep: 'a'"),
        (NUMBERS, {"max_features": 0}, ValueError, "max_features must be an integer ≥ 1; got 0"),
        (NUMBERS, {"drop": ["a", "t"]}, ValueError, "no column tells the rows apart"),
        (NUMBERS["a"], {}, TypeError, "must have rows and columns; got a Series"),
        ({"a": [1, 2]}, {}, TypeError, "must have rows and columns; got a dict"),
        (np.zeros((0, 3)), {}, ValueError, r"got shape \(0, 3\)"),
    ],
)
def test_tables_that_cannot_be_fitted(frame, settings, error, message):
    with pytest.raises(error, match=message):
        bb.Encoder.fit(frame, **settings)


def test_text_that_never_repeats_cannot_be_kept():
    frame = marketing()[["email", "spend"]]
    with pytest.raises(ValueError, match="'email' cannot be kept: no text in it occurs twice"):
        bb.Encoder.fit(frame, keep=["email"])


def test_names_of_features_are_all_different():
    frame = pd.DataFrame({"a": list("xyzxyz"), "a=x": [1, 2, 3, 4, 4, 4], 1: [1, 2, 2, 1, 1, 4]})
    frame["1"] = frame[1] ** 2
    encoder = bb.Encoder.fit(frame)
    assert set(encoder.features) == {"a=x", "a=x (2)", "a=y", "a=z", "1", "1 (2)"}


def test_an_encoder_cannot_be_changed():
    encoder = bb.Encoder.fit(NUMBERS)
    with pytest.raises(AttributeError):
        encoder.named = False
    assert repr(encoder) == "Encoder(2 columns → 2 features)"


# ---- a constant ---------------------------------------------------------------------------------


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


def test_a_constant_beside_components(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 6)), columns=[*"abcdef"])
    encoder = bb.Encoder.fit(frame, max_features=2, constant=True)
    assert encoder.features == ("constant", "component 1", "component 2")
    x = encoder.transform(frame)
    assert (x[:, 0] == 1.0).all()
    same_bits(x[:, 1:], bb.Encoder.fit(frame, max_features=2).transform(frame))


def test_an_encoder_of_a_file_without_a_word_of_constants_has_none():
    frame = pd.DataFrame({"age": [20.0, 31.0, 45.0, 58.0]})
    with_one = bb.Encoder.fit(frame, constant=True).to_dict()
    without = bb.Encoder.fit(frame).to_dict()
    assert with_one["constant"] is True
    assert "constant" not in without
    with pytest.raises(ValueError, match="broken one"):
        bb.Encoder.from_dict({**without, "constant": False})
    with pytest.raises(ValueError, match="not those that were saved"):
        bb.Encoder.from_dict({**without, "constant": True})


def test_a_constant_is_saved_with_the_bandit(tmp_path):
    frame = pd.DataFrame({"age": [20.0, 31.0, 45.0, 58.0]})
    encoder = bb.Encoder.fit(frame, constant=True)
    bandit = bb.LinTS(2, encoder=encoder, intercept=False)
    bandit.observe(bandit.choose({"age": 30.0}), 1.0)
    bandit.save(tmp_path / "b.npz")
    again = bb.Bandit.load(tmp_path / "b.npz")
    assert again.encoder == encoder
    assert again.history.to_frame()["constant"].tolist() == [1.0]
