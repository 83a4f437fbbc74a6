"""Generalised linear models streamed by Laplace's approximation: against that of all rows."""

import pickle

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit, ndtr

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.beliefs.sampled.belief import SampledBelief
from tests.cases import moments_of, slow_but

K, D = 3, 4
LOGISTIC, PROBIT, POISSON = map(bb.load_model, ("logistic", "probit", "poisson"))


@bb.reward_model()
def shared(x, reward, weight, arm):
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.5, dims=("arm", "feature"))
    p = pm.math.sigmoid((x * theta[arm]).sum(axis=-1))
    log_p = pm.logp(pm.Bernoulli.dist(p), reward)
    pm.Potential("likelihood", weight * log_p)
    return p


MODELS = {"logistic": LOGISTIC, "probit": PROBIT, "poisson": POISSON, "shared": shared}
every = pytest.mark.parametrize("name", slow_but(("logistic",), MODELS))


def believed(model, n_arms=K, normalize=False, **settings):
    found = bb.Laplace(model, **settings).belief(n_arms, D, normalize, np.random.SeedSequence(0))
    assert isinstance(found, Regressions)
    return found


def predictor(belief, x):
    """Moments of the linear predictor."""
    eta = belief.predict(x).eta
    return eta.mean, eta.sd


def rows(name, n=150, seed=0):
    rng = np.random.default_rng(seed)
    x, arm = rng.normal(size=(n, D)), rng.integers(0, K, n)
    eta = (x * np.random.default_rng(9).normal(size=(K, D))[arm]).sum(axis=1)
    chance = ndtr(eta) if name == "probit" else expit(eta)
    counts = rng.poisson(np.exp(np.clip(0.5 * eta, -4, 4)))
    reward = counts if name == "poisson" else rng.random(n) < chance
    return x, arm, reward.astype(float), rng.uniform(0.5, 2.0, n)


def probe():
    return np.random.default_rng(4).normal(size=(5, D))


def fitted(name, x, arm, reward, weight, k=None):
    """Laplace's approximation of all rows, as `bb.fit` has it."""
    model, mine = MODELS[name], slice(None) if k is None else arm == k
    over = {"arm": arm, "n_arms": K} if model.takes_arm else {}
    settings = {"engine": "laplace", "draws": 20_000, "seed": 0} | over
    return bb.fit(model, x[mine], reward[mine], weight[mine], **settings)


@pytest.mark.slow
@every
def test_settled_it_is_laplaces_approximation_of_all_rows(name):
    data = rows(name)
    belief = believed(MODELS[name], refit_every=1)
    belief.update(*data)
    mean, sd = moments_of(belief, probe())
    if name == "shared":
        fit = fitted(name, *data)
        exact, spread = fit.mean(probe()), fit.sd(probe())
    else:
        fits = [fitted(name, *data, k) for k in range(K)]
        exact = np.stack([fit.mean(probe()) for fit in fits], axis=1)
        spread = np.stack([fit.sd(probe()) for fit in fits], axis=1)
    draws = 4 * 20_000
    assert (np.abs(mean - exact) < 4.5 * spread / np.sqrt(draws)).all()
    np.testing.assert_allclose(sd, spread, rtol=0.1)


