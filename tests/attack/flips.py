"""Bytes flipped and files cut short, of every file that is written: refused, or it is the same."""

import contextlib
import re
import resource
import time
import warnings

import numpy as np
from scipy import stats

import bayesbandit as bb
from bayesbandit.kernels import row_layout
from bayesbandit.kernels.propensities import RULE_OF, all_chances
from tests.attack import crafting
from tests.attack.kinds import SAVED, contexts, rewards
from tests.attack.tally import count
from tests.attack.watch import compiles, harmless, watched
from tests.players import anatomy

SECONDS, MEGABYTES = 20.0, 1500  # that a crafted file may take to load, and all of them


def broken(whole, rng):
    """A file with a byte changed, or its end missing, and what was done to it."""
    at = int(rng.integers(len(whole)))
    if rng.random() < 0.1:
        return whole[:at], f"cut at {at}"
    by, changed = int(rng.integers(1, 256)), bytearray(whole)
    changed[at] ^= by
    return bytes(changed), f"byte {at} ^ {by}"


def trained(name, seed, T=30):
    """A bandit with a past, of arms that came and went where they can."""
    kind, rng = SAVED[name], np.random.default_rng(seed)
    bandit = kind(seed)
    for n in (T, T // 3):
        K = len(bandit.arms)
        x = contexts(bandit, rng, n) if bandit.encoder else rng.normal(size=(n, kind.d))
        reward = rewards(name, rng, n)
        bandit.update(x, [bandit.arms[i % K] for i in range(n)], reward, rng.uniform(0.1, 1, n))
        decision = bandit.choose(contexts(bandit, rng, 5))
        bandit.observe(decision, rewards(name, rng, 5))
        if kind.changes and n == T:
            bandit.remove_arm("b"), bandit.add_arm("new")
    return bandit


def flip_saved(folder, seed, name, times=40):
    rng, path, bandit = np.random.default_rng(seed), folder / "b", trained(name, seed)
    model = bandit.model
    bandit.save(path)
    whole, right = path.read_bytes(), anatomy(bandit)
    for _ in range(times):
        file, done = broken(whole, rng)
        path.write_bytes(file)
        try:
            other = bb.Bandit.load(path, model=model)
        except ValueError:
            count(name, "files refused")
        else:
            assert anatomy(other) == right, f"a saved {name}, seed {seed}, {done}, is another"
            count(name, "files the same")


def experiment():
    world = bb.environments.bundled("iris")
    return bb.Experiment(world, {"LinTS": bb.LinTS, "BLTS": bb.BLTS}, 20, 2, points=4)


def flip_results(folder, seed, name, times=40):
    """results.parquet, a part of a run that was killed, and run.json."""
    rng, results, record = np.random.default_rng(seed), folder / "results.parquet", "run.json"
    right = experiment().run(out=folder, progress=False)
    file = folder / str(rng.choice(["results.parquet", "parts/0.parquet", record]))
    if file.parent != folder:
        file.parent.mkdir(exist_ok=True)
        results.rename(file)
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(times):
        for path, whole in kept.items():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(whole)
        if file != results:
            results.unlink(missing_ok=True)
        changed, done = broken(kept[file], rng)
        file.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = experiment().run(out=folder, progress=False)
            except ValueError:
                count("results", "files refused")
                continue
        assert found.equals(right), f"{file.name}, seed {seed}, {done}: other numbers"
        count("results", "files the same")


def flip_priors(folder, seed, name, times=60):
    """A model's YAML, which is a text for people: refused, or a model that can be written again."""
    rng = np.random.default_rng(seed)
    model = bb.load_model(str(rng.choice(sorted(bb.list_models()))))
    whole = model.to_yaml().encode()
    for _ in range(times):
        changed, done = broken(whole, rng)
        try:
            found = bb.RewardModel.from_yaml(changed.decode("utf-8", "replace"))
        except ValueError:
            count("priors", "files refused")
        else:
            assert bb.RewardModel.from_yaml(found.to_yaml()).to_yaml() == found.to_yaml(), done
            count("priors", "files read")


def odd_cell(folder, seed, name, times=10):
    """A CSV of numbers with one odd cell: named, or that cell is missing and the rest as it was."""
    rng, path = np.random.default_rng(seed), folder / "d.csv"
    odd = ["?", '"1,234"', "n/a", "1e", "--", "1.2.3", "0x1f", "NULL", " ", "∞", "1_000", "'5'"]
    for _ in range(times):
        cells = [[f"{v:.3f}" for v in rng.normal(size=3)] for _ in range(60)]
        labels = [str(rng.choice(["u", "v"])) for _ in cells]

        def write(cells=cells, labels=labels):
            rows = [",".join([*row, label]) for row, label in zip(cells, labels, strict=True)]
            path.write_text("a,b,c,label\n" + "\n".join(rows) + "\n")

        write()
        features = bb.environments.from_csv(path, "label").n_features
        i, j = int(rng.integers(60)), int(rng.integers(3))
        cells[i][j] = word = str(rng.choice(odd))
        write()
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                found = bb.environments.from_csv(path, "label")
        except ValueError as error:
            said, lost = str(error), True
            count("CSV", "files refused")
        else:
            said, lost = " ".join(str(one.message) for one in warned), found.n_features < features
            count("CSV", "files read")
        assert not lost or "abc"[j] in said, f"{word!r} lost a column: {said}"


def prepared():
    """Have what any file may need loaded and compiled: distributions, the kernels of each rule."""
    stats.gamma(1.0)
    D, K = 1, 2
    rows = np.zeros((2, row_layout.row_width(D, K)))
    log = rows.view(row_layout.row_type(D, K))[:, 0]
    log["scale"] = log["last"] = 1.0
    for kind in (row_layout.TABULATED, *RULE_OF):
        log["rule"] = kind
        all_chances(rows, D, K, np.empty((2, K)))
        all_chances(rows[:1], D, K, np.empty((1, K)))


def craft(folder, seed, name, times=60):
    """Whole files that say what no bandit said: refused, or a bandit that plays."""
    rng, path, bandit = np.random.default_rng(seed), folder / "b", trained(name, seed)
    model = bandit.model
    bandit.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    text = arrays.pop("meta").tobytes().decode()
    with contextlib.suppress(ValueError):  # once without a watch: what is loaded late is there
        bb.Bandit.load(path, model=model), bb.Bandit.load(path)
    prepared()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(times):
        file, done = crafting.crafted(text, arrays, rng)
        path.write_bytes(file)
        print(f"crafted file {i} of {name}, seed {seed}: {done}", flush=True)
        with warnings.catch_warnings(action="ignore"):
            given = model if rng.random() < 0.7 else None
            began = time.process_time()
            try:
                with watched() as did:
                    other = bb.Bandit.load(path, model=given)
            except ValueError:
                count(name, "files refused")
                other = None
            took = time.process_time() - began
            assert took < SECONDS, f"{took:.0f} s"
            if other is not None:
                count(name, "files that play")
                plays(other, name, rng)
                goes_on(other, folder / "again", name)
            # a new model may be compiled, by PyTensor or numba: it starts no process all the same
            known = compiles if re.search("priors:| features more", done) else harmless
            strange = [str(one)[:200] for one in did if not known(*one)]
            assert not strange, strange
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB"


def goes_on(bandit, path, name):
    """What a bandit saves, it can be loaded from."""
    try:
        bandit.save(path)
    except ValueError:
        count(name, "refusals")
    else:
        bb.Bandit.load(path, model=bandit.model)
        count(name, "files saved again")


def chances(decision):
    """Probabilities that are some."""
    p = decision.probabilities
    assert ((p >= 0) & (p <= 1 + 1e-9)).all(), p
    assert np.isfinite(decision.propensity).all(), decision.propensity


def plays(bandit, name, rng):
    """Every call, whatever it says; numbers that nobody would have may be refused."""
    x = contexts(bandit, rng, 3)
    one = x.iloc[0] if bandit.encoder else np.zeros(x.shape[1:])
    acts = (
        lambda: bandit.observe(bandit.choose(one), 1.0), lambda: chances(bandit.choose(x)),
        lambda: bandit.observe(bandit.choose(x), np.ones(3)), lambda: bandit.history.propensity,
        lambda: bandit.history.arm, lambda: bandit.posterior(bandit.arms[0]),
        lambda: bandit.update(x, [bandit.arms[-1]] * 3, np.ones(3)), bandit.copy,
        lambda: bandit.play(x, np.ones((3, len(bandit.arms)))),
        bandit.summary, bandit.history.to_frame, lambda: bb.ope.Log.of(bandit.history),
        lambda: bandit.greedy(x), lambda: bb.balance_table(bandit.history),
        lambda: bandit.remove_arm(bandit.arms[0]),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for act in acts:
            try:
                act()
            except (ValueError, FloatingPointError):
                count(name, "refusals")
            except (TypeError, RuntimeError) as error:  # in a sentence of the belief's own
                if not re.search("no posterior|mode was not found|nutpie failed", str(error)):
                    raise
                count(name, "refusals")
            else:
                count(name, "operations")
