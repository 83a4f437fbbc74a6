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
from tests.cases import slow_but

SETTINGS = {"seed": 0, "horizon": 9, "points": 2, "environments": {"e": "e"}, "bandits": {"b": "b"}}


EMPTY = json.dumps({"settings": {"environments": {}, "bandits": {}}})
LISTED = json.dumps({"settings": SETTINGS, "versions": []})
WORDY = json.dumps({"settings": SETTINGS, "seconds": "long"})


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


@pytest.mark.parametrize("name", [[1], None, 1.0])
def test_a_part_with_names_that_are_none_is_refused(name, tmp_path):
    """Also one without a digest, which anybody can write."""
    Ledger(tmp_path, settings()).append(rows())
    (part,) = (tmp_path / "parts").iterdir()
    table = pd.read_parquet(part)
    table.attrs = {}
    table["bandit"] = [name, *table["bandit"][1:]]
    if name is not None:
        table["bandit"] = [name] * len(table)
    table.to_parquet(part, index=False)
    with pytest.raises(ValueError, match="is broken: it"):
        Ledger(tmp_path, settings())


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


@pytest.mark.slow
@pytest.mark.parametrize("step", slow_but([115], [115, 23]))
def test_flipped_bytes_are_no_other_numbers(step, tmp_path):
    ledger = Ledger(tmp_path, settings())
    ledger.append([row for k in range(50) for row in rows(k, reward=float(k) + 0.1)])
    ledger.finish(["e"], ["b"], 50)
    file, changed = tmp_path / "results.parquet", 0
    whole, right = file.read_bytes(), pd.read_parquet(file)
    for at in range(4, len(whole), step):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        file.write_bytes(broken)
        try:
            (frame,) = Ledger(tmp_path, settings()).frames
        except ValueError:
            continue
        changed += not frame.equals(right)
    assert changed == 0


@pytest.mark.parametrize("what", ["rows", "dtype", "names"])
def test_other_rows_under_the_same_digest_are_refused(what, tmp_path):
    """The file's footer, which says how many rows there are and of what, has no checksum."""
    ledger = Ledger(tmp_path, settings())
    ledger.append([row for k in range(5) for row in rows(k)])
    ledger.finish(["e"], ["b"], 5)
    file = tmp_path / "results.parquet"
    frame = pd.read_parquet(file)
    assert frame.attrs["digest"]
    if what == "rows":
        frame = frame.iloc[:-2]
    elif what == "dtype":
        frame["t"] = pd.to_timedelta(frame["t"], unit="s")
    else:
        frame["bandit"] = "c"
    frame.to_parquet(file)
    with pytest.raises(ValueError, match="is broken: its rows are not those that were written"):
        Ledger(tmp_path, settings())


DEEP, LATE = "[" * 100_000, '{"settings": {}, "seconds": 1' + "0" * 400 + "}"


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "{", '{"settings": 3}', '{"settings": {}}', WORDY, EMPTY, LISTED, DEEP, LATE],
    ids=range(10),
)
def test_a_broken_record_is_named(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"run\.json is broken"):
        Ledger(tmp_path, settings())


@pytest.mark.parametrize("kind", [None, "environments", "bandits"])
@pytest.mark.parametrize("finished", [False, True])
def test_results_of_which_nothing_is_said_are_not_taken_for_this_run(kind, finished, tmp_path):
    """run.json is gone, or says nothing of a bandit or environment: the seed may be another."""
    first = Ledger(tmp_path, settings())
    first.append(rows())
    if finished:
        first.finish(["e"], ["b"], 1)
    first.close()
    record = tmp_path / "run.json"
    said = json.loads(record.read_text())
    if kind is None:
        record.unlink()
    else:
        said["settings"][kind] = {}
        record.write_text(json.dumps(said))
    before = record.read_bytes() if record.exists() else None
    with pytest.raises(ValueError, match=r"of which run\.json does not say how they were made"):
        Ledger(tmp_path, settings() | {"seed": 0 if kind else 1})
    assert (record.read_bytes() if record.exists() else None) == before


def test_a_folder_of_other_data_says_so(tmp_path):
    """And not that the bandits are others, as they are where contexts have another size."""
    Ledger(tmp_path, settings()).close()
    other = settings() | {"environments": {"f": "other"}, "bandits": {"b": "of other contexts"}}
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(ValueError, match=r"holds results on e, and not on f; give another.*--out"):
        Ledger(tmp_path, other)
    with pytest.raises(ValueError, match="holds results of another b: "):
        Ledger(tmp_path, settings() | {"bandits": {"b": "of other contexts"}})
    assert (tmp_path / "run.json").read_bytes() == before
    Ledger(tmp_path, settings() | {"environments": {"f": "other"}}).close()  # the same bandits


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
def test_pages_have_checksums_beside_the_digest_of_the_numbers(tmp_path, monkeypatch):
    """What a decoder makes of a flipped byte is not its affair alone."""
    monkeypatch.setattr(module, "digest", lambda frame: "the same for all")
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
