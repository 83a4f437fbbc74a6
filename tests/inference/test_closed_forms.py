"""Laws of closed forms of θ and a noise scale, known or unknown, on many declarations of each."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import invgamma, multivariate_normal

from bayesbandit.inference.exact import gaussian, normal_inverse_gamma
from bayesbandit.inference.exact.distributions import StudentT
from tests.cases import in_gate
from tests.inference import linear, unknown_noise
from tests.inference.declared import built, constant, log_densities, rows

KNOWN = [*linear.STREAMED, *linear.IN_BATCH]
UNKNOWN = [*unknown_noise.STREAMED, *unknown_noise.IN_BATCH]
_matched: dict = {}


def matched(declare):
    """The engine of a declaration, its data and its model, each made once."""
    if declare not in _matched:
        known = declare in KNOWN
        arms = linear.K if declare is unknown_noise.arms else None
        data = linear.data_of(declare) if known else rows(n=linear.N, d=linear.D, arms=arms)
        model = built(declare, data)
        engine = (gaussian if known else normal_inverse_gamma).match(model)
        assert engine.learns_noise == (not known), str(engine)
        _matched[declare] = engine, data, model
    return _matched[declare]


@pytest.mark.slow
@pytest.mark.parametrize("declare", [*KNOWN, *UNKNOWN], ids=lambda f: f.__name__)
@in_gate(12)
def test_closed_form_is_the_log_density_but_for_the_log_evidence(declare):
    engine, data, model = matched(declare)
    posterior = engine.posterior(**data)
    theta, sigma2 = posterior.draw(8, np.random.default_rng(1))
    if engine.learns_noise:
        sigma2 = sigma2 * np.linspace(0.5, 2, 8)
    theta = posterior.mean + 3 * (theta - posterior.mean)
    covariance = np.linalg.inv(posterior.precision)
    normal = multivariate_normal(np.zeros(engine.dim), covariance, allow_singular=True)
    closed = normal.logpdf((theta - posterior.mean) / np.sqrt(sigma2)[:, None])
    closed -= 0.5 * engine.dim * np.log(sigma2)
    points = [{k: v[i] for k, v in engine.split(theta).items()} for i in range(8)]
    if engine.learns_noise:
        s = engine.scale(sigma2)
        closed += invgamma(posterior.shape, scale=posterior.scale).logpdf(sigma2)
        closed += np.log(abs(engine.exponent) * sigma2 / s)  # a density in σ² as one in s
        points = [p | {f"{engine.scale_name}_log__": np.log(s[i])} for i, p in enumerate(points)]
    logp = log_densities(model, points)
    assert constant(logp - closed, logp)
    assert np.allclose(logp - closed, posterior.log_evidence, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("declare", [linear.mv_cov, unknown_noise.variance])
def test_draws_have_the_posteriors_moments(declare):
    engine, data, _ = matched(declare)
    posterior = engine.posterior(**data)
    theta, sigma2 = posterior.draw(20_000, np.random.default_rng(4))
    sd = np.sqrt(np.diag(posterior.covariance))
    assert np.abs((theta.mean(axis=0) - posterior.mean) / sd).max() < 4 / np.sqrt(20_000)
    assert np.allclose(np.cov(theta.T), posterior.covariance, atol=0.06 * (sd**2).max())
    assert np.isclose(sigma2.mean(), posterior.variance, rtol=0.03)


@pytest.mark.parametrize("shape", [30.0, 1e5, 1e10])
def test_the_spread_of_a_noise_sd_keeps_its_digits_after_many_rows(shape):
    """σ/E[σ] − 1 of an inverse gamma σ² has the variance 1/(4a) + O(1/a²)."""
    one = np.eye(1)
    known = StudentT(np.zeros(1), one, one, shape, 2.0 * shape, 0.0)
    mean, sd = known.power(-0.5)
    assert np.isclose(mean, np.sqrt(2.0), rtol=1.0 / shape)
    assert np.isclose(sd / mean, 0.5 / np.sqrt(shape), rtol=1.0 / shape + 1e-5)


@pytest.mark.parametrize("shape", [1e-3, 1e-6])
def test_without_rows_a_vague_prior_is_the_posterior(shape):
    """Although quantiles of the noise precision are below all floats: the log evidence is 0."""

    def vague(x, reward, weight):
        q = pm.Gamma("q", shape, shape)
        theta = pm.Normal("theta", 0, tau=q, dims="feature")
        return unknown_noise.observe(x @ theta, 1 / q, reward, weight)

    data = rows(n=0)
    posterior = normal_inverse_gamma.match(built(vague, data)).posterior(**data)
    np.testing.assert_allclose([posterior.shape, posterior.scale], shape, rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, 0.0, atol=1e-9)
