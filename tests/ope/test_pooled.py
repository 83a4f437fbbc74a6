"""A log that is read in parts says what the whole log says."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.ope.pooled import ArmValue, MeanReward, parts

ARMS = ("a", "b", "c")


def simulated(n, seed=0, lie=False, floor=0.1):
    """A log of a policy that changes every hundred rounds, and arm b's value."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    e = np.abs(x[:, :1] * [1.0, 0.5, 0.0] + rng.uniform(size=(-(-n // 100), 3)).repeat(100, 0)[:n])
    e = floor + (1 - 3 * floor) * e / e.sum(axis=1, keepdims=True)
    arm = (rng.random((n, 1)) > e.cumsum(axis=1)).sum(axis=1)
    reward = 10.0 + x[:, 0] + 0.5 * (arm == 1) + rng.normal(size=n)
    if lie:
        e = np.roll(e, 1, axis=1)
    names = np.array(ARMS)[arm]
    batch = np.arange(n) // 100
    return bb.ope.Log(x, names, reward, e, arms=ARMS, batch=batch.astype(float))


def in_parts(pooled, data, size):
    for start in range(0, len(data), size):
        some = data[start : start + size]
        given = [some.reward, np.zeros(len(some), dtype=bool)]
        pooled.add(*(given if isinstance(pooled, MeanReward) else [some, *given]))
    return pooled.summary()


NUMBERS = ["estimate", "se", "low", "high", "ess"]


@pytest.mark.parametrize("arm", ARMS)
def test_one_part_is_the_estimate(arm):
    data = simulated(1500)
    whole, row = bb.ope.evaluate(data, [arm]).table.iloc[0], in_parts(ArmValue(arm), data, 1500)
    np.testing.assert_allclose([row[k] for k in NUMBERS], whole[NUMBERS].to_numpy(float), rtol=1e-9)
    assert row["n"] == whole["n"] == 1500
    assert row["refused"] == ""


def test_the_mean_reward_is_that_of_all():
    data = simulated(1510)
    whole, row = (
        bb.ope.estimate(data, None, "ips", weights="equal"),
        in_parts(MeanReward(), data, 100),
    )
    assert row["estimate"] == pytest.approx(data.reward.mean(), rel=1e-12)
    assert row["se"] == pytest.approx(whole.se, rel=0.02)
    assert row["se"] == pytest.approx(data.reward.std() / np.sqrt(1510), rel=0.02)


def test_parts_agree_with_the_whole():
    data = simulated(6000)
    whole, row = in_parts(ArmValue("b"), data, 6000), in_parts(ArmValue("b"), data, 1000)
    assert abs(row["estimate"] - whole["estimate"]) < whole["se"]
    assert row["se"] == pytest.approx(whole["se"], rel=0.1)
    assert row["ess"] == pytest.approx(whole["ess"], rel=1e-9)


@pytest.mark.slow
def test_its_interval_holds():
    """Of 200 logs in eight parts each."""
    held = []
    for seed in range(200):
        row = in_parts(ArmValue("b"), simulated(800, seed), 100)
        held.append(row["low"] <= 10.5 <= row["high"])
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 200)


def test_lies_are_refuted_and_the_truth_is_not():
    assert "refuted" in in_parts(ArmValue("a"), simulated(2000, lie=True), 500)["refused"]
    for seed in range(3):
        assert not in_parts(ArmValue("a"), simulated(2000, seed), 500)["refused"]


def test_what_is_missing():
    data, is_open = simulated(600), np.zeros(600, dtype=bool)
    data.reward[[350, 420]] = np.nan
    is_open[[350, 420]] = True
    value, mean = ArmValue("a"), MeanReward()
    for start in range(0, 600, 200):
        some, own = data[start : start + 200], is_open[start : start + 200]
        value.add(some, some.reward, own)
        mean.add(some.reward, own)
    assert value.summary()["n"] == mean.summary()["n"] == 350
    assert not value.summary()["refused"]
    mean.add(np.array([1.0, np.nan]), np.array([False, False]))
    assert "1 of 602 decisions have no reward, and will have none" in mean.summary()["refused"]
    early = MeanReward()
    early.add(np.array([np.nan, 1.0, 2.0]), np.array([True, False, False]))
    assert early.summary()["refused"].endswith("whose reward is open, and has 0")
    assert np.isnan(early.summary()["estimate"])


def test_a_log_without_a_bandit_has_no_parts(tmp_path):
    pytest.importorskip("sqlalchemy")
    with (
        bb.DecisionLog(f"sqlite:///{tmp_path / 'log.db'}") as log,
        pytest.raises(ValueError, match="has no bandit yet"),
    ):
        next(parts(log))


def test_an_arm_that_could_not_always_be_chosen():
    row = in_parts(ArmValue("d"), simulated(600), 200)
    assert row["refused"] == "it could not be chosen in 600 of 600 decisions (100.0%)"
    assert np.isnan(row["estimate"])


@pytest.mark.parametrize("reward", [np.zeros(300), np.full(300, 1e6), np.r_[np.zeros(299), 1.0]])
def test_rewards_that_hardly_vary_give_no_interval(reward):
    mean = MeanReward()
    for part in np.split(reward, 3):
        mean.add(part, np.zeros(100, dtype=bool))
    row = mean.summary()
    assert row["estimate"] == pytest.approx(reward.mean())
    assert np.isnan(row["low"])
    said = "all rewards are the same" if reward.std() == 0 else "about 1.0 rewards make up"
    assert said in row["refused"]
