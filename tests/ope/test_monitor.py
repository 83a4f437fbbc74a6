"""A monitor tells what `evaluate` tells of the rounds so far, and refuses what is no round."""

import numpy as np
import pytest

from bayesbandit.ope import Log, Monitor, evaluate


def rounds(chances, n, seed=6):
    """Arms, rewards of 0 and 1, and probabilities of n rounds by chance."""
    rng = np.random.default_rng(seed)
    K = len(chances)
    p = np.full((n, K), 1 / K)
    arm = rng.integers(K, size=n)
    return arm, (rng.random(n) < np.array(chances)[arm]).astype(float), p


def told(monitor, arm, reward, p):
    for one in zip(arm.tolist(), reward, p, strict=True):
        monitor.add(*one)
    return monitor


@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_it_tells_what_the_log_tells(bounds):
    arm, reward, p = rounds([0.2, 0.5, 0.2], 200)
    monitor = told(Monitor(3, planned=400, bounds=bounds), arm, reward, p)
    result = evaluate(
        Log(None, arm, reward, p), [0, 1, 2], mean="arm", planned=400,
        sequence=bounds or "asymptotic",
    )  # fmt: skip
    found = monitor.evaluation()
    np.testing.assert_array_equal(found.table["estimate"], result.table["estimate"])
    np.testing.assert_array_equal(found.sequence, result.sequence)
    np.testing.assert_allclose(monitor.p, result.best().p, rtol=1e-12)
    assert monitor.best() == result.best().policy


def test_it_stops_at_the_best_arm_and_not_before_there_is_evidence():
    monitor = Monitor(["a", "b"], planned=1_000)
    assert monitor.best() is None
    arm, reward, p = rounds([0.2, 0.6], 400)
    names = np.array(["a", "b"])[arm]
    told(monitor, names[:119], reward[:119], p[:119])
    assert monitor.best() is None
    told(monitor, names[119:], reward[119:], p[119:])
    assert monitor.best() == "b"
    assert repr(monitor) == "Monitor(400 of 1000 rounds, best='b')"


@pytest.mark.parametrize("bounds", [(0, np.inf), (1, 0), ("a", "b"), (0, 1, 2), 1])
def test_bounds_are_finite_numbers(bounds):
    with pytest.raises(ValueError, match=r"bounds must be .*finite number"):
        Monitor(2, planned=500, bounds=bounds)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (("c", 1.0, [0.5, 0.5]), "a round's arm must be among"),
        ((["a"], 1.0, [0.5, 0.5]), "a round's arm must be among"),
        (("a", 2.0, [0.5, 0.5]), "rewards must lie within"),
        (("a", np.nan, [0.5, 0.5]), "reward must be"),
        (("a", 1.0, [1.0, 0.0]), "probabilities must be"),
        (("a", 1.0, [0.5, 0.4]), "sum to 1"),
    ],
)
def test_what_is_no_round_is_refused_and_changes_nothing(one, said):
    monitor = Monitor(["a", "b"], planned=500, bounds=(0, 1))
    with pytest.raises(ValueError, match=said):
        monitor.add(*one)
    assert monitor.t == 0
