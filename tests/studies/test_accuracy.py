"""How well mean rewards are known: squared bias, variance, coverage, and bandits on their way; and
the studies of it, of balancing and of policy trees: what they declare, and their arithmetic."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.environments import SparseLinear, SyntheticExample
from bayesbandit_studies import balancing, smoothing
from bayesbandit_studies.accuracy import accuracy, pseudo_values, replayed, replays, root
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


@pytest.mark.parametrize("specification", ["well", "mis"])
def test_worlds_differ_by_the_logged_rounds_alone(specification):
    warm, cold = (
        next(w for w in balancing.WORLDS if type(w) is kind and w.specification == specification)
        for kind in (SyntheticExample, balancing.Cold)
    )
    one, other = (world.sample(9, np.random.default_rng(2)) for world in (warm, cold))
    for part in ("x", "mean", "reward", "test_x", "test_mean"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert (len(one.warm_arm), len(other.warm_arm)) == (50, 0)
    assert other.warm_x.shape == (0, cold.n_features)
    assert len({world.name for world in balancing.WORLDS}) == 4


def judged(values):
    """Of one world and arm, by bandit: pseudo-values, errors and coverage of two replications."""
    return pd.DataFrame(
        {"environment": "w", "bandit": name, "replication": i, "arm": 0, "squared_bias": value,
         "variance": 2 * value, "squared_error": 3 * value, "coverage": 0.5 + i / 4,
         "robust": 1.0}
        for name, row in values.items() for i, value in enumerate(row)
    )  # fmt: skip


def test_quality_by_hand():
    """Squared bias 4 ± 1: its root is 2, and √5 − 2 above that."""
    found = judged({"none": [3.0, 5.0]})
    (row,) = balancing.quality(found, balancing.PARTS).to_dict("records")
    assert row == {
        "bandit": "none", "bias, arm 0": "2.0000 ± 0.2361", "variance, arm 0": "8.0000 ± 2.0000",
    }  # fmt: skip
    (row,) = balancing.quality(found, balancing.ACCURACY).to_dict("records")
    assert (row["posterior, arm 0"], row["sandwich, arm 0"]) == ("62 ± 12", "100 ± 0")


def test_errors_are_paired(monkeypatch):
    monkeypatch.setattr(balancing, "PAIRS", [("kernel", "none")])
    frame = balancing.errors(judged({"none": [1.0, 5.0], "kernel": [2.0, 8.0]}))
    assert frame.to_dict("records") == [{"difference": "kernel − none", "w": "+6.00000 ± 3.00000"}]


@pytest.mark.slow
def test_estimates_are_of_every_world_and_bandit(monkeypatch):
    """New draws take the same number from each world, and are the same each time."""
    two = {name: balancing.BALANCES[name] for name in ("none", "decision")}
    monkeypatch.setattr(balancing, "BALANCES", two)
    monkeypatch.setattr(balancing, "WORLDS", balancing.WORLDS[1:3])
    rows = balancing.estimates.__wrapped__(3, 30)
    pd.testing.assert_frame_equal(rows, balancing.estimates.__wrapped__(3, 30))
    assert len(rows) == 2 * 2 * 2 * 3 * 3  # worlds, balances, floors, replications, arms
    assert set(rows["t"]) == {30}
    assert rows["coverage"].between(0.0, 1.0).all()


def test_a_tree_has_the_outcome_model_of_the_bandit_that_it_smooths():
    """So that the tree alone is between them."""
    made = {name: factory(3, 2, seed=0) for name, factory in smoothing.PLAYERS.items()}
    assert made["PolicyTreeTS"].spec.base == made["LinTS"].spec
    ucb = made["LinUCB"].spec
    assert (ucb.ridge, ucb.intercept) == (made["LinTS"].spec.ridge, made["LinTS"].spec.intercept)


def test_what_is_compared_is_estimated():
    assert {name for pair in smoothing.ABOVE for name in pair} == set(smoothing.ESTIMATORS)
    for name in smoothing.ESTIMATORS:
        assert name.removesuffix(smoothing.MODEL) in smoothing.PLAYERS


def spread_of(values):
    """Pseudo-values of two replications and arms after 9 rounds of one design."""
    return pd.DataFrame(
        {"environment": "w", "estimator": name, "t": 9, "replication": i, "arm": arm,
         "variance": value, "squared_bias": 0.0}
        for name, rows in values.items() for i, row in enumerate(rows)
        for arm, value in enumerate(row)
    )  # fmt: skip


def test_spread_by_hand():
    frame = smoothing.spread(spread_of({"LinTS": [[1.0, 2.0], [3.0, 2.0]]}), "variance")
    assert frame.to_dict("records") == [
        {"estimator": "LinTS", "arm 0, t = 9": "2.0000 ± 1.0000", "arm 1, t = 9": "2.0000 ± 0.0000"}
    ]


def test_what_is_above_is_paired_and_of_all_arms(monkeypatch):
    monkeypatch.setattr(smoothing, "ABOVE", [("PolicyTreeTS", "LinTS")])
    values = {"LinTS": [[1.0, 3.0], [5.0, 7.0]], "PolicyTreeTS": [[2.0, 4.0], [8.0, 10.0]]}
    frame = smoothing.above(spread_of(values), "variance")  # 3 − 2 and 9 − 6
    assert frame.to_dict("records") == [
        {"difference": "PolicyTreeTS − LinTS", "w, t = 9": "+2.000 ± 1.000"}
    ]


@pytest.mark.slow
def test_an_outcome_model_has_learned_of_the_trees_rounds(monkeypatch):
    """Of one design and 24 rounds: neither the leaves' means nor the linear bandit's, though the
    same rounds came to both."""
    monkeypatch.setattr(smoothing, "DESIGNS", smoothing.DESIGNS[1:2])
    rows = smoothing.estimates.__wrapped__(3, 24)
    assert set(rows["t"]) == {12, 24}
    error = rows[rows["t"] == 24].groupby("estimator")["squared_error"].mean()
    assert len({round(error[name], 12) for name in smoothing.ESTIMATORS}) == 6
    assert np.isfinite(error).all()


@pytest.mark.parametrize(("horizon", "times"), [(1, (1, 1)), (40, (20, 40)), (2000, (200, 2000))])
def test_early_is_before_the_end(horizon, times):
    table = pd.DataFrame({"replication": [0], "t": [horizon]})
    assert replayed(table, smoothing.REPLAYED) == (replays(1, smoothing.REPLAYED), horizon, 0)
    assert smoothing._times(horizon) == times
