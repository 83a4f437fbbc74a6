"""Generalised linear models with learned scales, heavy-tailed priors or negative binomial rewards:
draws against quadrature, and what is left to NUTS."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.inference.glm.augmented import Augmented, match
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.kernels.glm.families import BINOMIAL, NEGATIVE_BINOMIAL, PROBIT


def given(eta, reward, weight, kind):
    if kind == NEGATIVE_BINOMIAL:
        mu = pm.math.exp(eta)
        pm.NegativeBinomial("r", mu=mu, alpha=2.5, observed=reward)
        return mu
    p = pm.math.invprobit(eta) if kind == PROBIT else pm.math.sigmoid(eta)
    pm.Potential("r", weight * pm.logp(pm.Bernoulli.dist(p), reward))
    return p


def learned(tau, kind=BINOMIAL, constant=0.0):
    """Coefficients whose scale has a prior."""

    def scaled(x, reward, weight, tau):
        theta = pm.Normal("theta", 0, tau, dims="feature")
        return given(constant + x @ theta, reward, weight, kind)

    return bb.reward_model(tau=tau)(scaled)


def fixed(theta, kind=BINOMIAL, constant=0.0):
    """Coefficients with a prior of their own."""

    def direct(x, reward, weight, theta):
        return given(constant + x @ theta, reward, weight, kind)

    return bb.reward_model(theta=theta)(direct)


EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
FAR_PRIOR = bb.Prior("Normal", mu=2, sigma=0.5, dims="feature")
LAPLACE = bb.Prior("Laplace", mu=0.5, b=0.8, dims="feature")
CASES = [  # a prior, as declared and of scipy, and the likelihood; the prior is of τ or of θ
    (learned, bb.Prior("HalfNormal", sigma=1.5), stats.halfnorm(scale=1.5), BINOMIAL),
    (learned, bb.Prior("HalfCauchy", beta=0.7), stats.halfcauchy(scale=0.7), PROBIT),
    (fixed, LAPLACE, stats.laplace(0.5, 0.8), NEGATIVE_BINOMIAL),
    (fixed, FAR_PRIOR, stats.norm(2.0, 0.5), PROBIT),
]


@pytest.mark.slow
@pytest.mark.parametrize(("declare", "prior", "exact", "kind"), CASES)
def test_one_coefficient_and_its_scale_against_quadrature(declare, prior, exact, kind, rng):
    """With a constant in the predictor, by weights, of few rows: means and sds within 4.5
    standard errors."""
    x = rng.normal(size=(4, 1)) * 1.5
    reward = np.array([1.0, 0.0, 1.0, 1.0] if kind != NEGATIVE_BINOMIAL else [4.0, 0.0, 1.0, 2.0])
    weight = {BINOMIAL: [0.3, 2.5, 3.0, 1.0], PROBIT: [1, 2, 3, 1]}.get(kind, np.ones(4))
    weight, family = np.array(weight, dtype=float), Family(kind, 2.5 if kind > PROBIT else 1.0)
    found = match(template(declare(prior, kind, 0.4), 1, None))
    assert isinstance(found, Augmented), found
    drawn = found.sample({"x": x, "reward": reward, "weight": weight}, draws=8_000, chains=2)
    theta = np.linspace(-12, 12, 4801)
    log_p = np.array([[family.total(0.4 + x[:, 0] * t, reward, weight) for t in theta]])
    tau = exact.ppf((np.arange(800) + 0.5) / 800)  # equal masses
    of_scale = declare is learned
    log_p = log_p + (stats.norm.logpdf(theta, 0, tau[:, None]) if of_scale else exact.logpdf(theta))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    checked = {"theta": (drawn.values["theta"], theta, p.sum(axis=0))}
    if of_scale:
        checked["tau"] = np.log(drawn.values["tau"]), np.log(tau), p.sum(axis=1)
    for name, (values, at, mass) in checked.items():
        mean, ess = at @ mass, drawn.diagnostics.ess[name]
        sd = np.sqrt((at - mean) ** 2 @ mass)
        assert abs(values.mean() - mean) < 4.5 * sd / np.sqrt(ess), name
        assert abs(values.std() / sd - 1) < 4.5 * 3 / np.sqrt(2 * ess), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BINOMIAL, PROBIT])
def test_a_prior_of_many_coefficients_together_counts(kind, rng):
    """Without rows the statistics of the coefficients are those of their prior; draws of
    coefficients beside a learned scale had left it out."""
    root = np.eye(6) + 0.3
    precision = np.linalg.inv(root @ root.T)

    def many(x, reward, weight, tau):
        theta = pm.MvNormal("theta", np.ones(6), root @ root.T, dims="feature")
        return given(x @ theta + pm.Normal("a", 0, tau), reward, weight, kind)

    found = match(template(bb.reward_model(tau=bb.Prior("HalfNormal", sigma=1))(many), 6, None))
    data = {"x": np.zeros((0, 6)), "reward": np.zeros(0), "weight": np.zeros(0)}
    drawn = found.sample(data, 20_000, 1).values["theta"][0]
    assert (abs(drawn.mean(axis=0) - 1.0) < 5 * drawn.std(axis=0) / np.sqrt(len(drawn))).all()
    np.testing.assert_allclose(np.cov(drawn.T) @ precision, np.eye(6), atol=0.1)


def beside(x, reward, weight, tau):
    theta = pm.Normal("theta", 0, tau, dims="feature")
    return given(tau + x @ theta, reward, weight, BINOMIAL)


def together(x, reward, weight, tau):
    root = np.eye(6) + 0.3
    theta = pm.MvNormal("theta", np.zeros(6), tau * root @ root.T, shape=6)
    return given(x @ theta[:3] + theta[3:].sum(), reward, weight, BINOMIAL)


@bb.reward_model(theta=EACH, alpha=bb.Prior("Gamma", alpha=2, beta=0.1))
def overdispersed(x, reward, theta, alpha):
    mu = pm.math.exp(x @ theta)
    pm.NegativeBinomial("reward", mu=mu, alpha=1 / alpha, observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "why"),
    [
        (bb.reward_model(tau=bb.Prior("HalfNormal", sigma=1))(beside), "depends on 'tau'"),
        (learned(bb.Prior("HalfFlat")), "HalfFlat: improper"),
        (bb.reward_model(tau=bb.Prior("HalfNormal", sigma=1))(together), "many coefficients"),
        (overdispersed, "'reward' ~ NegativeBinomial: depends on 'alpha' besides"),
    ],
)
def test_what_is_left_to_nuts_is_left_with_a_reason(model, why):
    found = match(template(model, 3, None))
    assert not isinstance(found, Augmented)
    assert why in found.reason


COUNTS = [
    fixed(EACH, NEGATIVE_BINOMIAL),
    learned(bb.Prior("HalfNormal", sigma=3), NEGATIVE_BINOMIAL),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", COUNTS, ids=lambda model: model.name)
@pytest.mark.parametrize("mean", [0.1, 4.0, 500.0])
def test_draws_move_freely_whatever_the_counts(mean, model, rng):
    """Given Pólya–Gamma variables alone they hardly do where counts are large, or next to none; and
    a chain is there at once."""
    x = rng.normal(size=(200, 2))
    x[:, 0], mu = 1.0, mean * np.exp(0.3 * x[:, 1])
    reward = rng.negative_binomial(2, 2 / (2 + mu)).astype(float)
    data = {"x": x, "reward": reward, "weight": np.ones(200)}
    drawn = plan(model, 2, None, "gibbs").method.sample(data, 500, 4, 100)
    assert min(drawn.diagnostics.ess.values()) > 150
    assert max(drawn.diagnostics.rhat.values()) < 1.05


@pytest.mark.slow
def test_draws_of_a_probit_regression_are_stretched(rng):
    """Without a common factor of the latent variables, 7 % of the draws would count."""
    x = rng.normal(size=(33, 5))
    reward = (x.sum(axis=1) + rng.normal(size=33) > 0.0).astype(float)
    data = {"x": x, "reward": reward, "weight": np.ones(33)}
    drawn = plan(fixed(EACH, PROBIT), 5, None, "gibbs").method.sample(data, 20_000, 1, 100)
    assert min(drawn.diagnostics.ess.values()) > 0.11 * 20_000
