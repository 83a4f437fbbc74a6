"""Values that look like others: each is read as what it is, or refused by name."""

import enum
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

N = 120


def beside(values):
    """A table with a column `a` of these values, in turn, beside a number."""
    values = pd.Series([values[i % len(values)] for i in range(N)], dtype=object)
    return pd.DataFrame({"z": np.random.default_rng(0).normal(size=N), "a": values})


def fit(values, **settings):
    return bb.Encoder.fit(beside(values), **settings)


def kind(encoder):
    return encoder.summary().set_index("column").loc["a", "kind"]


@pytest.mark.parametrize(
    "text",
    ["1.{}.2", "10.0.0.{}", "192.168.100.1{:02}", "{}.1.26", "{0}.{0}.{0}.{0}"],
)
def test_text_with_points_is_no_number(text):
    """Short dates, versions and IP addresses are levels, and no error of decimal commas."""
    assert kind(fit([text.format(k) for k in range(1, 31)])) == "levels"


@pytest.mark.parametrize("text", ["{},5", "1.234.{},5", "-{},25", "1.{}", "12.345.{}"])
def test_decimal_commas_are_still_named(text):
    values = [text.format(k) for k in range(100, 130)]
    if text == "1.{}":  # which reads as a number with a point, but for those with a comma
        values[:10] = [f"{k},5" for k in range(10)]
    with pytest.raises(ValueError, match=r"column 'a' has .* as text(: .* decimal=','|, such as)"):
        fit(values)


class Plan(str, enum.Enum):  # noqa: UP042, as written before Python had StrEnum
    BASIC = "basic"
    PLUS = "plus"


def test_an_enumeration_is_its_text():
    encoder = fit(["basic", "plus", "pro"])
    assert np.array_equal(
        encoder.transform({"z": 0.0, "a": Plan.PLUS}), encoder.transform({"z": 0.0, "a": "plus"})
    )
    assert fit([Plan.BASIC, Plan.PLUS]) == fit(["basic", "plus"])


@pytest.mark.parametrize("text", ["now", "today", "", "NaT", "01.02.2026", "2026", b"2026-11-22"])
def test_a_date_is_no_other_text(text):
    """pandas reads "now" as another date at every call, and "" as a missing one."""
    encoder = fit([f"2026-11-{d:02}" for d in range(1, 29)], keep=["a"])
    with pytest.raises(ValueError, match="column 'a' holds dates"):
        encoder.transform({"z": 0.0, "a": text})
    with pytest.raises(ValueError, match="column 'a' holds dates"):
        encoder.transform(pd.DataFrame({"z": 0.0, "a": ["2026-11-22", text]}))


def test_integers_beyond_floats_are_named():
    with pytest.raises(ValueError, match=r"values infinite or beyond .* in column 'a'"):
        fit([10**400, *range(9)])
    assert kind(fit([10**30, *range(9)])) == "number"


def test_a_signaling_nan_is_missing():
    encoder = fit([Decimal(k) / 4 for k in range(9)])
    assert np.array_equal(
        encoder.transform({"z": 0.0, "a": Decimal("sNaN")}), encoder.transform({"z": 0.0, "a": 1})
    )


def test_what_a_mask_hides_is_missing():
    values = np.random.default_rng(0).normal(size=(30, 2))
    hidden = values > 1.0
    assert hidden.any()
    masked = np.ma.MaskedArray(np.where(hidden, 999.0, values), mask=hidden)
    encoder, known = bb.Encoder.fit(masked), np.where(hidden, np.nan, values)
    assert encoder == bb.Encoder.fit(known)
    for x in (masked, list(masked), masked[hidden.any(axis=1)][0]):
        gaps = np.ma.filled(np.ma.stack(x) if isinstance(x, list) else x, np.nan)
        assert np.array_equal(encoder.transform(x), encoder.transform(gaps))


def test_a_list_is_a_row_as_without_an_encoder():
    values = np.random.default_rng(0).normal(size=(30, 2))
    bandit = bb.LinTS(["x", "y"], encoder=bb.Encoder.fit(values))
    for row in ([0.5, 1.0], (0.5, None), np.array([0.5, 1.0])):
        assert bandit.choose(row).arm in ("x", "y")
    for rows in ([[0.5, 1.0]], [values[0]], values[:1]):
        assert np.shape(bandit.choose(rows).arm) == (1,)


@pytest.mark.parametrize("what", ["drop", "keep"])
def test_columns_to_drop_and_to_keep_are_names(what):
    x = np.random.default_rng(0).normal(size=(30, 3))
    settings = [{what: names} for names in (1, np.int64(1), [1], {1}, np.array([1]))]
    assert len({bb.Encoder.fit(x, **setting) for setting in settings}) == 1
    with pytest.raises(TypeError, match=rf"{what} must be columns' names, as \[0\]; got None"):
        bb.Encoder.fit(x, **{what: None})
    for unknown in ([[1]], [True], True, [1.0], ["1"], b"1"):
        with pytest.raises(ValueError, match=f"{what}: there is no column "):
            bb.Encoder.fit(x, **{what: unknown})


