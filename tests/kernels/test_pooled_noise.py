"""The empirical Bayes rule for σ² against a plain NumPy formula, and at its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.kernels.reward_moments import kurtosis
from tests import oracle

seeds = st.integers(0, 2**32 - 1)
INTERCEPTS = [True, False, "unpenalised"]


def data(seed, n, K=3, d=2):
    rng = np.random.default_rng(seed)
    x, arm, w = rng.normal(size=(n, d)), rng.integers(0, K, n), rng.uniform(0.2, 5.0, n)
    return x, arm, x @ rng.normal(size=d) + rng.normal(size=n) * (1 + arm), w


def learned(model, x, arm, r, w, K=3, normalize=False):
    belief = model.belief(K, x.shape[1], normalize)
    if len(x):
        belief.update(x, arm, r, w)
    return belief


def expected(belief, x, arm, r, w):
    """σ² of all arms (K,) from their rows, each with its own λ."""
    rows = []
    for k in range(len(belief.arms)):
        mine = arm == k
        own = w[mine] / w[mine].mean() if belief.normalize and mine.any() else w[mine]
        rows.append((x[mine], r[mine], own, belief.lam[k]))
    return oracle.pooled_noise(
        rows, belief.features.model.prior_rows, belief.features.model.intercept
    )


def rare(seed, n, K=3, d=2):
    """Rewards of 0, and of 1 in one round of ten."""
    x, arm, _, w = data(seed, n, K, d)
    return x, arm, (np.arange(n) % 10 == 4).astype(float), w


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(
    seed=seeds, n=st.integers(1, 60), rows=st.sampled_from([data, rare]),
    ridge=st.sampled_from([0.7, "cv"]), normalize=st.booleans(), nu=st.sampled_from([0.5, 2, 16]),
)  # fmt: skip
def test_it_is_the_naive_formula(intercept, seed, n, rows, ridge, normalize, nu):
    given = rows(seed, n)
    model = Ridge(ridge, intercept=intercept, prior_rows=nu, refit_every=1)
    belief = learned(model, *given, normalize=normalize)
    np.testing.assert_allclose(belief.sigma2, expected(belief, *given), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_zeros_leave_all_arms_alike(intercept):
    """No reward but 0 so far: σ² = 0 and even ties; the first other one makes all uncertain."""
    bandit = bb.Bandit(3, Ridge(intercept=intercept), bb.Thompson(), n_features=1)
    x = np.linspace(0.5, 2, 12)[:, None]
    bandit.update(x, np.arange(12) % 3, np.zeros(12))
    np.testing.assert_array_equal(bandit.belief.sigma2, 0.0)
    np.testing.assert_allclose(bandit.choose([1.0]).probabilities, 1 / 3)
    bandit.update([[1.3]], [0], [1.0])
    assert (bandit.belief.sigma2 > 0).all()
    assert (bandit.choose([1.0]).probabilities > 0.01).all()


@pytest.mark.parametrize("p", [0.5, 0.1, 0.01, 0.001])
def test_an_arm_of_zeros_fears_one_surprise_whatever_the_rate(p):
    """κ v = 1 − 3p(1 − p), for each of ν rows, is added to no errors, over n rows."""
    n = 20_000
    r = np.zeros(n + 100)
    r[:n] = np.arange(n) % round(1 / p) == 0
    arm = (np.arange(n + 100) >= n).astype(int)
    belief = learned(Ridge(prior_rows=1.0), np.zeros((n + 100, 1)), arm, r, np.ones(n + 100), K=2)
    assert 100 * belief.sigma2[1] == pytest.approx(1 - 3 * p * (1 - p), rel=0.05)


def test_rare_rewards_that_fade_have_the_noise_of_their_shares():
    """Rows that fade are fewer rows, of smaller weights: so is their kurtosis."""
    x, arm, r, w = rare(3, 60)
    model, tick = Ridge(half_life=15.0), np.arange(60.0)
    faded, twin = model.belief(3, 2), model.belief(3, 2)
    for i in range(60):
        one = slice(i, i + 1)
        faded.update(x[one], arm[one], r[one], w[one], tick[one])
    twin.update(x, arm, r, w, tick)
    np.testing.assert_allclose(faded.sigma2, twin.sigma2, rtol=1e-9)
    share = 0.5 ** ((59.0 - tick) / 15.0)
    own, still = (
        learned(Ridge(variance=rule, min_variance=0.0), x, arm, r, share * w).sigma2
        for rule in ("rss/n", "empirical_bayes")
    )
    more = np.bincount(arm) / np.bincount(arm, share)
    np.testing.assert_allclose(faded.sigma2, more * own + more**2 * (still - own), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-40, 1.0, 1e40])
@pytest.mark.parametrize("kind", ["skewed", "far", "equal"])
def test_many_rows_at_once_have_the_noise_of_a_few_at_a_time(kind, unit):
    """Of rewards in any units, far from 0, and all equal, of which κ is 1."""
    x, arm, r, w = data(2, 4000)
    r = {"skewed": np.exp(r), "far": 1e5 + r, "equal": np.full(4000, 0.3)}[kind] * unit
    whole, parts = learned(Ridge(), x, arm, r, w), Ridge().belief(3, 2)
    for part in np.array_split(np.arange(4000), 400):
        parts.update(x[part], arm[part], r[part], w[part])
    (kappa, v), (kappa_of_parts, v_of_parts) = (kurtosis(b.arms) for b in (whole, parts))
    assert kappa == pytest.approx(kappa_of_parts, rel=1e-8)
    assert v == pytest.approx(v_of_parts, rel=1e-8, abs=1e-30 * unit**2)
    np.testing.assert_allclose(whole.sigma2, parts.sigma2, rtol=1e-8)
    assert kind != "equal" or kappa == 1.0
