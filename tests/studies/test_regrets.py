"""The studies of regret: each runs at toy size, and says what it compares."""

import importlib

import pytest

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
