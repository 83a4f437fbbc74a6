"""Results on disk: one run a folder, nothing half-written, nothing counted twice."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from bayesbandit.experiments import results_on_disk as module
from bayesbandit.experiments.results_on_disk import Ledger
from bayesbandit.runtime import locks

SETTINGS = {"seed": 0, "horizon": 9, "points": 2, "environments": {"e": "e"}, "bandits": {"b": "b"}}


DEEP = "[" * 100_000


def settings():
    return json.loads(json.dumps(SETTINGS))


def rows(replication=0, bandit="b", reward=1.0):
    return [
        {
            "environment": "e", "bandit": bandit, "replication": replication, "t": t,
            "reward": reward, "regret": 1.0, "propensity": 0.5, "value": np.nan,
            "agreement": np.nan, "optimal": False,
        }
        for t in (5, 9)
    ]  # fmt: skip


def test_one_run_at_a_time(tmp_path):
    first = Ledger(tmp_path, settings())
    with pytest.raises(ValueError, match="another run writes into"):
        Ledger(tmp_path, settings())
    first.append(rows())
    assert len(first.finish(["e"], ["b"], 1)) == 2
    assert Ledger(tmp_path, settings()).done("e", 0) == {"b"}


def test_parts_never_take_each_others_place(tmp_path):
    """A broken part is deleted, as the message advises; the next keeps the finished ones."""
    first = Ledger(tmp_path, settings())
    for replication in range(3):
        first.append(rows(replication))
    first.lock.close()
    parts = sorted((tmp_path / "parts").iterdir())
    parts[0].write_bytes(b"half")
    with pytest.raises(ValueError, match="is broken"):
        Ledger(tmp_path, settings())
    parts[0].unlink()
    again = Ledger(tmp_path, settings())
    lost = {0, 1, 2} - {r for _, _, r in again.finished}
    assert len(lost) == 1
    again.append(rows(*lost))
    assert len(again.finish(["e"], ["b"], 3)) == 6


def test_a_round_that_is_there_twice_counts_once(tmp_path):
    ledger = Ledger(tmp_path, settings())
    ledger.append(rows())
    ledger.append(rows())
    assert len(ledger.finish(["e"], ["b"], 1)) == 2
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 2


def test_a_run_killed_before_its_parts_are_cleared_away_counts_once(tmp_path):
    """Results and parts then hold the same rows; whoever resumes has each of them once."""
    ledger = Ledger(tmp_path, settings())
    ledger.append(rows())
    (part,) = (tmp_path / "parts").iterdir()
    whole = part.read_bytes()
    ledger.finish(["e"], ["b"], 1)
    part.parent.mkdir()
    part.write_bytes(whole)
    again = Ledger(tmp_path, settings())
    again.append(rows(1))
    assert len(again.finish(["e"], ["b"], 2)) == 4
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 4


@pytest.mark.parametrize("file", ["results", "parts"])
def test_writes_are_whole_or_not_at_all(file, tmp_path, monkeypatch):
    ledger = Ledger(tmp_path, settings())
    ledger.append(rows())

    def half(frame, path, **_):
        path.write_bytes(b"half of it")
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", half)
        with pytest.raises(OSError, match="disk is full"):
            ledger.append(rows(1)) if file == "parts" else ledger.finish(["e"], ["b"], 1)
    ledger.lock.close()
    assert not list(tmp_path.rglob("*.tmp"))
    assert Ledger(tmp_path, settings()).done("e", 0) == {"b"}


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"settings": 3}', '{"settings": {}}', DEEP])
def test_a_broken_record_is_named(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"run\.json is broken|holds results, and no"):
        Ledger(tmp_path, settings())


@pytest.mark.parametrize("finished", [False, True])
def test_results_of_which_nothing_is_said_are_not_taken_for_this_run(finished, tmp_path):
    first = Ledger(tmp_path, settings())
    first.append(rows())
    if finished:
        first.finish(["e"], ["b"], 1)
    first.close()
    (tmp_path / "run.json").unlink()
    with pytest.raises(ValueError, match=r"no run\.json says how they were made"):
        Ledger(tmp_path, settings() | {"seed": 1})
    assert not (tmp_path / "run.json").exists()


def test_the_record_says_how_long_it_took_and_not_where(tmp_path, monkeypatch):
    clock = iter([10.0, 13.5, 100.0, 101.0, 200.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module.sys, "argv", [str(tmp_path / "bin" / "bayesbandit"), "compare"])
    for replication, seconds in ((0, 3.5), (1, 4.5), (None, 4.5)):  # the last adds nothing
        ledger = Ledger(tmp_path, settings())
        if replication is not None:
            ledger.append(rows(replication))
        ledger.finish(["e"], ["b"], 2)
        record = json.loads((tmp_path / "run.json").read_text())
        assert record["seconds"] == seconds
        assert record["command"] == ["bayesbandit", "compare"]


def test_other_versions_are_said(tmp_path):
    Ledger(tmp_path, settings()).lock.close()
    record = json.loads((tmp_path / "run.json").read_text())
    record["versions"]["numpy"] = "0.1"
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.warns(UserWarning, match=r"results of other versions: numpy 0\.1, now"):
        Ledger(tmp_path, settings())


@pytest.mark.parametrize("odd", ["?", "1,234"])
def test_a_column_of_numbers_with_a_word_is_named(odd, tmp_path):
    values = [f'"{odd}"' if i == 16 else str(i * 1.5) for i in range(60)]
    lines = "\n".join(f"{v},{'ab'[i % 2]}" for i, v in enumerate(values))
    path = tmp_path / "d.csv"
    path.write_text(f"size,label\n{lines}\n")
    with pytest.raises(ValueError, match="'size': all of its values differ"):
        bb.environments.from_csv(path, "label")


def test_two_columns_of_one_name_are_named(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("x,label,label\n" + "1,a,a\n2,b,b\n" * 9)
    with pytest.raises(ValueError, match="columns of one name: label"):
        bb.environments.from_csv(path, "label")


def test_a_run_that_begins_as_another_ends_has_a_place_for_its_parts(tmp_path, monkeypatch):
    """The folder `parts` goes with the one that ends, and comes with the one that has the lock."""
    take = locks.take

    def others_end(file):
        shutil.rmtree(tmp_path / "parts", ignore_errors=True)
        take(file)

    monkeypatch.setattr(locks, "take", others_end)
    ledger = Ledger(tmp_path, settings())
    ledger.append(rows())
    assert len(ledger.finish(["e"], ["b"], 1)) == 2


@pytest.mark.slow
def test_flipped_bytes_of_the_pages_are_no_other_numbers(tmp_path):
    ledger = Ledger(tmp_path, settings())
    ledger.append([row for k in range(300) for row in rows(k, reward=float(k) + 0.1)])
    ledger.finish(["e"], ["b"], 300)
    file, refused = tmp_path / "results.parquet", 0
    whole = file.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    right = pd.read_parquet(file)
    for at in range(4, pages, 101):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        file.write_bytes(broken)
        try:
            ledger = Ledger(tmp_path, settings())
        except ValueError:
            refused += 1
        else:
            ledger.close()
            assert ledger.frames[0].equals(right), f"byte {at}"
    assert refused


@pytest.mark.slow
def test_a_failed_run_lets_go_of_its_folder(tmp_path):
    """Though its traceback is kept, as in a notebook."""
    lame, out = tmp_path / "lame", tmp_path / "runs"

    def limps(arms, n_features, seed):
        if isinstance(seed, np.random.SeedSequence) and lame.exists():
            raise KeyboardInterrupt
        return bb.LinTS(arms, n_features, seed=seed)

    experiment = bb.Experiment(bb.environments.bundled("iris"), {"b": limps}, 9, 1)
    lame.touch()
    with pytest.raises(KeyboardInterrupt) as kept:
        experiment.run(out=out, progress=False)
    (out / "parts" / "x.parquet").write_bytes(b"half")
    with pytest.raises(ValueError, match="is broken") as other:
        experiment.run(out=out, progress=False)
    (out / "parts" / "x.parquet").unlink()
    lame.unlink()
    assert len(experiment.run(out=out, progress=False))
    del kept, other


def test_a_disk_without_locks_is_written_to(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    with pytest.warns(UserWarning, match="cannot be locked .*let no two runs write"):
        found = Ledger(tmp_path, settings())
    found.append(rows())
    assert len(found.finish(["e"], ["b"], 1)) == 2
