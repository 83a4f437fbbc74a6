"""Which column of a log plays which role: never guessed from a name that only looks like one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.ope import Log, read_log
from bayesbandit.tables.roles import DEFAULTS
from tests.commands import run

ARMS = ["a", "b"]
ROLES = {"arm": "what", "reward": "got", "propensity": "chance"}
TAKEN = {name for names in DEFAULTS.values() for name in names}
LOOKS = [  # names that look like roles
    "weight", "p", "prob_churn", "prob_x", "p_value", "p_a1", "propensity_score", "probability",
    "time", "batch", "timestamp", "reward_2", "reward_time", "action_prob", "variant", "treatment",
    "outcome", "Arm", "Reward", "item_id", "click", "weight (context)", "decided_at",
]  # fmt: skip
NAMES = st.lists(
    st.one_of(st.sampled_from(LOOKS), st.text("abcp_ 1", min_size=1, max_size=6)),
    min_size=1, max_size=5, unique=True,
)  # fmt: skip
QUICK = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def table(names, n=60, seed=0, roles=None):
    """A log with contexts of these names, in front of and behind the columns of roles."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, size=n)
    first = rng.random(n) < p
    own = roles or {role: role for role in ROLES}
    columns = {name: rng.normal(size=n) for name in names[::2]}
    columns |= {
        own["arm"]: np.where(first, *ARMS),
        own["reward"]: rng.normal(size=n),
        own["propensity"]: np.where(first, p, 1 - p),
    }
    return pd.DataFrame(columns | {name: rng.normal(size=n) for name in names[1::2]})


def contexts_of(frame, log):
    """The columns of a table that a log's contexts are, by their values."""
    return [c for c in frame.columns if any((frame[c].to_numpy() == x).all() for x in log.x.T)]


@QUICK
@given(names=NAMES)
def test_where_roles_are_given_all_other_columns_are_contexts(names):
    names = [name for name in names if name not in ROLES.values()]
    frame = table(names, roles=ROLES)
    keep = [name for name in names if name in TAKEN]
    log = Log.of(frame, keep=keep, **ROLES)
    assert sorted(log.features) == sorted(names)
    assert contexts_of(frame, log) == [c for c in frame.columns if c not in ROLES.values()]
    assert log.time is None
    assert log.batch is None
    assert not log.roles.left


@QUICK
@given(names=NAMES)
def test_a_role_is_never_guessed_from_a_name(names, tmp_path):
    """A context of any name that is no documented role name is only renamed by it."""
    names = [name for name in names if name not in TAKEN]
    plain = [f"context {j}" for j in range(len(names))]
    frame, other = table(names), table(plain)
    log, same = Log.of(frame), Log.of(other)
    assert log.roles.named == same.roles.named == {role: role for role in ROLES}
    renamed = dict(zip(same.features, log.features, strict=True))
    assert renamed == dict(zip(plain, names, strict=True))
    for part in ("x", "reward", "propensity", "played"):
        np.testing.assert_array_equal(getattr(log, part), getattr(same, part))


