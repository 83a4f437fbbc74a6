"""Declarations that were once answered wrongly, and silently."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.plan import plan
from tests.declarations import EACH, normal_rewards

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
R = X @ [1.0, -2.0] + RNG.normal(size=40)


@pytest.mark.parametrize("times", [1, 5.0])
@pytest.mark.slow
def test_small_integers_do_not_overflow(times):
    """Nor times 5.0, which is of single precision beside them."""

    @bb.reward_model(theta=EACH)
    def model(x, reward, theta):
        return normal_rewards(x @ theta, pt.switch(x[:, 0] > 0, 16, 1) * times, reward)

    w = 1.0 / (times * np.where(X[:, 0] > 0, 16.0, 1.0)) ** 2
    right = np.linalg.solve((X.T * w) @ X + np.eye(2), X.T @ (w * R))
    np.testing.assert_allclose(bb.fit(model, X, R).coefficients["theta"][0], right, rtol=1e-9)


@pytest.mark.parametrize("of", ["rewards", "weights"])
def test_a_mean_that_no_future_row_has_is_refused(of):
    @bb.reward_model(theta=EACH)
    def model(x, reward, weight, theta):
        mu = x @ theta + (pt.concatenate([[0.0], reward[:-1]]) if of == "rewards" else weight)
        pm.StudentT("r", nu=4, mu=mu, sigma=1 / pt.sqrt(weight), observed=reward)
        return mu

    for engine in ("auto", "nuts"):
        with pytest.raises(NotThisEngine, match=f"depends on the {of}"):
            bb.fit(model, X, R, engine=engine)


def test_a_minibatch_is_refused():
    @bb.reward_model(theta=EACH)
    def model(x, reward, theta):
        some, seen = pm.Minibatch(x, reward, batch_size=10)
        pm.Normal("r", some @ theta, 1.0, observed=seen, total_size=40)
        return x @ theta

    with pytest.raises(NotThisEngine, match="minibatch"):
        bb.fit(model, X, R)


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.slow
def test_offsets_of_rewards_take_no_digits_from_gibbs(offset):
    """Sums of squares are about the coefficients that fit best."""

    @bb.reward_model()
    def level(x, reward):
        sigma2 = pm.InverseGamma("sigma2", 2.0, 1.0)
        mu = pm.Normal("level", 0.0, 1e12) + x @ pm.Laplace("theta", 0.0, 1.0, shape=2)
        return normal_rewards(mu, pt.sqrt(sigma2), reward)

    engine = plan(level, 2).method
    rows = {"x": X, "reward": R}
    near = engine.sample(rows, 50, 1, seed=0).values
    far = engine.sample(rows | {"reward": R + offset}, 50, 1, seed=0).values
    np.testing.assert_allclose(far["sigma2"], near["sigma2"], rtol=1e-9 + 1e-14 * offset)
    np.testing.assert_allclose(far["level"] - offset, near["level"], atol=1e-9 + 1e-13 * offset)


@bb.reward_model(theta=EACH, noise=0.5)
def of_fixed_noise(x, reward, theta, noise):
    return normal_rewards(x @ theta, noise, reward)


@pytest.mark.parametrize("noise", [0.0, -1.0, bb.Prior("HalfNormal", sigma=-1)], ids=str)
def test_a_prior_out_of_its_bounds_names_the_model_before_there_are_rows(noise):
    model = of_fixed_noise.with_priors(noise=noise)
    said = r"^of_fixed_noise: sigma > 0 does not hold on trial rows"
    with pytest.raises(ValueError, match=said):
        model.explain(2)
    with pytest.raises(ValueError, match=said):
        bb.Bandit(2, model, bb.Thompson(), n_features=2)
