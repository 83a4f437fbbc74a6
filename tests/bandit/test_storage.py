"""A bandit in one file: goes on bit for bit; broken, foreign and future files are refused."""

import json
import os
import re
import zipfile

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit import random_streams
from bayesbandit.bandit.storage import saving
from tests.bandit.kinds import KINDS
from tests.bandit.test_hostile_files import rewrite, saved
from tests.cases import few
from tests.players import anatomy, world


def grown(name, seed=0, arms=("a", "b", 3)):
    """A bandit with a past: rounds, a removed arm and a new one."""
    x, reward = world(np.random.default_rng(seed), 90)
    bandit = KINDS[name].make(arms, 3, seed=seed)
    bandit.play(x[:40], reward[:40])
    bandit.remove_arm("b")
    bandit.add_arm("new")
    bandit.play(x[40:], reward[40:])
    return bandit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bandit.npz"


def test_numpy_numbers_in_settings(path, rng):
    settings = {"alpha": np.int64(2), "ridge": np.float32(0.5), "history": np.int16(7)}
    bandit = bb.BLTS(2, 3, refit_every=np.int64(9), clip=np.float64(0.2), **settings)
    bandit.save(path)
    x, reward = world(rng, 40, K=2)
    same = bb.BLTS(2, 3, 2.0, 0.5, refit_every=9, clip=0.2, history=7).play(x, reward)
    np.testing.assert_array_equal(bb.Bandit.load(path).play(x, reward), same)


def refused(path, message="is not a saved bandit, or is broken"):
    with pytest.raises(ValueError, match=message) as caught:
        bb.Bandit.load(path)
    assert str(path) in str(caught.value)


def test_truncated_anywhere(path):
    grown("BLTS pooled").save(path)
    whole = path.read_bytes()
    for length in {*range(60), *range(0, len(whole), len(whole) // 150), len(whole) - 1}:
        path.write_bytes(whole[:length])
        refused(path)


def savez(path, **arrays):
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("time,reward\n1,0.5\n"),
    "npy": lambda path: np.save(path.open("wb"), np.ones(3)),
    "npz": lambda path: savez(path, x=np.ones(3)),
    "zip": foreign_zip,
    "a list": lambda path: savez(path, meta=np.frombuffer(b"[]", np.uint8)),
    "no version": lambda path: savez(path, meta=np.frombuffer(b'{"format": "x"}', np.uint8)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files(kind, path):
    FOREIGN[kind](path)
    refused(path)


def test_other_formats_and_versions(path):
    meta, arrays, _ = saved(path)
    for version in (1, 2, 3, 99, 0, -3, 1.5, "1", None, True, [1], {}):
        rewrite(path, meta | {"version": version}, arrays)
        said = re.escape(f"holds 'bayesbandit.Bandit' version {version!r}; this release reads ")
        refused(path, f"{said}.* version 4")
    rewrite(path, meta | {"format": "other"}, arrays)
    refused(path, "holds 'other' version 4")


def test_missing_arrays(path):
    bandit = grown("LinTS")
    meta, arrays = saving.state(bandit)
    meta["arrays"] = sorted(arrays)
    del arrays["stream"]
    savez(path, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays)
    refused(path, "is broken: it holds the arrays")


def test_random_numbers_go_on_beyond_the_block_that_a_file_has(path):
    bandit, x = bb.LinTS(2, 1), np.zeros((6000, 1))
    bandit.save(path)
    loaded = bb.Bandit.load(path)
    np.testing.assert_array_equal(loaded.choose(x).arm, bandit.choose(x).arm)


def test_no_file(path):
    with pytest.raises(FileNotFoundError, match=r"no saved bandit at .*bandit\.npz"):
        bb.Bandit.load(path)
    with pytest.raises(FileNotFoundError, match="no saved bandit"):
        bb.Bandit.load(path.parent)


@pytest.mark.parametrize("fails", ["savez", "fsync", "replace"])
def test_saving_replaces_in_one_step(fails, path, monkeypatch):
    """Whatever step of a save fails: the old file is as it was, and nothing else is left."""
    old, new = grown("LinTS"), grown("BLTS", seed=1)
    old.save(path)
    before = path.read_bytes()

    def failing(*args, **kwargs):
        if fails == "savez":
            args[0].write(b"half of it")
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(np if fails == "savez" else os, fails, failing)
        with pytest.raises(OSError, match="disk is full"):
            new.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    new.save(path)
    assert anatomy(bb.Bandit.load(path)) == anatomy(new)
    assert list(path.parent.iterdir()) == [path]


WITH_STREAMS = (
    *("LinTS", "LinUCB", "BLTS pooled", "forest", "bootstrap", "tree", "levels", "shared"),
    "Bayesian LASSO",
)


@pytest.mark.parametrize("name", WITH_STREAMS)
@few("LinTS", "LinUCB", "pooled", "forest", "bootstrap", "tree", "levels", "shared")
def test_a_fresh_load_has_new_random_numbers(name, path):
    """Two arms without a reward are a fair coin: 200 decisions are those of before, or of another
    load, once in 2**200 times."""
    bandit, none = KINDS[name].make(2, 1), (0, 2, 1) if name == "shared" else (0, 1)
    x = np.zeros((200, *none[1:]))
    bandit.save(path)
    one, other = (bb.Bandit.load(path, fresh=True) for _ in range(2))
    again = bb.Bandit.load(path, fresh=one.seed)
    assert anatomy(again) == anatomy(one)
    assert anatomy(bb.Bandit.load(path)) == anatomy(bandit)
    before = bandit.seed
    one.save(path)
    played = [b.choose(x).arm.tolist() for b in (bandit, one, other)]
    assert played[0] != played[1] != played[2] != played[0]
    loaded = bb.Bandit.load(path)
    assert loaded.choose(x).arm.tolist() == played[1]
    assert repr(loaded.seed) == repr(one.seed) != repr(before)
    seeds = [getattr(b.belief, "seed", None) for b in (one, loaded)]
    if seeds[0] is not None:
        assert repr(seeds[0]) == repr(seeds[1]) == repr(random_streams.sampler_seed(one.seed))


@pytest.mark.parametrize("fresh", [None, 1, 0, "yes", np.random.default_rng(0)])
def test_what_fresh_may_be(fresh, path):
    grown("LinTS").save(path)
    with pytest.raises(TypeError, match="fresh must be True, False or a SeedSequence; got"):
        bb.Bandit.load(path, fresh=fresh)