def test_a_role_can_be_overridden(tmp_path):
    """A context called as a role is kept by keep, and a role is given by its name."""
    frame = table(["time", "batch", "age"])
    log = Log.of(frame, keep=["time", "batch"])
    assert sorted(log.features) == ["age", "batch", "time"]
    assert (log.time, log.batch) == (None, None)
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert sorted(read_log(tmp_path / "log.csv", keep=["time", "batch"]).features) == [
        "age", "batch", "time"]  # fmt: skip
    words = frame.assign(time=["noon", "night"] * 30)
    words.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(ValueError, match=r"must be times.*time=time.*--column context=time"):
        read_log(tmp_path / "log.csv")
    assert "time=noon" in read_log(tmp_path / "log.csv", keep=["time", "batch"]).features
    with pytest.raises(ValueError, match=r"must not run back.*--column context=time. makes"):
        Log.of(frame, keep=["batch"])
    other = Log.of(frame.assign(day=np.arange(60)), time="day", drop=["time"], keep="batch")
    np.testing.assert_array_equal(other.time, np.arange(60))
    assert sorted(other.features) == ["age", "batch"]
    assert other.roles.left == {"time": "dropped"}
    day = frame.assign(day=np.arange(60))
    both = Log.of(day, time="day", drop=["time"], keep=["batch", "day"])
    np.testing.assert_array_equal(both.time, np.arange(60))
    assert sorted(both.features) == ["age", "batch", "day"]
    assert "time=day; contexts: age, batch; left out: time (dropped)." in str(other.roles)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"keep": ["reward"], "reward": "reward"}, "'reward' is given as reward and as context"),
        ({"drop": ["age"], "keep": ["age"]}, "'age' is given as context and as drop"),
        ({"drop": ["age"], "x": ["age"]}, "'age' is given as context and as drop"),
        ({"drop": ["age"], "time": "age"}, "'age' is given as time and as drop"),
        ({"arm": "age", "reward": "age"}, "'age' is given as arm and as reward"),
        ({"keep": ["reward"]}, "no column that is recognised as reward .reward, click.: name it"),
        ({"drop": ["wage"]}, "no column 'wage' .drop."),
        ({"weights": "age"}, "'weights'"),
    ],
)
def test_a_column_has_one_role(arguments, said):
    with pytest.raises((ValueError, TypeError), match=said):
        Log.of(table(["age"]), **arguments)


@pytest.mark.parametrize("reader", ["frame", "file"])
def test_contexts_of_an_encoder_are_those_that_it_needs(reader, tmp_path):
    frame = table(["age", "wage", "plan"]).assign(plan=["basic", "plus"] * 30)
    encoder = bb.Encoder.fit(frame[["age", "plan"]])
    frame.to_parquet(tmp_path / "log.parquet")

    def read(**columns):
        if reader == "frame":
            return Log.of(frame, encoder=encoder, **columns)
        return read_log(tmp_path / "log.parquet", encoder=encoder, **columns)

    assert read().roles.left == {"wage": "the encoder does not use it"}
    with pytest.raises(ValueError, match="x has no column 'plan', which the encoder needs"):
        read(x=["age"])
    with pytest.raises(ValueError, match="'plan' is given as arm and as context"):
        read(arm="plan")
    assert read(arms=["a", "b", "c"]).arms == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"'arm' .arm. has 'b'; the arms"):
        read(arms=["a"])


def test_contexts_that_a_fitted_encoder_leaves_out_are_said(tmp_path):
    frame = table(["age"]).assign(user_id=range(60), always=1)
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.warns(UserWarning, match="left out 'user_id'"):
        log = read_log(tmp_path / "log.csv")
    assert log.roles.contexts == ("age",)
    assert log.roles.left == {"user_id": "an identifier, by its name", "always": "it never varies"}


NOT_NUMBERS = {
    "dates": pd.date_range("2026-01-01", periods=60),
    "durations": pd.to_timedelta(range(60), unit="h"),
    "words": ["yes", "no"] * 30,
}


