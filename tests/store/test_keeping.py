"""Backups are whole, and what a checkpoint vouches for may go: the log keeps what it promises, by
calls and by `bayesbandit log backup | prune | erase | export`."""

import json
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from bayesbandit.store.ledger import Ledger
from bayesbandit.store.records import CHECKPOINT
from tests.commands import run
from tests.service.test_service import begun, live, same
from tests.store.databases import KINDS, fresh


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    return fresh(request.param, tmp_path)


@pytest.fixture
def lite(tmp_path):
    return fresh("sqlite", tmp_path)


def test_a_backup_of_a_log_at_work_is_whole(url, tmp_path):
    service, clock = begun(url)
    live(service, clock, days=1)
    service.decide([0.0, 0.0])
    service.log.backup(tmp_path / "backup.db")
    service.decide([1.0, 0.0])
    with bb.DecisionLog(f"sqlite:///{tmp_path}/backup.db") as copy:
        assert copy.verify().empty
        assert len(copy.frame()) == 21
        assert same(copy.replay(), service.bandit)
        assert bb.Service.open(copy).version == service.version
    with pytest.raises(FileExistsError, match="a backup needs a new one"):
        service.log.backup(tmp_path / "backup.db")


def test_a_backup_that_fails_leaves_nothing(tmp_path, monkeypatch):
    service, _ = begun(f"sqlite:///{tmp_path}/log.db")
    service.decide([0.0, 0.0])
    before = {*tmp_path.iterdir()}

    def full(*rows):
        raise OSError("the disk is full")

    monkeypatch.setattr("bayesbandit.store.keeping.insert", full)
    with pytest.raises(OSError, match="the disk is full"):
        service.log.backup(tmp_path / "backup.db")
    assert {*tmp_path.iterdir()} == before


def test_a_file_that_was_copied_alone_has_a_beginning_and_what_was_learned(tmp_path):
    service, clock = begun(f"sqlite:///{tmp_path}/log.db")
    live(service, clock, days=1)
    shutil.copy(tmp_path / "log.db", tmp_path / "copy.db")
    with bb.DecisionLog(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert copy.verify().empty
        assert same(copy.replay(), service.bandit)


def test_a_backup_that_cannot_be_written_can_be_read(lite, tmp_path, monkeypatch):
    """As on a disk that is mounted to be read; a server does not begin there."""
    service, clock = begun(lite)
    live(service, clock, days=1)
    service.log.backup(tmp_path / "backup.db")
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///file:backup.db?mode=ro&uri=true"
    with bb.DecisionLog(url) as copy:
        assert copy.verify().empty
        assert len(copy.frame()) == len(service.log.frame())
        with pytest.raises(OSError, match="attempt to write a readonly database"):
            bb.Service.open(copy, clock=clock).decide([0.0, 0.0])
    monkeypatch.setenv("BAYESBANDIT_API_KEY", "k" * 32)
    ended = run("serve", "--log", url)
    assert ended.exit_code == 2
    assert "attempt to write a readonly database" in ended.said


def test_a_context_is_erased_and_the_replay_says_so(url, caplog):
    service, clock = begun(url)
    live(service, clock, days=1)
    frame, is_open = service.log.frame(), service.decide([7.0, 8.0]).id
    ids = [frame["decision_id"][4], is_open]
    assert service.log.erase([*ids, "nobody"]) == 2
    erased = service.log.frame().set_index("decision_id").loc[ids]
    assert erased["context"].tolist() == ["", ""]
    assert np.isnan(np.stack(erased["x"])).all()
    with pytest.warns(UserWarning, match="the contexts of 2 decisions are erased"):
        data = bb.ope.Log.of(service.log)
    assert len(data) == len(service.log.frame()) - 2
    live(service, clock, days=1, seed=1)
    assert service.log.verify().empty
    assert same(service.log.replay(), service.bandit)
    assert "contexts that were erased; it goes on from the snapshot of version" in caplog.text
    with pytest.raises(ValueError, match="contexts that were erased"):
        service.log.replay(version=1)
    assert service.log.frame().set_index("decision_id").loc[is_open, "status"] == "expired"
    service.log.checkpoint()
    service.log.prune()
    caplog.clear()
    assert same(service.log.replay(), service.bandit)
    assert not caplog.text


def test_a_reward_that_is_learned_while_its_context_is_erased_breaks_no_replay(url, monkeypatch):
    """The learner steps in right after the checkpoint."""
    service, clock = begun(url)
    live(service, clock, days=1)
    id_ = service.decide([7.0, 8.0]).id
    service.reward(id_, 1.0)
    commit = Ledger.commit

    def followed(ledger, before, number, kind, *rest, **more):
        digest = commit(ledger, before, number, kind, *rest, **more)
        if kind == CHECKPOINT:
            service.learn()
        return digest

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", followed)
        assert service.log.erase(id_) == 1
    assert same(bb.Service.open(service.log, clock=clock).bandit, service.bandit)
    assert same(service.log.replay(), service.bandit)
    assert service.log.verify().empty


def test_a_process_begins_and_follows_while_the_log_is_pruned(url, monkeypatch):
    """Versions go after the snapshot was read, and before the changes that follow it."""
    service, clock = begun(url)
    follower = bb.Service.open(service.log, clock=clock)
    live(service, clock, days=1)
    follower.sync()
    changes = Ledger.changes
    for how in (follower.sync, lambda: bb.Service.open(service.log, clock=clock).version):
        service.snapshot()
        live(service, clock, days=1)

        def pruned(ledger, after, limit):
            monkeypatch.setattr(Ledger, "changes", changes)
            service.log.checkpoint()
            service.log.prune()
            return ledger.changes(after, limit)

        monkeypatch.setattr(Ledger, "changes", pruned)
        assert how() == service.sync()
    assert same(service.log.replay(), service.bandit)
    assert service.log.verify().empty


def test_no_reward_is_lost_where_versions_are_pruned_while_it_is_learned(url, monkeypatch):
    """The number of the learner's version is free again, below the newest checkpoint."""
    service, clock = begun(url)
    live(service, clock, days=1)
    due = Ledger.due

    def pruned(ledger, now, limit):
        monkeypatch.setattr(Ledger, "due", due)
        read = due(ledger, now, limit)
        service.log.checkpoint()
        service.log.checkpoint()
        service.log.prune()
        return read

    service.reward(service.decide([7.0, 8.0]).id, 1.0)
    before = service.bandit.belief.n.sum()
    monkeypatch.setattr(Ledger, "due", pruned)
    assert service.learn() == 1
    service.sync()
    assert service.bandit.belief.n.sum() == before + 1
    assert same(bb.Service.open(service.log, clock=clock).bandit, service.bandit)
    assert service.log.verify().empty


def test_what_is_erased_is_not_in_the_files(tmp_path):
    """A context that is a text, of a bandit without history, whose snapshots have no rounds."""
    frame = pd.DataFrame({"city": ["Zanzibar", "Berlin"] * 10, "age": np.arange(20.0)})
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame), seed=0, history=0)
    service = bb.Service(bandit, bb.DecisionLog(f"sqlite:///{tmp_path}/log.db"))
    ids = []
    for i in range(60):
        city = "Nowhere" if i == 30 else "Berlin"
        ids.append(service.decide({"city": city, "age": float(i)}).id)
        service.reward(ids[-1], 1.0)
    service.learn()

    def files():
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"Nowhere" in files()
    assert service.log.erase([ids[30]]) == 1
    assert b"Nowhere" not in files()
    assert ids[0].encode() in files()
    service.log.prune()
    assert ids[0].encode() not in files()
    service.log.close()


