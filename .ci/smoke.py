"""What an installed bayesbandit does anywhere: decide, learn, load, fit, find its gallery."""

import tempfile
from pathlib import Path

import numpy as np

import bayesbandit as bb

rng = np.random.default_rng(0)
x, reward = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
for make in (bb.LinTS, bb.LinUCB, bb.BLTS, bb.BLUCB):
    bandit = make(["a", "b", "c"], 3)
    bandit.play(x, reward)
    with tempfile.TemporaryDirectory() as folder:
        bandit.save(Path(folder) / "b")
        other = bb.Bandit.load(Path(folder) / "b")
    assert (other.choose(x).rows == bandit.choose(x).rows)[:, :3].all()
posterior = bb.fit(bb.load_model("ridge"), x, reward[:, 0])
assert np.isfinite(posterior.mean(x)).all()
assert "bayesian_lasso" in bb.list_models()
table = bb.Experiment(bb.environments.bundled("iris"), bb.LinTS, replications=2).run(progress=False)
assert len(bb.evaluation.ranking(table)) == 1
print("bayesbandit", bb.__version__, "works here")
