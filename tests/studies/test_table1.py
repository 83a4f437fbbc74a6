"""Table 1: its declaration, its arithmetic, and (slow) what it shows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit_studies import table1
from bayesbandit_studies.tables import share
from tests.cases import long_but
from tests.commands import run


def test_the_papers_four_are_among_the_controls_and_in_their_grids():
    described = table1.CONTROLS.experiment().describe()["bandits"]
    assert table1.STUDY.experiment().describe()["bandits"].items() <= described.items()
    for name in table1.FOUR:
        setting = {"alpha": 1.0} | ({"clip": 0.2} if name.startswith("BL") else {})
        assert described[table1.cell(name, setting)] == described[name]
        assert "ridge='cv'" in str(described[name])
    compared = {label for pair in table1.PAIRS for label in pair}
    assert compared <= set(table1.bandits())


@pytest.mark.slow
def test_shares_by_hand():
    end = runs({"LinTS": [1, 1, 1, 0]}).assign(environment="synthetic-well", t=10, regret=100.0)
    found = pd.concat([end.assign(t=5, regret=50.0, optimal=False), end])
    table = table1.table(found).iloc[0]
    assert table["optimal"] == 75.0
    assert table["optimal_se"] == pytest.approx(100 * np.sqrt(0.75 * 0.25 / 4))
    assert table["paper"] == 84
    assert table["first_round"] == 10
    assert table["regret"] == pytest.approx(100.0)
    assert table1.printed(table1.table(found))["well (%)"].tolist() == ["75 ± 22"]


def runs(optimal):
    """A table of one checkpoint: for each bandit, where it is at the optimum."""
    return pd.DataFrame(
        {"environment": "synthetic-mis", "bandit": bandit, "replication": i, "t": 9, "reward": 0.0,
         "regret": 1.0, "propensity": 1.0, "value": 1.0, "agreement": 0.5, "optimal": bool(found)}
        for bandit, row in optimal.items() for i, found in enumerate(row)
    )  # fmt: skip


@pytest.mark.slow
def test_the_best_of_a_grid_is_chosen_on_one_half_and_shown_on_the_other():
    found = runs({
        "LinTS, α = 0.25": [1, 0, 1, 0, 1, 0], "LinTS, α = 0.5": [0, 1, 0, 1, 0, 1],
        "LinTS": [1, 1, 0, 0, 0, 0],  # α = 1
    })  # fmt: skip
    best = table1.table(found).set_index("bandit").loc["LinTS, best of 3 (half)"]
    assert (best["setting"], best["optimal"], best["simulations"]) == ("LinTS, α = 0.25", 0.0, 3)
    shown = table1.printed(table1.table(found))
    assert shown["bandit"].tolist() == ["LinTS", "LinTS, best of 3 (half)"]
    assert shown["mis (%)"].iloc[1] == "0 (≤ 56)"  # Wilson's limit for 0 of 3


@pytest.mark.parametrize("replications", [1, 2])
def test_one_simulation_has_no_halves(replications):
    found = runs({"LinTS, α = 0.25": [1, 0], "LinTS, α = 0.5": [0, 1], "LinTS": [1, 1]})
    table = table1.table(found[found["replication"] < replications])
    assert ("LinTS, best of 3 (half)" in set(table["bandit"])) == (replications > 1)
    assert len(table1.printed(table)) == replications


def test_differences_are_paired():
    found = runs({"BLTS": [1, 1, 1, 0], "LinTS": [1, 0, 0, 0], "LinUCB": [0, 0, 0, 0]})
    (frame,) = table1.details(found).values()
    rows = dict(frame.itertuples(index=False))
    assert rows == {"LinTS − LinUCB": "+25.0 ± 25.0", "BLTS − LinTS": "+50.0 ± 28.9"}


TEXTS = {
    "0 (≤ 28)": share(0, 10),  # Wilson's limits of 0 of 10: 0 and .2775
    "100 (≥ 72)": share(10, 10),
    "25 ± 12": share(3, 12),
    "0.5 ± 0.5": share(1, 200, digits=1),
    "99.8 ± 0.2": share(399, 400),  # near an end is not the end
    "0.01 ± 0.01": share(1, 10_000),
}


def test_shares_with_their_errors_are_never_lost_nor_endless():
    assert {text: text for text in TEXTS} == TEXTS
    assert share(0, 0) == "–"


@pytest.mark.slow
@pytest.mark.parametrize("some", long_but([True], [True, False]), ids=["two", "all"])
def test_reproduce_prints_ours_beside_the_papers(some, tmp_path, monkeypatch):
    monkeypatch.setitem(table1.STUDY.quick, "horizon", 100)
    if some:
        two = {name: table1.bandits()[name] for name in ("BLTS", "BLTS, mean 1")}
        monkeypatch.setattr(table1, "bandits", lambda: two)
        study = replace(table1.CONTROLS, players=two)
        monkeypatch.setattr("bayesbandit.cli.reproduce.load", lambda _: study)
        monkeypatch.setattr(table1, "FOUR", {"BLTS": bb.BLTS})
    result = run("reproduce", "table1_controls", "--quick", "--replications", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "table1_controls-quick" / "table.md").read_text()
    assert "| BLTS " in text
    assert "mean 1" in text
    assert "2 simulations of 100 rounds" in text
    assert (tmp_path / "table1_controls-quick" / "optimal_share.png").exists()


@pytest.mark.slow
@pytest.mark.long
def test_the_ordering_of_the_paper_appears_and_so_does_the_control():
    """Well specified, 60 simulations: BLTS > LinTS > LinUCB by more than two standard errors of a
    difference (≈ 8.5 points at most), and LinTS at a third of λ does as well as BLTS at λ."""
    from bayesbandit import Experiment
    from bayesbandit.environments import SyntheticExample

    names = ["LinTS", "LinUCB", "BLTS", "LinTS, grid ÷ 3", "BLTS, mean 1"]
    bandits = {name: table1.bandits()[name] for name in names}
    results = Experiment([SyntheticExample("well")], bandits, 10_000, 60, seed=1).run(jobs=2)
    share = table1.table(results).set_index("bandit")["optimal"]
    assert share["BLTS"] > share["LinTS"] + 17 > share["LinUCB"] + 17
    assert abs(share["LinTS, grid ÷ 3"] - share["BLTS"]) < 17
    assert share["BLTS, mean 1"] < share["BLTS"] - 17