def done(*words):
    """What a command about a log says."""
    found = run("log", *words)
    assert found.exit_code == 0, found.said
    return found.said


def test_commands_back_up_erase_and_prune(lite, tmp_path):
    service, out = live(*begun(lite), days=2), tmp_path / "backup.db"
    done("backup", "--log", lite, out)
    ids = service.log.frame()["decision_id"][[4, 7]].tolist()
    assert "2 contexts of 3 erased" in done("erase", "--log", lite, *ids, "nobody")
    erased = service.log.frame().set_index("decision_id").loc[ids]
    assert erased["context"].tolist() == ["", ""]
    service.decide([0.0, 0.0], id="open")
    for deleted in (40, 0):
        said = done("prune", "--log", lite)
        assert said.startswith("Version ")
        assert f"{deleted} decisions before it deleted" in said
    assert service.log.frame()["decision_id"].tolist() == ["open"]
    for url in (lite, f"sqlite:///{out}"):
        assert done("verify", "--log", url) == "The log is whole."
    with bb.DecisionLog(f"sqlite:///{out}") as log:  # the log went on, and its copy did not
        assert len(log.frame()) == 40


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_is_the_frame_of_the_log(lite, tmp_path, ending):
    """Also of arms whose names are of two types."""
    out = tmp_path / f"decisions.{ending}"
    with bb.DecisionLog(lite) as log:
        service = bb.Service(bb.LinTS(["mail", 7], 1, seed=0), log)
        decisions = [service.decide([1.0], arms=arms) for arms in (None, [7], ["mail"])]
        service.reward(decisions[0].id, 0.5)
        service.learn()
        assert log.verify().empty
        stored = log.frame()
    said = done("export", "--log", lite, out)
    assert f"3 decisions in {out}".replace(" ", "") in said.replace(" ", "")
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert frame["decision_id"].tolist() == stored["decision_id"].tolist()
    np.testing.assert_array_equal(frame["propensity"], stored["propensity"])
    np.testing.assert_array_equal(frame["reward"], stored["reward"])
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
        (["export", "here/log.csv"], "cannot be written: it is in no folder"),
        (["erase"], "Missing argument"),
        (["prune", "--policy", "mine.py:POLICY"], "No such option: --policy"),
    ],
)
def test_a_wrong_word_changes_nothing(lite, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    service, _ = begun(lite)
    service.decide([0.0, 0.0])
    (tmp_path / "here").write_text("a file")
    before = sorted(path.name for path in tmp_path.iterdir())
    counts = service.log.counts()
    found = run("log", words[0], "--log", lite, *words[1:])
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
