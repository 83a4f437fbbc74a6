"""No file that is loaded runs code or crashes the process; what cannot be whole is refused."""

import json
import os
import time
import zipfile
from functools import cache

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.bandit.storage import saving
from bayesbandit.kernels import row_layout
from bayesbandit.kernels.arm import HEAD, WIDTH
from bayesbandit.kernels.conjugate.arms import N
from bayesbandit.kernels.conjugate.fading import CLOCK as CLOCK_OF_COUNTS
from bayesbandit.runtime import files
from tests import declarations as declared
from tests.attack import flips, watch
from tests.attack.kinds import SAVED
from tests.cases import few, in_gate
from tests.players import STATEFUL, anatomy, world


def saved(path, name="BLTS", T=30):
    x, reward = world(np.random.default_rng(0), T)
    bandit = STATEFUL[name](["a", "b", "c"], 3)
    bandit.play(x, reward)
    bandit.remove_arm("b")
    bandit.play(x[:5], reward[:5, :2])  # of which the propensities are not settled
    bandit.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    return json.loads(arrays.pop("meta").tobytes()), arrays


def rewrite(path, meta, arrays):
    header = np.frombuffer(json.dumps(meta | {"arrays": sorted(arrays)}).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, meta=header, **arrays)


def put(name, at, value):
    def change(meta, arrays):
        arrays[name][at] = value

    return change


def put_all(name, value):
    return lambda meta, arrays: arrays.__setitem__(name, value)


def say(key, value):
    return lambda meta, arrays: meta.__setitem__(key, value)


