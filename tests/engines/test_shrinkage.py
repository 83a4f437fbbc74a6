"""Prior means other than 0 reach the compiled kernel: the posterior of the generic sweeps."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.engines.plan import plan

MODELS = {
    "an intercept about 3": bb.load_model("bayesian_lasso").with_priors(
        intercept=bb.Prior("Normal", mu=3, sigma=0.5)
    ),
    "Laplace about 2": bb.load_model("laplace").with_priors(theta=bb.Prior("Laplace", mu=2, b=0.5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_prior_means(name):
    """Means within 5 standard errors, by batches of 100 sweeps."""
    rng, n = np.random.default_rng(0), 30
    x, reward = rng.normal(size=(n, 2)), rng.normal(size=n)
    data = {"x": x, "reward": reward, "weight": rng.uniform(0.5, 2.0, n)}
    method = plan(MODELS[name], 2).method
    assert method.kernel is not None
    assert method.kernel.location.any()
    runs = {
        generic: method.sample(data, 2000, 1, 200, seed=1, generic=generic).values
        for generic in (True, False)
    }
    for variable in method.names:
        batches = [runs[generic][variable].reshape(20, 100, -1).mean(axis=1) for generic in runs]
        se = np.sqrt(sum(b.var(axis=0, ddof=1) / 20 for b in batches))
        z = (batches[0].mean(axis=0) - batches[1].mean(axis=0)) / se
        assert np.abs(z).max() < 5.0, (variable, z)
