"""What a likelihood leaves beside its squares: noise that depends on it is no normal noise."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.inference.plan import plan

VARIANCE = bb.Prior("InverseGamma", alpha=3, beta=1)


def beside(name, more):
    """Return a normal-inverse-gamma model whose rows add `more`(r, m), of the same precision."""

    def declared(x, reward, s2):
        mu = x @ pm.Normal("theta", 0, pt.sqrt(s2), dims="feature")

        def logp(r, m, v):
            return -0.5 * ((r - m) ** 2 + more(r, m)) / v - 0.5 * pt.log(v)

        pm.CustomDist("reward", mu, s2, logp=logp, observed=reward)
        return mu

    declared.__name__ = name
    return bb.reward_model(s2=VARIANCE)(declared)


@pytest.mark.parametrize(
    "more",
    [lambda r, m: 4.0 + 0.0 * r, lambda r, m: (r - 1.0 - m) ** 2],
    ids=["constant", "second"],
)
def test_what_is_left_at_the_centres_is_learned_too(more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    r = x @ [1.0, -1.0] + 0.5 * rng.normal(size=40)
    model = beside("mine", more)
    assert not plan(model, 2).method.streams
    bandit = bb.Bandit(1, model, bb.Thompson(), n_features=2, seed=0)
    bandit.update(x, np.zeros(40, int), r)
    ours = bandit.posterior(0).coefficients
    exact = bb.fit(model, x, r).coefficients
    np.testing.assert_allclose(ours["theta"][0], exact["theta"][0], atol=0.15)
    np.testing.assert_allclose(ours["s2"][0], exact["s2"][0], rtol=0.1)


def test_gibbs_knows_it_too():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    r = x @ [1.0, -1.0] + 0.5 * rng.normal(size=40)

    @bb.reward_model(
        theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), s=bb.Prior("HalfNormal", sigma=1)
    )
    def offset(x, reward, theta, s):
        mu = x @ theta
        pm.Potential("rows", -0.5 * ((reward - mu) ** 2 + 1.0) / s**2 - pt.log(s))
        return mu

    assert bb.fit(offset, x, r, seed=0, draws=200).engine == "gibbs"
