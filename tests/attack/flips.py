"""Bytes flipped and files cut short, of every file that is written: refused, or it is the same."""

import json
import warnings

import numpy as np

import bayesbandit as bb
from tests.attack.kinds import KINDS, contexts, rewards
from tests.attack.tally import count
from tests.players import anatomy


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
    kind, rng = KINDS[name], np.random.default_rng(seed)
    bandit = kind(seed)
    for n in (T, T // 3):
        K = len(bandit.arms)
        x, reward = rng.normal(size=(n, kind.d)), rewards(name, rng, n)
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
            found = bb.environments.from_csv(path, "label")
        except ValueError as error:
            said = str(error)
            count("CSV", "files refused")
        else:
            said = "abc"
            assert features <= found.n_features <= features + 1, f"{word!r} lost a column"
            count("CSV", "files read")
        assert "abc"[j] in said, said


def mangled(value, rng):
    """Another value in the place of one of a JSON text's."""
    others = [
        None, True, -1, 0, 1, 3, 2**31, 2**53, 10**30, -0.5, 1e308, "", "x", "LinTS", [], {}, [[]],
        [0], ["a"], {"kind": "Ridge"}, float("nan"), float("inf"),
    ]  # fmt: skip
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[int(rng.integers(len(value)))]
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: mangled(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = int(rng.integers(len(value)))
        if rng.random() < 0.2:
            return value[:at] + value[at + 1 :]
        return [*value[:at], mangled(value[at], rng), *value[at + 1 :]]
    return others[int(rng.integers(len(others)))]


def warped(array, rng):
    """An array with other numbers or another shape."""
    how = rng.random()
    if how < 0.6 and array.size:
        array = array.copy()
        bad = [np.nan, np.inf, -np.inf, -1, 0, 1e308, -1e308, 1e18, 2.5, 5e-324, 7, 2**31]
        flat = array.reshape(-1)
        head = rng.random() < 0.5 and array.ndim > 1  # counters stand at the front of a row
        at = rng.integers(min(24, flat.size)) if head else rng.integers(flat.size)
        with np.errstate(all="ignore"):
            flat[at] = np.float64(bad[int(rng.integers(len(bad)))]).astype(array.dtype)
        return array
    if how < 0.7:
        return array[:-1].copy() if array.ndim else array.reshape(1)
    if how < 0.8:
        return array.ravel()
    if how < 0.9:
        return array.astype([np.float32, np.int64, np.uint8][int(rng.integers(3))])
    return np.zeros([(0,), (1, 1), (3,), (5, 200), ()][int(rng.integers(5))])


def craft(folder, seed, name, times=25):
    """Whole files that say what no bandit said: refused, or a bandit that plays."""
    rng, path, bandit = np.random.default_rng(seed), folder / "b", trained(name, seed)
    model = bandit.model
    bandit.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    meta = json.loads(arrays.pop("meta").tobytes())
    for i in range(times):
        said, held = meta, arrays
        for _ in range(int(rng.integers(1, 3))):
            if rng.random() < 0.5:
                said = mangled(said, rng)
            elif held:
                key = sorted(held)[int(rng.integers(len(held)))]
                held = held | {key: warped(held[key], rng)}
        said = said | {"arrays": sorted(held)} if isinstance(said, dict) else said
        header = np.frombuffer(json.dumps(said).encode(), np.uint8)
        with path.open("wb") as file:
            np.savez(file, meta=header, **held)
        print(f"crafted file {i} of {name}, seed {seed}", flush=True)
        try:
            other = bb.Bandit.load(path, model=model)
        except ValueError:
            count(name, "files refused")
            continue
        count(name, "files that play")
        plays(other, name, rng)


def plays(bandit, name, rng):
    """Every call, whatever it says; numbers that nobody would have may be refused."""
    x = contexts(bandit, rng, 3)
    decision = bandit.choose(np.zeros(x.shape[1:]))
    acts = (
        lambda: bandit.observe(decision, 1.0), lambda: bandit.choose(x).probabilities,
        lambda: bandit.observe(bandit.choose(x), np.ones(3)), lambda: bandit.history.propensity,
        lambda: bandit.history.arm, lambda: bandit.posterior(bandit.arms[0]),
        lambda: bandit.update(x, [bandit.arms[-1]] * 3, np.ones(3)), bandit.copy,
        lambda: bandit.play(x, np.ones((3, len(bandit.arms)))),
        lambda: bandit.remove_arm(bandit.arms[0]),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for act in acts:
            try:
                act()
            except (ValueError, FloatingPointError):
                count(name, "refusals")
            else:
                count(name, "operations")