def test_a_logical_value_is_true_or_false():
    """ "yes" had the features of False."""
    for values in ([True, False], ["True", "False"], [True, False, None]):
        encoder = fit(values)
        for text in ("true", "TRUE", b"true", 1, np.True_):
            assert np.array_equal(
                encoder.transform({"z": 0.0, "a": text}), encoder.transform({"z": 0.0, "a": True})
            )
        for other in ("yes", "1", "", 2, 0.5):
            with pytest.raises(ValueError, match="column 'a' holds True and False; got"):
                encoder.transform({"z": 0.0, "a": other})
    assert fit([True, False, "maybe"]).transform({"z": 0.0, "a": "yes"})[0, 1:].tolist() == [0] * 3


NULLABLE = {
    "boolean": pd.array([True, False, None] * 40, dtype="boolean"),
    "bool[pyarrow]": pd.Series([True, False, None] * 40).astype("bool[pyarrow]"),
    "objects": pd.Series([True, False, pd.NA] * 40, dtype=object),
    "Int64": pd.array([1, 0, None] * 40, dtype="Int64"),
    "Float64": pd.array([1.0, 0.0, None] * 40, dtype="Float64"),
}


@pytest.mark.parametrize("kind", NULLABLE)
def test_a_missing_value_is_missing_in_every_kind_of_column(kind):
    """As NaN is: in contexts by an encoder, and in the rewards of a log."""
    column = NULLABLE[kind]
    plain = np.tile([1.0, 0.0, np.nan], 40)
    frame = beside(range(5)).assign(b=column)
    encoder = bb.Encoder.fit(frame)
    for x in (frame, frame.to_dict("records"), *(frame.iloc[k] for k in range(3))):
        assert np.isfinite(encoder.transform(x)).all()
    assert np.array_equal(
        encoder.transform(frame), np.vstack([encoder.transform(row) for row in frame.iloc])
    )
    parts = {"arm": [0, 1] * 60, "propensity": np.full(120, 0.5)}
    np.testing.assert_array_equal(bb.ope.Log(None, reward=column, **parts).reward, plain)
    table = pd.DataFrame({**parts, "reward": column})
    np.testing.assert_array_equal(bb.ope.Log.of(table).reward, plain)
    with pytest.raises(ValueError, match="rewards must be finite"):
        bb.LinTS(2, n_features=1).update(frame[["z"]].to_numpy(), parts["arm"], column)
    with pytest.raises(ValueError, match="propensities are missing in 40 of 120 rounds, first in"):
        bb.ope.Log(None, parts["arm"], plain, propensity=column)


def test_a_sparse_matrix_is_refused_with_the_remedy():
    from scipy import sparse

    x = sparse.random(60, 3, density=0.5, format="csr", random_state=0)
    bandit = bb.LinTS(2, n_features=3)
    by_encoder = bb.LinTS(2, encoder=bb.Encoder.fit(x.toarray()))
    calls = [
        lambda x: bandit.choose(x),
        lambda x: bandit.choose([x[[0]], x[[1]]]),
        lambda x: bandit.update(x, [0] * 60, np.ones(60)),
        lambda x: bandit.probabilities(x),
        lambda x: bb.ope.Log(x, [0, 1] * 30, np.ones(60), propensity=[0.5] * 60),
        lambda x: bb.Encoder.fit(x),
        lambda x: by_encoder.choose(x),
        lambda x: bb.environments.Classification(x, [0, 1] * 30, "sparse"),
    ]
    for call in calls:
        for one in (x, sparse.csr_array(x)):
            with pytest.raises((TypeError, ValueError), match=r"sparse .*\.?toarray\(\)"):
                call(one)
    assert bandit.history.total == 0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Unnamed: 0", range(N)),
        ("Unnamed: 0", np.random.default_rng(0).permutation(N)),
        ("Unnamed: 3", [3, 7]),
        ("user_id", [11, 12, 13]),
        ("customerId", ["c7", "c8", "c9"]),
        ("CUSTOMER_ID", np.arange(N) % 50),
        ("userid", [1.0, 2.0, None]),
        ("session-uuid", ["a", "b"]),
        ("row", range(N)),
    ],
)
def test_no_identifier_is_a_feature_without_a_word(name, values):
    """However often its values repeat; drop= and keep= say it."""
    frame = beside(list(values)).rename(columns={"a": name}).convert_dtypes()
    with pytest.warns(UserWarning, match=f"left out '{name}' .*keep=.* uses one; drop="):
        assert bb.Encoder.fit(frame).columns == ("z",)
    with warnings.catch_warnings(action="error"):
        assert bb.Encoder.fit(frame, drop=[name]).columns == ("z",)
        assert bb.Encoder.fit(frame, keep=[name]).columns == ("z", name)


@pytest.mark.parametrize("name", ["user_id", "Unnamed: 0", "sessionId"])
def test_no_identifier_becomes_a_context_by_default(name):
    """Where all other columns are contexts as they are; the argument that names them decides."""
    frame = pd.DataFrame({"arm": [0, 1] * 30, "reward": 1.0, "propensity": 0.5, "z": np.arange(60)})
    frame[name] = np.arange(60) % 7
    calls = {
        "x": lambda **x: bb.ope.Log.of(frame, **x).features,
        "features": lambda **x: bb.learn(frame, bb.Ridge(), **x).layout.features or ("z",),
    }
    for option, call in calls.items():
        said = rf"column '{name}' is an .* would be a context: {option}=\[…\] names"
        with pytest.raises(ValueError, match=said):
            call()
        assert call(**{option: ["z"]}) == ("z",)
        call(**{option: ["z", name]})
