"""Simulated experiments: numbers that depend on the seed alone, and refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit.ope import estimate, power
from bayesbandit.ope.power import Arms, simulated

MEANS = {"a": 0.2, "b": 0.6, "c": 0.3}
SMALL = {
    "min_probabilities": (0.05, 0.2), "horizons": (100, 200), "replications": 3, "batch": 20,
    "progress": False,
}  # fmt: skip


def test_numbers_depend_on_the_seed_alone():
    found = power(MEANS, **SMALL)
    assert (found.one, found.other) == ("b", "c")
    assert found.difference == pytest.approx(0.3)
    more = power(MEANS, **SMALL | {"replications": 4})
    assert_frame_equal(more.runs[more.runs["replication"] < 3], found.runs)
    longer = power(MEANS, **SMALL | {"horizons": (300, 100), "min_probabilities": (0.2,)}).runs
    same = (found.runs["min_probability"] == 0.2) & (found.runs["horizon"] == 100)
    rows = found.runs[same].reset_index(drop=True)
    assert_frame_equal(longer[longer["horizon"] == 100].reset_index(drop=True), rows)
    other = power(MEANS, **SMALL | {"seed": 1})
    assert not np.allclose(other.table["lost"], found.table["lost"])


@pytest.mark.slow
def test_processes_change_no_number():
    assert_frame_equal(power(MEANS, **SMALL).runs, power(MEANS, **SMALL, jobs=2).runs)


def test_by_hand():
    """The table has means and standard errors of runs; a run is one log, estimated."""
    found = power(MEANS, **SMALL, against=("c", "a"))
    assert (found.one, found.other) == ("c", "a")
    cell = found.runs[(found.runs["min_probability"] == 0.05) & (found.runs["horizon"] == 200)]
    row = found.table.iloc[1]
    assert (row["min_probability"], row["horizon"]) == (0.05, 200)
    assert row["lost"] == pytest.approx(cell["lost"].mean())
    assert row["lost_se"] == pytest.approx(cell["lost"].std() / np.sqrt(3))
    assert row["width"] == pytest.approx(cell["width"].mean())
    # 160 rounds that explore beyond the floor lose .4 or .3 at most, and the floor .05 × .7
    assert 0.05 * 0.7 * 200 * 0.5 < row["lost"] < 0.4 * 200


def test_power_has_a_side():
    sure = power({"a": 0.0, "b": 5.0}, noise=1.0, **SMALL)
    assert (sure.table["power"] == 1).all()
    assert (sure.table["wrong"] == 0).all()
    back = power({"a": 0.0, "b": 5.0}, noise=1.0, against=("a", "b"), **SMALL)
    assert back.difference == -5.0
    assert (back.table["power"] == 1).all()
    assert (back.table[["width", "lost"]] == sure.table[["width", "lost"]]).all(axis=None)
    assert (sure.table["always"] == [0, 1, 0, 1]).all()  # no verdict before round 120


def test_without_a_floor_nothing_is_told():
    table = power(
        MEANS, bb.LinUCB, **SMALL | {"min_probabilities": (0,)}
    ).table  # refused, as Unsupported
    assert (table["refused"] == 1).all()
    assert (table["power"] == 0).all()


def test_a_log_is_what_the_bandit_did():
    world = Arms({"a": 0.0, "b": 1.0}, noise=0.5)
    sample = world.sample(50, np.random.default_rng(0))
    bandit = bb.LinTS(world.arms, 0, seed=3, min_probability=0.1)
    log = simulated(bandit, sample, 20)
    assert np.bincount(log.batch.astype(int)).tolist() == [20, 20, 10]
    np.testing.assert_array_equal(log.arm, bandit.history.arm)
    np.testing.assert_allclose(log.propensity, bandit.history.propensity, rtol=1e-12)
    np.testing.assert_array_equal(log.reward, sample.reward[np.arange(50), log.played])
    assert estimate(log, ("b", "a")).value > 0


def test_warm_rounds_are_learned():
    world = bb.environments.SyntheticExample(n_test=1)
    sample = world.sample(20, np.random.default_rng(0))
    bandit = bb.LinTS(world.arms, world.n_features, min_probability=0.1)
    assert len(simulated(bandit, sample, 10)) == 20
    assert len(bandit.history) == 20 + len(sample.warm_arm)


@pytest.mark.parametrize(
    ("world", "settings", "said"),
    [
        ({"a": 0.5}, {}, "two arms or more"),
        ({"a": 0.5, "b": 1.5}, {}, "mean reward of 'b'"),
        ({"a": 0.5, "b": np.nan}, {"noise": 1.0}, "mean reward of 'b'"),
        (MEANS, {"noise": 0.0}, "noise"),
        (
            MEANS,
            {"min_probabilities": (0.5,)},
            "each of min_probabilities must be",
        ),
        (MEANS, {"min_probabilities": (-0.1,)}, "each of min_probabilities"),
        (MEANS, {"min_probabilities": ()}, "one or more different numbers"),
        (MEANS, {"horizons": (100, 100)}, "one or more different numbers"),
        (MEANS, {"horizons": (1,)}, "a horizon must be an integer ≥ 2"),
        (MEANS, {"against": "b"}, "must be another arm than the best, 'b'"),
        (MEANS, {"against": "z"}, "against must be one of 'a', 'b', 'c'; got 'z'"),
        (MEANS, {"against": ("a", "z")}, "against must be one of 'a', 'b', 'c'; got 'z'"),
        (MEANS, {"replications": 1}, "replications must be an integer ≥ 2"),
        (MEANS, {"jobs": 0}, "jobs"),
        (MEANS, {"level": 1.0}, "level"),
        (MEANS, {"batch": 0}, "batch"),
        ([0.1, 0.2], {}, "an environment, or mean rewards by arm"),
        (MEANS, {"bandit": bb.LinTS(2, 1)}, "not callable"),
        (MEANS, {"bandit": lambda arms, d, seed: None}, "min_probability"),
        (MEANS, {"bandit": partial(bb.LinTS, alfa=1)}, "alfa"),
        (bb.environments.bundled("iris"), {"horizons": (10_000,)}, "iris has 150 rounds"),
        (bb.environments.bundled("iris"), {"noise": 1.0}, "an environment has its own"),
        (
            bb.environments.Linear(np.zeros((2, 1)), spread=1.0, constant=True),
            {},
            "linear has other mean rewards in every sample",
        ),
    ],
)
def test_bad_input_gets_a_sentence(world, settings, said):
    with pytest.raises((ValueError, TypeError), match=said):
        power(world, **SMALL | settings)


def test_prints():
    text = repr(power(MEANS, **SMALL))
    assert text.startswith("Power('b' − 'c' = 0.3, 3 replications)\n")
    assert isinstance(power(MEANS, **SMALL).table, pd.DataFrame)


def test_nothing_is_found_of_equal_arms():
    found = power({"a": 0.5, "b": 0.5}, **SMALL | {"level": 0.2, "replications": 8})
    table = found.table
    assert (table[["power", "always"]] == 0).all(axis=None)
    np.testing.assert_allclose(table["wrong"], 1 - table["coverage"])
    assert table["wrong"].max() > 0.5
