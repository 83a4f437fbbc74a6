"""A bandit in one file: goes on bit for bit; broken, foreign and future files are refused."""

import json
import os
import re
import zipfile
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit import forms
from bayesbandit.bandit import fast_path, random_streams
from bayesbandit.bandit.storage import saving
from bayesbandit.bandit.storage.settings import encode
from bayesbandit.runtime import savable
from tests.cases import few
from tests.players import ALL, PRESETS, STATEFUL, anatomy, lent, public, world


def grown(name, seed=0, arms=("a", "b", 3)):
    """A bandit with a past: rounds, a removed arm and a new one."""
    x, reward = world(np.random.default_rng(seed), 90)
    bandit = ALL[name](arms, 3, seed=seed)
    bandit.play(x[:40], reward[:40])
    bandit.remove_arm("b")
    bandit.add_arm("new")
    bandit.play(x[40:], reward[40:])
    return bandit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bandit.npz"


@pytest.mark.parametrize("name", ALL)
def test_saved_and_loaded_it_goes_on_as_if_it_had_not_been(name, path, rng):
    bandit = grown(name)
    bandit.save(path)
    loaded = bb.Bandit.load(path, None if name in STATEFUL else bandit.policy)
    assert anatomy(loaded) == anatomy(bandit)
    assert repr(loaded) == repr(bandit)
    x, reward = world(rng, 1500 if bandit.reweighting is None else 60)
    for mine, other in zip(loaded.play(x, reward), bandit.play(x, reward), strict=True):
        np.testing.assert_array_equal(mine, other)
    loaded.add_arm("late"), bandit.add_arm("late")
    assert public(loaded) == public(bandit)
    np.testing.assert_array_equal(loaded.history.arm, bandit.history.arm)
    batch = rng.normal(size=(50, 3))
    np.testing.assert_array_equal(loaded.choose(batch).rows, bandit.choose(batch).rows)


@few("LinTS", "BLTS pooled", "balanced cv")
@pytest.mark.parametrize("name", STATEFUL)
def test_lent_it_goes_on_and_so_do_its_decisions(name, rng):
    bandit = grown(name)
    other = lent(bandit)
    x, reward = world(rng, 30)
    for contexts, rewards in ((x[0], reward[0, 0]), (x[:5], reward[:5, 0])):
        decision, same = lent(other.choose(contexts)), bandit.choose(contexts)
        np.testing.assert_array_equal(decision.propensity, same.propensity)
        np.testing.assert_array_equal(decision.probabilities, same.probabilities)
        np.testing.assert_array_equal(decision.sd, same.sd)
        other.observe(decision, rewards), bandit.observe(same, rewards)
    other = lent(other)
    for one in (other, bandit):
        one.play(x, reward)
        one.update(x, np.array(one.arms, dtype=object)[[0] * 30], reward[:, 0], np.full(30, 0.5))
        one.add_arm("late")
    np.testing.assert_array_equal(other.probabilities(x), bandit.probabilities(x))
    assert public(other) == public(bandit)


@given(st.sampled_from(sorted(STATEFUL)), st.integers(0, 2**32 - 1))
def test_saving_is_no_event(tmp_path_factory, name, seed):
    """Save, load and save again: the same bits, and the first is not changed by it."""
    path = tmp_path_factory.mktemp("saved") / "bandit"
    bandit = grown(name, seed)
    before = anatomy(bandit)
    bandit.save(path)
    again = bb.Bandit.load(path)
    again.save(path)
    assert anatomy(bandit) == anatomy(again) == anatomy(bb.Bandit.load(str(path))) == before


def test_decisions_are_still_good_after_loading(path, rng):
    bandit = grown("BLTS")
    decision = bandit.choose(rng.normal(size=(4, 3)))
    bandit.save(path)
    loaded = bb.Bandit.load(path)
    loaded.observe(decision, np.ones(4))
    bandit.observe(decision, np.ones(4))
    assert public(loaded) == public(bandit)


def test_numpy_numbers_in_settings(path, rng):
    settings = {"alpha": np.int64(2), "ridge": np.float32(0.5), "history": np.int16(7)}
    bandit = bb.BLTS(2, 3, refit_every=np.int64(9), clip=np.float64(0.2), **settings)
    bandit.save(path)
    x, reward = world(rng, 40, K=2)
    same = bb.BLTS(2, 3, 2.0, 0.5, refit_every=9, clip=0.2, history=7).play(x, reward)
    np.testing.assert_array_equal(bb.Bandit.load(path).play(x, reward), same)


