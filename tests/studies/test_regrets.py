"""The studies of regret: each runs at toy size, says what it compares, and is the same table in one
process, in several and on a cluster."""

import importlib
from dataclasses import replace

import joblib
import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import bayesbandit as bb
from bayesbandit_studies import lasso_controls, smoothing, table1
from tests.cases import long_but
from tests.commands import run

STUDIES = ("lasso_ridge", "nonparametric", "bayesian_lasso", "smoothing", "balancing")


@pytest.mark.parametrize("name", [*STUDIES, "lasso_controls"])
def test_pairs_are_of_players(name):
    study = importlib.import_module(f"bayesbandit_studies.{name}")
    players = set(study.STUDY.players)
    for one, other in getattr(study, "PAIRS", []):
        assert {one, other} <= players


@pytest.mark.slow
@pytest.mark.parametrize(  # nonparametric has the players of lasso_ridge
    "name", long_but(("nonparametric", "bayesian_lasso"), STUDIES)
)
def test_reproduce_writes_its_table_and_pictures(name, tmp_path, monkeypatch):
    study = importlib.import_module(f"bayesbandit_studies.{name}")
    monkeypatch.setitem(study.STUDY.quick, "horizon", 40)
    for small, value in (("SIGMAS", (0.1,)), ("LAMS", (1.0,)), ("SIZES", (50,)), ("FIRST", 20)):
        if hasattr(study, small):
            monkeypatch.setattr(study, small, value)
    if name == "lasso_ridge":
        monkeypatch.setitem(study.STUDY.quick, "environments", study.STUDY.environments[:1])
    if name == "bayesian_lasso":
        monkeypatch.setitem(study.STUDY.quick, "players", study.players())
    result = run("reproduce", name, "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    folder = tmp_path / f"{name}-quick"
    text = (folder / "table.md").read_text()
    assert "2 simulations of 40 rounds" in text
    if hasattr(study, "estimates"):  # which rest on replications of their own
        assert "± SE, 3 replications" in text
    for player in study.STUDY.small().players:
        assert player in (folder / "table.csv").read_text()
    assert (folder / "regret.png").stat().st_size > 10_000


def test_rewards_are_learned_in_steps():
    """After 3 rounds of an arm and every 20 more; then the bandit is one that saw all of them."""
    rng, steps = np.random.default_rng(0), lasso_controls.in_steps(("a",), 2, seed=0)
    whole = bb.LinTS(("a",), 2, seed=0)
    learned = []
    for _ in range(45):
        x, reward = rng.normal(size=2), float(rng.normal())
        steps.observe(steps.choose(x), reward)
        whole.update(x[None], ["a"], [reward], propensity=[1.0])
        learned.append(len(steps.bandit.history))
        if learned[-1] == len(whole.history):
            mean = steps.bandit.belief.predict(x[None]).mean
            np.testing.assert_allclose(mean, whole.belief.predict(x[None]).mean, rtol=1e-12)
    assert learned == [0] * 2 + [3] * 20 + [23] * 20 + [43] * 3


def small(study=table1):
    return replace(study.STUDY.small(), horizon=100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", long_but([table1], [table1, smoothing]), ids=["table1", "smoothing"]
)
def test_processes_and_a_cluster_give_the_table_of_one_process(study):
    from distributed import Client, LocalCluster

    def table(jobs):
        made = small(study)
        return made.table(made.experiment(replications=2).run(jobs, progress=False))

    one = table(1)
    assert_frame_equal(table(2), one)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert_frame_equal(table(-1), one)
