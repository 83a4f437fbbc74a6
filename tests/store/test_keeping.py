"""Backups are whole, and what a checkpoint vouches for may go: the log keeps what it promises."""

import shutil

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from tests.service.test_service import begun, live, same
from tests.store.databases import KINDS, fresh


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    return fresh(request.param, tmp_path)


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
