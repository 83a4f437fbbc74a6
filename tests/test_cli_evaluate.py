"""The commands that read a log of a bandit, run as a user would; every command reads a file in the
same way, and refuses it with the option that decides."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.cases import few
from tests.commands import columns, run

pytestmark = pytest.mark.usefixtures("files_for_pictures")

ARMS = ["mail", "call"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """500 rounds; "mail" is for the young, "call" for others."""
    rng, n = np.random.default_rng(0), 500
    age, plan = rng.normal(size=n), np.array(["free", "paid"])[rng.integers(2, size=n)]
    p = np.clip(0.5 - 0.4 * age, 0.2, 0.8)
    mail = rng.random(n) < p
    chance = np.where(mail, 0.5 - 0.2 * age, 0.5 + 0.2 * age).clip(0.05, 0.95)
    frame = pd.DataFrame({
        "arm": np.where(mail, *ARMS), "reward": (rng.random(n) < chance).astype(float),
        "propensity": np.where(mail, p, 1 - p), "age": age, "plan": plan,
        "time": pd.date_range("2026-01-01", periods=n, freq="h"),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("log") / "log.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_one_page_answers(log, tmp_path):
    frame = pd.read_csv(log)
    encoder = bb.Encoder.fit(frame[["age", "plan"]])
    saved = bb.LinTS(ARMS, encoder=encoder, seed=3)
    saved.update(frame[["age", "plan"]][:100], frame["arm"][:100], frame["reward"][:100],
                 frame["propensity"][:100])  # fmt: skip
    saved.save(tmp_path / "saved.npz")
    result = run("evaluate", log, "--bandit", "LinTS(alpha=.25)", "--bandit",
                 tmp_path / "saved.npz", "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "learned from rounds 1 to 250, and all are judged by rounds 251 to 500" in result.said
    folder = tmp_path / "evaluate"
    table = pd.read_csv(folder / "table.csv").set_index("policy")
    assert table.index.tolist() == ["logged", "call", "mail", "LinTS(alpha=.25)", "saved.npz"]
    later = frame["reward"][250:].mean()
    assert table.loc["logged", "estimate"] == pytest.approx(later)
    assert (table["always_low"] <= table["low"]).all()
    assert table.loc["LinTS(alpha=.25)", "estimate"] > later
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64") == 2
    for part in ("Paired differences", "Always-valid p", "Calibration", "effective"):
        assert part in page
    settings = json.loads((folder / "run.json").read_text())["settings"]
    assert "contexts: age, plan." in settings["columns"]
    assert settings["sequence"] == "asymptotic"


@pytest.mark.slow
def test_columns_by_name(log, tmp_path):
    frame = pd.read_csv(log)
    names = {"arm": "what", "reward": "got", "propensity": "chance", "time": "when"}
    path = tmp_path / "named.parquet"
    mail = np.where(frame["arm"] == "mail", frame["propensity"], 1 - frame["propensity"])
    frame = frame.rename(columns=names).assign(m=mail, c=1 - mail, week=np.arange(500) // 100)
    frame.to_parquet(path)
    named = columns("arm=what", "reward=got", "probability:mail=m", "probability:call=c",
                    "time=when", "batch=week")  # fmt: skip
    result = run("evaluate", path, *named, "--column", "drop=chance", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Columns: arm=what, reward=got, time=when, batch=week;" in result.said
    assert "left out: chance (dropped)." in result.said


@pytest.mark.slow
def test_many_arms_of_which_only_the_taken_ones_propensity_is_known(tmp_path):
    rng = np.random.default_rng(0)
    arm = rng.integers(14, size=600)
    frame = pd.DataFrame({"item_id": arm, "click": rng.integers(2, size=600), "pscore": 1 / 14})
    frame.to_csv(tmp_path / "log.csv")
    result = run("evaluate", tmp_path / "log.csv", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Of 14 arms the 10 most chosen are judged" in result.said
    assert "probabilities are not tested: only the chosen arms' probabilities are" in result.said
    page = (tmp_path / "evaluate" / "report.html").read_text(encoding="utf-8")
    assert "Paired differences: policies less logged" in page


@pytest.mark.slow
def test_a_refuted_log(log, tmp_path):
    mostly = np.where(np.arange(500) % 10 < 9, *ARMS)
    path = tmp_path / "changed.csv"
    pd.read_csv(log).assign(arm=mostly, propensity=0.5).to_csv(path, index=False)
    result = run("evaluate", path, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "The logged probabilities are refuted (log E =" in result.said
    assert "no interval is given" in result.said


def test_two_policies_of_one_name_are_refused(log, tmp_path):
    """The arm "logged" stood in place of the logged policy, and one file in place of another."""
    frame, out = pd.read_csv(log), ("--out", tmp_path)
    other = frame.assign(arm=frame["arm"].where(frame["arm"] != frame["arm"].iloc[0], "logged"))
    other.to_csv(tmp_path / "other.csv", index=False)
    assert "two policies are named 'logged'" in run("evaluate", tmp_path / "other.csv", *out).said
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        bb.LinTS(["a", "b"], 1).save(tmp_path / folder / "saved")
    files = [part for at in ("one", "two") for part in ("--bandit", tmp_path / at / "saved")]
    assert "two policies are named 'saved'" in run("evaluate", log, *files, *out).said


@pytest.mark.slow
def test_a_policy_that_has_no_reward_to_learn_from_is_named(log, tmp_path):
    frame = pd.read_csv(log)
    frame.loc[:299, "reward"] = np.nan
    frame.to_csv(tmp_path / "late.csv", index=False)
    result = run("evaluate", tmp_path / "late.csv", "--bandit", "LinTS", "--missing", "random")
    assert result.exit_code == 2
    assert "--bandit LinTS: rounds 1 to 250 have no reward to learn from" in result.said


@pytest.mark.slow
def test_a_data_set_may_have_such_columns(log, tmp_path):
    path = tmp_path / "offers.csv"
    names = {"arm": "offer", "reward": "revenue"}
    pd.read_csv(log).rename(columns=names).to_csv(path, index=False)
    named = columns("context=revenue", "drop=propensity", "drop=time")
    kept = run("compare", "--csv", path, "--target", "offer", *named, "--bandit", "LinTS",
               "--replications", 1, "--horizon", 20, "--out", tmp_path)  # fmt: skip
    assert kept.exit_code == 0, kept.output


def test_a_database_is_a_log(tmp_path):
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/log.db"
    bandit = bb.LinTS(ARMS, 1, min_probability=0.2, seed=0)
    with bb.DecisionLog(url) as log:
        service = bb.Service(bandit, log)
        batch = service.decide(np.random.default_rng(0).normal(size=(300, 1)))
        service.reward(batch.id.tolist(), np.random.default_rng(1).normal(size=300))
        service.learn()
        expected = bb.ope.evaluate(bb.ope.Log.of(log), {"logged": None, "mail": "mail"}).table
    result = run("evaluate", url, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "evaluate" / "table.csv").set_index("policy")
    for policy in expected.index:
        assert table.loc[policy, "estimate"] == pytest.approx(expected.loc[policy, "estimate"])
    refused = run("evaluate", url, "--sep", ";", *columns("reward=y"), "--out", tmp_path)
    assert "a database has its own columns; got --column and --sep" in refused.said


def test_a_log_in_which_no_other_policy_can_be_judged_has_a_page(tmp_path):
    """Each arm has probability 0 in some round, as of a policy that has learned much."""
    rng = np.random.default_rng(0)
    never = rng.integers(3, size=60)
    arm = (never + rng.integers(1, 3, size=60)) % 3
    p = np.where(np.arange(3) == never[:, None], 0.0, 0.5)
    frame = pd.DataFrame(p, columns=[f"probability_{k}" for k in range(3)])
    frame.assign(arm=arm, reward=rng.normal(size=60)).to_csv(tmp_path / "log.csv", index=False)
    result = run("evaluate", tmp_path / "log.csv", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "evaluate" / "table.csv").set_index("policy")
    assert np.isfinite(table.loc["logged", "low"])
    assert table["refused"].iloc[1:].str.contains("had probability 0").all()


def test_a_log_that_grows_is_read_once(tmp_path):
    """What every policy is judged by is what there was when the command began."""
    pytest.importorskip("sqlalchemy")
    from bayesbandit.cli.evaluate import rounds_of_database

    url = f"sqlite:///{tmp_path}/log.db"
    bandit = bb.LinTS(["a", "b"], 1, seed=0)
    service = bb.Service(bandit, bb.DecisionLog(url))
    service.reward(service.decide(np.ones((4, 1))).id.tolist(), [0.0, 1.0, 0.0, 1.0])
    read = rounds_of_database(url)
    service.decide(np.ones((4, 1)))
    assert len(read(None)) == len(read(bandit)) == 4


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
