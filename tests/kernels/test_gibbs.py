"""The Gibbs sampler against its twin, closed forms, quadrature and published numbers."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes

from bayesbandit.kernels.gibbs import mixture as gibbs
from tests.cases import few, slow_but
from tests.kernels.gibbs_twin import VARIANTS, Twin, prior_of, quadrature, start

FREE = [name for name in VARIANTS if "flat" not in name and "1/σ²" not in name]
UNLIKE = (
    "normal, free noise",
    "ridge, half-Cauchy",
    "laplace",
    "park-casella, gamma",
    "horseshoe, known",
)


def data_set(rng, n, d):
    x, w = rng.normal(size=(n, d)), rng.uniform(0.3, 3.0, n)
    return x, x @ rng.normal(size=d) + rng.normal(size=n) / np.sqrt(w), w


def statistics(x, r, w=None):
    w = np.ones(len(r)) if w is None else w
    return gibbs.statistics((w * x.T) @ x, (w * x.T) @ r, w @ r**2, len(r))


def copied(state):
    return gibbs.ScaleState(*(a.copy() for a in state))


def assert_mean(draws, mean, sd=0.0, most=4.5, batches=40):
    """The average of a chain is `mean`, within `most` standard errors by batch means."""
    parts = draws[: len(draws) // batches * batches].reshape(batches, -1).mean(axis=1)
    error = parts.std(ddof=1) / np.sqrt(batches)
    assert abs(draws.mean() - mean) < most * error + 2e-3 * sd, (draws.mean(), mean, error)


def assert_moments(draws, mean, sd):
    assert_mean(draws, mean, sd)
    assert_mean(np.abs(draws - mean) ** 2, sd**2, sd**2)


IMPROPER = ("park-casella, 1/σ²", True, True)
CASES = sorted({*product(VARIANTS, (False, True), (False, True))} - {IMPROPER})


@pytest.mark.parametrize(
    ("name", "from_rows", "mixed"),
    [
        pytest.param(*c, marks=pytest.mark.slow if c[0] == "horseshoe" and any(c[1:]) else ())
        for c in CASES
    ],
)
def test_same_chain_as_the_twin(name, from_rows, mixed, rng):
    n, d = (7, 11) if from_rows else (15, 6)
    x, r, w = data_set(rng, n, d)
    prior = prior_of(name, d, mixed)
    data = gibbs.rows(x, r, w) if from_rows else statistics(x, r, w)
    state = start(data, prior, lambda2=0.8, sigma2=1.3)
    twin = Twin(x, r, w, prior, state, from_rows)
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(15):
        gibbs.sample(data, prior, state, ours, 1)
        twin.sweep(theirs)
        np.testing.assert_allclose(state.theta, twin.theta, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(state.inv_tau2, twin.inv_tau2, rtol=1e-6)
        np.testing.assert_allclose(state.sigma2[0], twin.sigma2, rtol=1e-7)
        np.testing.assert_allclose(state.lambda2[0], twin.lambda2, rtol=1e-7)


@pytest.mark.parametrize("from_rows", [False, True])
def test_one_call_or_many(from_rows, rng):
    x, r, w = data_set(rng, 9, 12)
    data = gibbs.rows(x, r, w) if from_rows else statistics(x, r, w)
    prior = prior_of("park-casella, gamma", 12)
    first = start(data, prior)
    second = copied(first)
    once = gibbs.sample(data, prior, first, np.random.default_rng(7), 10)
    stream = np.random.default_rng(7)
    parts = [gibbs.sample(data, prior, second, stream, size) for size in (1, 4, 5)]
    for name in gibbs.Draws._fields:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(once, name), joined)
    np.testing.assert_array_equal(first.theta, once.theta[-1])
    third = copied(second)
    every = gibbs.sample(data, prior, second, np.random.default_rng(8), 9)
    thinned = gibbs.sample(data, prior, third, np.random.default_rng(8), 3, thin=3)
    np.testing.assert_array_equal(thinned.theta, every.theta[2::3])


def test_fixed_scales_and_known_noise_are_exactly_gaussian(rng):
    x, r, w = data_set(rng, 20, 4)
    prior, data = prior_of("normal", 4), statistics(x, r, w)
    state = start(data, prior, sigma2=0.5)
    draws = gibbs.sample(data, prior, state, rng, 20_000).theta
    B = (w * x.T) @ x + np.diag(prior.fixed)
    white = (draws - np.linalg.solve(B, (w * x.T) @ r)) @ np.linalg.cholesky(B) / np.sqrt(0.5)
    for j in range(4):
        assert stats.kstest(white[:, j], "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.corrcoef(white.T), np.eye(4), atol=4.5 / np.sqrt(20_000))


@pytest.mark.parametrize("from_rows", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_normal_inverse_gamma(flat, from_rows, rng):
    """Independent draws: σ² ~ InverseGamma(a, b), θ_j ~ Student-t with 2a degrees of freedom."""
    x, r, w = data_set(rng, 12, 4)
    prior = prior_of("normal-inverse-gamma" + (", flat column" if flat else ""), 4)
    data = gibbs.rows(x, r, w) if from_rows else statistics(x, r, w)
    state = start(data, prior)
    draws = gibbs.sample(data, prior, state, rng, 5000)
    B = (w * x.T) @ x + np.diag(prior.fixed)
    theta = np.linalg.solve(B, (w * x.T) @ r)
    a = 2.0 + (12 - flat) / 2
    b = 1.5 + (w @ (r - x @ theta) ** 2 + prior.fixed @ theta**2) / 2
    assert stats.kstest(draws.sigma2, stats.invgamma(a, scale=b).cdf).pvalue > 1e-3
    scale = np.sqrt(b / a * np.diag(np.linalg.inv(B)))
    for j in range(4):
        assert stats.kstest(draws.theta[:, j], stats.t(2 * a, theta[j], scale[j]).cdf).pvalue > 1e-3


@pytest.mark.parametrize("from_rows", slow_but([False], [False, True]))
@pytest.mark.parametrize("name", slow_but(UNLIKE, FREE))
@few("normal, free", "laplace", "known")
def test_one_coefficient_against_quadrature(name, from_rows, rng):
    x = rng.normal(size=6)
    r = 0.7 * x + rng.normal(size=6)
    prior = prior_of(name, 1)
    data = gibbs.rows(x[:, None], r) if from_rows else statistics(x[:, None], r)
    state = start(data, prior, lambda2=1.4, sigma2=0.9)
    moments = quadrature(x, r, prior, 1.4, 0.9)
    gibbs.sample(data, prior, state, rng, 1, thin=500)
    draws = gibbs.sample(data, prior, state, rng, 40_000, thin=3)
    chains = draws.theta[:, 0], np.log(draws.lambda2), np.log(draws.sigma2)
    for chain, (mean, sd) in zip(chains, moments, strict=True):
        if chain.min() == chain.max():
            assert chain[0] == pytest.approx(mean)
        else:
            assert_moments(chain, mean, sd)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("horseshoe, flat column", 1.0),
        pytest.param(  # where the common scale is drawn, it moves too slowly
            "horseshoe, known", 1e9, marks=pytest.mark.slow
        ),
        pytest.param("laplace", 1.0, marks=pytest.mark.slow),
        ("laplace", 1e9),
        pytest.param("park-casella, flat column", 1.0, marks=pytest.mark.slow),
        pytest.param("park-casella, flat column", 1e9, marks=pytest.mark.slow),
    ],
)
@few("laplace")
def test_rows_and_statistics_agree(name, size, rng):
    """Where n < d; the rows carry weights, the statistics copies of the rows, at a known σ².

    Columns that are large beside their prior would drown the digits of the others' XDX'.
    """
    d, copies = 9, np.array([1, 3, 2, 1, 4])
    x = rng.normal(size=(5, d))
    r = x @ rng.normal(size=d) + rng.normal(size=5)
    x[:, 1:3] *= size
    prior = prior_of(name, d)._replace(noise_known=True)
    repeated = statistics(np.repeat(x, copies, axis=0), np.repeat(r, copies))
    both = []
    for data in (gibbs.rows(x, r, copies), repeated):
        state = start(data, prior, sigma2=0.7)
        draws = gibbs.sample(data, prior, state, rng, 40_000, thin=4)
        theta = draws.theta * np.sqrt(np.sum(x**2, axis=0))
        logs = np.log(np.abs(theta)), np.log(draws.inv_tau2[:, 1:])
        both.append(np.column_stack([theta, *logs]))
    for ours, theirs in zip(both[0].T, both[1].T, strict=True):
        means = np.array([a.reshape(40, -1).mean(axis=1) for a in (ours, theirs)])
        error = np.sqrt((means.var(axis=1, ddof=1) / 40).sum())
        assert abs(means[0].mean() - means[1].mean()) < 4.5 * error


def test_weights_are_copies_only_with_known_noise(rng):
    x, r, _ = data_set(rng, 10, 4)
    copies = rng.integers(1, 4, 10)
    weighted = gibbs.problem(x, r, copies)
    repeated = gibbs.problem(np.repeat(x, copies, axis=0), np.repeat(r, copies))
    chains = {}
    for noise in (None, (2.0, 1.5)):
        prior = gibbs.declare(4, gibbs.LAPLACE, noise=noise)
        for data in (weighted, repeated):
            state = start(data, prior, sigma2=1.0)
            draws = gibbs.sample(data, prior, state, np.random.default_rng(4), 50)
            chains[noise is None, data is weighted] = draws.theta
    np.testing.assert_allclose(chains[True, True], chains[True, False], rtol=1e-8)
    assert np.abs(chains[False, True] - chains[False, False]).max() > 1e-3


def test_which_rows_are_taken_as_they_are(rng):
    assert isinstance(gibbs.problem(rng.normal(size=(40, 100)), np.ones(40)), gibbs.Rows)
    assert isinstance(gibbs.problem(rng.normal(size=(41, 100)), np.ones(41)), gibbs.Statistics)
    assert not gibbs.prefers_rows(0, 10)


def test_without_rows_the_prior_is_sampled(rng):
    prior = prior_of("park-casella, gamma", 3)
    data = gibbs.problem(np.empty((0, 3)), np.empty(0))
    state = start(data, prior, sigma2=1.0)
    draws = gibbs.sample(data, prior, state, rng, 20_000, thin=20)
    assert stats.kstest(draws.sigma2, stats.invgamma(2.0, scale=1.5).cdf).pvalue > 1e-3
    assert stats.kstest(draws.lambda2[::4], stats.gamma(2.0).cdf).pvalue > 1e-3
    z = draws.theta * np.sqrt(draws.lambda2 / draws.sigma2)[:, None]
    assert stats.kstest(z[::4, 0], "laplace").pvalue > 1e-3


@pytest.mark.parametrize(
    ("prior", "rows"),
    [
        (gibbs.declare(2, gibbs.FIXED, fixed=np.zeros(2), noise=(0.0, 1.0)), 2),
        (gibbs.declare(2, noise=(0.0, 0.0)), 0),
        (gibbs.declare(3, noise=(0.0, 0.0), scaled=False), 3),
    ],
)
def test_an_improper_variance_is_refused(prior, rows, rng):
    d = len(prior.fixed)
    x, r, _ = data_set(rng, rows, d)
    for data in (gibbs.rows(x, r), statistics(x, r)):
        with pytest.raises(ValueError, match="σ² has no proper posterior"):
            start(data, prior)


def test_rewards_of_zero_with_an_improper_variance_are_refused(rng):
    data = gibbs.problem(rng.normal(size=(5, 2)), np.zeros(5))
    with pytest.raises(ValueError, match="fit perfectly"):
        start(data, gibbs.declare(2, noise=(0.0, 0.0)))


def test_data_that_are_not_finite_are_found_out(rng):
    x, r, _ = data_set(rng, 5, 2)
    data, prior = gibbs.problem(x, r * np.nan), gibbs.declare(2)
    with pytest.raises(FloatingPointError, match="finite"):
        gibbs.sample(data, prior, start(data, prior, sigma2=1.0), rng, 1)


@pytest.fixture(scope="module")
def diabetes():
    x, r = load_diabetes(return_X_y=True)
    return gibbs.problem(x, r - r.mean())


def test_diabetes_medians(diabetes, rng):
    """Park and Casella (2008), table 1, at their λ = 0.237."""
    prior = gibbs.declare(10, noise=(0.0, 0.0))
    state = start(diabetes, prior, lambda2=0.237**2)
    draws = gibbs.sample(diabetes, prior, state, rng, 40_000)
    known = [-3.3, -214.4, 523.9, 307.6, -171, -3.0, -154, 92, 520.7, 62.8]
    np.testing.assert_allclose(np.median(draws.theta, axis=0), known, atol=4.0)


def test_diabetes_lambda(diabetes, rng):
    prior = gibbs.declare(10, noise=(0.0, 0.0), gamma=(1.0, 1.78))
    state = start(diabetes, prior)
    lam = np.sqrt(gibbs.sample(diabetes, prior, state, rng, 100_000).lambda2)
    known = [0.278, 0.142, 0.486]
    np.testing.assert_allclose(np.quantile(lam, [0.5, 0.025, 0.975]), known, atol=0.01)
