"""What a standard error pays for: the rewards of its own arms, with the weights they are given."""

import numpy as np
import pytest

from bayesbandit.ope import Log, estimate, evaluate
from bayesbandit_studies.evidence.designs import linear
from bayesbandit_studies.evidence.measured import true


def uniform(seed, values, n=1000, noise=1.0):
    """A log of uniform choice, with normal rewards."""
    rng, K = np.random.default_rng(seed), len(values)
    arm = rng.integers(0, K, n)
    reward = np.array(values)[arm] + noise * rng.normal(size=n)
    return Log(None, arm, reward, np.full((n, K), 1 / K))


@pytest.mark.parametrize("weights", ["equal", "stablevar", "minvar"])
@pytest.mark.parametrize(("shift", "scale"), [(-10.0, 1.0), (1e4, 1.0), (0.0, 1e3)])
def test_an_error_does_not_pay_for_other_arms(weights, shift, scale):
    """Predicted means are given, so that the third arm's rewards are in no score."""
    log = uniform(0, [0.0, 0.2, 0.0], n=400)
    other = np.where(log.played == 2, shift + scale * log.reward, log.reward)
    there = Log(None, log.played, other, log.probabilities)
    for target in (0, (0, 1)):
        one, two = (
            estimate(data, target, mean=np.zeros((400, 3)), weights=weights, force=True)
            for data in (log, there)
        )
        assert two.value == pytest.approx(one.value, abs=1e-12)
        assert two.se == pytest.approx(one.se, rel=1e-9)