CRAFTED = {
    "stream used up": put("stream", 0, 1e15),
    "stream before its start": put("stream", 0, -1e9),
    "stream between": put("stream", 0, 1.5),
    "stream NaN": put("stream", 0, np.nan),
    "no stream": lambda meta, arrays: arrays.__setitem__("stream", np.zeros(0)),
    "total beyond the rows": say("total", 10**9),
    "total negative": say("total", -1),
    "total no number": say("total", "many"),
    "limit": say("limit", 3),
    "t": say("t", 1),
    "arm beyond": put("history", (0, -7), 99.0),
    "arm before": put("history", (0, -7), -2.0),
    "arm between": put("history", (0, -7), 0.5),
    "rule": put("history", (0, -6), 17.0),
    "rule's number": put("history", (-1, -5), np.inf),
    "degrees of freedom": put("history", (-1, -8), 0.0),
    "least probability": put("history", (-1, -4), 0.9),
    "least probability before an arm went": put("history", (0, -4), -1e308),
    "moments": put("history", (0, 4), np.nan),
    "history narrow": lambda meta, a: a.__setitem__("history", a["history"][:, :-1].copy()),
    "history flat": lambda meta, a: a.__setitem__("history", a["history"].ravel()),
    "belief cut": lambda meta, a: a.__setitem__("belief.arms", a["belief.arms"][:1].copy()),
    "belief NaN": put("belief.arms", (0, 20), np.nan),
    "rounds of an arm": put("belief.arms", (0, 0), 1e9),
    "more arms": say("names", ["a", "c", "d"]),
    "no arms": say("names", []),
    "arms of arms": say("names", [["a"], "c"]),
    "more features": say("n_features", 10**9),
    "rng": say("rng", {"bit_generator": "MT19937"}),
    "seed": say("seed", [-1, []]),
    "key of the seed": say("seed", [0, 1.5]),
    "rng of another size": lambda meta, arrays: meta["rng"]["state"].__setitem__("inc", 2**128),
    "a key more": say("more", 1),
    "a kind that is a list": say("policy", {"kind": ["UCB"]}),
    "a module's function": say("policy", {"kind": "os:system", "command": "true"}),
    "a belief's method": lambda meta, a: a.__setitem__("belief.update", np.zeros(3)),
    "a belief of numbers": say("belief", {"arms": 1}),
    "whole numbers": lambda meta, a: a.__setitem__("belief.arms", a["belief.arms"].astype(int)),
    "a policy that is none": say("policy", {"kind": "Ridge"}),
    "an unknown policy": say("policy", {"kind": "Magic"}),
    "more settings": say("policy", {"kind": "UCB", "alpha": 1.0, "beta": 2.0}),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_crafted_files_are_refused(case, tmp_path):
    path = tmp_path / "b"
    meta, arrays = saved(path)
    CRAFTED[case](meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises((ValueError, TypeError)):
        bb.Bandit.load(path)


DRAWN = {
    "draws of another shape": lambda meta, a: a.__setitem__(
        "belief.0.values.theta", a["belief.0.values.theta"][:, :1].copy()),
    "too few draws": lambda meta, a: a.__setitem__(
        "belief.1.values.theta", a["belief.1.values.theta"][:3].copy()),
    "draws of no variable": lambda meta, a: a.__setitem__("belief.0.values.eta", np.zeros(20)),
    "a state of another shape": lambda meta, a: a.__setitem__("belief.0.state.theta", np.zeros(7)),
    "draws NaN": put("belief.0.values.theta", (0, 0), np.nan),
    "points of another engine": lambda meta, a: [
        a.__setitem__("belief.1.state", np.zeros((20, 2))),
        *(a.pop(k) for k in sorted(a) if k.startswith("belief.1.state."))],
    "engines that refused their rows": lambda meta, a: meta["belief"].update(
        refused=[[f"engine {i}", "rows"] for i in range(10**6)]),
    "chains' counts": lambda meta, a: meta["belief"]["chains"][0].__setitem__(0, -5),
    "a fit to rounds to come": lambda meta, a: meta["belief"]["chains"][0].__setitem__(0, 10**6),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", DRAWN)
def test_crafted_draws_are_refused(case, tmp_path):
    path = tmp_path / "b"
    laplace = bb.load_model("laplace")
    bandit = bb.Bandit(2, bb.Sampled(laplace, draws=20), bb.Thompson(), n_features=2)
    bandit.play(np.random.default_rng(0).normal(size=(12, 2)), np.ones((12, 2)))
    bandit.save(path)
    meta, arrays = saving.read(path)
    rewrite(path, meta, arrays)
    assert bb.Bandit.load(path, model=laplace).t == 12
    DRAWN[case](meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises(ValueError, match="is broken: its"):
        bb.Bandit.load(path, model=laplace)


def scaled(name, by):
    return lambda meta, arrays: arrays.__setitem__(name, arrays[name] * by)


def believes(key, value):
    return lambda meta, arrays: meta["belief"].__setitem__(key, value)


SHARED = {
    "rounds beyond": put("belief.n", 0, 20.0),
    "arms beyond": lambda meta, a: a.__setitem__("belief.n", np.append(a["belief.n"], 0.0)),
    "no posterior": lambda meta, a: [a.pop(k) for k in [*a] if k.startswith("belief.common.")],
    "another column": lambda meta, a: a.__setitem__("history", np.insert(a["history"], 2, 1.0, 1)),
    "no model": lambda meta, a: meta["model"].pop("model"),
    "a model that is none": lambda meta, a: meta["model"].__setitem__("model", None),
    "shared twice": lambda meta, a: meta.update(model={"kind": "Shared", "model": meta["model"]}),
    "a balance of contexts": say("balance", {"kind": "ResidualBalance"}),
}
LINEAR = {
    "infinite": put("belief.common.arms", (0, 20), np.inf),
    "NaN": put("belief.common.arms", (0, 20), np.nan),
    "posteriors": lambda meta, a: a.__setitem__(
        "belief.common.arms", a["belief.common.arms"].repeat(2, axis=0)),
}  # fmt: skip
LAPLACE = {
    "infinite": scaled("belief.common.arms", np.inf),
    "rounds narrow": lambda meta, a: a.__setitem__(
        "belief.common.rounds", a["belief.common.rounds"][:, 1:].copy()),
    "arms of rounds": put("belief.common.rounds", (0, 2), -1.0),
    "no total": put("belief.common.total", 0, np.nan),
    "never due": put("belief.common.due", 0, np.inf),
}  # fmt: skip
SAMPLED = {
    "no chain": believes("common.chains", []),
    "chains of nothing": believes("common.chains", None),
    "a count for a chain": believes("common.chains", [1]),
    "refusals of nothing": believes("common.refused", -1),
    "draws NaN": put("belief.common.0.values.theta", (0, 0), np.nan),
    "a state of another shape": lambda meta, a: a.__setitem__(
        "belief.common.0.state.theta_variance", np.ones((2, 2))),
    "a state without a variable": lambda meta, a: a.pop("belief.common.0.state.theta_variance"),
    "a state NaN": put("belief.common.0.state.theta_variance", 0, np.nan),
    "no count of rows": lambda meta, a: a.__setitem__(
        "belief.common.0.state.rows tested", np.zeros(2)),
}  # fmt: skip
OF = {
    "ridge": (bb.Ridge, {}, SHARED | LINEAR),
    "laplace": (lambda: bb.load_model("logistic"), {"engine": "laplace"}, SHARED | LAPLACE),
    "sampled": (lambda: bb.load_model("laplace"), {"draws": 20}, SAMPLED),
}


@cache
def shared(kind):
    """A bandit whose arms share a model, and it."""
    make, settings, _ = OF[kind]
    model = bb.Shared(make())
    bandit = declared.bandit(["a", "b", "c"], model, bb.Thompson(), n_features=2, **settings)
    x = np.random.default_rng(0).normal(size=(12, 3, 2))
    bandit.play(x, (x[:, :, 0] > 0).astype(float))
    bandit.remove_arm("b")
    bandit.play(x[:3, :2], np.ones((3, 2)))
    return bandit, model


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF)
def test_files_of_arms_that_share_a_model(kind, tmp_path):
    bandit, model = shared(kind)
    bandit.save(tmp_path / "b")
    assert anatomy(bb.Bandit.load(tmp_path / "b", model=model)) == anatomy(bandit)


@few("[ridge-no posterior]")
@pytest.mark.parametrize(("kind", "case"), [(k, case) for k in OF for case in OF[k][-1]])
def test_crafted_files_of_arms_that_share_a_model_are_refused(kind, case, tmp_path):
    path, (bandit, model) = tmp_path / "b", shared(kind)
    bandit.save(path)
    meta, arrays = saving.read(path)
    OF[kind][-1][case](meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises((ValueError, TypeError)):
        bb.Bandit.load(path, model=None if "model" in case or "shared" in case else model)


CLOCK, LEFT = HEAD.names.index("clock"), HEAD.names.index("left")
CLOCKS = {  # of bandits that forget
    "a clock that is none": ("fading", put("belief.arms", (0, CLOCK), np.nan)),
    "a negative clock": ("fading", put("belief.arms", (0, CLOCK), -1.0)),
    "a clock far ahead": ("fading, of time", put("belief.arms", (1, CLOCK), 1e300)),
    "more left than there was": ("fading", put("belief.arms", (0, LEFT), 1e9)),
    "a half-life that is none": ("fading", lambda meta, a: meta["model"].update(half_life=np.nan)),
    "a negative half-life": ("fading, joint", lambda m, a: m["model"].update(half_life=-5.0)),
    "an infinite half-life": ("fading, affine", lambda m, a: m["model"].update(half_life=np.inf)),
    "a huge half-life": ("window, bootstrap", lambda m, a: m["model"].update(half_life=1e200)),
    "a negative drift": ("walking", lambda meta, a: meta["model"].update(drift=-0.1)),
    "a huge drift": ("walking", lambda meta, a: meta["model"].update(drift=1e200)),
    "a clock put forward for ever": ("fading", say("ahead", 1e300)),
    "a clock put forward by nothing": ("fading", say("ahead", np.nan)),
    "a member's clock": ("half-lives", put("belief.arms", (1, 0, CLOCK), -3.0)),
    "a half-life's probability": ("half-lives", put("belief.log_weight", 0, np.nan)),
    "a member's rounds": ("half-lives", put("belief.arms", (1, 0, 0), 1e300)),
    "an affine member's rounds": ("half-lives, affine", put("belief.arms", (3, 1, 0), 51.0)),
    "a rate's clock": ("fading, conjugate", put("belief.arms", (0, CLOCK_OF_COUNTS), np.nan)),
    "clocks of other arms": ("fading, conjugate", put_all("belief.arms", np.zeros((7, 16)))),
    "a round of no time": ("fading, joint", put("belief.rounds", (0, -1), np.nan)),
    "a round of no tick": ("fading, Laplace", put("belief.rounds", (0, -1), 1e300)),
    "a window's clock": ("window, by Gibbs", believes("tick", -1.0)),
    "a window's infinite clock": ("window, by Gibbs", believes("tick", np.inf)),
    "rounds that left a window": ("window, bootstrap", put("belief.gone", (0, 0), 1e9)),
    "half a round left": ("window, bootstrap", put("belief.gone", (0, 0), 0.5)),
    "a fit to more than left": ("window, by Gibbs", put("belief.gone", (1, 0), 1e6)),
    "a balance's ticks": ("fading, pooled", put_all("reweighting.ticks", np.zeros((3, 1)))),
    "a tick of a balance": ("fading, pooled", put("reweighting.ticks", (0, 0), np.nan)),
    "a balance's clock": ("fading, pooled", lambda m, a: m["reweighting"].update(tick=-1.0)),
    "a balance's scale": ("fading, pooled", lambda m, a: m["reweighting"].update(scale=np.inf)),
    "a negative period": ("fading, pooled", lambda m, a: m["reweighting"]["periods"].append(-1.0)),
}


@few(
    "[a clock that is none]",
    "[a member's rounds]",
    "[a rate's clock]",
    "[a half-life that is none]",
)
@pytest.mark.parametrize("case", CLOCKS)
def test_crafted_clocks_are_refused(case, tmp_path):
    path, (name, change) = tmp_path / "b", CLOCKS[case]
    bandit = flips.trained(name, 0)
    bandit.save(path)
    meta, arrays = saving.read(path)
    rewrite(path, meta, arrays)
    assert bb.Bandit.load(path).t == bandit.t
    change(meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises(ValueError, match=r"is broken: |must be "):
        bb.Bandit.load(path)


@pytest.mark.parametrize("rounds", [1e300, 0.5, -1.0, np.nan])
def test_rounds_of_a_rate_with_another_half_life_are_no_more_than_those_of_all(rounds, tmp_path):
    path, model = tmp_path / "b", bb.load_model("gamma_poisson")
    bb.Bandit(2, bb.Declared(model, half_life="auto"), bb.Thompson(), n_features=0).save(path)
    meta, arrays = saving.read(path)
    put("belief.arms", (2, 0, N), rounds)(meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises(ValueError, match=r"rounds|sums must be"):
        bb.Bandit.load(path)


ROOTS = {  # of an arm with two features and a constant, U of 3 rows of 8 numbers
    "a diagonal of 2": (0, 2.0),
    "a diagonal of NaN": (9, np.nan),
    "below the diagonal": (8, 1e-3),
    "behind its columns": (4, 1.0),
    "an infinite number": (1, np.inf),
    "a number that overflows": (1, -1e299),
}


@pytest.mark.parametrize("case", ROOTS)
@pytest.mark.parametrize("name", ["LinTS", "nig"])
def test_a_root_is_finite_and_triangular(name, case, tmp_path):
    """And what it predicts is finite: else an arm would have the probability NaN."""
    path, (at, value) = tmp_path / "b", ROOTS[case]
    flips.trained(name, 0).save(path)
    meta, arrays = saving.read(path)
    put("belief.arms", (0, WIDTH + 3 * 8 + at), value)(meta, arrays)
    rewrite(path, meta, arrays)
    with pytest.raises(ValueError, match=r"\['U'\] must be |roots do not predict finite"):
        bb.Bandit.load(path)


@few("LinTS", "bootstrap", "levels", "tree")
@pytest.mark.parametrize("name", [name for name, kind in SAVED.items() if not kind.slow])
def test_what_is_saved_loads_and_what_would_not_load_is_not_saved(name, tmp_path):
    """Whatever number of its state is wrong; a bandit that is refused changes no file."""
    path, bandit = tmp_path / "b", flips.trained(name, 0)
    bandit.save(path)
    before, refused = path.read_bytes(), 0
    for array in [v for v in bandit.belief.state().values() if isinstance(v, np.ndarray)]:
        if not (array.size and array.flags.writeable):
            continue
        for value in (np.nan, np.inf, -2.0, 1e308):
            kept = array.flat[0]
            with np.errstate(invalid="ignore"):
                array.flat[0] = np.float64(value).astype(array.dtype)
            try:
                bandit.save(path)
            except ValueError:
                refused += 1
                assert path.read_bytes() == before
            else:
                bb.Bandit.load(path, model=bandit.model)
                path.write_bytes(before)
            array.flat[0] = kept
    assert refused


@few("[30-levels]", "[30-fading, conjugate]")
@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("files", [10, pytest.param(150, marks=pytest.mark.long)])
@in_gate(12)
def test_crafted_files_of_every_kind(name, files, tmp_path):
    """Refused in a sentence, or a bandit that plays. To load one is to read it: nothing is
    imported, run, written or started."""
    flips.craft(tmp_path, 1, name, files)


@pytest.mark.parametrize(
    ("event", "args", "fine"),
    [
        ("open", ("b", "r", os.O_RDONLY), True),
        ("open", ("b", "w", os.O_WRONLY | os.O_CREAT), False),
        ("import", ("antigravity", None, [], [], []), False),
        ("compile", (b"1", "<unknown>"), True),
        ("compile", (b"1", "evil.py"), False),
        ("exec", ("code",), False),
        ("subprocess.Popen", ("sh",), False),
        ("pickle.find_class", ("os", "system"), False),
    ],
)
def test_what_a_load_may_do(event, args, fine):
    assert watch.harmless(event, args) is fine


@pytest.mark.parametrize(
    "kind", ["antigravity:fly", "antigravity", "this.is:no", "bayesbandit.cli.app"]
)
@pytest.mark.parametrize("part", ["model", "policy", "balance"])
def test_a_name_in_a_file_imports_nothing(part, kind, tmp_path):
    path = tmp_path / "b"
    meta, arrays = saved(path)
    bb.Bandit.load(path)  # a process's first load may read compiled kernels
    for encoded in ({"kind": kind}, {"kind": kind, "foreign": True}):
        rewrite(path, meta | {part: encoded}, arrays)
        with watch.watched() as did, pytest.raises(ValueError, match=kind):
            bb.Bandit.load(path)
        assert all(watch.harmless(*one) for one in did)  # files are read: what packages offer


def test_the_watch_sees():
    with watch.watched() as did:
        eval(compile("1 + 1", "evil.py", "eval"))
    assert {event for event, _ in did} >= {"compile", "exec"}
    assert not all(watch.harmless(*one) for one in did)


KEYS = (
    *("names", "n_features", "encoder", "model", "policy", "balance", "seed"),
    *("t", "rng", "limit", "total", "retired", "belief"),
)


@pytest.mark.parametrize("key", KEYS)
def test_missing_keys_are_named(key, tmp_path):
    path = tmp_path / "b"
    meta, arrays = saved(path)
    del meta[key]
    rewrite(path, meta, arrays)
    with pytest.raises(ValueError, match=rf"is broken: it lacks '{key}'"):
        bb.Bandit.load(path)


@pytest.mark.parametrize("name", ["BLTS pooled", "BLUCB"])
def test_crafted_snapshots_are_refused(name, tmp_path):
    path = tmp_path / "b"
    meta, arrays = saved(path, name)
    for key in [k for k in arrays if k.startswith("reweighting.")]:
        if arrays[key].size:
            changed = arrays | {key: arrays[key].ravel()[:3].copy()}
            rewrite(path, meta, changed)
            with pytest.raises(ValueError, match="is broken"):
                bb.Bandit.load(path)


@pytest.mark.slow
def test_a_small_file_does_not_unpack_to_a_large_one(tmp_path):
    path = tmp_path / "b"
    saved(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", bytes(10**8))
    with pytest.raises(ValueError, match="is broken: its entries"):
        bb.Bandit.load(path)


def test_a_file_runs_no_other(tmp_path):
    evil, ran, path = tmp_path / "evil.py", tmp_path / "ran", tmp_path / "b"
    evil.write_text(f"open({str(ran)!r}, 'w').close()\n")
    meta, arrays = saved(path)
    for name in (str(evil), f"{evil}:x", "../evil", "evil.py"):
        model = {"kind": "Declared", "declared": f"name: {json.dumps(name)}\npriors: {{}}\n"}
        rewrite(path, meta | {"model": model}, arrays)
        with pytest.raises(ValueError, match="is not a bare name"):
            bb.Bandit.load(path)
    assert not ran.exists()


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


def hostile(path, meta, arrays, priors="{}", **other):
    """Return a file of a declared model with these priors, and without its digest."""
    text = f"name: ridge\npriors: {priors}\n"
    rewrite(path, meta | {"model": meta["model"] | {"declared": text}, "digest": None, **other},
            arrays)  # fmt: skip


@pytest.mark.slow
def test_a_file_of_priors_that_no_model_can_have(tmp_path):
    """Whatever PyMC says of them; a file names none of its functions."""
    path = tmp_path / "b"
    bb.Bandit(2, bb.load_model("ridge"), bb.Thompson(), n_features=2).save(path)
    meta, arrays = saving.read(path)
    for prior in (
        "{dist: Normal, transform: arange}",
        "{dist: AsymmetricLaplace}",
        "{dist: GARCH11, kwargs: {omega: 9, alpha_1: 9, beta_1: 9, initial_vol: 9}}",
        "{dist: DensityDist}",
    ):
        hostile(path, meta, arrays, f"{{sigma2: {prior}}}")
        with pytest.raises(ValueError, match=r"is broken|prior 'sigma2'|ridge"):
            bb.Bandit.load(path)


@pytest.mark.slow
@pytest.mark.parametrize(("more", "arms"), [(20_000, 2), (1000, 3000)])
def test_a_file_does_not_claim_more_features_than_it_holds(more, arms, tmp_path):
    """A model of all of them would take memory, and hours, long before it is seen that they lack;
    a bandit that is as large as it says is saved and loaded."""
    path = tmp_path / "b"
    bb.Bandit(2, bb.load_model("ridge"), bb.Thompson(), n_features=2).save(path)
    meta, arrays = saving.read(path)
    width = arrays["history"].shape[1] - row_layout.row_width(0, 2) + row_layout.row_width(0, arms)
    arrays["history"] = np.zeros((0, width - 2 + more))
    names = [f"a{i}" for i in range(arms)]
    hostile(path, meta, arrays, names=names, n_features=more)
    began = time.process_time()
    with pytest.raises(ValueError, match="its model is too large for it"):
        bb.Bandit.load(path)
    assert time.process_time() - began < 20


def test_a_file_that_goes_while_it_is_read(tmp_path, monkeypatch):
    path, read = tmp_path / "b", saving.read
    saved(path)

    def gone(where):
        found = read(where)
        path.unlink()
        return found

    monkeypatch.setattr(saving, "read", gone)
    assert bb.Bandit.load(path).t == 35


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


@pytest.mark.parametrize(
    "name", ["x" * 250, "ü" * 120, "🎰" * 60], ids=["one byte", "two bytes", "four bytes"]
)
def test_a_name_may_be_as_long_as_names_may_be(name, tmp_path):
    path, bandit = tmp_path / name, bb.LinTS(2, 1)
    bandit.save(path)
    assert anatomy(bb.Bandit.load(path)) == anatomy(bandit)
    dead = tmp_path / f".{name[:35]}.{files.HOST}.{2**22 + 1}.00000000.tmp"
    dead.write_bytes(b"half")
    bandit.save(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "make",
    [
        lambda: bb.LinTS(2, 1, history=2**53 - 1),
        lambda: bb.LinTS(2, 1, history=2**53),
        lambda: bb.LinTS(2, 1, history=2**63),
        lambda: bb.LinTS(2, 1, seed=10**1000),
        lambda: bb.LinTS(2, 1, seed=10**5000),
        lambda: bb.LinTS([10**5000, 1], 1),
        lambda: bb.LinTS([-(10**1000), 1], 1),
        lambda: bb.LinTS(2, 1, seed=np.random.SeedSequence(np.array([1, 2], dtype=np.uint32))),
    ],
    ids=["count", "counter", "word", "seed", "long seed", "long name", "name", "words"],
)
def test_what_is_made_can_be_saved(make, tmp_path):
    """Or is refused before it is made."""
    try:
        bandit = make()
    except ValueError:
        return
    bandit.observe(bandit.choose([1.0]), 1.0)
    bandit.save(tmp_path / "b")
    again = bb.Bandit.load(tmp_path / "b")
    assert again.choose([1.0]).rows.tobytes() == bandit.choose([1.0]).rows.tobytes()


def test_what_killed_processes_left_is_cleared(tmp_path):
    path = tmp_path / "b"
    dead, own, foreign = (
        tmp_path / f".b.{host}.{pid}.00000000.tmp"
        for host, pid in ((files.HOST, 2**22 + 1), (files.HOST, os.getpid()), ("elsewhere", 1))
    )
    for file in (dead, own, foreign):
        file.write_bytes(b"half")
    bb.LinTS(2, 1).save(path)
    assert sorted(tmp_path.iterdir()) == sorted([own, foreign, path])
