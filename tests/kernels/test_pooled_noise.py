"""The empirical Bayes rule for σ² against a plain NumPy formula, and at its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesbandit as bb
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.kernels import ridge_state
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
    return oracle.pooled_noise(rows, belief.model.prior_rows, belief.model.intercept)


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
        theta_scale = ridge_state.matrix(ridge_state.P_of(twin.arms[k], 3), 3)[:, :3]
        if twin.n[k]:
            np.testing.assert_allclose(twin.posterior(k).spread, twin.sigma2[k] * theta_scale)


def test_one_arm_has_itself_to_learn_from():
    x, arm, r, w = data(0, 30, K=1)
    belief = learned(Ridge(prior_rows=2.0), x, arm, r, w, K=1)
    theta = oracle.sklearn_ridge(x, r, w, 1.0)
    rss = w @ (r - oracle.design(x) @ theta) ** 2
    s2, far = (rss + theta @ theta) / w.sum(), r - np.average(r, weights=w)
    v, fourth = (np.average(far**p, weights=w) for p in (2, 4))
    assert s2 < v
    rows = 2 * fourth / v**2 * (s2 / v)
    np.testing.assert_allclose(belief.sigma2, rss / 30 + rows * w.mean() * s2 / 30)


def test_new_arms_know_no_noise_and_teach_none():
    x, arm, r, w = data(1, 30)
    belief = learned(Ridge(), x, arm, r, w, K=5)
    np.testing.assert_array_equal(belief.sigma2[3:], np.inf)
    np.testing.assert_array_equal(belief.sigma2[:3], learned(Ridge(), x, arm, r, w).sigma2)
    np.testing.assert_array_equal(Ridge().belief(2, 2).sigma2, np.inf)


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


def test_a_floor_that_is_given_holds():
    belief = learned(Ridge(floor=0.3), np.ones((3, 1)), np.arange(3), np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(belief.sigma2, 0.3)
