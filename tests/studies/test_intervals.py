"""Intervals against the truth: what is counted, and who is asked."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.environments import SyntheticExample
from bayesbandit_studies.intervals import Beliefs, after_runs, intervals
from bayesbandit_studies.tables import with_errors
from bayesbandit_studies.worlds import Linear

KNOWN = {"variance": 1.0, "ridge": 1.0, "intercept": False}
WORLD = Linear(np.zeros((2, 3)), spread=1.0, constant=True)


def test_by_hand():
    """Errors of two runs at one context: 1 and 3 for arm a, 0 and −1 for arm b."""
    mean = np.array([[[1.0, 0.0]], [[3.0, -1.0]]])
    pulls = np.array([[3, 1], [5, 1]])
    beliefs = Beliefs(mean, np.ones_like(mean), np.zeros_like(mean), pulls)
    found = intervals(beliefs, arms=["a", "b"], levels=[0.95])
    a, b = found.loc["a"], found.loc["b"]
    assert a["pulls"] == 4
    assert (a["bias"], a["bias_se"]) == (2.0, 1.0)
    assert a["actual_sd"] == pytest.approx(np.sqrt(2.0))
    assert a["rmse"] == pytest.approx(np.sqrt(5.0))
    assert a["claimed_sd"] == 1.0
    assert (a["95%"], b["95%"]) == (50.0, 100.0)
    whole = intervals(beliefs, arms=[], levels=[0.95])
    assert whole["95%"].tolist() == [75.0]
    other = Beliefs(np.full_like(mean, 2.0), np.ones_like(mean), np.zeros_like(mean), pulls)
    gaps = intervals(beliefs, arms=["a", "b"], beside=other)
    assert (gaps.loc["a", "mse_above"], gaps.loc["a", "mse_above_se"]) == (1.0, 4.0)
    assert gaps.loc["b", "mse_above"] == -3.5
    long = np.zeros((2, 3, 2))
    with pytest.raises(ValueError, match=r"beside must be of \(2, 1, 2\); got \(2, 3, 2\)"):
        intervals(beliefs, beside=Beliefs(long, long, long, pulls))
    with pytest.raises(ValueError, match=r"each of levels .* got 95"):
        intervals(beliefs, levels=[95])
    with pytest.raises(ValueError, match="2 different names"):
        intervals(beliefs, arms=["a", "a"])
    assert "97.5%" in intervals(beliefs, levels=[0.975])
    shifted = intervals(beliefs, truth=[[1.0, 0.0]], arms=["a", "b"])
    assert shifted.loc["a", "bias"] == 1.0


def test_one_arm_of_each_run_and_some_contexts():
    mean = np.arange(12.0).reshape(2, 3, 2)
    beliefs = Beliefs(mean, mean + 1, mean + 2, np.array([[1, 2], [3, 4]]))
    rare = beliefs.of_arm([1, 0])
    assert rare.mean[:, :, 0].tolist() == [[1, 3, 5], [6, 8, 10]]
    assert rare.pulls.tolist() == [[2], [3]]
    assert beliefs.at([2]).truth.tolist() == [[[6, 7]], [[12, 13]]]


def test_they_believe_what_bb_fit_finds_in_their_rounds():
    found = after_runs({"TS": partial(bb.LinTS, **KNOWN)}, WORLD, 2, 40)["TS"]
    sample = WORLD.sample(40, np.random.default_rng([0, 1]))
    bandit = bb.LinTS(2, 3, seed=np.random.SeedSequence([0, 1, 1]), **KNOWN)
    bandit.play(sample.x, sample.reward)
    past = bandit.history
    assert found.pulls[1].tolist() == [(past.arm == k).sum() for k in (0, 1)]
    for k in (0, 1):
        own = past.arm == k
        precision = np.eye(3) + past.x[own].T @ past.x[own]
        theta = np.linalg.solve(precision, past.x[own].T @ past.reward[own])
        np.testing.assert_allclose(found.mean[1, :, k], theta)
        sd = np.sqrt(np.diag(np.linalg.inv(precision)))
        np.testing.assert_allclose(found.sd[1, :, k], sd)
    np.testing.assert_array_equal(found.truth[1], sample.test_mean)


def test_a_log_is_of_the_bandit_that_made_it():
    """The same rounds for all; without weights, the same belief as if one had played oneself."""
    players = {"same": partial(bb.LinTS, **KNOWN), "weighed": partial(bb.BLTS, **KNOWN)}
    own = after_runs(players, WORLD, 3, 40)
    given = after_runs(players, WORLD, 3, 40, log_of=players["same"])
    np.testing.assert_allclose(given["same"].mean, own["same"].mean)
    np.testing.assert_array_equal(given["weighed"].pulls, own["same"].pulls)
    assert not np.allclose(given["weighed"].mean, given["same"].mean)


def test_the_truth_is_asked_for_where_it_is_not_known():
    x = np.zeros((1, 2))
    world = SyntheticExample("mis", n_test=3)
    found = after_runs({"TS": bb.LinTS}, world, 2, 20, x=x)["TS"]
    assert found.pulls.sum(axis=1).tolist() == [20, 20]  # no warm start
    with pytest.raises(ValueError, match="truth is not known at your contexts"):
        intervals(found)
    intervals(found, truth=[[2.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match="3 different names, or none; got"):
        intervals(found, truth=[[2.0, 1.0, 0.0]], arms=["a"])
    with pytest.raises(ValueError, match="at least 2 runs; got 1"):
        intervals(after_runs({"TS": bb.LinTS}, world, 1, 20)["TS"])
    with pytest.raises(ValueError, match="has no test contexts"):
        after_runs({"TS": bb.LinTS}, bb.environments.NonLinear(), 1, 20)


def test_columns_with_their_errors():
    frame = pd.DataFrame({"n": [3], "a": [1.234], "a_se": [0.1], "b": [2.0], "c_se": [0.5]})
    read = with_errors(frame, {"a": 1})
    assert read.iloc[0].tolist() == [3, "1.2 ± 0.1", "2.00", "0.50"]
    assert list(read) == ["n", "a", "b", "c_se"]


@pytest.mark.slow
def test_a_right_belief_holds_the_truth_as_often_as_it_says():
    """2,000 runs, truths from the prior: also of the arm that Thompson sampling played least."""
    found = after_runs({"TS": partial(bb.LinTS, **KNOWN)}, WORLD, 2000, 60)["TS"]
    for beliefs in (found, found.of_arm(found.pulls.argmin(axis=1))):
        table = intervals(beliefs, arms=[])
        for level in ("50%", "80%", "95%"):
            wanted, se = float(level[:-1]), table[f"{level}_se"].item()
            assert abs(table[level].item() - wanted) < 4 * se
