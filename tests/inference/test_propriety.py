"""Posteriors that are no distributions, as far as a sweep finds them, and says so."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.base import Improper
from bayesbandit.inference.draws import PoorDiagnostics
from bayesbandit.model import reward_model
from tests.declarations import EACH, HALF, normal_rewards

D = 3


@reward_model(theta=EACH, s=HALF)
def linear(x, reward, theta, s):
    return normal_rewards(x @ theta, s, reward, "r")


@reward_model(theta=EACH, s=Prior("HalfCauchy", beta=1))
def student(x, reward, theta, s):
    mu = x @ theta
    pm.StudentT("r", nu=4, mu=mu, sigma=s, observed=reward)
    return mu


@reward_model(tau=HALF, s=HALF)
def hierarchy(x, reward, tau, s):
    theta = pm.Normal("theta", 0, tau, dims="feature")
    return normal_rewards(x @ theta, s, reward, "r")


@reward_model(
    theta=Prior("Laplace", mu=0, b=1, dims="feature"), s2=Prior("InverseGamma", alpha=2, beta=1)
)
def jeffreys(x, reward, theta, s2):
    """σ² has the density 1/σ²."""
    mu = x @ theta
    pm.Normal("r", mu, pt.sqrt(s2), observed=reward)
    pm.Potential("flat", 2.0 * pt.log(s2) + 1.0 / s2)
    return mu


MODELS = {m.name: m for m in (linear, student, hierarchy, jeffreys)}
MODELS["log-normal noise"] = hierarchy.with_priors(s=Prior("LogNormal", mu=0, sigma=1))
FLAT = Prior("Flat", dims="feature")


def rows(n=30, exact=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    return {"x": x, "reward": x @ rng.normal(size=D) + (0.0 if exact else rng.normal(size=n))}


@pytest.mark.slow
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_noise_below_the_rounding_of_means_is_refused(name, zero):
    """It goes to 0 where means fit exactly, or, under a log-normal prior, to about e^−(n − D)."""
    data = rows(500 if zero else 60)
    if zero:
        data["reward"] = np.zeros(500)
    reason = "all their digits|improper given the other|fit rewards exactly"
    with pytest.raises(Improper, match=reason):
        bb.fit(MODELS[name], **data, draws=300, chains=1, seed=0)
    fitted = bb.fit(MODELS[name], **rows(60, exact=False), draws=100, chains=1, seed=0)
    assert fitted.engine == "gibbs"


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1])
def test_equal_rewards_have_no_posterior_from_the_row_on_that_leaves_the_noise_free(reward):
    """∫ s^−n s^r ds is infinite at 0 if n > r, for n rows of rank r."""

    def fit(n):
        x = np.random.default_rng(n).normal(size=(n, D))
        x[:, 0] = 1.0
        return bb.fit(linear, x, np.full(n, reward), draws=20, chains=1, seed=0)

    with pytest.warns(PoorDiagnostics):
        assert fit(D).engine == "gibbs"
    for n in (D + 1, D + 2, 40):
        with pytest.raises(Improper, match="'s' ~ HalfNormal: improper: means fit rewards exactly"):
            fit(n)


def test_equal_rewards_leave_the_noise_free_beside_another_likelihood_of_known_noise():
    """Its rows do not let means be where they fit the rewards of the first."""

    @reward_model(s2=Prior("HalfNormal", sigma=3), a=Prior("Normal", mu=0, sigma=10))
    def twice(x, reward, s2, a):
        theta = pm.Normal("theta", 0, 3 * pm.math.sqrt(s2), dims="feature")
        mu = a + x @ theta
        pm.Normal("first", mu, pm.math.sqrt(s2), observed=reward)
        pm.Normal("second", 2 * mu, 3.0, observed=reward + 1)
        return mu

    x = np.random.default_rng(0).normal(size=(5, D))
    with pytest.raises(Improper, match="'s2' ~ HalfNormal: improper: means fit rewards exactly"):
        bb.fit(twice, x, np.zeros(5), draws=20, chains=1, seed=0)
    with pytest.warns(PoorDiagnostics):
        assert bb.fit(twice, x, np.arange(5.0), draws=20, chains=1, seed=0).engine == "gibbs"


@pytest.mark.slow
def test_flat_means_of_too_few_rows_have_no_posterior_by_any_engine():
    """The next engine, the no-U-turn sampler, drew on."""
    with pytest.raises(Improper, match="'theta' ~ Flat: improper"):
        bb.fit(linear.with_priors(theta=FLAT, s=1.0), **rows(D - 1))


@pytest.mark.slow
@pytest.mark.parametrize("n", [D + 1, D + 2, 30])
@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_rewards_on_a_plane_leave_a_flat_noise_scale_improper(n, scale):
    """The residuals are rounding. Noise tells the scale, however small the rewards are."""
    flat = linear.with_priors(theta=FLAT, s=Prior("HalfFlat"))
    data = rows(n)
    data["reward"] = scale * data["reward"]
    with pytest.raises(Improper, match="'s' ~ HalfFlat: improper"):
        bb.fit(flat, **data)
    noisy = rows(30, exact=False)
    one, other = (bb.fit(flat, noisy["x"], c * noisy["reward"]).known for c in (1.0, scale))
    assert np.isclose(other.scale, scale**2 * one.scale, rtol=1e-12)
    assert np.isclose(other.shape, one.shape)


@pytest.mark.slow
def test_a_variable_whose_conditional_is_improper_is_named():
    @reward_model(theta=EACH)
    def unbounded(x, reward, theta):
        s = pm.HalfNormal("s", 1)
        pm.Potential("cancels", 0.5 * s**2)
        return normal_rewards(x @ theta, 1.0, reward, "r")

    with pytest.raises(Improper, match="'s' ~ HalfNormal: improper given the other variables"):
        bb.fit(unbounded, **rows())


@pytest.mark.slow
def test_a_bandit_waits_for_rewards_that_differ():
    data = rows(exact=False)
    model = bb.Sampled(hierarchy, refit_every=1, draws=400)
    bandit = bb.Bandit(2, model, bb.Thompson(), n_features=D, seed=0)
    first = slice(0, 30)
    bandit.update(data["x"][first], np.zeros(30, int), np.zeros(30), np.ones(30))
    assert bandit.belief.new.tolist() == [True, True]
    bandit.update(data["x"], np.zeros(30, int), data["reward"], np.ones(30))
    assert bandit.belief.new.tolist() == [False, True]
