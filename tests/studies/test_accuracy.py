"""How well mean rewards are known: squared bias, variance, coverage, and bandits on their way."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.environments import SparseLinear, SyntheticExample
from bayesbandit_studies.accuracy import accuracy, pseudo_values, replays, root
from bayesbandit_studies.stops import stops


def test_by_hand():
    """Errors 1, 2 and 6: mean 3, variance 7; without the third, 1.5 and .5."""
    found = accuracy(np.array([[[11.0]], [[12.0]], [[16.0]]]), np.array([[10.0]]))
    means = found.mean()
    assert means["squared_error"] == pytest.approx(41 / 3)
    assert means["variance"] == pytest.approx(7.0)
    assert means["squared_bias"] == pytest.approx(9 - 7 / 3)
    third = found.iloc[2]
    assert third["variance"] == pytest.approx(3 * 7 - 2 * 0.5)
    assert third["squared_bias"] == pytest.approx(3 * (9 - 7 / 3) - 2 * (1.5**2 - 0.25))
    assert np.isnan(found["coverage"]).all()


def test_squared_error_is_squared_bias_and_variance(rng):
    estimated, truth = rng.normal(1.0, 2.0, (7, 4, 3)), rng.normal(size=(4, 3))
    means = accuracy(estimated, truth).groupby("arm").mean()
    parts = means["squared_bias"] + means["variance"]
    np.testing.assert_allclose(means["squared_error"], parts, rtol=1e-12)
    variance = estimated.var(axis=0, ddof=1).mean(axis=0)
    np.testing.assert_allclose(means["variance"], variance, rtol=1e-12)


def test_pseudo_values_of_a_mean_are_the_values(rng):
    values = rng.normal(size=(6, 5, 2))
    found = pseudo_values(lambda some: some.mean(axis=(0, 1)), values)
    np.testing.assert_allclose(found, values.mean(axis=1), rtol=0, atol=1e-12)


def test_coverage_is_the_share_of_contexts_with_the_truth_inside():
    estimated = np.zeros((3, 4, 1)) + np.array([0.0, 1.95, -1.97, 5.0])[:, None]
    found = accuracy(estimated, np.zeros((4, 1)), np.ones_like(estimated))
    assert found["coverage"].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("estimated", "sd", "words"),
    [
        (np.zeros((2, 4, 3)), None, "at least 3 replications; got 2"),
        (np.zeros((3, 4, 2)), None, "shapes differ"),
        (np.zeros((3, 4, 3)), np.zeros((3, 4, 1)), "shapes differ"),
    ],
)
def test_what_cannot_be_judged_is_refused(estimated, sd, words):
    with pytest.raises(ValueError, match=words):
        accuracy(estimated, np.zeros((4, 3)), sd)


def test_roots_by_hand():
    assert root(4.0, 0.0) == (2.0, 0.0)
    assert root(4.0, 0.04)[1] == pytest.approx(0.04 / 4, rel=0.01)
    assert root(-0.1, 0.04) == (0.0, 0.2)


def test_replays_are_enough_for_the_jackknife_and_no_more_than_wanted():
    assert [replays(n, 20) for n in (1, 3, 15, 40)] == [3, 3, 15, 20]


def test_a_bandit_that_is_stopped_on_its_way_goes_on_as_if_it_were_not(rng):
    world = SyntheticExample("well", n_test=1)
    sample = world.sample(60, rng)
    found = [
        (bandit.belief.n.sum(), bandit.belief.predict(sample.x).mean)
        for bandit in stops(bb.BLTS, world, sample, (7, 20, 60), 3)
    ]
    ((n, mean),) = [
        (bandit.belief.n.sum(), bandit.belief.predict(sample.x).mean)
        for bandit in stops(bb.BLTS, world, sample, [60], 3)
    ]
    assert [rounds for rounds, _ in found] == [57, 70, 110]  # with the 50 of the warm start
    assert n == 110
    np.testing.assert_array_equal(found[-1][1], mean)


@pytest.mark.parametrize("rounds", [(5, 5), (9, 3), (4, 11), (0, 4)])
def test_rounds_grow_within_the_sample(rounds, rng):
    world = SparseLinear(d=2, q=0)
    with pytest.raises(ValueError, match="rounds"):
        list(stops(bb.LinTS, world, world.sample(10, rng), rounds, 0))
