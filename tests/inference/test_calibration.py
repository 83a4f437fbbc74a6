"""Simulation-based calibration by `benchmarks/calibration.py`: its test of uniformity, and every
engine at the number of data sets that it should pass with. `test_ranks.py` has controls that fail.
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
calibration = import_module("calibration")
simulation = import_module("simulation")
uniformity = import_module("uniformity")

CASES = calibration.cases()
DATASETS = calibration.DATASETS | {"nuts": 100}


def named(case):
    return f"{case.kind}: {case.name}{', weighted' * case.weighted}"


def the(name):
    """The case of that name."""
    [case] = [case for case in CASES if named(case) == name]
    return case


def corrected(found, p_values):
    """The smallest p-value times the number of quantities and of cases (Bonferroni)."""
    return len(CASES) * len(found.names) * p_values.min()


@pytest.mark.slow
@pytest.mark.parametrize("n", [7, 40])
def test_the_p_value_is_a_probability(n, rng):
    """P(p ≤ an attained p) is that p: by 1500 simulations, within four standard errors."""
    p = np.array([uniformity.uniformity(rng.integers(0, 64, n)) for _ in range(1500)])
    for at in np.quantile(p, [0.05, 0.3, 0.6], method="lower"):
        assert abs((p <= at).mean() - at) < 4 * np.sqrt(at * (1 - at) / 1500)


def test_the_band_is_what_the_test_lets_pass(rng):
    low, high = uniformity.band(30, 0.1)
    outside = []
    for _ in range(300):
        ranks = rng.integers(0, 64, 30)
        counts = uniformity.below(ranks)
        left = bool(((counts < low) | (counts > high)).any())
        assert left == (uniformity.uniformity(ranks) <= 0.1)
        outside.append(left)
    assert 0 < sum(outside) < 60


@pytest.mark.parametrize("ranks", [np.zeros(50, int), np.full(50, 63), np.repeat([31, 32], 50)])
def test_ranks_of_one_kind_are_not_uniform(ranks):
    assert uniformity.uniformity(ranks) < 1e-9


@pytest.mark.slow
def test_the_same_seed_gives_the_same_ranks():
    case = the("exact_gaussian: hierarchical_ridge, weighted")
    told = []
    few = simulation.calibrate(case, 4, seed=1, tick=lambda: told.append(1))
    more = simulation.calibrate(case, 6, seed=1)
    assert len(told) == 4
    assert few.names[-4:] == [*(f"mean reward[{k}]" for k in range(3)), "log likelihood"]
    assert few.ranks.shape == (4, len(few.names)) == (4, 16)
    np.testing.assert_array_equal(few.ranks, more.ranks[:4])
    assert (few.ranks != simulation.calibrate(case, 4, seed=2).ranks).any()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=named)
def test_calibrated(case):
    """All engines being right, one of these fails with probability .05 at most, by the seed."""
    found = simulation.calibrate(case, DATASETS[case.kind])
    assert corrected(found, found.p_values) > calibration.LEVEL
    assert found.correlation < 0.1
