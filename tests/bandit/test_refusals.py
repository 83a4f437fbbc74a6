"""`errors="skip"`: the rows that can be learned are, and the others are told."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesbandit as bb
from tests import declarations as declared

KINDS = {
    "LinTS": lambda: bb.LinTS(["a", "b"], 2, seed=0),
    "BLTS": lambda: bb.BLTS(["a", "b"], 2, seed=0),
    "pooled": lambda: bb.BLTS(["a", "b"], 2, propensity="pooled", seed=0),
    "conjugate": lambda: bb.Bandit(
        ["a", "b"], bb.load_model("beta_bernoulli"), bb.Thompson(), n_features=2
    ),
    "forest": lambda: bb.ForestTS(["a", "b"], 2, trees=20, bag=4, seed=0),
}
FAULTS = {
    "context": ("x", [np.nan, 0.0], "contexts must be finite"),
    "arm": ("arm", "gone", "unknown arm 'gone'"),
    "reward": ("reward", np.inf, "rewards must be finite"),
    "propensity": ("p", 1.5, r"propensities must be in (0, 1]"),
}


def log(n, seed=0):
    rng = np.random.default_rng(seed)
    x, arm = rng.normal(size=(n, 2)), np.array(["a", "b"], dtype=object)[rng.integers(2, size=n)]
    return {"x": x, "arm": arm, "reward": 1.0 * (x[:, 0] > 0), "p": rng.uniform(0.1, 1, n)}


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_it_is_as_if_the_bad_rows_had_not_been_there(data):
    make = data.draw(st.sampled_from(sorted(KINDS)).map(KINDS.__getitem__))
    n = data.draw(st.integers(1, 12))
    bad = data.draw(st.dictionaries(st.integers(0, n - 1), st.sampled_from(sorted(FAULTS))))
    rows, good = log(n), [i for i in range(n) if i not in bad]
    some, clean = make(), make()
    if good:
        clean.update(*(rows[part][good] for part in ("x", "arm", "reward", "p")))
    for i, fault in bad.items():
        part, value, _ = FAULTS[fault]
        rows[part][i] = value
    found = some.update(rows["x"], rows["arm"], rows["reward"], rows["p"], errors="skip")
    assert [row for row, _ in found] == sorted(bad)
    for row, reason in found:
        assert FAULTS[bad[row]][2] in reason
    pd.testing.assert_frame_equal(some.history.to_frame(), clean.history.to_frame())
    a, b = some.choose([1.0, 0.5]), clean.choose([1.0, 0.5])
    assert (a.arm, a.propensity) == (b.arm, b.propensity)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "conjugate"])
def test_late_rewards_of_a_removed_arm(name):
    bandit, other = KINDS[name](), KINDS[name]()
    x = np.random.default_rng(0).normal(size=(40, 2))
    for one in (bandit, other):
        one.add_arm("c")
        batch = one.choose(x)
        one.remove_arm("b")
    gone = batch.arm == "b"
    assert gone.any()
    reward = x[:, 0].copy()
    reward[~gone] = np.where(np.arange((~gone).sum()) == 0, np.nan, reward[~gone])
    with pytest.raises(ValueError, match=r"unknown arm 'b'|rewards must be finite"):
        bandit.observe(batch, reward)
    assert bandit.history.total == 0
    found = bandit.observe(batch, reward, errors="skip")
    first = int(np.flatnonzero(~gone)[0])
    assert [row for row, _ in found] == sorted([*np.flatnonzero(gone), first])
    reasons = dict(found)
    assert "rewards must be finite" in reasons.pop(first)
    assert all("unknown arm 'b'" in reason for reason in reasons.values())
    good = ~gone & np.isfinite(reward)
    assert other.observe(batch[good], reward[good], errors="skip") == []
    pd.testing.assert_frame_equal(bandit.history.to_frame(), other.history.to_frame())


@pytest.mark.slow
def test_rewards_that_the_model_holds_impossible():
    for model in ("beta_bernoulli", "logistic"):
        settings = {"engine": "laplace"} if model == "logistic" else {}
        bandit = declared.bandit(
            2, bb.load_model(model), bb.Thompson(), n_features=1, history=None, **settings
        )
        found = bandit.update(
            np.ones((5, 1)), [0, 1, 0, 1, 0], [1.0, 0.5, 0.0, -1.0, 1.0], 0.5, errors="skip"
        )
        assert [row for row, _ in found] == [1, 3]
        assert all(f"row {row}, " in reason for row, reason in found)
        assert bandit.history.reward.tolist() == [1.0, 0.0, 1.0]
        decision = bandit.choose(np.ones((3, 1)))
        assert [r for r, _ in bandit.observe(decision, [1.0, 7.0, 0.0], errors="skip")] == [1]
        assert bandit.history.total == 5


@pytest.mark.parametrize(
    ("x", "arm", "reward", "p", "match"),
    [
        (np.ones((2, 3)), ["a", "b"], [1, 1], None, r"shape \(2, 2\); got \(2, 3\)"),
        (np.ones((3, 2)), ["a", "b"], [1, 1], None, r"shape \(2, 2\); got \(3, 2\)"),
        (np.ones((2, 2)), ["a", "b"], [1], None, r"rewards must .* of 2 rows; got \(1,\)"),
        (np.ones((2, 2)), ["a", "b"], [1, 1], [0.5] * 3, r"propensities must .* got \(3,\)"),
        (np.ones((2, 2)), [["a", "b"]], [1, 1], None, r"arm must .* got \(1, 2\)"),
        (np.ones((2, 2)), ["a", "b"], ["much", 1], None, "rewards must be numbers"),
        (np.ones((0, 2)), [], [], None, "at least one round"),
    ],
)
def test_shapes_are_still_refused(x, arm, reward, p, match):
    bandit = KINDS["LinTS"]()
    with pytest.raises(ValueError, match=match):
        bandit.update(x, arm, reward, p, errors="skip")
    assert bandit.history.total == 0


# ---- tables --------------------------------------------------------------------------------------


def encoded():
    frame = pd.DataFrame({"age": [20.0, 30.0, 50.0, 40.0], "country": ["a", "b", "a", "b"]})
    encoder = bb.Encoder.formula("~ age + country", frame)
    return bb.LinTS(["x", "y"], encoder=encoder, seed=0), frame


def test_rows_that_cannot_be_encoded():
    bandit, frame = encoded()
    frame.loc[1, "age"] = np.nan
    with pytest.raises(ValueError, match="age"):
        bandit.update(frame, ["x", "y", "x", "y"], [1.0, 0.0, 1.0, 0.0])
    found = bandit.update(frame, ["x", "y", "x", "gone"], [1.0, 0.0, 1.0, 0.0], errors="skip")
    assert [row for row, _ in found] == [1, 3]
    assert "age" in found[0].reason
    assert bandit.history.arm.tolist() == ["x", "x"]
    with pytest.raises(ValueError, match="lacks the column 'country'"):
        bandit.update(frame[["age"]], ["x"] * 4, [1.0] * 4, errors="skip")
    with pytest.raises(ValueError, match="arm must have one name"):
        bandit.update(frame, ["x"] * 3, [1.0] * 3, errors="skip")


def test_a_list_of_dicts_is_a_table():
    (bandit, frame), (other, _) = encoded(), encoded()
    rows = frame.to_dict("records")
    one, two = bandit.choose(rows), other.choose(frame)
    np.testing.assert_array_equal(one.x, two.x)
    assert one.arm.tolist() == two.arm.tolist()
    np.testing.assert_array_equal(bandit.probabilities(rows), bandit.probabilities(frame))
    bandit.update(rows, ["x"] * 4, [1.0] * 4)
    other.update(frame, ["x"] * 4, [1.0] * 4)
    np.testing.assert_array_equal(bandit.history.x, other.history.x)
    assert bandit.greedy(tuple(rows)).tolist() == other.greedy(frame).tolist()
    assert len(bandit.choose(rows[:1])) == 1
    found = bandit.update([*rows, rows[0] | {"age": None}], ["x"] * 5, [1.0] * 5, errors="skip")
    assert [row for row, _ in found] == [4]
    with pytest.raises(ValueError, match="row 1 lacks 'age'; other rows have 'age', 'country'"):
        bandit.choose([rows[0], {"country": "a"}])
    with pytest.raises(ValueError, match="must be numbers"):
        KINDS["LinTS"]().choose(rows)


# ---- names of a batch ----------------------------------------------------------------------------


@pytest.mark.parametrize("arms", [3, [5, 2**70, -1], ["a", "b", "ü"], ["a", 1, "1"]], ids=str)
def test_the_names_of_a_batch_are_pythons_own(arms):
    bandit = bb.LinTS(arms, 1, seed=0)
    batch = bandit.choose(np.ones((20, 1)))
    allowed = {json.dumps(arm) for arm in bandit.arms}
    for names in (list(batch.arm), [batch.arm[i] for i in range(20)], batch.arm.tolist()):
        assert {json.dumps(name) for name in names} <= allowed
        assert all(type(name) in (int, str) for name in names)
    assert [one.arm for one in batch] == batch.arm.tolist()
    assert batch.arm[3:5].tolist() == batch.arm.tolist()[3:5]
    hit = batch.arm == bandit.arms[0]
    assert type(hit) is np.ndarray
    assert hit.dtype == bool
    bandit.update(np.ones((20, 1)), batch.arm, np.ones(20))
    assert bandit.history.arm.tolist() == batch.arm.tolist()
    assert pd.Series(batch.arm).tolist() == batch.arm.tolist()
