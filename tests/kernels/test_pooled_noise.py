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


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(
    seed=seeds, n=st.integers(1, 60), ridge=st.sampled_from([0.7, "cv"]), normalize=st.booleans(),
    nu=st.sampled_from([0.5, 2.0, 16.0]),
)  # fmt: skip
def test_it_is_the_naive_formula(intercept, seed, n, ridge, normalize, nu):
    rows = data(seed, n)
    model = Ridge(ridge, intercept=intercept, prior_rows=nu, refit_every=1)
    belief = learned(model, *rows, normalize=normalize)
    np.testing.assert_allclose(belief.sigma2, expected(belief, *rows), rtol=1e-6, atol=1e-10)


@given(seed=seeds, n=st.integers(2, 40))
def test_every_way_of_learning_says_the_same(seed, n):
    """Whole or in parts, after arms have come and gone, from a stored state, and weighed anew."""
    x, arm, r, w = data(seed, n)
    whole, parts = learned(Ridge(), x, arm, r, w), Ridge().belief(3, 2)
    for part in np.array_split(np.arange(n), 3):
        parts.update(x[part], arm[part], r[part], w[part])
    parts.add_arm()
    np.testing.assert_array_equal(parts.sigma2, [*whole.sigma2, np.inf])
    parts.remove_arm(3)
    np.testing.assert_array_equal(parts.arms, whole.arms)
    twin = Ridge().belief(3, 2)
    twin.restore(parts.fork().state())
    np.testing.assert_array_equal(twin.sigma2, whole.sigma2)
    twin.reweigh([0, 2], x, arm, r, 2.0 * w)
    again = np.where(arm == 1, w, 2.0 * w)
    np.testing.assert_allclose(twin.sigma2, expected(twin, x, arm, r, again), rtol=1e-8)
    twin.remove_arm(1)
    left = arm != 1
    rows = x[left], np.where(arm[left] == 2, 1, 0), r[left], again[left]
    np.testing.assert_allclose(twin.sigma2, expected(twin, *rows), rtol=1e-8)
    for k in range(2):
        if twin.n[k]:
            spread = twin.sigma2[k] * twin.inverse(k)
            np.testing.assert_allclose(twin.posterior(k).spread, spread)


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


def rare(seed, n, K=3, d=2):
    """Rewards of 0, and of 1 in one round of ten."""
    x, arm, _, w = data(seed, n, K, d)
    return x, arm, (np.arange(n) % 10 == 4).astype(float), w


@given(seed=seeds, n=st.integers(5, 60), normalize=st.booleans())
def test_rare_rewards_have_the_naive_formula(seed, n, normalize):
    rows = rare(seed, n)
    belief = learned(Ridge(refit_every=1), *rows, normalize=normalize)
    np.testing.assert_allclose(belief.sigma2, expected(belief, *rows), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.01, 0.001])
def test_an_arm_of_zeros_fears_one_surprise_whatever_the_rate(p):
    """κ v = 1 − 3p(1 − p), for each of ν rows, is added to no errors, over n rows."""
    n = 20_000
    r = np.zeros(n + 100)
    r[:n] = np.arange(n) % round(1 / p) == 0
    arm = (np.arange(n + 100) >= n).astype(int)
    belief = learned(Ridge(prior_rows=1.0), np.zeros((n + 100, 1)), arm, r, np.ones(n + 100), K=2)
    assert 100 * belief.sigma2[1] == pytest.approx(1 - 3 * p * (1 - p), rel=0.05)


@given(seed=seeds, exponent=st.sampled_from([-300, -100, 7, 150]))
def test_units_change_no_noise_of_rare_rewards(seed, exponent):
    """To the bit: a power of 2 has no rounding."""
    x, arm, r, w = rare(seed, 40)
    unit = 2.0 ** (exponent if abs(exponent) <= 160 else exponent / 2)
    whole, other = learned(Ridge(), x, arm, r, w), learned(Ridge(), x, arm, unit * r, w)
    np.testing.assert_array_equal(other.sigma2, unit**2 * whole.sigma2)


@given(seed=seeds, many=st.booleans())
def test_rare_rewards_add_up_from_shards(seed, many):
    """A batch, its rows one by one, and two beliefs of a part each that merge."""
    x, arm, r, w = rare(seed, 4000 if many else 50, K=2)
    whole, rows, first, second = (Ridge().belief(2, 2) for _ in range(4))
    whole.update(x, arm, r, w)
    for part in np.array_split(np.arange(len(r)), 20 if many else len(r)):
        rows.update(x[part], arm[part], r[part], w[part])
    half = len(r) // 3
    first.update(x[:half], arm[:half], r[:half], w[:half])
    second.update(x[half:], arm[half:], r[half:], w[half:])
    first.absorb(second)
    for other in (rows, first):
        np.testing.assert_allclose(other.sigma2, whole.sigma2, rtol=1e-9)
    for name in ("mean_r", "spread", "skew", "tail"):
        np.testing.assert_allclose(first.head[name], rows.head[name], rtol=1e-8, atol=1e-12)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LinTS", "LinUCB", "BLTS"])
def test_the_best_of_rare_arms_is_kept(name):
    """5, 10 and 5 %: at most 3 of 100 runs end almost without the best arm. By ν rows of the mean
    squared residual, whatever the kurtosis, it was 8 to 16 of 100 (docs/defaults.md)."""
    lost, means = 0, (0.05, 0.1, 0.05)
    for run in range(100):
        reward = np.random.default_rng(run).random((8000, 3)) < means
        chosen, _ = getattr(bb, name)(3, 0, seed=run).play(np.zeros((8000, 0)), reward, every=8000)
        lost += np.mean(chosen[-1600:] == 1) < 0.05
    assert lost <= 3


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
