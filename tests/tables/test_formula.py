"""Contexts by a formula: the state of the fit, and no code but what is allowed."""

import builtins
import json
import pickle
import re
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesbandit as bb
from bayesbandit.tables.stored import digest
from tests.cases import few
from tests.tables.mixed import same_bits

RNG = np.random.default_rng(0)
N = 80
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 9, N),
        "income": RNG.gamma(2.0, 20.0, N),
        "country": RNG.choice(["DE", "FR", "IT"], N),
        "member": RNG.random(N) < 0.5,
        "my col": RNG.normal(size=N),
        "when": pd.date_range("2024-01-01", periods=N),
        "customer_id": np.arange(N),
    }
)
LONG = (
    "~ age * country + bs(income, df=4) + cr(age, df=3) + poly(age, 2) + scale(log(income)) + "
    "center(`my col`) + member + I(age**2 / 100) + {income - age} + sqrt(income):country + when"
)


@pytest.mark.parametrize("formula", ["~ age", "~ bs(age, df=5)", "~ 0 + country:age", LONG])
@few("age")
def test_the_state_is_that_of_the_fit(formula):
    """Row by row as all at once, in any order of columns, after JSON and from Polars."""
    encoder = bb.Encoder.formula(formula, FRAME)
    x = encoder.transform(FRAME)
    assert x.shape == (N, len(encoder.features))
    again = bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    assert again.features == encoder.features
    same_bits(again.transform(FRAME), x)
    assert pickle.loads(pickle.dumps(encoder)) == encoder
    same_bits(encoder.transform(FRAME[FRAME.columns[::-1]]), x)
    polars = pl.DataFrame({c: FRAME[c].to_list() for c in FRAME})
    assert bb.Encoder.formula(formula, polars) == encoder
    same_bits(encoder.transform(polars), x)
    for i in range(5):
        same_bits(encoder.transform(FRAME.iloc[i].to_dict()), x[[i]])
    summary = encoder.summary().set_index("column")
    assert summary.loc["customer_id", "features"] == "not in the formula"


def test_a_level_that_the_fit_did_not_see_is_none():
    full = bb.Encoder.formula("~ 0 + country", FRAME)
    assert full.columns == ("country",)
    np.testing.assert_array_equal(full.transform({"country": "ES"}), np.zeros((1, 3)))


AS_FORMULAIC = [
    "age * country", "country:age", "country:plan", "plan * country * age", "age / country",
    "country / age", "(age + country + plan)**2", "plan:country - country", "bs(income, df=4)",
    "bs(income, knots=[20.0, 40.0], degree=2):country",
    "bs(age, df=5, include_intercept=True) * plan",
    "cr(age, df=3) * plan", "cs(age, df=4)", "cc(income, df=4)", "poly(age, 2)",
    "poly(age, 3, raw=True)", "scale(log(income)) + center(age)", "standardize(age):plan",
    "{age - income} + I(age**2 / 100)", "I(income ** (age / 40))",
    "I(-age * 2 + income / 3)", "member * age", "(age + country*income)**3", "`my col`:plan",
    "(age + income)**2:country", "age:(country + plan)", "(age + 0 + country)", "(plan - 1) + age",
    "size * age",
]  # fmt: skip


@pytest.mark.parametrize("formula", AS_FORMULAIC)
@few(
    "age * country",
    "size * age",
    "cr(age, df=3) * plan",
    "bs(age, df=5, include_intercept=True) * plan",
)
def test_the_features_are_those_of_formulaic(formula):
    """On the fit and on other rows, with a constant, implied, and without one."""
    from formulaic import model_matrix

    size = pd.Categorical(RNG.choice(["low", "middle", "high"], N), ["low", "middle", "high"])
    frame = FRAME.assign(plan=RNG.choice(["a", "b"], N), size=size)
    fit, later = (
        frame[:60],
        frame[frame["income"].between(*np.percentile(frame["income"][:60], [0, 100]))],
    )
    later = later[later["age"].between(fit["age"].min(), fit["age"].max())]
    for text in (f"1 + {formula}", formula, f"0 + {formula}"):
        encoder = bb.Encoder.formula(f"~ {text}", fit)
        theirs = model_matrix(text, fit.assign(member=fit["member"].astype(str)))
        first = int("Intercept" in theirs.columns and not encoder.constant)
        more = theirs.model_spec.get_model_matrix(later.assign(member=later["member"].astype(str)))
        for ours, expected in ((encoder.transform(fit), theirs), (encoder.transform(later), more)):
            np.testing.assert_allclose(ours, expected.to_numpy()[:, first:], rtol=1e-12, atol=1e-12)
        if "include_intercept" not in text and "raw" not in text:  # whose first part is 0 there
            names = [name.replace("Intercept", "constant") for name in theirs.columns[first:]]
            assert list(encoder.features) == names