@pytest.mark.parametrize("values", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
@pytest.mark.parametrize("column", ["reward", "propensity"])
def test_what_is_no_number_is_no_reward(column, values, tmp_path):
    """pandas reads dates and durations as whole numbers."""
    frame = table(["age"]).assign(**{column: values})
    frame.to_parquet(tmp_path / "log.parquet")
    for read in (lambda: Log.of(frame), lambda: read_log(tmp_path / "log.parquet")):
        with pytest.raises(ValueError, match=f"column '{column}' .{column}. must be numbers; got"):
            read()
    with pytest.raises(ValueError, match="rewards must be numbers"):
        Log(None, frame["arm"], values, propensity=np.full(60, 0.5))


HALF_MISSING = "30 of the 60 labels are missing"
NAMES_OF_ARMS = {
    "missing": (pd.Series(["a", None] * 30), HALF_MISSING),
    "logical and missing": (pd.array([True, None] * 30, dtype="boolean"), HALF_MISSING),
    "whole and missing": (pd.array([1, None] * 30, dtype="Int64"), HALF_MISSING),
    "logical": (pd.array([True, False] * 30, dtype="bool[pyarrow]"), ("False", "True")),
    "whole": (pd.array([7, 9] * 30, dtype="Int64"), (7, 9)),
    "whole floats": (np.array([7.0, 9.0] * 30), (7, 9)),
    "categories": (pd.Categorical(["a", "b"] * 30, categories=["z", "b", "a"]), ("a", "b")),
}


@pytest.mark.parametrize("case", NAMES_OF_ARMS)
def test_arms_of_any_type_have_the_same_names_in_tables_and_files(case, tmp_path):
    values, expected = NAMES_OF_ARMS[case]
    frame = table(["age"]).assign(arm=values)
    frame.to_parquet(tmp_path / "log.parquet")
    for read in (lambda: Log.of(frame), lambda: read_log(tmp_path / "log.parquet")):
        if isinstance(expected, tuple):
            assert read().arms == expected
        else:
            with pytest.raises(ValueError, match=expected):
                read()


def by_arm(extra=None, scale=1.0):
    frame = table(["age"])
    mine = frame["arm"] == "a"
    p = np.where(mine, frame["propensity"], 1 - frame["propensity"])
    return frame.assign(p_a=scale * p, p_b=scale * (1 - p), **(extra or {}))


def test_columns_with_the_prefix_of_probabilities_are_of_arms_or_kept():
    rng = np.random.default_rng(1)
    both = Log.of(by_arm())
    assert (both.probabilities.shape, both.features) == ((60, 2), ("age",))
    value = Log.of(by_arm({"p_value": rng.random(60)}), keep=["p_value"])
    assert (value.arms, value.features) == (("a", "b"), ("age", "p_value"))
    third = by_arm({"p_c": 0.1}, scale=0.9).drop(columns="propensity")
    assert Log.of(third).arms == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"probabilities: p_a, p_b, p_value.*keep="):
        Log.of(by_arm({"p_value": rng.random(60)}))
    named = Log.of(by_arm({"p_value": rng.random(60)}), arms=["a", "b"])
    assert (named.arms, named.features) == (("a", "b"), ("age", "p_value"))
    prices = Log.of(by_arm(scale=7.0), keep=["p_a", "p_b"])
    assert prices.features == ("age", "p_a", "p_b")
    with pytest.raises(ValueError, match=r"probabilities: p_a, p_b.*keep="):
        Log.of(by_arm(scale=7.0))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_recognised(kind, tmp_path):
    hours = pd.date_range("2026-01-01", periods=60, freq="h").astype(str)
    frame = by_arm({"plan": ["free", "paid"] * 30, "timestamp": hours})
    path = tmp_path / f"log.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    log = read_log(path)
    assert log.arms == ("a", "b")
    np.testing.assert_allclose(log.probabilities, frame[["p_a", "p_b"]])
    assert log.features == ("age", "plan=paid")
    np.testing.assert_allclose(log.x, log.encoder.transform(frame[list(log.encoder.columns)]))
    assert log.time[1] - log.time[0] == 3600


def test_columns_that_are_no_contexts_are_left_out(tmp_path):
    """An identifier, or a column that never varies, is no reason to refuse a log."""
    plain, path = table([]).assign(user_id=range(60), shop="x"), tmp_path / "log.csv"
    plain.to_csv(path, index=False)
    with pytest.warns(UserWarning, match="read without contexts"):
        assert read_log(path).x.shape == (60, 0)
    huge = plain.astype({"reward": object})
    huge.loc[0, "reward"] = 10**400
    huge.to_csv(path, index=False)
    with pytest.raises(ValueError, match="rewards must be finite"):
        read_log(path, x=[])


def test_a_log_that_says_too_little_is_refused():
    with pytest.raises(ValueError, match="has no probabilities"):
        Log.of(by_arm().drop(columns=["propensity", "p_b"]))
    with pytest.raises(ValueError, match="at least two rounds; got 1"):
        Log.of(table([]).head(1))


