"""What has gone wrong once, each with other numbers every time."""

import time
from pathlib import Path

import numpy as np

import bayesbandit as bb
from tests import oracle
from tests.attack.tally import count

DECLARATION = """import pymc as pm
import bayesbandit as bb

@bb.reward_model(theta=bb.Prior("{prior}", mu=0, b=1, dims="feature"))
def changing(x, reward, weight, theta):
    mu = {shift} + x @ theta{power}
    pm.Normal("reward", mu, {sigma} / pm.math.sqrt(weight), observed=reward)
    return mu
"""


def changed_declaration(folder, seed, name):
    """A saved bandit's model that is declared otherwise by now does not play."""
    rng, file, path = np.random.default_rng(seed), folder / "changing.py", folder / "b"
    first = {"prior": "Laplace", "shift": 0.5, "power": "", "sigma": 0.5}
    key, value = [
        ("shift", 0.25), ("power", " ** 2"), ("sigma", float(rng.uniform(1, 9))), ("sigma", 0.501)
    ][int(rng.integers(4))]  # fmt: skip
    file.write_text(DECLARATION.format(**first))
    bandit = bb.Bandit(2, bb.Sampled(bb.load_model(file), draws=10), bb.Thompson(), n_features=2)
    bandit.update(rng.normal(size=(4, 2)), [0, 1, 0, 1], rng.normal(size=4))
    bandit.save(path)
    file.write_text(DECLARATION.format(**first | {key: value}) + "\n")
    other = bb.load_model(file)
    for given in ({}, {"model": other}):
        try:
            bb.Bandit.load(path, **given)
        except ValueError:
            count("declarations", "files refused")
        else:
            raise AssertionError(f"a model whose {key} has become {value} plays")


def offset(folder, seed, name):
    """σ² does not depend on where the rewards begin, where the intercept is free."""
    rng, d = np.random.default_rng(seed), 2
    n, by = int(rng.integers(2050, 4000)), float(rng.choice([0.0, 1e5, 1e7, 1e8]))
    bandit = bb.LinTS(1, d, variance="rss/n", intercept="unpenalised")
    x, reward = rng.normal(size=(n, d)), rng.normal(size=n)
    bandit.update(x, [0] * n, reward + by)
    right = oracle.noise(x, reward, np.ones(n), 1.0, "rss/n", "unpenalised")[0]
    np.testing.assert_allclose(bandit.belief.sigma2[0], right, rtol=1e-3, err_msg=f"offset {by}")
    count("numbers", "offsets")


def growth(folder, seed, name):
    """No single call takes much longer than others do, however many rounds or arms there are."""
    rng = np.random.default_rng(seed)
    bandit = bb.LinTS(int(rng.integers(100, 500)), 3)
    K = len(bandit.arms)
    bandit.update(rng.normal(size=(3 * K, 3)), list(range(K)) * 3, rng.normal(size=3 * K))
    x = rng.normal(size=(1, 3))
    all_at_once = seconds(lambda: bandit.belief.predict(x).best())
    found = seconds(lambda: bandit.choose(x).probabilities)
    assert found < 10 * all_at_once + 5e-3, f"{K} arms: {found:.3f} s for {all_at_once:.4f} s"
    pooled = bb.BLTS(2, 3, propensity="pooled")
    T = 40_000
    x, arm = rng.normal(size=(T, 3)), rng.integers(2, size=T)
    for start in range(0, T, 4000):
        part = slice(start, start + 4000)
        pooled.update(x[part], arm[part].tolist(), rng.normal(size=4000), np.full(4000, 0.5))
    longest = 0.0
    for _ in range(400):
        decision, began = pooled.choose(x[0]), time.perf_counter()
        pooled.observe(decision, 0.0)
        longest = max(longest, time.perf_counter() - began)
    assert longest < 2.5, f"one round of {T} took {longest:.1f} s"
    count("numbers", "growths")


def seconds(act):
    act()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return min(times)


def foreign_model(folder, seed, name):
    """A saved bandit that names a file as its model does not make `load` run it."""
    import json

    ran, evil, path = folder / "ran", folder / "evil.py", folder / "b"
    evil.write_text(f"open({str(ran)!r}, 'w').close()\n")
    rng, model = np.random.default_rng(seed), bb.load_model("laplace")
    bandit = bb.Bandit(2, bb.Sampled(model, draws=10), bb.Thompson(), n_features=2)
    bandit.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    meta = json.loads(arrays.pop("meta").tobytes())
    names = [str(evil), f"{evil}:x", "../evil", "evil.py", "evil", f"{evil}\0", str(evil)[:-3]]
    named = str(rng.choice(names))
    rest = meta["model"]["declared"].partition("\n")[2]
    meta["model"]["declared"] = f"name: {json.dumps(named)}\n{rest}"
    header = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, meta=header, **arrays)
    try:
        bb.Bandit.load(path)
    except ValueError:
        count("declarations", "files refused")
    else:
        raise AssertionError(f"a bandit of the model {named!r} plays")
    finally:
        assert not Path(ran).exists(), f"the model {named!r} was run"