def test_a_spline_continues_as_at_its_edge():
    for text in ("bs(income, df=4)", "cr(income, df=4)", "cc(income, df=4)"):
        encoder = bb.Encoder.formula(f"~ {text}", FRAME)
        edge, beyond = {"income": FRAME["income"].max()}, {"income": 1e9}
        same_bits(encoder.transform(beyond), encoder.transform(edge))


def test_missing_values_are_named():
    gap = FRAME.assign(age=FRAME["age"].where(FRAME.index != 3))
    with pytest.raises(ValueError, match="column 'age' of the formula has no value in row 3"):
        bb.Encoder.formula("~ age", gap)
    encoder = bb.Encoder.formula("~ age + country", FRAME)
    for name in ("age", "country"):
        with pytest.raises(ValueError, match=f"'{name}' of the formula has no value in row 0"):
            encoder.transform({"age": 1, "country": "DE", name: None})


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ __import__('os').system('touch ran')", "is not allowed"),
        ("~ {open(age, 2)}", "is not allowed"),
        ("~ I(age.__class__)", "is not allowed"),
        ("~ np.sqrt(age)", "'np.sqrt.age.' in the formula is not allowed"),
        ("~ I(age[0])", "is not allowed"),
        ("~ I([c for c in age])", "is not allowed"),
        ("~ f'{age}'", "cannot be read"),
        ("~ I(age if age else 1)", "is not allowed"),
        ("~ I(age > 1)", "is not allowed"),
        ("~ log(age, income)", "is not allowed"),
        ("~ log(x=age)", "is not allowed"),
        ("~ scale(age, ddof=0)", "is not allowed: ddof: the settings of scale are none"),
        ("~ I(True * age)", "is not allowed"),
        ("~ {1 + 2} + age", "names no column"),
        ("~ age:5", "cannot be read: there is '5'"),
        ("~ I(2 ** 9999999)", "names no column"),
        ("~ I(age ** 1000)", "must be finite"),
        ("~ I(age * (0 - 1) ** 0.5)", "must be finite"),
        ("~ bs(age, df=True)", "df: the settings of bs are"),
        ("~ bs(age, df=10**9)", "df: the settings of bs are"),
        ("~ bs(age, df=1000000)", "df up to 100"),
        ("~ bs(age, df=income)", "df: the settings of bs are"),
        ("age ~ income", "has one side"),
        ("~ age | income", "has one side"),
        ("~ 1", "names no column"),
        ("~ height", "names 'height', which is no column; there are 'age'"),
        ("~ age +", "cannot be read"),
        ("~ .", "there is '.'"),
        ("~ I(country + 1)", "computes with 'country', which has levels"),
        ("~ log(age - 1000)", "must be finite"),
        ("~ poly(few, 3)", "poly of degree 3 needs 4 different values"),
    ],
)
def test_formulas_that_are_refused(formula, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        bb.Encoder.formula(formula, FRAME.assign(few=np.arange(N) % 3))
    assert not list(tmp_path.iterdir())


def test_what_is_no_formula():
    with pytest.raises(TypeError, match="a formula is a text"):
        bb.Encoder.formula(7, FRAME)
    with pytest.raises(TypeError, match="must have columns with names; got an array"):
        bb.Encoder.formula("~ age", np.ones((3, 2)))
    with pytest.raises(ValueError, match="column 'a' of the formula: it never varies"):
        bb.Encoder.formula("~ a", pd.DataFrame({"a": [1, 1]}))


def test_columns_of_names_that_are_much_alike():
    """Each has its own state; formulaic takes the first two for one."""
    frame = FRAME.assign(**{"my_age": FRAME["age"], "my age": FRAME["income"], "1": FRAME["age"]})
    frame["my_age + 1"] = FRAME["income"]
    for formula in (
        "~ scale(my_age) + scale(`my age`)",
        "~ bs(my_age, df=4) + bs(`my age`, df=4)",
        "~ scale(my_age + 1) + scale(`my_age + 1`)",
        "~ `1` + scale(`my age`)",
    ):
        encoder = bb.Encoder.formula(formula, frame)
        own = re.split(r" \+ (?=scale|bs)", formula[2:])
        alone = [bb.Encoder.formula(f"~ {one}", frame).transform(frame) for one in own]
        same_bits(encoder.transform(frame), np.column_stack(alone))
        assert bb.Encoder.from_dict(encoder.to_dict()) == encoder


@pytest.mark.parametrize("name", ["it's", 'a "b', "a # b", "log(age)", "a:b", "f0", "1st", "{x}"])
def test_names_of_any_kind_in_backticks(name):
    frame = FRAME.assign(**{name: FRAME["income"]})
    text = f"~ `{name}` + I(`{name}` * 2 + `{name}`) + scale(`{name}`):age"
    encoder = bb.Encoder.formula(text, frame)
    income, x = FRAME["income"].to_numpy(), encoder.transform(frame)
    np.testing.assert_allclose(x[:, 0], income)
    np.testing.assert_allclose(x[:, 1], 3 * income)
    assert encoder.features[:2] == (name, f"I(`{name}` * 2 + `{name}`)")
    assert bb.Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


SHELLS = [
    "{age + 0*('`' == str(ran()) + '`')}",
    "bs(age, df=4, extrapolation='`' + ran() + '`')",
    "I(`my col` + '`' + ran() + '`' + `my col`)",
    "Q(ran())",
    "I(ran()())",
    "I(age, ran())",
    "bs(age, df=ran())",
    "bs(age, df=4, _state=ran())",
    "bs(age, df=4, **{'_state': ran()})",
    "(lambda: ran())()",
    "I(ｒan())",
]


@pytest.mark.parametrize("text", SHELLS)
def test_no_text_runs_through_any_door(text, monkeypatch, tmp_path):
    """formulaic evaluates calls on the left of ~ as it reads them."""

    def ran(*_):
        raise AssertionError("the formula has run code")

    monkeypatch.setattr(builtins, "ran", ran, raising=False)
    for formula in (f"~ age + {text}", f"{text} ~ age", f"~ age | {text}", f"~ age:{text}"):
        with pytest.raises(ValueError, match="formula"):
            bb.Encoder.formula(formula, FRAME)
    plain = bb.Encoder.formula("~ age + bs(income, df=4)", FRAME).to_dict()
    changed = {"text": f"~ age + bs(income, df=4) + {text}"}
    crafted = plain | {"formula": plain["formula"] | changed}
    crafted["digest"] = digest(crafted)
    with pytest.raises(ValueError, match="formula"):
        bb.Encoder.from_dict(crafted)


COLUMNS = [f"c{i}" for i in range(40)]
WIDE = pd.DataFrame(RNG.normal(size=(N, 40)), columns=COLUMNS).assign(
    **{f"k{i}": RNG.choice(["u", "v"], N) for i in range(12)}
)
SUM = "+".join(COLUMNS)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ I(c1 + (((9*9)**100)**100)**100)", "must be finite"),
        ("~ I(c1 + 9**9**9)", "must be finite"),
        ("~ I(c1 ** c2)", "must be finite"),
        ("~ I(c1 + " + "9" * 800 + ")", "is not allowed"),
        ("~ I(c1 + 1e999)", "is not allowed"),
        ("~ I(c1 * [0] * 1500000000)", "is not allowed"),
        (f"~ ({SUM})**40", "too many terms"),
        (f"~ ({SUM})**1000000", "there is '1000000'"),
        ("~ (c1 + c2)**0", "cannot be read"),
        ("~ (c1 + c2)**c3", "cannot be read"),
        ("~ ((c1 + c2)**50)**50", "too many terms"),
        ("~ " + "*".join(COLUMNS), "too many terms"),
        ("~ " + "*".join([f"({SUM})"] * 20), "too many terms"),
        ("~ " + ":".join(COLUMNS), "features; at most 5,000"),
        ("~ " + "*".join(f"k{i}" for i in range(12)), "features; at most 5,000"),
        ("~ (" + "+".join(f"k{i}" for i in range(12)) + ")**4", "features; at most 5,000"),
        ("~ bs(c1, df=100):bs(c2, df=100)", "may have 10,001 features"),
        ("~ bs(bs(c1, df=100), df=100)", "it gives several features, and stands alone"),
        ("~ poly(c1, 2) + I(poly(c1, 1) + c1)", "it gives several features"),
        ("~ poly(c1, 100)", "degree up to 20"),
        (f"~ bs(c1, knots={list(range(200))})", "up to 100 numbers"),
        ("~ I(" + "-" * 900 + "c1)", "cannot be read|nested"),
        ("~ I(" + "(" * 900 + "c1" + ")" * 900 + ")", "characters, over 1000"),
        ("~ " + "scale(" * 120 + "c1" + ")" * 120, "nested over 50"),
        ("~ " + "(" * 6000 + "c1", "at most 10,000|cannot be read"),
        ("~ c1 " + "+ c1" * 5000, "characters; at most 10,000"),
        ("~ c1 + " + "+-" * 4000 + "c1", "cannot be read"),
    ],
)
def test_the_cost_of_a_formula_is_bounded(formula, message):
    began = time.process_time()
    with pytest.raises(ValueError, match=message):
        bb.Encoder.formula(formula, WIDE)
    assert time.process_time() - began < 20  # without bounds: hours
