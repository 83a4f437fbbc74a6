"""What an installed bayesbandit does anywhere: decide, learn, save, load, find its gallery, fit."""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import bayesbandit as bb

assert Path(bb.__file__).is_relative_to(sys.prefix), f"not the installed one: {bb.__file__}"
assert find_spec("bayesbandit_studies") is None, "the paper's studies are a package of their own"
rng = np.random.default_rng(0)
x, reward = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
for make in (bb.LinTS, bb.LinUCB, bb.BLTS, bb.BLUCB):
    bandit = make(["a", "b", "c"], 3)
    bandit.play(x, reward)
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "bandit.npz")
        other = bb.Bandit.load(Path(folder) / "bandit.npz")
    assert (other.choose(x).arm == bandit.choose(x).arm).all()

assert {"bayesian_lasso", "horseshoe", "logistic", "ridge"} <= set(bb.list_models())
for name, engine in {"ridge": "normal_inverse_gamma", "bayesian_lasso": "gibbs"}.items():
    posterior = bb.fit(bb.load_model(name), x, reward[:, 0])
    assert posterior.engine == engine
    assert np.isfinite(posterior.mean(x)).all()
clicks = (reward[:, 0] > 0).astype(float)
assert bb.fit(bb.load_model("logistic"), x, clicks, draws=50, chains=1).engine == "gibbs"
assert bb.fit(bb.load_model("poisson"), x, clicks, draws=50, tune=50, chains=1).engine == "nuts"
python = sys.version.split()[0]
print(f"bayesbandit {bb.__version__} works on Python {python} with NumPy {np.__version__}")
