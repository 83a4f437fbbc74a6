"""The studies of data sets, with matched controls and without: settings, and protocols by hand."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit_studies import openml
from bayesbandit_studies import openml_controls as controls
from tests.commands import run


def labels():
    """The settings of all members, for each reading of the noise."""
    members = (cells for noise in openml.NOISE for cells in openml.members(noise).values())
    return {label for cells in members for label in cells}


def test_all_that_is_compared_is_played():
    assert labels() == set(openml.STUDY.small().experiment().describe()["bandits"])


SEEDED = {
    "draws of a setting": lambda i, key: openml.reseeded(bb.LinTS, (i,), 3, 2, key),
    "cells of a grid": lambda i, key: controls.labelled(bb.LinTS, f"cell {i}")(3, 2, key),
}


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
def test_bandits_of_one_stream_differ_in_their_random_numbers_alone(make):
    x, reward = np.random.default_rng(0).normal(size=(60, 2)), np.eye(3)[np.arange(60) % 3]
    key = np.random.SeedSequence(7, spawn_key=(1,))
    one, two, again = (make(i, key) for i in (1, 2, 1))
    assert repr(one) == repr(two) == repr(bb.LinTS(3, 2))
    first = one.play(x, reward)[0]
    assert not np.array_equal(first, two.play(x, reward)[0])
    np.testing.assert_array_equal(first, again.play(x, reward)[0])


@pytest.mark.parametrize(("work", "rounds"), [(10**8, 150), (10**4, 133), (2_000, 27)])
def test_long_sets_are_cut(work, rounds, monkeypatch):
    """iris: 150 rows, 3 classes, 4 features: K D² = 75 a round."""
    monkeypatch.setattr(openml, "WORK", work)
    monkeypatch.setattr(openml, "SHORTEST", 27 if work == 2_000 else 100)
    iris, rng = openml.Cut(bb.environments.bundled("iris")), np.random.default_rng(0)
    assert len(iris.sample(None, rng).x) == rounds
    assert len(iris.sample(20, rng).x) == 20
    whole = iris.environment.sample(None, np.random.default_rng(3)).x[:rounds]
    np.testing.assert_array_equal(iris.sample(None, np.random.default_rng(3)).x, whole)


def results(regrets, players, step=0.0):
    """One checkpoint of 10 rounds for each of two replications, the second with `step` more regret.

    regrets: {environment: {player: regret}}; all other players' is 9.
    """
    rows = [
        {"environment": environment, "bandit": name, "replication": r, "t": 10,
         "regret": (lost := float(told.get(name, 9)) + step * r), "reward": 10 - lost,
         "propensity": 1.0, "value": np.nan, "agreement": np.nan, "optimal": False}
        for environment, told in regrets.items() for name in players for r in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_the_best_of_a_grid_is_the_sets_own_and_a_fixed_setting_the_other_sets():
    first, second = "LinTS, α = 0.25, rss/n", "LinTS, α = 1, rss/n"
    told = {"a": {first: 1, second: 2}, "b": {first: 4, second: 3}, "b (2)": {first: 8, second: 7}}
    runs = results(told, sorted(labels()))

    def regret(protocol):
        found = openml.chosen(runs, openml.members("rss/n"), protocol)
        mine = found[(found["bandit"] == "LinTS") & (found["replication"] == 0)]
        return mine.set_index("environment")["regret"].to_dict()

    assert regret("best of the grid") == {"a": 1, "b": 3, "b (2)": 7}
    assert regret("fixed settings") == {"a": 2, "b": 4, "b (2)": 8}  # versions of b are one half
    table = openml.table(runs)
    pair = table[(table["row"] == "LinTS") & (table["column"] == "BLTS")].set_index(
        ["noise", "protocol"]
    )
    assert pair.loc[("rss/n", "best of the grid"), "smaller"] == 3
    assert pair.loc[("rss", "best of the grid"), "smaller"] == 0
    shown = openml.printed(table).set_index("pair")
    assert shown.loc["BLTS – LinTS", "paper (of 300)"] == "233–58"
    assert shown.loc["BLTS – LinTS", "best of the grid, rss/n (of 3)"] == "0–3 (0–0)"


def test_the_null_has_as_many_cells_as_blts():
    for reading in controls.READINGS:
        cells = controls.settings(reading)
        assert len(cells["BLTS"]) == len(cells[controls.NULL])


@pytest.mark.slow
def test_counts_and_gains_by_hand():
    reading = "RSS/n, floor 1e-2"
    low, same = f"BLTS, α = 0.5, γ = 0.1, {reading}", f"LinTS, α = 1, {reading}"
    told = {"a": {low: 3, same: 5}, "b": {low: 7, same: 5}, "c": {low: 1}}
    runs = results(told, controls.players(), step=0.1)
    table = controls.table(runs)
    row = table[(table["reading"] == reading) & (table["row"] == "BLTS")]
    best = row[(row["protocol"] == controls.BEST) & (row["column"] == "LinTS")].iloc[0]
    assert (best["smaller"], best["larger"], best["sets"]) == (2, 1, 3)
    assert best["difference"] == (np.array([3 - 5, 7 - 5, 1 - 9]) / 10).mean()
    shown = controls.printed(table).set_index(["pair", "setting"])
    assert shown.loc[("BLTS – LinTS", controls.BEST), "paper (of 300)"] == "233–58"
    assert shown.loc[("BLTS – LinTS", controls.BEST), f"{reading} (of 3)"].startswith("2–1 (")
    gains = controls.gains(runs).set_index("reading")
    assert gains.loc[reading, controls.NULL].startswith("0.0000")
    wanted = np.mean([(9 - low) / 10 - (9 - low) / 40 for low in (3, 7, 1)])
    assert gains.loc[reading, "BLTS"].startswith(f"{wanted:.4f}")
    assert len(controls.figures(runs)["differences"].axes) == 6


def test_the_bundled_sets_are_told_of_wherever_the_data_are(tmp_path, monkeypatch):
    """The small version plays them also where a folder is named."""
    monkeypatch.setenv("BAYESBANDIT_DATA", str(tmp_path / "nowhere"))
    found = openml.characteristics(["wine", "iris"])
    assert found.to_numpy().tolist() == [["iris", 150, 3, 4], ["wine", 178, 3, 13]]


@pytest.mark.slow
@pytest.mark.long
def test_reproduce_shows_all_protocols(tmp_path, monkeypatch):
    monkeypatch.setitem(openml.STUDY.quick, "horizon", 12)
    result = run("reproduce", "openml", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "openml-quick" / "table.md").read_text()
    for heading in ("fixed settings, rss/n (of 4)", "best of the grid, rss (of 4)", "Data sets"):
        assert heading in text
    assert (tmp_path / "openml-quick" / "pairwise-rss-n-best-of-the-grid.png").exists()