def test_an_arm_with_probability_0_was_not_available():
    first = np.arange(60) % 2 == 0
    p = np.where(first, 1.0, 0.5)
    arm = np.where(first, "a", "b")
    log = Log.of(pd.DataFrame({"arm": arm, "reward": 1.0 * first, "p_a": p, "p_b": 1 - p}))
    np.testing.assert_array_equal(log.available[:, 1], ~first)


def player(make, n=80, **settings):
    bandit = make(ARMS, 2, seed=0, min_probability=0.1, **settings)
    for x in np.random.default_rng(0).normal(size=(n, 2)):
        bandit.observe(bandit.choose(x), float(x[0] > 0))
    return bandit


def same(one, other):
    x = np.random.default_rng(9).normal(size=(20, one.n_features))
    np.testing.assert_allclose(one.belief.predict(x).mean, other.belief.predict(x).mean, rtol=1e-12)
    np.testing.assert_allclose(one.belief.predict(x).sd, other.belief.predict(x).sd, rtol=1e-12)
    np.testing.assert_allclose(one.history.weight, other.history.weight, rtol=1e-12)


@pytest.mark.parametrize("make", [bb.LinTS, bb.BLTS])
def test_a_history_becomes_a_log_and_the_same_bandit(make, tmp_path):
    """The weight of a round, 1/p, tells the arm: it is no context."""
    past = player(make)
    past.history.to_frame().to_parquet(tmp_path / "log.parquet")
    log = Log.of(pd.read_parquet(tmp_path / "log.parquet"))
    assert log.features == ("x0", "x1")
    assert list(log.roles.left) == ["weight"]
    np.testing.assert_array_equal(log.x, past.history.x)
    learned = make(ARMS, 2, seed=0, min_probability=0.1)
    learned.update(log)
    same(learned, past)
    again = make(ARMS, 2, seed=0, min_probability=0.1)
    again.update(Log.of(past.history))
    same(again, past)


def test_contexts_of_a_history_have_any_name():
    """Only its last four columns have roles, whatever its features are called."""
    names = ["weight", "time", "p_a", "arm"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 4)), columns=names)
    encoder = bb.Encoder.fit(frame)
    bandit = bb.BLTS(ARMS, encoder=encoder, seed=0, min_probability=0.1)
    for _, row in frame.iterrows():
        bandit.observe(bandit.choose(row), float(row["time"] > 0))
    log = Log.of(bandit.history.to_frame())
    assert log.features == encoder.features
    learned = bb.BLTS(ARMS, encoder=encoder, seed=0, min_probability=0.1)
    learned.update(log)
    assert learned.history.total == 50
    np.testing.assert_allclose(learned.history.weight, bandit.history.weight, rtol=1e-12)


def test_columns_that_are_added_to_a_history_have_roles_of_their_own():
    frame = player(bb.BLTS).history.to_frame()
    more = frame.assign(time=np.arange(80), weight_2=frame["weight"] > 2)
    log = Log.of(more)
    assert log.features == ("x0", "x1", "weight_2")
    np.testing.assert_array_equal(log.time, np.arange(80))
    fewer = Log.of(frame.drop(columns=["weight", "x1"]))
    assert fewer.features == ("x0",)


def test_weights_in_kilograms_are_a_context_or_a_question():
    frame = table(["weight", "age"])
    assert sorted(Log.of(frame).features) == ["age", "weight"]
    last = frame[["age", "arm", "reward", "propensity", "weight"]]
    with pytest.raises(ValueError, match=r"--column context=weight, --column drop=weight"):
        Log.of(last.assign(weight=70 + frame["weight"]))
    assert Log.of(last.assign(weight=70 + frame["weight"]), keep=["weight"]).x.shape[1] == 2
    assert Log.of(frame, drop=["weight"]).features == ("age",)


