"""Results on disk: nothing half-written, nothing counted twice, nothing of other settings."""

import json

import pandas as pd
import pytest

from bayesbandit.experiments import results_on_disk as module
from bayesbandit.experiments.results_on_disk import Cache, key, write_results


def table(k):
    return pd.DataFrame({"name": ["a", "b"], "number": [k, k + 0.1]})


def same(cache, n):
    """Whether a cache has the tables 0 … n − 1, and not the next."""
    for k in range(n):
        assert str(k) in cache
        pd.testing.assert_frame_equal(cache[str(k)], table(k))
    return str(n) not in cache


def test_runs_into_one_folder_keep_each_others_tables(tmp_path):
    one, other = Cache(tmp_path), Cache(tmp_path)
    for cache, k in ((one, 0), (other, 1), (other, 0), (other, 2)):
        cache[str(k)] = table(k)
    assert same(one, 3)
    assert same(Cache(tmp_path), 3)
    assert same(Cache(None), 0)


def test_a_broken_file_is_named_before_anything_is_played(tmp_path):
    cache = Cache(tmp_path)
    for k in range(3):
        cache[str(k)] = table(k)
    file = tmp_path / "1.parquet"
    whole = file.read_bytes()
    for content in (b"half", b"", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"1\.parquet is broken: .*; delete it to go on"):
            assert "1" in Cache(tmp_path)
    file.unlink()
    assert "1" not in Cache(tmp_path)
    file.write_bytes(whole)
    assert same(Cache(tmp_path), 3)


def test_writes_are_whole_or_not_at_all(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache["0"] = table(0)

    def half(frame, path, **_):
        path.write_bytes(b"half of it")
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", half)
        with pytest.raises(OSError, match="disk is full"):
            cache["1"] = table(1)
    assert [file.name for file in tmp_path.iterdir()] == ["0.parquet"]
    assert same(Cache(tmp_path), 1)


@pytest.mark.slow
def test_flipped_bytes_of_the_pages_are_no_other_numbers(tmp_path):
    many = pd.concat([table(k) for k in range(300)], ignore_index=True)
    Cache(tmp_path)["0"] = many
    file = tmp_path / "0.parquet"
    whole = file.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for at in range(4, pages, 23):
        broken = bytearray(whole)
        broken[at] ^= 0x10
        file.write_bytes(broken)
        cache = Cache(tmp_path)
        try:
            assert "0" in cache
        except ValueError:
            refused += 1
        else:
            pd.testing.assert_frame_equal(cache["0"], many, obj=f"byte {at}")
    assert refused


def test_the_record_says_how_long_it_took_and_not_where(tmp_path, monkeypatch):
    monkeypatch.setattr(module.sys, "argv", [str(tmp_path / "bin" / "bayesbandit"), "compare"])
    for seed, seconds in ((0, 3.5), (1, 2.0)):
        write_results(tmp_path, table(seed), {"seed": seed}, seconds)
        record = json.loads((tmp_path / "run.json").read_text())
        assert record["seconds"] == seconds
        assert record["command"] == ["bayesbandit", "compare"]
        assert record["settings"] == {"seed": seed}


def test_other_settings_and_other_versions_have_another_key(monkeypatch):
    keys = {key(seed=0), key(seed=1), key(seed=0, bandit="b"), key(seed="0")}
    assert key(bandit="b", seed=0) in keys
    monkeypatch.setattr(module, "version", lambda library: "0.1")
    assert len(keys | {key(seed=0)}) == 5