@pytest.mark.parametrize("batch", [None, np.zeros(400), np.arange(400) // 40])
def test_an_arm_is_as_well_known_whatever_others_are_worth(batch):
    """Means are learned: an arm that is 1e3 standard deviations away costs others 1 % of their
    standard error."""
    log = uniform(0, [0.0, 0.2, 0.0], n=400)
    log.batch = batch
    other = np.where(log.played == 2, 1e3 + log.reward, log.reward)
    there = Log(None, log.played, other, log.probabilities, batch=batch)
    for target in (0, (0, 1)):
        one, two = (estimate(data, target, force=True) for data in (log, there))
        assert two.se == pytest.approx(one.se, rel=0.02)
        assert two.value == pytest.approx(one.value, abs=0.2 * one.se)


@pytest.mark.slow
@pytest.mark.parametrize("values", [[0.0, 0.2, 0.0], [0.0, 0.2, -10.0], [0.0, 100.0]])
def test_errors_are_as_large_as_deviations_whatever_arms_are_worth(values):
    """Mean se over sd of 120 contrasts is within .95 … 1.15, ± 3 standard errors of .065."""
    found = [estimate(uniform(seed, values), (0, 1), force=True) for seed in range(120)]
    ratio = np.mean([e.se for e in found]) / np.std([e.value for e in found])
    assert 0.95 - 0.195 < ratio < 1.15 + 0.195


@pytest.mark.slow
@pytest.mark.parametrize("apart", [10.0, 100.0])
def test_intervals_of_a_log_that_learns_hold_where_arms_are_apart(apart):
    """Of 60 logs at least 93 % less 3 standard errors (3.3 each). Before any mean is learned, a few
    rounds make most of the variance: with what was seen alone, 73 to 80 % were covered."""
    hits = {target: [] for target in (0, 1, (0, 1))}
    for log in linear(60, 5, apart=apart, T=400).logs():
        for target, hit in hits.items():
            e = estimate(log, target, force=True)
            hit.append(abs(e.value - true(target, apart)) <= 1.96 * e.se)
    for hit in hits.values():
        assert np.mean(hit) > 0.93 - 0.099


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clipped", "switch", "shrunk", "dm"])
def test_biased_weights_have_their_own_variance(name):
    """An arm of 1 % in every other round: mean se over sd of 150 values, ± .06 each."""
    found, e = [], np.tile([[0.01, 0.99], [0.5, 0.5]], (300, 1))
    for seed in range(150):
        rng = np.random.default_rng(seed)
        arm = (rng.random(600) > e[:, 0]).astype(int)
        log = Log(None, arm, 1.0 + rng.normal(size=600), e)
        found.append(estimate(log, 0, name, np.full((600, 2), 1.0), "equal", force=True))
    sd = np.std([one.value for one in found])
    if name == "dm":  # of known means, nothing varies
        assert max(one.se for one in found) < 1e-12
    else:
        assert 0.8 < np.mean([one.se for one in found]) / sd < 1.3


def test_a_mix_is_of_the_weights_that_are_used():
    """Where clipping cuts nearly all weights down, the error is that of small weights."""
    rng = np.random.default_rng(0)
    e = np.tile([0.02, 0.98], (500, 1))
    log = Log(None, (rng.random(500) > 0.02).astype(int), rng.normal(size=500), e)
    full, cut = (estimate(log, 0, "clipped", weights="equal", clip=c) for c in (1e9, 5.0))
    assert cut.se == pytest.approx(full.se / 10, rel=1e-9)  # 5 in the place of 50
    assert estimate(log, 0, "ips", weights="equal").se == pytest.approx(full.se, rel=1e-12)


def test_fewer_than_two_clicks_have_no_interval():
    """In the arm, however many the others have; the mean reward has its own."""
    rng = np.random.default_rng(3)
    arm, y = rng.integers(0, 2, 400), np.zeros(400)
    y[np.flatnonzero(arm == 1)[:40]] = 1.0
    for n in range(4):
        y[np.flatnonzero(arm == 0)[20 : 20 + n]] = 1.0
        log = Log(None, arm, y, np.full((400, 2), 0.5))
        found = estimate(log, 0)
        assert found.carrying >= max(n, 1) - 0.05
        assert ("fewer than 2" in found.refused) == (n < 2)
        assert np.isnan(found.low) == (n < 2)
        assert evaluate(log, [0]).table.refused[0] == found.refused
    assert not estimate(log, 1).refused
    assert not estimate(log, (1, 0)).refused
    once = Log(None, arm[:100], np.r_[np.zeros(99), 1.0], np.full((100, 2), 0.5))
    assert "fewer than 2" in estimate(once, None).refused


def test_a_contrast_is_carried_by_the_arm_that_varies():
    """One arm without a click is known well enough to say that the other, of 20 %, is better."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 1000)
    log = Log(None, arm, (rng.random(1000) < 0.2) & (arm == 1), np.full((1000, 2), 0.5))
    assert estimate(log, (1, 0)).low > 0.1
    assert "all rewards" in estimate(log, 0).refused or "fewer than 2" in estimate(log, 0).refused


@pytest.mark.slow
@pytest.mark.parametrize("expected", [3, 5, 8])
def test_few_clicks_are_covered(expected):
    """Of 120 logs with so many clicks expected, the intervals that are given hold in at least 93 %
    less 3 standard errors (2.3 each)."""
    hits = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        arm = rng.integers(0, 2, 1000)
        clicked = rng.random(1000) < np.array([expected / 500, 0.2])[arm]
        e = estimate(Log(None, arm, clicked, np.full((1000, 2), 0.5)), 0, force=True)
        if not e.refused:
            hits.append(e.low <= expected / 500 <= e.high)
    assert len(hits) > 80
    assert np.mean(hits) > 0.93 - 0.07


STRANGE = {
    "two rounds": lambda a, y: (a[:2], y[:2], np.full((2, 2), 0.5)),
    "one arm": lambda a, y: (0 * a, y, np.ones((200, 1))),
    "only zeros": lambda a, y: (a, 0 * y, np.full((200, 2), 0.5)),
    "weights of 1e12": lambda a, y: (
        (np.arange(200) != 50).astype(int), y, np.tile([1e-12, 1 - 1e-12], (200, 1)),
    ),
    "weights of 1 to 1e12": lambda a, y: (
        a, y, np.column_stack([p := 10.0 ** -(np.arange(200) % 13) / 2, 1 - p]),
    ),
    "rewards of 1e49": lambda a, y: (a, 1e49 * y, np.full((200, 2), 0.5)),
    "rewards of 1e-100": lambda a, y: (a, 1e-100 * y, np.full((200, 2), 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_log_has_an_interval_or_says_why_not(name):
    rng = np.random.default_rng(0)
    log = Log(None, *STRANGE[name](rng.integers(2, size=200), rng.normal(size=200)))
    for target in (0, len(log.arms) - 1, None, (0, len(log.arms) - 1)):
        for estimator in ("ips", "snips", "dr", "shrunk"):
            found = estimate(log, target, estimator, force=True)
            assert np.isfinite(found.ess)
            assert np.isnan([found.low, found.high]).all() == bool(found.refused)
            assert found.refused or found.low <= found.value <= found.high