@pytest.mark.parametrize("name", PRESETS)
def test_no_pickle_and_a_version(name, path):
    grown(name).save(path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    meta = json.loads(arrays["meta"].tobytes())
    assert (meta["format"], meta["version"]) == ("bayesbandit.Bandit", 3)
    assert meta["names"] == ["a", 3, "new"]
    assert all(array.dtype.kind in "fu" for array in arrays.values())


@pytest.mark.parametrize("name", ["α of t", "ε of t"])
def test_a_function_is_not_in_the_file(name, path):
    bandit = grown(name)
    bandit.save(path)
    with pytest.raises(ValueError, match=r"was a function.*load\(path, policy="):
        bb.Bandit.load(path)
    assert bb.Bandit.load(path, bandit.policy).policy == bandit.policy
    with pytest.raises(TypeError, match="policy must be Thompson"):
        bb.Bandit.load(path, policy="Thompson")


def refused(path, message="is not a saved bandit, or is broken"):
    with pytest.raises(ValueError, match=message) as caught:
        bb.Bandit.load(path)
    assert str(path) in str(caught.value)


@few("[LinTS]")
@pytest.mark.parametrize("name", ["LinTS", "BLTS pooled", "BLUCB"])
def test_truncated_anywhere(name, path):
    grown(name).save(path)
    whole = path.read_bytes()
    for length in {*range(60), *range(0, len(whole), len(whole) // 150), len(whole) - 1}:
        path.write_bytes(whole[:length])
        refused(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LinTS", "BLTS pooled", "BLUCB"])
def test_bits_flipped_anywhere(name, path):
    """Refused by name, unless the bit said nothing (a date in the archive's directory)."""
    bandit = ALL[name](["a", "b"], 1, history=2) if name == "LinTS" else ALL[name](["a", "b"], 1)
    bandit.stream = bandit.stream[-60:].copy()
    bandit.stream[0] = 0
    fast_path.publish(bandit)
    bandit.play(np.ones((5, 1)), np.ones((5, 2)))
    bandit.save(path)
    whole, state, refusals, survivals = path.read_bytes(), anatomy(bandit), 0, 0
    directory = whole.index(b"PK\x01\x02")
    places = [*range(0, directory, 13), *range(directory, len(whole), 3)]
    for at in places:
        broken = bytearray(whole)
        broken[at] ^= (1, 0x80, 0x55)[at % 3]
        path.write_bytes(broken)
        try:
            loaded = bb.Bandit.load(path)
        except ValueError as error:
            refusals += str(path) in str(error)
        else:
            survivals += anatomy(loaded) == state
    assert refusals + survivals == len(places)
    assert refusals > 0.6 * len(places)


def savez(path, **arrays):
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("time,reward\n1,0.5\n"),
    "pickle": lambda path: path.write_bytes(b"\x80\x04K\x01."),
    "npy": lambda path: np.save(path.open("wb"), np.ones(3)),
    "npz": lambda path: savez(path, x=np.ones(3)),
    "objects": lambda path: savez(path, meta=np.array([{}], dtype=object)),
    "zip": foreign_zip,
    "no json": lambda path: savez(path, meta=np.frombuffer(b"{", np.uint8)),
    "a list": lambda path: savez(path, meta=np.frombuffer(b"[]", np.uint8)),
    "no version": lambda path: savez(path, meta=np.frombuffer(b'{"format": "x"}', np.uint8)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files(kind, path):
    FOREIGN[kind](path)
    refused(path)


def rewritten(path, **changes):
    """The saved file with some of its header changed."""
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    meta = {**json.loads(arrays["meta"].tobytes()), **changes}
    savez(path, **{**arrays, "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)})


def test_a_file_with_a_settings_old_name_is_read(path):
    bandit = bb.LinTS(2, 1, ridge=2.0, min_variance=0.25)
    bandit.save(path)
    old = encode(bandit.model)
    old["floor"] = old.pop("min_variance")
    rewritten(path, model=old)
    for loaded in (bb.Bandit.load(path), bb.Bandit.load(path, model=bandit.model)):
        assert loaded.model == bandit.model


def test_other_formats_and_versions(path):
    grown("LinTS").save(path)
    for version in (1, 2, 4, 99, 0, -3, 1.5, "1", None, True, [1], {}):
        rewritten(path, version=version)
        said = re.escape(f"holds 'bayesbandit.Bandit' version {version!r}; this release reads ")
        refused(path, f"{said}.* version 3")
    rewritten(path, version=3, format="other")
    refused(path, "holds 'other' version 3")


def test_missing_arrays(path):
    bandit = grown("LinTS")
    meta, arrays = saving.state(bandit)
    meta["arrays"] = sorted(arrays)
    del arrays["stream"]
    savez(path, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays)
    refused(path, "is broken: it holds the arrays")


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


def test_permissions_are_those_of_any_new_file(path):
    grown("LinTS").save(path)
    other = path.with_name("other")
    other.write_bytes(b"")
    assert path.stat().st_mode == other.stat().st_mode


WITH_STREAMS = {
    "LinTS": bb.LinTS,
    "LinUCB": bb.LinUCB,
    "BLTS pooled": STATEFUL["BLTS pooled"],
    "forest": partial(bb.ForestTS, trees=8),
    "bootstrap": partial(bb.BootstrapRidgeTS, replicates=10),
    "tree": bb.PolicyTreeTS,
    "levels": bb.SuperLinUCB,
    "shared": lambda arms, d, seed=0: bb.Bandit(
        arms, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=d, seed=seed
    ),
    "declared": partial(bb.BayesianLassoTS, draws=20),
}


@pytest.mark.parametrize("name", WITH_STREAMS)
@few("LinTS", "LinUCB", "pooled", "forest", "bootstrap", "tree", "levels", "shared")
def test_a_fresh_load_has_new_random_numbers(name, path):
    """Two arms without a reward are a fair coin: 200 decisions are those of before, or of another
    load, once in 2**200 times."""
    bandit, none = WITH_STREAMS[name](2, 1), (0, 2, 1) if name == "shared" else (0, 1)
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


def test_a_fresh_load_believes_what_was_saved(path, rng):
    bandit = grown("BLTS")
    bandit.save(path)
    x = rng.normal(size=(9, 3))
    fresh = bb.Bandit.load(path, fresh=True)
    assert fresh.t == bandit.t
    np.testing.assert_array_equal(fresh.probabilities(x), bandit.probabilities(x))
    for key in ("worker 1", 7):  # told apart by the seed of the file, as it was
        one, other = (bb.Bandit.load(path).reseed(key) for _ in range(2))
        assert anatomy(one) == anatomy(other)


@pytest.mark.parametrize("fresh", [None, 1, 0, "yes", np.random.default_rng(0)])
def test_what_fresh_may_be(fresh, path):
    grown("LinTS").save(path)
    with pytest.raises(TypeError, match="fresh must be True, False or a SeedSequence; got"):
        bb.Bandit.load(path, fresh=fresh)


def test_what_could_not_be_loaded_is_not_saved(path):
    """And the file that was there stays."""
    bandit = grown("LinTS")
    bandit.save(path)
    before = path.read_bytes()
    bandit.belief.arms[0, -1] = np.inf
    with pytest.raises(ValueError, match=r"cannot be saved, no file of it .*'U'\] must be 0"):
        bandit.save(path)
    deep = ()
    for _ in range(forms.MAX_DEPTH):
        deep = (deep,)
    bandit = bb.Bandit(2, bb.Ridge(), Deep(deep), n_features=1)
    with pytest.raises(ValueError, match=r"cannot be saved, .*: its lists are more than 100"):
        bandit.save(path)
    assert path.read_bytes() == before


@dataclass(frozen=True)
class Deep:
    setting: tuple

    def probabilities(self, prediction, t=1):
        return np.full(prediction.mean.shape, 0.5)


@pytest.fixture(autouse=True)
def registered():
    bb.savable(Deep)
    yield
    del savable.KINDS[savable.name_of(Deep)]


@pytest.mark.parametrize(
    "make", [bb.LinTS, bb.LinUCB, bb.ForestTS, bb.BootstrapRidgeTS, bb.ILTCB, bb.PolicyTreeTS]
)
def test_a_bandit_of_many_features_and_no_rounds(make, path):
    bandit = make(2, 300)
    bandit.save(path)
    assert anatomy(bb.Bandit.load(path)) == anatomy(bandit)


def test_numbers_are_of_their_shape_and_range():
    form = forms.Numbers((None, 2), 0.0, 5.0, whole=True)
    forms.check(np.array([[0.0, 5.0], [1.0, 2.0]]), form)
    forms.check(np.zeros((0, 2)), form)
    for said, bad in {
        "its n must be numbers .*; got \\(2,\\)": np.zeros(2),
        "its n must be numbers .*; got \\(1, 3\\)": np.zeros((1, 3)),
        "its n must be an array of <f8; got <U1": np.array([["a", "b"]]),
        "its n must be an array of <f8; got 'x'": "x",
        "its n must be integers from 0 to 5; got nan": np.array([[np.nan, 0.0]]),
        "its n must be integers from 0 to 5; got 6": np.array([[6.0, 0.0]]),
        "its n must be integers from 0 to 5; got 0.5": np.array([[0.5, 0.0]]),
    }.items():
        with pytest.raises(forms.Broken, match=said):
            forms.check(bad, form, "its n")
    with pytest.raises(forms.Broken, match="got <i8"):
        forms.check(np.zeros(2, dtype=np.int64), forms.Numbers((2,), dtype="<f8"))
