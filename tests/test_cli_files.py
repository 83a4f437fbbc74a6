"""Every command reads a file in the same way, and refuses it with the option that decides."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.cases import few
from tests.commands import run

N = 200
RNG = np.random.default_rng(0)
LOG = pd.DataFrame(
    {
        "arm": [("None", "offer")[k % 2] for k in range(N)],
        "reward": np.round(RNG.normal(size=N), 3) + 0.0001,
        "propensity": 0.5,
        "age": np.round(RNG.normal(size=N), 3) + 0.0001,
        "timestamp": pd.date_range("2026-01-30", periods=N, freq="h"),
    }
)
OPTIONS = ["--sep", ";", "--decimal", ",", "--dates", "%d/%m/%Y %H:%M"]


def commands(path, out):
    """Each command that reads a file, by name."""
    one = ["--bandit", "LinTS", "--replications", 1]
    return {
        "evaluate": ["evaluate", path, "--out", out],
        "train": ["train", path, "--bandit", "LinTS", "--out", out / "b.npz"],
        "compare --csv": ["compare", "--csv", path, "--target", "plan", *one, "--out", out],
    }


def written(folder, name, table):
    """A file as a spreadsheet of another country writes it, packed if its name says so."""
    path = folder / name
    text = table.to_csv(index=False, sep=";", decimal=",", date_format="%d/%m/%Y %H:%M")
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz"])
@pytest.mark.parametrize("command", ["evaluate", "train", "compare --csv"])
@few("none of them")
def test_every_command_reads_a_file_by_the_same_options(command, name, tmp_path):
    table = LOG
    if command == "compare --csv":
        plan = {"None": "basic", "offer": "NA"}
        table = LOG.assign(plan=LOG["arm"].map(plan)).drop(columns=["arm", "reward", "propensity"])
    path = written(tmp_path, name, table)
    refused = run(*commands(path, tmp_path)[command], "--sep", ";")
    assert refused.exit_code == 2
    assert re.search(r"decimal=','|dates='%d|such as '-?\d,\d+'", refused.said)
    result = run(*commands(path, tmp_path)[command], *OPTIONS)
    assert result.exit_code == 0, result.said
    if command == "train":
        bandit = bb.Bandit.load(tmp_path / "b.npz")
        assert bandit.arms == ("None", "offer")
        np.testing.assert_array_equal(bandit.history.reward, LOG["reward"])
        assert bandit.encoder.columns == ("age",)


@pytest.mark.slow
def test_a_file_of_any_ending_is_trained_as_it_is_evaluated(tmp_path):
    path = tmp_path / "log.data"
    LOG.to_csv(path, index=False)
    out = ["--out", tmp_path / "b.npz"]
    result = run("train", path, "--bandit", "LinTS", "--column", "drop=timestamp", *out)
    assert result.exit_code == 0, result.said
    for column, text in (
        ("arm", "column 'arm': 100 of 200 arms are missing"),
        ("reward", "100 of 200 rewards are missing, and no bandit can learn them"),
    ):
        LOG.assign(**{column: LOG[column].where(LOG["arm"] == "offer")}).to_csv(path, index=False)
        result = run("train", path, "--bandit", "LinTS", "--column", "drop=timestamp", *out)
        assert result.exit_code == 2
        assert text in result.said
    pytest.importorskip("dask")
    result = run("train", tmp_path / "*.data", "--bandit", "LinTS", *out)
    assert result.exit_code == 2
    assert "*.data cannot be read as Parquet files" in result.said


@pytest.mark.parametrize("names", [["click"], ["pscore"], ["reward", "propensity"]])
def test_a_log_is_no_data_set(names, tmp_path):
    path = tmp_path / "log.csv"
    frame = pd.DataFrame({"offer": ["a", "b"] * 50, "age": range(100), "p_value": 0.5})
    frame.assign(**dict.fromkeys(names, 0.5)).to_csv(path, index=False)
    options = ["compare", "--csv", path, "--target", "offer", "--out", tmp_path]
    result = run(*options)
    assert result.exit_code == 2
    assert f"by its columns {', '.join(names)}: " in result.said
    assert f"--column context={names[-1]}" in result.said