def test_the_table_of_a_decision_log_is_read_by_its_log():
    frame = pd.DataFrame(columns=["decision_id", "decided_at", "arm", "probabilities", "status"])
    with pytest.raises(ValueError, match=r"Log.of\(log\) reads the log itself"):
        Log.of(pd.concat([frame, pd.DataFrame({"arm": ARMS})]))


def test_no_reader_takes_the_exported_decisions_for_a_log_with_columns_of_contexts(tmp_path):
    path = tmp_path / "export.csv"
    frame = table(["version"]).assign(decision_id="one", decided_at=1.0, probabilities="[]")
    frame.assign(status="reward").to_csv(path, index=False)
    for command in ("train", "evaluate"):
        result = run(command, path, "--bandit", "BLTS", "--out", tmp_path / command)
        assert result.exit_code == 2
        assert "is one of DecisionLog.frame()" in result.said
    with pytest.raises(ValueError, match=r"Log.of\(log\) reads the log itself"):
        bb.learn(path, bb.BLTS(ARMS, 1), features=["version"])


def test_train_says_which_columns_its_encoder_leaves_out(tmp_path):
    frame = table(["age"]).assign(note=[f"note {i}" for i in range(60)])
    frame.to_csv(tmp_path / "log.csv", index=False)
    said = [
        run(command, tmp_path / "log.csv", "--bandit", "BLTS", "--out", tmp_path / command).said
        for command in ("train", "evaluate")
    ]
    for one in said:
        assert "contexts: age; left out: note (all of its values differ)." in one


def test_commands_say_the_roles_and_take_all_contexts(tmp_path):
    frame = table(["weight", "prob_churn", "p_value", "time"])
    path, out = tmp_path / "log.parquet", tmp_path / "learned.npz"
    frame.to_parquet(path)
    result = run("train", path, "--bandit", "BLTS", "--out", out, "--column", "context=time")
    assert result.exit_code == 0, result.output
    assert "contexts: weight, p_value, prob_churn, time." in result.said
    bandit = bb.Bandit.load(out)
    assert sorted(bandit.encoder.columns) == ["p_value", "prob_churn", "time", "weight"]
    told = bb.BLTS(ARMS, encoder=bandit.encoder)
    told.update(Log.of(frame, encoder=bandit.encoder))
    same(told, bandit)
    without = run("train", path, "--bandit", "BLTS", "--out", out, "--column", "drop=time")
    assert without.exit_code == 0, without.output
    assert sorted(bb.Bandit.load(out).encoder.columns) == ["p_value", "prob_churn", "weight"]


def test_a_history_is_trained_without_its_weights(tmp_path):
    past = player(bb.BLTS)
    past.history.to_frame().to_parquet(tmp_path / "log.parquet")
    bb.BLTS(ARMS, 2, seed=0, min_probability=0.1).save(tmp_path / "new.npz")
    result = run("train", tmp_path / "log.parquet", "--bandit", tmp_path / "new.npz",
                       "--out", tmp_path / "out.npz")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "left out: weight (the weights of a bandit's history" in result.said
    same(bb.Bandit.load(tmp_path / "out.npz"), past)
    frame = past.history.to_frame()
    new = bb.BLTS(ARMS, 2, seed=0, min_probability=0.1)
    same(bb.learn(frame, new, features=["x0", "x1"]), past)
    same(bb.learn(frame, new), past)


def test_what_another_column_replaces_is_no_context_unless_it_is_kept():
    """Nor what may be an outcome: it would tell the reward."""
    frame = table(["click", "age"]).assign(revenue=np.arange(60.0))
    log = Log.of(frame.drop(columns="revenue"))
    assert log.roles.contexts == ("age",)
    assert log.roles.left == {"click": "the reward is 'reward'; keep uses this one"}
    assert Log.of(frame, keep=["click"]).roles.contexts == ("click", "age", "revenue")
    other = Log.of(frame, reward="revenue")
    assert other.roles.contexts == ("age",)
    assert "reward" in str(other.roles)
    assert Log.of(frame, reward="revenue", keep=["reward"]).features == ("reward", "age")
