"""Bandits that take rows of a table, by an encoder. What users reported of other libraries, tried
here: each of these tests names the report."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesbandit as bb
from bayesbandit.bandit.arm_features import contexts
from tests.players import anatomy

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 9, N),
        "country": RNG.choice(["DE", "FR", "IT"], N),
        "member": RNG.random(N) < 0.5,
    }
)
ARMS = ["a", "b", "c"]
REWARD = RNG.normal(size=(N, 3))
ENCODER = bb.Encoder.fit(FRAME)
X = ENCODER.transform(FRAME)
FORMULA = bb.Encoder.formula("~ age * country", FRAME)


def pair(encoder=ENCODER, **settings):
    """A bandit with the encoder, and one without it."""
    d = len(encoder.features)
    return bb.LinTS(ARMS, encoder=encoder, **settings), bb.LinTS(ARMS, d, **settings)


def same(one, other):
    assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def rows(i):
    """One row, as each of the kinds that rows may be."""
    return (
        FRAME.iloc[i].to_dict(),
        FRAME.iloc[i],
        pl.DataFrame(FRAME.to_dict("list")).row(i, named=True),
    )


@pytest.mark.parametrize("encoder", [ENCODER, FORMULA], ids=["fit", "formula"])
def test_rows_are_their_contexts(encoder):
    """Round by round, in a batch and in a run, as without an encoder on its contexts."""
    one, other = pair(encoder)
    x = encoder.transform(FRAME)
    for i in range(9):
        decision, expected = one.choose(rows(i)[i % 3]), other.choose(x[i])
        same(decision.rows, expected.rows)
        assert decision.arm == expected.arm
        one.observe(decision, REWARD[i, 0])
        other.observe(expected, REWARD[i, 0])
    records = FRAME.to_dict("records")
    for table in (FRAME, records, tuple(records)):
        decision, expected = one.choose(table), other.choose(x)
        same(decision.rows, expected.rows)
        one.observe(decision, REWARD[:, 1])
        other.observe(expected, REWARD[:, 1])
        one.update(table, ["a"] * N, REWARD[:, 2])
        other.update(x, ["a"] * N, REWARD[:, 2])
        same(one.probabilities(table), other.probabilities(x))
        same(one.predict(table).mean, other.predict(x).mean)
        assert list(one.greedy(table)) == list(other.greedy(x))
    same(one.predict(rows(0)[0]).mean, other.predict(x[0]).mean)
    one.update(rows(3)[0], "b", 1.0)
    other.update(x[3], "b", 1.0)
    for got, expected in zip(one.play(FRAME, REWARD), other.play(x, REWARD), strict=True):
        same(got, expected)
    assert one.choose(rows(0)[0], arms=["b"]).arm == "b"
    same(one.posterior("a").mean(FRAME), other.posterior("a").mean(x))
    same(one.posterior("a").sd(rows(2)[0]), other.posterior("a").sd(x[2]))


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (X, TypeError, "knows columns by name, and got an array"),
        (X[0], TypeError, "knows columns by name, and got an array"),
        ([1.0] * X.shape[1], TypeError, "knows columns by name, and got a list"),
        (FRAME.drop(columns="age"), ValueError, "lacks the column 'age'"),
        (FRAME.assign(size=1), ValueError, "unknown column 'size'"),
        (FRAME.iloc[:0], ValueError, "at least one row"),
        (FRAME.assign(age=np.inf), ValueError, "infinite or beyond"),
        (None, ValueError, "must have 5 features; got none"),
        ([rows(0)[0], {"age": 3}], ValueError, "row 1 lacks 'country', 'member'; other rows have"),
    ],
)
def test_a_bad_table_changes_nothing(x, error, message):
    bandit = bb.LinTS(ARMS, encoder=ENCODER)
    bandit.play(FRAME, REWARD)
    before = anatomy(bandit)
    with pytest.raises(error, match=message):
        bandit.choose(x)
    assert anatomy(bandit) == before


@pytest.mark.parametrize("x", [FRAME, FRAME[["age"]], FRAME.iloc[0], FRAME.iloc[0].to_dict()])
def test_without_an_encoder_a_table_is_refused(x):
    bandit = bb.LinTS(ARMS, 1)
    learn = (lambda x: bandit.update(x, ["a"], [1.0]), lambda x: bandit.play(x, np.ones((1, 3))))
    for ask in (bandit.choose, bandit.probabilities, bandit.greedy, *learn):
        with pytest.raises(ValueError, match=r"encoder=bb.Encoder.fit\(frame\)"):
            ask(x)
    assert bandit.t == len(bandit.history) == 0


def test_features_have_names_in_what_is_told():
    bandit = bb.LinTS(ARMS, encoder=ENCODER)
    bandit.play(FRAME, REWARD)
    columns = list(bandit.history.to_frame().columns)
    assert columns == [*ENCODER.features, "arm", "reward", "propensity", "weight"]
    tree = bandit.posterior("a").to_datatree(chains=1, draws=5)
    assert list(tree["posterior"].coords["feature"].values) == list(ENCODER.features)
    for name in ("chains", "draws"):
        with pytest.raises(ValueError, match=f"{name} must be an integer ≥ 1; got 0"):
            bandit.posterior("a").to_datatree(**{name: 0})
    bandit.add_arm("d")
    assert list(bandit.history.to_frame().columns) == columns


def test_a_feature_may_be_called_as_a_column_of_the_rounds():
    frame = pd.DataFrame({"reward": [1.0, 2, 3, 5], "arm": ["x", "y", "x", "y"]})
    bandit = bb.LinTS(2, encoder=bb.Encoder.fit(frame))
    bandit.play(frame, np.ones((4, 2)))
    found = bandit.history.to_frame()
    assert list(found.columns[:2]) == ["reward (context)", "arm=y"]
    assert (found["reward"] == 1.0).all()


def test_predict_takes_contexts_as_choose_does(rng):
    assert bb.LinTS(2, 0).predict().mean.shape == (1, 2)
    shared = bb.Bandit(2, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=3)
    assert shared.predict(rng.normal(size=(2, 3))).mean.shape == (1, 2)
    assert shared.predict(rng.normal(size=(4, 2, 3))).mean.shape == (4, 2)
    with pytest.raises(ValueError, match="3 features"):
        shared.predict(np.ones((2, 2)))


@pytest.mark.parametrize("names", [[0, 1, 2], [np.int64(0), np.int64(1), np.int64(2)]])
@pytest.mark.parametrize("kind", ["int64", object])
def test_rows_belong_to_the_arms_that_their_index_names_in_any_order(names, kind):
    """An index that names the arms 0, 1, 2 was taken for one that counts rows."""
    x = pd.DataFrame({"v": [10.0, 20.0, 30.0]}, index=pd.Index(names, dtype=kind))
    model, encoder = bb.Shared(bb.Ridge()), bb.Encoder.fit(x)
    bandit = bb.Bandit([2, 1, 0], model, bb.Thompson(), encoder=encoder, seed=0)

    def order(**given):
        return np.argsort(contexts(bandit, **given)[0][0, :, 0]).tolist()

    assert order(x=x) == order(x=x, arms=names) == [2, 1, 0]
    assert order(x=x.reset_index(drop=True), arms=[2, 1, 0]) == [0, 1, 2]


LABELLED = pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [4.0, 5.0, 7.0]}, index=[10, 20, 30])


def test_columns_in_another_order_are_never_taken_by_position():
    """scikit-learn 7242, LightGBM 4102, xgboost 8357: columns were taken by position, silently."""
    plain = bb.LinTS(["a", "b"], n_features=2, seed=0)
    with pytest.raises(ValueError, match=r"encoder=bb\.Encoder\.fit"):
        plain.choose(LABELLED)
    encoder = bb.Encoder.fit(LABELLED)
    np.testing.assert_array_equal(
        encoder.transform(LABELLED), encoder.transform(LABELLED[["v", "u"]])
    )


@pytest.mark.parametrize("given", ["arm", "reward", "propensity"])
def test_a_series_in_another_order_of_rows_is_refused(given):
    """statsmodels 206: rows with other labels were paired by their position."""
    columns = {"arm": ["a", "b", "a"], "reward": [3.0, 1.0, 2.0], "propensity": [0.5, 0.5, 0.5]}
    columns[given] = pd.Series(columns[given], index=[30, 10, 20])
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(LABELLED), seed=0)
    with pytest.raises(ValueError, match=f"x and {given} have the same index in different orders"):
        bandit.update(LABELLED, **columns)
    assert len(bandit.history) == 0
    with pytest.raises(ValueError, match="in different orders"):
        bb.ope.Log(LABELLED, columns.pop("arm"), columns.pop("reward"), **columns)
    sorted_ = pd.Series(columns.get(given, [1.0] * 3), index=LABELLED.index)
    bandit.update(LABELLED, ["a", "b", "a"], sorted_.index.to_series() / 30)
    bandit.update(
        LABELLED, ["a", "b", "a"], pd.Series([1.0, 2.0, 3.0])
    )  # other labels: by position


def test_every_two_of_several_series_are_compared():
    """One with other labels stood between them."""
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(LABELLED), seed=0)
    reward = pd.Series([3.0, 1.0, 2.0], index=[30, 10, 20])
    with pytest.raises(ValueError, match="x and reward have the same index in different orders"):
        bandit.update(LABELLED, pd.Series(["a", "b", "a"]), reward)


LABELS = pd.Index([i if i % 2 else f"r{i}" for i in range(60)])  # which have no order
TAKES_A_VALUE_FOR_EACH_ROUND = {
    "a part": lambda log, p: len(log[p["a"] > 0.5]),
    "a subgroup": lambda log, p: bb.ope.estimate(log, "a", subgroup=p["a"] > 0.5),
    "a policy": lambda log, p: bb.ope.estimate(log, p),
    "what a policy returns": lambda log, p: bb.ope.estimate(log, lambda x: p),
    "a pair of policies": lambda log, p: bb.ope.estimate(log, ("a", p)),
    "predicted means": lambda log, p: bb.ope.estimate(log, "a", mean=p),
    "labels": lambda log, p: bb.ope.evaluate(log, ["a"]).subgroups(p["a"] > 0.5),
    "several policies": lambda log, p: bb.ope.evaluate(log, {"mine": p}),
}
LOGS_OF_TABLES = {
    "a table": bb.ope.Log.of,
    "a table of levels": lambda t: bb.ope.Log.of(t, encoder=bb.Encoder.fit(t[["x"]])),
    "a table without contexts": lambda t: bb.ope.Log.of(t, drop=["x"]),
    "columns": lambda t: bb.ope.Log(None, t["arm"], t["reward"], propensity=t["propensity"]),
    "a part of a table": lambda t: bb.ope.Log.of(pd.concat([t, t]))[:60],
}


@pytest.mark.parametrize("of", LOGS_OF_TABLES)
@pytest.mark.parametrize("what", TAKES_A_VALUE_FOR_EACH_ROUND)
def test_what_a_log_takes_has_the_rows_of_its_table(what, of):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=60), "reward": rng.normal(size=60)}, LABELS)
    log = LOGS_OF_TABLES[of](table.assign(arm=["a", "b"] * 30, propensity=0.5))
    share = rng.uniform(size=60)
    values = pd.DataFrame({"a": share, "b": 1.0 - share}, LABELS)
    ask = TAKES_A_VALUE_FOR_EACH_ROUND[what]
    assert str(ask(log, values)) == str(ask(log, values.set_axis(range(60))))
    with pytest.raises(ValueError, match="same index in different orders"):
        ask(log, values[::-1])


CHOSEN_ARMS = [0, 1] * 30
THEIR_REWARDS = np.tile([1.0, 0.0, 0.5], 20)
PROBABILITIES_OF_ARMS = np.tile([[0.4, 0.6], [0.7, 0.3], [0.5, 0.5]], (20, 1))


def logged(probabilities=PROBABILITIES_OF_ARMS, mean=None):
    return bb.ope.Log(None, CHOSEN_ARMS, THEIR_REWARDS, probabilities, arms=[0, 1], mean=mean)


# what takes a table with a column for each arm, and what it makes of it; arms are 0 and 1
TAKES_A_COLUMN_FOR_EACH_ARM = {
    "probabilities": lambda p: logged(p).propensity,
    "mean": lambda p: logged(mean=p).mean,
    "target": lambda p: bb.ope.estimate(logged(), p).value,
    "means": lambda p: bb.ope.estimate(logged(), 0, mean=p).value,
    "play": lambda p: np.stack(bb.LinTS([0, 1], 1, seed=0).play(np.ones((60, 1)), p)),
}


@pytest.mark.parametrize("what", TAKES_A_COLUMN_FOR_EACH_ARM)
def test_the_columns_of_arms_are_found_by_name_or_refused(what):
    take = TAKES_A_COLUMN_FOR_EACH_ARM[what]
    expected = take(PROBABILITIES_OF_ARMS)
    table = pd.DataFrame(PROBABILITIES_OF_ARMS)
    texts = table.rename(columns=str)[["1", "0"]]  # as a file or Polars has them
    for same in (table, table[[1, 0]], texts, pl.from_pandas(texts)):
        np.testing.assert_allclose(take(same), expected)
    for names in (["b", "a"], [1, 2], [0, 0]):
        with pytest.raises(ValueError, match=r"must be the arms \[0, 1\], in any order; got"):
            take(table.set_axis(names, axis=1))


def test_fit_refuses_a_sorted_reward():
    model = bb.load_model("ridge")
    reward = pd.Series([3.0, 2.0, 1.0], index=[30, 20, 10])
    with pytest.raises(ValueError, match=r"pass reward\.loc\[x\.index\]"):
        bb.fit(model, LABELLED, reward)
    np.testing.assert_array_equal(
        bb.fit(model, LABELLED, reward.loc[LABELLED.index]).mean(LABELLED.to_numpy()),
        bb.fit(model, LABELLED, [1.0, 2.0, 3.0]).mean(LABELLED.to_numpy()),
    )


def test_a_reward_that_is_pandas_na_is_missing():
    """It ended in "float() argument must be a string or a real number, not 'NAType'"."""
    bandit = bb.LinTS(["a", "b"], n_features=1, seed=0)
    with pytest.raises(ValueError, match=r"reward must be finite, .* found nan"):
        bandit.observe(bandit.choose([1.0]), pd.NA)
    assert len(bandit.history) == 0
