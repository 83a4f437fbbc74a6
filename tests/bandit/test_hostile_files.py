"""No file that is loaded runs code, and what is no whole bandit is refused in a sentence."""

import json
import os
import sys

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.kernels.arm import HEAD
from tests.bandit.kinds import KINDS, given_again, lived
from tests.cases import few
from tests.players import anatomy


def saved(path, name="LinTS"):
    bandit = lived(name)
    if KINDS[name].changes:
        bandit.remove_arm("b")
    bandit.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    return json.loads(arrays.pop("meta").tobytes()), arrays, given_again(bandit)


def rewrite(path, meta, arrays):
    header = np.frombuffer(json.dumps(meta | {"arrays": sorted(arrays)}).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, meta=header, **arrays)


def put(name, at, value):
    def change(meta, arrays):
        arrays[name][at] = value

    return change


def say(*keys, value):
    def change(meta, arrays):
        for key in keys[:-1]:
            meta = meta[key]
        meta[keys[-1]] = value

    return change


def lead(name, to):
    """Let the first node of a forest that has children have another child."""

    def change(meta, arrays):
        node = np.flatnonzero(arrays["belief.0.feature"] >= 0)[0]
        arrays[name][node] = to if to is not None else len(arrays[name]) - 1

    return change


CLOCK = HEAD.names.index("clock")
CRAFTED = {
    "stream used up": ("LinTS", put("stream", 0, 1e15)),
    "stream between": ("LinTS", put("stream", 0, 1.5)),
    "no stream": ("LinTS", lambda meta, a: a.update(stream=np.zeros(0))),
    "total beyond the rows": ("LinTS", say("total", value=10**9)),
    "total no number": ("LinTS", say("total", value="many")),
    "t": ("LinTS", say("t", value=1)),
    "arm beyond": ("LinTS", put("history", (0, -7), 99.0)),
    "arm before": ("LinTS", put("history", (0, -7), -2.0)),
    "arm between": ("LinTS", put("history", (0, -7), 0.5)),
    "rule": ("LinTS", put("history", (0, -6), 17.0)),
    "reward": ("LinTS", put("history", (0, -2), np.nan)),
    "history narrow": ("LinTS", lambda meta, a: a.update(history=a["history"][:, :-1].copy())),
    "history flat": ("LinTS", lambda meta, a: a.update(history=a["history"].ravel())),
    "belief cut": ("LinTS", lambda meta, a: a.update({"belief.arms": a["belief.arms"][:1].copy()})),
    "belief NaN": ("LinTS", put("belief.arms", (0, 20), np.nan)),
    "rounds of an arm": ("LinTS", put("belief.arms", (0, 0), 1e9)),
    "whole numbers": (
        "LinTS", lambda meta, a: a.update({"belief.arms": a["belief.arms"].astype(int)})
    ),
    "more arms": ("LinTS", say("names", value=["a", "c", "d"])),
    "no arms": ("LinTS", say("names", value=[])),
    "seed": ("LinTS", say("seed", value=[-1, []])),
    "rng": ("LinTS", say("rng", "state", "inc", value=2**128)),
    "a key more": ("LinTS", say("more", value=1)),
    "a belief's method": ("LinTS", lambda meta, a: a.update({"belief.update": np.zeros(3)})),
    "a policy that is none": ("LinTS", say("policy", value={"kind": "Ridge"})),
    "an unknown policy": ("LinTS", say("policy", value={"kind": "Magic"})),
    "more settings": ("LinTS", say("policy", value={"kind": "UCB", "alpha": 1.0, "beta": 2.0})),
    "an encoder": ("tables", say("encoder", value=[1])),
    "a snapshot": ("BLTS pooled", lambda meta, a: a.update({"reweighting.0.arms": np.zeros(3)})),
    "a regression": ("BLUCB", lambda meta, a: a.update({"reweighting.coef": np.zeros((2, 2))})),
    "shared rounds": ("shared", put("belief.n", 0, 99.0)),
    "shared twice": ("shared", say("model", "model", value={"kind": "Shared", "model": None})),
    "a clock that is none": ("fading", put("belief.arms", (0, CLOCK), np.nan)),
    "a clock put forward for ever": ("fading", say("ahead", value=1e300)),
    "a half-life's probability": ("half-lives", put("belief.log_weight", 0, np.nan)),
    "a round of no time": ("fading, joint", put("belief.rounds", (0, -1), np.nan)),
    "draws of another shape": ("by Gibbs", lambda meta, a: a.update(
        {"belief.0.values.theta": a["belief.0.values.theta"][:, :1].copy()})),
    "weights of draws that are none": ("by Gibbs", lambda meta, a: a.update(
        {"belief.0.weight": np.full(len(a["belief.0.values.theta"]), np.nan)})),
    "a state of points": ("by Gibbs", lambda meta, a: a.update({"belief.0.state": np.eye(3)})),
    "chains' counts": ("by Gibbs", say("belief", "0.counts", 0, value=-5)),
    "a loop": ("forest", lead("belief.0.left", 0)),
    "another tree's child": ("forest", lead("belief.0.right", None)),
    "a feature beyond": ("forest", put("belief.0.feature", 0, 99)),
    "a value infinite": ("forest", put("belief.1.value", (0, 1), np.inf)),
    "roots out of order": ("forest", put("belief.1.roots", 1, 10**6)),
    "trees beyond the rounds": ("forest", put("belief.fitted", 0, 1e6)),
    "a policy tree's loop": ("tree", put("belief.tree.left", 0, 0)),
    "an unknown feature": ("tree", put("belief.tree.feature", 0, 2)),
    "an unknown arm": ("tree", put("belief.log", (0, 5), 3.0)),
    "no reward": ("tree", put("belief.log", (0, 6), np.nan)),
    "no tree": ("tree", lambda meta, a: a.pop("belief.tree.left")),
    "more than there were": ("tree", say("belief", "fitted", value=10**6)),
    # to count it took as much memory as the number is large
    "a round of an arm that is none": ("Laplace", put("belief.rounds", (0, 3), 2.0**40)),
    "a round between two arms": ("Laplace", put("belief.rounds", (0, 3), 0.5)),
    "rounds of an approximation": ("Laplace", lambda meta, a: a.update(
        {"belief.rounds": a["belief.rounds"][:, 1:].copy()})),
}  # fmt: skip


