"""`bayesbandit log backup | prune | erase | export`, run as a user would on a log at work."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")
pytest.importorskip("typer")

from typer.testing import CliRunner

from bayesbandit.cli.app import app
from tests.service.test_service import begun, live, same
from tests.store.databases import fresh


def run(*words):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert "Traceback" not in found.output
    return found, " ".join(found.output.split())


@pytest.fixture
def url(tmp_path):
    return fresh("sqlite", tmp_path)


@pytest.fixture
def service(url):
    service, clock = begun(url)
    return live(service, clock, days=2)


def test_a_backup_of_a_log_at_work_is_restored_and_whole(url, tmp_path):
    service, clock = begun(url)
    live(service, clock, days=2)
    out = tmp_path / "backup.db"
    open_one = service.decide([0.0, 0.0], id="open")
    found, said = run("log", "backup", "--log", url, out)
    assert found.exit_code == 0, said
    service.decide([1.0, 0.0])  # the log goes on, and its copy does not
    copy = f"sqlite:///{out}"
    assert run("log", "verify", "--log", copy)[1] == "The log is whole."
    with bb.DecisionLog(copy) as log:
        restored = bb.Service.open(log, clock=clock)
        assert same(restored.bandit, service.bandit)
        assert same(log.replay(), service.bandit)
        assert len(log.frame()) == 41
        assert restored.decide([0.0, 0.0], id="open").arm == open_one.arm
        assert restored.reward("open", 1.0) == "timely"
    again, said = run("log", "backup", "--log", url, out)
    assert again.exit_code == 2
    assert "a backup needs a new one" in said


def test_after_a_prune_the_log_verifies_and_replays_from_its_checkpoint(url, service):
    service.decide([0.0, 0.0], id="open")
    before = service.sync()
    found, said = run("log", "prune", "--log", url)
    assert found.exit_code == 0, said
    assert said.startswith("Version ")
    assert "40 decisions before it deleted" in said
    assert run("log", "verify", "--log", url)[1] == "The log is whole."
    assert service.sync() > before
    with bb.DecisionLog(url) as log:
        assert log.frame()["decision_id"].tolist() == ["open"]
        assert same(log.replay(), service.bandit)
        assert log.replay().history.total == 40
    found, said = run("log", "prune", "--log", url)
    assert found.exit_code == 0
    assert "0 decisions before it deleted" in said


def test_after_an_erasure_the_replay_says_so_and_goes_on(url, service, caplog):
    ids = service.log.frame()["decision_id"][[4, 7]].tolist()
    found, said = run("log", "erase", "--log", url, *ids, "nobody")
    assert found.exit_code == 0, said
    assert "2 contexts of 3 erased" in said
    service.sync()
    with bb.DecisionLog(url) as log:
        erased = log.frame().set_index("decision_id").loc[ids]
        assert erased["context"].tolist() == ["", ""]
        assert same(log.replay(), service.bandit)
    assert "contexts that were erased; it goes on from the snapshot of version" in caplog.text
    assert run("log", "verify", "--log", url)[1] == "The log is whole."


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_is_a_frame_that_evaluate_takes_as_a_log(url, service, tmp_path, ending):
    out = tmp_path / f"decisions.{ending}"
    found, said = run("log", "export", "--log", url, out)
    assert found.exit_code == 0, said
    assert f"40 decisions in {out}".replace(" ", "") in said.replace(" ", "")
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    stored = service.log.frame()
    assert frame["decision_id"].tolist() == stored["decision_id"].tolist()
    assert frame["arm"].tolist() == stored["arm"].tolist()
    np.testing.assert_array_equal(frame["propensity"], stored["propensity"])
    np.testing.assert_array_equal(frame["reward"], stored["reward"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backup", "no/b.db"], "no folder"),
        (["export", "log.txt"], "the file must end in .csv or .parquet; got 'log.txt'"),
        (["export", "here/log.csv"], "here is no folder"),
        (["erase"], "Missing argument"),
        (["prune", "--policy", "mine.py:POLICY"], "No such option: --policy"),
    ],
)
def test_a_wrong_word_changes_nothing(url, service, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("a file")
    before = sorted(path.name for path in tmp_path.iterdir())
    counts = service.log.counts()
    found, output = run("log", words[0], "--log", url, *words[1:])
    assert found.exit_code == 2
    assert said in output
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert service.log.counts() == counts


@pytest.mark.parametrize("command", ["verify", "backup", "prune", "erase", "export"])
def test_a_log_that_is_none_is_a_sentence(command, tmp_path):
    more = {"erase": ["one"], "backup": [tmp_path / "b.db"]}
    more["export"] = [tmp_path / "b.csv"]
    words = more.get(command, [])
    found, said = run("log", command, "--log", f"sqlite:///{tmp_path}/none.db", *words)
    assert found.exit_code == 2
    assert "there is no log" in said
    (tmp_path / "text.db").write_text("no database " * 100)
    found, said = run("log", command, "--log", f"sqlite:///{tmp_path}/text.db", *words)
    assert found.exit_code == 2
    assert said.startswith("Error: ")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE people (name TEXT)")
    found, said = run("log", command, "--log", f"sqlite:///{tmp_path}/other.db", *words)
    assert found.exit_code == 2
    assert said.startswith("Error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "text.db"]
