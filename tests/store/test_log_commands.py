"""`bayesbandit log backup | prune | erase | export`, run as a user would on a log at work."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

pytest.importorskip("sqlalchemy")

from tests.commands import run
from tests.service.test_service import begun, live
from tests.store.databases import fresh


@pytest.fixture
def url(tmp_path):
    return fresh("sqlite", tmp_path)


@pytest.fixture
def service(url):
    service, clock = begun(url)
    return live(service, clock, days=2)


def done(*words):
    """What a command about a log says."""
    found = run("log", *words)
    assert found.exit_code == 0, found.said
    return found.said


def test_a_backup_is_a_log_that_is_whole(url, service, tmp_path):
    out = tmp_path / "backup.db"
    done("backup", "--log", url, out)
    service.decide([1.0, 0.0])  # the log goes on, and its copy does not
    assert run("log", "verify", "--log", f"sqlite:///{out}").said == "The log is whole."
    with bb.DecisionLog(f"sqlite:///{out}") as log:
        assert len(log.frame()) == 40


def test_a_prune_leaves_what_is_open_behind_a_checkpoint(url, service):
    service.decide([0.0, 0.0], id="open")
    for deleted in (40, 0):
        said = done("prune", "--log", url)
        assert said.startswith("Version ")
        assert f"{deleted} decisions before it deleted" in said
    assert service.log.frame()["decision_id"].tolist() == ["open"]
    assert service.log.verify().empty


def test_an_erasure_is_told_by_its_number(url, service):
    ids = service.log.frame()["decision_id"][[4, 7]].tolist()
    assert "2 contexts of 3 erased" in done("erase", "--log", url, *ids, "nobody")
    erased = service.log.frame().set_index("decision_id").loc[ids]
    assert erased["context"].tolist() == ["", ""]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_is_a_frame_that_evaluate_takes_as_a_log(url, service, tmp_path, ending):
    out = tmp_path / f"decisions.{ending}"
    said = done("export", "--log", url, out)
    assert f"40 decisions in {out}".replace(" ", "") in said.replace(" ", "")
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    stored = service.log.frame()
    assert frame["decision_id"].tolist() == stored["decision_id"].tolist()
    assert frame["arm"].tolist() == stored["arm"].tolist()
    np.testing.assert_array_equal(frame["propensity"], stored["propensity"])
    np.testing.assert_array_equal(frame["reward"], stored["reward"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_of_both_types_are_verified_and_exported(url, tmp_path, ending):
    out = tmp_path / f"decisions.{ending}"
    with bb.DecisionLog(url) as log:
        service = bb.Service(bb.LinTS(["mail", 7], 1, seed=0), log)
        decisions = [service.decide([1.0], arms=arms) for arms in (None, [7], ["mail"])]
        assert log.verify().empty
    done("export", "--log", url, out)
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert frame["arm"].tolist() == [str(one.arm) for one in decisions]
    as_lists = frame[["arms", "probabilities", "x", "sd"]]
    if ending == "csv":  # JSON, also where a number is infinite
        as_lists = as_lists.map(lambda text: json.loads(text, parse_constant=pytest.fail))
        assert as_lists["sd"][0] == [None, None]
    assert as_lists["arms"].map(list).tolist() == [["mail", 7 if ending == "csv" else "7"]] * 3
    assert as_lists["x"].map(list).tolist() == [[1.0]] * 3
    np.testing.assert_array_equal(
        np.stack(as_lists["probabilities"]), [one.probabilities for one in decisions]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backup", "no/b.db"], "no folder"),
        (["backup", "here"], "a backup needs a new one"),
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
    found = run("log", words[0], "--log", url, *words[1:])
    assert found.exit_code == 2
    assert said in found.said
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert service.log.counts() == counts


@pytest.mark.parametrize(
    "words",
    [
        ["log", "verify"], ["log", "backup", "b.db"], ["log", "prune"], ["log", "erase", "one"],
        ["log", "export", "b.csv"], ["report"], ["learn"], ["serve"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_log_that_is_none_is_a_sentence_and_is_not_made(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESBANDIT_API_KEY", "k" * 20)
    (tmp_path / "text.db").write_text("no database " * 100)
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE people (name TEXT)")
    for name in ("none", "text", "other"):
        found = run(*words, "--log", f"sqlite:///{name}.db")
        assert found.exit_code == 2, found.said
        assert found.said.startswith("Error: "), name
        assert ("there is no log" in found.said) == (name == "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "text.db"]