@pytest.mark.slow
@every
def test_between_modes_it_is_near(name):
    """Within a part of a posterior sd, on a schedule of a tenth."""
    data = rows(name, n=400)
    belief, exact = believed(MODELS[name]), believed(MODELS[name], refit_every=1)
    belief.update(*data), exact.update(*data)
    assert (belief.link.total[:, 1] > 0).all()
    mean, sd = predictor(belief, probe())
    settled, spread = predictor(exact, probe())
    assert (np.abs(mean - settled) < 0.1 * spread).all()
    np.testing.assert_allclose(sd, spread, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", ["logistic", "probit", "poisson"])
def test_surprises_do_not_throw_it(name, scale):
    """Rewards that are next to impossible where it stands, and contexts of any size."""
    belief, rng = believed(MODELS[name], refit_every=0.5), np.random.default_rng(1)
    x = scale * rng.normal(size=(60, D))
    side = (x[:, 0] > 0).astype(float)
    reward = np.where(np.arange(60) < 50, side, 1.0 - side) * (9.0 if name == "poisson" else 1.0)
    for i in range(60):
        belief.update(x[i : i + 1], np.array([i % K]), reward[i : i + 1], None)
        mean, sd = moments_of(belief, x[:5])
        assert np.isfinite(mean).all()
        assert (sd >= 0.0).all()
    if scale > 1.0:
        return  # so sure of each that ten rewards against all before move it by many sds
    before = predictor(belief, probe() * scale)
    belief.link.settle(belief, range(K))
    after, spread = predictor(belief, probe() * scale)
    assert (np.abs(before[0] - after) < 3.0 * spread).all()


def test_the_posterior_is_that_of_mode_and_curvature():
    made = bb.Bandit(3, bb.Laplace(LOGISTIC), bb.Thompson(), n_features=D)
    x, arm, reward, _ = rows("logistic", n=90)
    made.update(x, arm, reward, np.full(90, 1 / 3))
    found = made.posterior(1)
    assert found.engine == "laplace"
    mean, covariance = found.coefficients["theta"]
    known = made.belief.features.distribution(made.belief, 1)
    of_all = known.covariance  # with the intercept, which is last
    np.testing.assert_allclose(mean, known.mean[:D], rtol=1e-12)
    np.testing.assert_allclose(covariance, of_all[:D, :D], rtol=1e-12)
    level, sd = found.coefficients["intercept"]
    np.testing.assert_allclose([level, sd], [known.mean[D], of_all[D, D] ** 0.5], rtol=1e-12)
    said = made.belief.predict(probe())
    np.testing.assert_allclose(found.mean(probe()), said.mean[:, 1], rtol=1e-10)
    np.testing.assert_allclose(found.sd(probe()), said.sd[:, 1], rtol=1e-8)
    drawn = found.draw(probe(), 4000, np.random.default_rng(0))
    error = 5 * said.sd[:, 1] / np.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - said.mean[:, 1]) < error).all()
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.posterior(1).mean(probe()), found.mean(probe()))


@pytest.mark.slow
def test_the_posterior_of_another_model_has_no_noise_either():
    """Decisions use draws; the posterior has the mode."""
    heavy = LOGISTIC.with_priors(theta=bb.Prior("StudentT", nu=5, mu=0, sigma=1, dims="feature"))
    x, arm, reward, _ = rows("logistic", n=90)
    models = (bb.Sampled(heavy, engine="laplace", draws=draws) for draws in (20, 50))
    a, b = (bb.Bandit(3, model, bb.Thompson(), n_features=D) for model in models)
    assert type(bb.Laplace(heavy).belief(2, D, False, a.seed)) is SampledBelief
    for made in (a, b):
        made.update(x, arm, reward, np.full(90, 1 / 3))
    fitted = bb.fit(heavy, x[arm == 1], reward[arm == 1], engine="laplace")
    for found in (a.posterior(1), b.posterior(1)):
        np.testing.assert_allclose(found.mean(probe()), fitted.mean(probe()), rtol=1e-9)


@pytest.mark.slow
def test_a_belief_that_fades_absorbs_later_rounds_as_of_their_clock():
    x, arm, reward, weight = rows("logistic", 60)
    tick = np.arange(60.0)

    def taught(part):
        belief = believed(LOGISTIC, half_life=20.0, refit_every=1)
        belief.update(x[part], arm[part], reward[part], weight[part], tick[part])
        return belief

    whole, first, second = taught(slice(None)), taught(slice(30)), taught(slice(30, 60))
    first.absorb(second)
    np.testing.assert_allclose(moments_of(first, probe()), moments_of(whole, probe()), atol=1e-9)
    with pytest.raises(ValueError, match="absorbs a belief with the same settings; got Regr"):
        first.absorb(believed(PROBIT, half_life=20.0, refit_every=1))