@few("arm that is none", "[arm beyond]", "[belief NaN]", "[shared rounds]")
@pytest.mark.parametrize("case", CRAFTED)
def test_what_is_no_whole_bandit_is_refused(case, tmp_path):
    name, change = CRAFTED[case]
    path = tmp_path / "b"
    meta, arrays, given = saved(path, name)
    rewrite(path, meta, arrays)
    bb.Bandit.load(path, **given)
    change(meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises((ValueError, TypeError)):
        bb.Bandit.load(path, **given)


@few("'rng'")
@pytest.mark.parametrize("key", ["names", "encoder", "model", "policy", "rng", "total", "belief"])
def test_missing_keys_are_named(key, tmp_path):
    meta, arrays, _ = saved(tmp_path / "b")
    del meta[key]
    rewrite(tmp_path / "b", meta, arrays)
    with pytest.raises(ValueError, match=rf"is broken: it lacks '{key}'"):
        bb.Bandit.load(tmp_path / "b")


@pytest.mark.parametrize("kind", ["antigravity:fly", "antigravity", "os:system", "this.is:no"])
@pytest.mark.parametrize("part", ["model", "policy", "balance"])
def test_a_name_in_a_file_imports_nothing(part, kind, tmp_path):
    meta, arrays, _ = saved(tmp_path / "b")
    for encoded in ({"kind": kind}, {"kind": kind, "foreign": True}):
        rewrite(tmp_path / "b", meta | {part: encoded}, arrays)
        with pytest.raises(ValueError, match=kind):
            bb.Bandit.load(tmp_path / "b")
    assert not {"antigravity", "this"} & set(sys.modules)


def test_what_would_not_load_is_not_saved(tmp_path):
    """And the file that was there stays."""
    path, bandit = tmp_path / "b", lived("LinTS")
    bandit.save(path)
    before = path.read_bytes()
    bandit.belief.arms[0, -1] = np.inf
    with pytest.raises(ValueError, match=r"cannot be saved, no file .*'root'\] must be finite"):
        bandit.save(path)
    assert path.read_bytes() == before


DECLARATION = """import pymc as pm
import bayesbandit as bb

@bb.reward_model(theta=bb.Prior("Laplace", mu=0, b=1, dims="feature"))
def changing(x, reward, weight, theta):
    mu = x @ theta
    pm.Normal("reward", mu, {sigma} / pm.math.sqrt(weight), observed=reward)
    return mu
"""


@pytest.mark.slow
def test_a_declaration_that_has_changed_is_refused(tmp_path):
    """Its body counts, though its name and priors are the same."""
    file, path = tmp_path / "changing.py", tmp_path / "b"
    file.write_text(DECLARATION.format(sigma=0.5))
    model = bb.load_model(file)
    bandit = bb.Bandit(2, bb.Sampled(model, draws=20), bb.Thompson(), n_features=2)
    bandit.save(path)
    assert anatomy(bb.Bandit.load(path)) == anatomy(bandit)
    file.write_text(DECLARATION.format(sigma=50.0) + "\n")
    other = bb.load_model(file)
    for given in (None, other):
        with pytest.raises(ValueError, match=r"declaration of 'changing' is not .* model=…"):
            bb.Bandit.load(path, model=given)
    assert anatomy(bb.Bandit.load(path, model=model)) == anatomy(bandit)


@pytest.mark.skipif(os.name != "posix", reason="modes and links")
def test_links_are_followed_and_modes_kept(tmp_path):
    path, link = tmp_path / "b", tmp_path / "link"
    bandit = bb.LinTS(2, 1)
    bandit.save(path)
    path.chmod(0o600)
    link.symlink_to(path)
    bandit.choose([1.0])
    bandit.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert bb.Bandit.load(path).t == 1


SETTINGS = {
    "count": {"history": 2**53 - 1},
    "word": {"history": 2**63},
    "long seed": {"seed": 10**5000},
    "name": {"arms": [-(10**1000), 1]},
    "words": {"seed": np.random.SeedSequence(np.array([1, 2], dtype=np.uint32))},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_made_can_be_saved(name, tmp_path):
    """Or is refused before it is made."""
    try:
        bandit = bb.LinTS(**{"arms": 2, "n_features": 1} | SETTINGS[name])
    except ValueError:
        return
    bandit.observe(bandit.choose([1.0]), 1.0)
    bandit.save(tmp_path / "b")
    again = bb.Bandit.load(tmp_path / "b")
    assert again.choose([1.0]).rows.tobytes() == bandit.choose([1.0]).rows.tobytes()
