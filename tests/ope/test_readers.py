"""Logs of other systems, and of a bandit with the policies of its past."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.ope import Log, read_log
from bayesbandit.ope.logs.exports import of_lines
from bayesbandit.ope.logs.files import read_table

# made by vowpalwabbit 9.11.9: `--cb_explore_adf --epsilon 0.3 --dsjson -q UA` chose by its own
# probabilities and learned each line; without "music" in every seventh round
VW = Path(__file__).parent / "logs" / "vw.dsjson"
RANKS = [
    {"eventId": "1", "contextFeatures": [{"time": "noon"}, {"user": {"tall": 1.8}}],
     "ranking": [{"id": "pasta", "probability": 0.8}, {"id": "salad", "probability": 0.2}],
     "rewardActionId": "pasta"},
    {"eventId": "2", "contextFeatures": [{"time": "night"}, {"user": {"tall": 1.6}}],
     "ranking": [{"id": "salad", "probability": 0.8}, {"id": "pasta", "probability": 0.2}],
     "rewardActionId": "salad"},
    {"eventId": "3", "contextFeatures": [{"time": "night"}, {"user": {"tall": 1.9}}],
     "ranking": [{"id": "salad", "probability": 0.8}, {"id": "pasta", "probability": 0.2}],
     "rewardActionId": "pasta"},
]  # fmt: skip


def table(n=200, seed=0, arms=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(len(arms)), size=n) * 0.9 + 0.1 / len(arms)
    k = (rng.random((n, 1)) < p.cumsum(axis=1)).argmax(axis=1)
    frame = pd.DataFrame({f"probability_{arm}": p[:, i] for i, arm in enumerate(arms)})
    return frame.assign(
        action=np.array(arms)[k], reward=rng.random(n), propensity=p[np.arange(n), k],
        age=rng.normal(size=n), plan=np.array(["free", "paid"])[rng.integers(2, size=n)],
        timestamp=pd.date_range("2026-01-01", periods=n, freq="h").astype(str),
    )  # fmt: skip


def write(frame, folder, kind):
    path = folder / f"log.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    return path


def test_a_log_of_vowpal_wabbit():
    with pytest.warns(UserWarning, match="left out 1 of 161 lines: 1 without a dec"):
        log = read_log(VW)
    lines = [json.loads(line) for line in VW.read_text().splitlines()[:-1]]
    assert set(log.arms) == {"sport", "news", "music"}
    assert log.features == ("U.age", "U.time=noon")
    assert len(log) == len(lines) == 160
    for t, line in enumerate(lines):
        actions = [action["A"]["id"] for action in line["c"]["_multi"]]
        assert log.arm[t] == actions[line["_labelIndex"]]
        assert log.reward[t] == -line["_label_cost"]
        for place, p in zip(line["a"], line["p"], strict=True):
            e = log.probabilities[t, log.arms.index(actions[place - 1])]
            assert e == pytest.approx(p, abs=1e-6)
    here = np.array([len(line["c"]["_multi"]) == 3 for line in lines])
    np.testing.assert_array_equal(log.available[:, log.arms.index("music")], here)
    assert not bb.ope.check(log).refuted
    result = bb.ope.evaluate(log, {"news": "news", "logged": None})
    assert not result.table["refused"].any()
    assert result.estimates["logged"].value == pytest.approx(log.reward.mean())


def test_answers_of_rank_and_rewards(tmp_path):
    path = tmp_path / "ranks.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in RANKS))
    log = read_log(path, rewards={"1": 1.0, "3": 0.5}, default=-1.0)
    assert log.arm.tolist() == ["pasta", "salad", "pasta"]
    assert log.reward.tolist() == [1.0, -1.0, 0.5]
    assert log.propensity.tolist() == [0.8, 0.8, 0.2]
    assert set(log.features) == {"time=other", "user.tall"}  # "noon" is there once
    assert np.isnan(read_log(path, rewards={"1": 1.0}).reward[1])


LINE = json.loads(VW.read_text().splitlines()[0])
BROKEN = {
    "line 1 is no JSON": "{",
    "line 1 is no JSON object": "[1]",
    "none of its 0 lines": "\n",
    "none of its 1 lines is a round to learn from: 1 without a decision": '{"EventId": "e"}',
    "line 1 is no line of --dsjson: KeyError": json.dumps(
        {k: v for k, v in LINE.items() if k != "p"}
    ),
    "line 1 is no line of --dsjson: ValueError": json.dumps({**LINE, "p": [1.0]}),
    "line 1 is no line of --dsjson: KeyError.0": json.dumps({**LINE, "_labelIndex": -1}),
    "line 1 is no line of --dsjson: OverflowError": json.dumps({**LINE, "_label_cost": 10**400}),
    "line 1 is no line of --dsjson: TypeError": json.dumps({**LINE, "c": None}),
    "line 1 is with an action offered twice": json.dumps(
        {**LINE, "c": {"_multi": [{"id": "x"}, {"id": "x"}, {"id": "y"}]}}
    ),
    "different rates": json.dumps(LINE) + "\n" + json.dumps({**LINE, "pdrop": 0.5}),
    "cannot be read": json.dumps({**RANKS[0], "rewardActionId": "soup"}),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_export_is_a_sentence(said, tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text(BROKEN[said])
    with warnings.catch_warnings(action="ignore"), pytest.raises(ValueError, match=said):
        read_log(path)


ODD = {
    "with an action offered twice": {"c": {"_multi": [{"id": "x"}, {"id": "x"}, {"id": "y"}]}},
    "with positions other than 1 to 3": {"a": [0, 1, 2]},
    "no line of --dsjson": {"p": [0.5]},
    "with probabilities that do not sum to 1": {"p": [0.5, 0.1, 0.1]},
    "whose action has another probability than the logged one": {"_label_probability": 0.0123},
    "whose _label_Action is not _labelIndex . 1": {"_label_Action": 7},
    "with an infinite reward": {"_label_cost": float("inf")},
    "with a time that is not of ISO 8601": {"Timestamp": "yesterday"},
}


@pytest.mark.parametrize("reason", [*ODD, "no JSON, or cut off"])
def test_an_odd_line_is_named_or_left_out_and_counted(reason, tmp_path):
    """It refuses the log by default; with errors="skip" all other lines are learned."""
    good, path = json.dumps(LINE), tmp_path / "log.dsjson"
    odd = good[:-40] if reason not in ODD else json.dumps({**LINE, **ODD[reason]})
    path.write_text("\n".join([good, good, odd, "", good, odd]))
    with pytest.raises(ValueError, match=f"line 3 is {reason}.*errors='skip'"):
        read_log(path)
    with pytest.warns(UserWarning, match=f"left out 2 of 5 lines: 2 {reason}"):
        log = read_log(path, errors="skip")
    assert len(log) == 3
    path.write_text("\n".join([odd, odd]))
    with pytest.raises(ValueError, match=f"none of its 2 lines is a round .*: 2 {reason}"):
        read_log(path, errors="skip")
    with pytest.raises(ValueError, match="errors must be one of 'raise', 'skip'; got 'ignore'"):
        read_log(path, errors="ignore")


def test_times_that_some_lines_lack_are_left_out_with_a_word(tmp_path):
    path = tmp_path / "log.dsjson"
    later = {**LINE, "Timestamp": None}
    path.write_text("\n".join(map(json.dumps, [LINE, LINE, later])))
    with pytest.warns(UserWarning, match="1 of 3 rounds have no time"):
        assert read_log(path).time is None


def test_an_unknown_column_of_an_export_cannot_be_dropped(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(map(json.dumps, [LINE, LINE])))
    with pytest.raises(ValueError, match=r"no column 'wage' .drop."):
        read_log(path, drop=["wage"])


def test_lines_that_vowpal_wabbit_skips_are_not_learned(tmp_path):
    path = tmp_path / "log.dsjson"
    lines = [{**LINE, "_label_cost": -k, "_skipLearn": k % 3 == 0} for k in range(9)]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(UserWarning, match="left out 3 of 9 lines: 3 with _skipLearn"):
        log = read_log(path)
    assert log.reward.tolist() == [1, 2, 4, 5, 7, 8]


def test_answers_of_rank_can_be_skipped_too(tmp_path):
    path = tmp_path / "ranks.jsonl"
    odd = {**RANKS[0], "rewardActionId": "soup"}
    path.write_text("\n".join(map(json.dumps, [*RANKS, odd])))
    with pytest.warns(UserWarning, match="left out 1 of 4 lines: 1 an answer of Rank that cannot"):
        assert len(read_log(path, errors="skip", default=0.0)) == 3


def test_a_separator_of_lines_within_a_text_separates_no_events(tmp_path):
    path = tmp_path / "log.dsjson"
    line = json.dumps({**LINE, "note": "a\u2028b\x85c"}, ensure_ascii=False)
    path.write_text("\n".join([line] * 3), encoding="utf-8")
    with warnings.catch_warnings(action="ignore"):
        assert len(read_log(path)) == 3


def test_columns_that_are_no_contexts_are_left_out(tmp_path):
    """An identifier, or a column that never varies, is no reason to refuse a log."""
    plain = table()[["action", "reward", "propensity"]].assign(
        user_id=range(len(table())), shop="x"
    )
    with pytest.warns(UserWarning, match="read without contexts"):
        log = read_log(write(plain, tmp_path, "csv"))
    assert log.x.shape == (len(plain), 0)
    huge = plain.assign(reward=1).astype({"reward": object})
    huge.loc[0, "reward"] = 10**400
    with (
        pytest.warns(UserWarning, match="read without contexts"),
        pytest.raises(ValueError, match="rewards must be finite"),
    ):
        read_log(write(huge, tmp_path, "csv"))


def test_actions_without_names_go_by_their_places():
    """By _tag, else id, else place; a warning where such actions change."""
    plain = {**LINE, "c": {"x": [1, 2], "words": ["so"], "_multi": [{"f": k} for k in range(3)]}}
    _, roles = of_lines([json.dumps(plain)] * 2)
    assert list(roles["probabilities"]) == [2, 1, 3]
    assert roles["x"] == ["x[0]", "x[1]", "words=so"]
    other = {**plain, "c": {"_multi": [{"f": 9 - k} for k in range(3)]}}
    with pytest.warns(UserWarning, match="neither a _tag nor an id, and changes"):
        of_lines([json.dumps(plain), json.dumps(other)])
    tagged = {**LINE, "c": {"_multi": [{"_tag": f"t{k}", "id": 1} for k in range(3)]}}
    assert of_lines([json.dumps(tagged)])[0]["logged arm"].tolist() == ["t1"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_recognised(kind, tmp_path):
    frame = table()
    log = read_log(write(frame, tmp_path, kind))
    assert log.arms == ("a", "b", "c")
    np.testing.assert_allclose(log.probabilities, frame.iloc[:, :3])
    assert log.features == ("age", "plan=paid")
    assert log.time[1] - log.time[0] == 3600


def test_columns_that_are_named(tmp_path):
    frame = table().rename(columns={"action": "what", "reward": "got", "propensity": "chance"})
    frame = frame.rename(columns=lambda c: c.replace("probability_", "how often "))
    path = write(frame, tmp_path, "csv")
    with pytest.raises(ValueError, match=r"no column that is recognised as arm .*name it"):
        read_log(path)
    some = read_log(path, arm="what", reward="got", propensity="chance", x=["age"])
    assert (some.probabilities, some.features) == (None, ("age",))
    vectors = {arm: f"how often {arm}" for arm in "abc"}
    every = read_log(path, arm="what", reward="got", probabilities=vectors, x=[])
    np.testing.assert_allclose(every.propensity, frame["chance"])
    assert every.features == ()
    with pytest.raises(ValueError, match="no column 'why'"):
        read_log(path, arm="why")
    with pytest.raises(ValueError, match="has 'a'; the arms, of arms= or with a column"):
        read_log(path, arm="what", reward="got", probabilities={"b": "how often b"})


def test_arms_that_are_numbers(tmp_path):
    frame = table(arms=(0, 1, 2))
    for column in (frame["action"], frame["action"].astype(float)):
        log = read_log(write(frame.assign(action=column), tmp_path, "csv"))
        assert log.arms == (0, 1, 2)
        assert log.probabilities is not None


BAD = {
    r"column 'reward' \(reward\) must be numbers; got 'x' in round 3": {
        "reward": ["1", "2", "3", "x"] * 50
    },
    r"propensities must be in \(0, 1\]; got 0.0": {"propensity": 0.0},
    r"column 'action' \(arm\): 100 of 200 values are missing": {"action": ["a", None] * 100},
    r"time must not run back": {"timestamp": ["2026-01-02", "2026-01-01"] * 100},
    r"column 'timestamp' \(time\) must be times": {"timestamp": "soon"},
    r"probabilities must sum to 1": {"probability_a": 0.5},
    r"probabilities are missing in 200 of 200 rounds": {"probability_a": np.nan},
    r"rewards must not all be missing": {"reward": np.nan},
}


@pytest.mark.parametrize("said", BAD)
def test_a_bad_column_is_a_sentence(said, tmp_path):
    path = write(table().assign(**BAD[said]), tmp_path, "csv")
    with pytest.raises(ValueError, match=said):
        read_log(path, x=["age"])


@pytest.mark.filterwarnings("ignore:left out 1 of 161")
def test_a_bad_file_is_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_log(tmp_path / "none.csv")
    (tmp_path / "log.parquet").write_text("no")
    with pytest.raises(ValueError, match="not a whole Parquet file"):
        read_log(tmp_path / "log.parquet")
    plain = table().drop(columns=["propensity", "probability_b"])
    with pytest.raises(ValueError, match="has no probabilities"):
        read_log(write(plain, tmp_path, "csv"))
    one = table().head(1)
    with pytest.raises(ValueError, match="at least two rounds; got 1"):
        read_log(write(one, tmp_path, "csv"), x=[])
    with pytest.raises(ValueError, match="is an export"):
        read_log(VW, arm="a")
    with pytest.raises(ValueError, match="lines of JSON"):
        read_log(write(table(), tmp_path, "csv"), rewards={})


def test_a_history_in_a_file(tmp_path):
    """`to_frame` is recognised; its weights, which tell the arm, are no contexts."""
    bandit = bb.BLTS(["a", "b"], 2, seed=0)
    for x in np.random.default_rng(0).normal(size=(50, 2)):
        bandit.observe(bandit.choose(x), float(x[0] > 0))
    found = read_table(write(bandit.history.to_frame(), tmp_path, "csv"))
    assert found.x == ("x0", "x1")
    np.testing.assert_allclose(found.log(None).propensity, bandit.history.propensity)


@pytest.mark.parametrize("make", [bb.LinTS, bb.BLTS, bb.BLUCB])
def test_the_policies_of_a_bandits_past(make):
    """As frozen copies of the bandit before each batch would say."""
    rng = np.random.default_rng(2)
    bandit = make(["a", "b", "c"], 2, seed=0, min_probability=0.05)
    frozen, x = [], rng.normal(size=(12, 20, 2))
    for part in x:
        frozen.append(bandit.copy())
        bandit.observe(bandit.choose(part), rng.normal(size=20))
    batch = np.repeat(np.arange(12), 20)
    log = Log.of(bandit, batch=batch)
    flat = x.reshape(-1, 2)
    for b in (0, 1, 5, 11):
        expected = frozen[b].probabilities(flat)
        np.testing.assert_allclose(log.policy(b, slice(None)), expected, atol=1e-6)
    assert np.isfinite(bb.ope.estimate(log, "a", weights="contextual").low)
    later = log[120:]
    np.testing.assert_allclose(later.policy(0, slice(None)), frozen[6].probabilities(flat[120:]),
                               atol=1e-6)  # fmt: skip
    if make is not bb.BLUCB:
        with pytest.raises(ValueError, match="differs from the logged probabilities"):
            Log.of(bandit, batch=np.repeat(np.arange(6), 40))


def test_the_policies_of_a_bandit_that_learns_every_round():
    rng = np.random.default_rng(3)
    bandit = bb.LinTS(["a", "b"], 1, seed=0, min_probability=0.1)
    for x in rng.normal(size=(60, 1)):
        bandit.observe(bandit.choose(x), rng.normal())
    log = Log.of(bandit)
    assert len(log.batches) == 60
    assert np.isfinite(bb.ope.estimate(log, "a").low)
    bandit.remove_arm("b")
    with pytest.raises(ValueError, match="arms were removed: \\['b'\\]"):
        Log.of(bandit)
    short = bb.LinTS(["a", "b"], 1, history=5)
    for x in rng.normal(size=(9, 1)):
        short.observe(short.choose(x), 0.0)
    with pytest.raises(ValueError, match="keeps 5 of 9 rounds"):
        Log.of(short)
