"""Draws and probabilities of exact beliefs, and of arms that share a model in closed form."""

import numpy as np
import pytest

from tests.beliefs import closed_form
from tests.beliefs.closed_form import MODELS, data, learn
from tests.beliefs.exact import K, believed, close, fitted, probe, shared
from tests.cases import in_gate, moments_of


def joint(name, n_arms, n=20, seed=0):
    rows = data(seed=seed, n=n, K=n_arms)
    belief = learn(believed(MODELS[name], n_arms), rows, (n,))
    return belief, closed_form.mean_rewards(name, rows, n_arms, probe())


@pytest.mark.slow
@shared
@pytest.mark.parametrize("n_arms", [1, 3])
def test_moments_in_closed_form(name, n_arms):
    belief, (mean, spread, df) = joint(name, n_arms)
    ours = belief.predict(probe())
    close(ours.mean, mean)
    close(ours.root @ ours.root.transpose(0, 2, 1), spread)
    assert ours.df == df
    variance = closed_form.variance(spread, df)
    close(moments_of(belief, probe())[1], np.sqrt(np.einsum("nkk->nk", variance)))


@shared
@pytest.mark.parametrize("alpha", [1.0, 2.5])
@pytest.mark.parametrize("n_arms", [3, pytest.param(4, marks=pytest.mark.slow)])
@in_gate(6)
def test_the_best_of_dependent_arms_is_an_orthant(name, alpha, n_arms):
    belief, (mean, spread, df) = joint(name, n_arms, n=12)
    p = belief.predict(probe()).best(alpha)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    for row in range(len(p)):
        expected = closed_form.orthants(mean[row], spread[row], df, alpha)
        np.testing.assert_allclose(p[row], expected, atol=3e-3 if n_arms == 3 else 5e-3)


S = 20_000


def drawn_from(draws, mean, covariance, df):
    """Draws (S, m) have these moments, within 4.5 standard errors of each."""
    kurtosis = 1.0 if np.isinf(df) else (df - 2) / (df - 4)
    variance = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean) <= 4.5 * np.sqrt(variance / len(draws))).all()
    products = np.outer(variance, variance)
    error = np.sqrt((kurtosis * (products + 2 * covariance**2) - covariance**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - covariance) <= 4.5 * error).all()


@shared
def test_one_draw_spans_all_arms(name, rng):
    """The covariance of their mean rewards is A Σ A'."""
    rows = data(n=20)
    belief = learn(believed(MODELS[name]), rows)
    draws = belief.predict(probe()[:2]).draw(S, rng)[:, 0]
    fit = fitted(MODELS[name], rows, K)[0]
    A, _ = fit.plan.method.linear_map(probe()[:2])
    A = A.reshape(-1, A.shape[-1])
    df = fit.known.df if hasattr(fit.known, "df") else np.inf
    mean, spread, _ = closed_form.mean_rewards(name, rows, K, probe()[:2])
    covariance = A @ fit.known.covariance @ A.T
    covariance = covariance[:K, :K]
    close(covariance, closed_form.variance(spread, df)[0])
    drawn_from(draws, mean[0], covariance, df)
