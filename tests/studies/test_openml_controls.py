"""The study of matched controls: its grids, their random numbers, and its arithmetic."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit_studies import openml_controls as study
from tests.studies.test_openml import results


def test_the_null_has_as_many_cells_as_blts():
    for reading in study.READINGS:
        cells = study.settings(reading)
        assert len(cells["BLTS"]) == len(cells[study.NULL])


def test_every_cell_has_its_own_random_numbers():
    x, reward = np.random.default_rng(0).normal(size=(60, 2)), np.eye(3)[np.arange(60) % 3]
    key = np.random.SeedSequence(7, spawn_key=(1,))
    one, two, again = (study.labelled(bb.LinTS, name)(3, 2, key) for name in ("one", "two", "one"))
    assert repr(one) == repr(two) == repr(bb.LinTS(3, 2))
    first = one.play(x, reward)[0]
    assert not np.array_equal(first, two.play(x, reward)[0])
    np.testing.assert_array_equal(first, again.play(x, reward)[0])


@pytest.mark.slow
def test_counts_and_gains_by_hand():
    reading = "RSS/n, floor 1e-2"
    low, same = f"BLTS, α = 0.5, γ = 0.1, {reading}", f"LinTS, α = 1, {reading}"
    told = {"a": {low: 3, same: 5}, "b": {low: 7, same: 5}, "c": {low: 1}}
    runs = results(told, study.players(), step=0.1)
    table = study.table(runs)
    row = table[(table["reading"] == reading) & (table["row"] == "BLTS")]
    best = row[(row["protocol"] == study.BEST) & (row["column"] == "LinTS")].iloc[0]
    assert (best["smaller"], best["larger"], best["sets"]) == (2, 1, 3)
    assert best["difference"] == (np.array([3 - 5, 7 - 5, 1 - 9]) / 10).mean()
    shown = study.printed(table).set_index(["pair", "setting"])
    assert shown.loc[("BLTS – LinTS", study.BEST), "paper (of 300)"] == "233–58"
    assert shown.loc[("BLTS – LinTS", study.BEST), f"{reading} (of 3)"].startswith("2–1 (")
    gains = study.gains(runs).set_index("reading")
    assert gains.loc[reading, study.NULL].startswith("0.0000")
    wanted = np.mean([(9 - low) / 10 - (9 - low) / 40 for low in (3, 7, 1)])
    assert gains.loc[reading, "BLTS"].startswith(f"{wanted:.4f}")
    assert len(study.figures(runs)["differences"].axes) == 6
