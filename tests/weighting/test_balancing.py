"""Residual and kernel balancing against another solver, and their own laws."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import pairwise_kernels

import bayesbandit as bb
from bayesbandit.weighting.kernel import KERNELS, kernel_weights
from bayesbandit.weighting.residual import residual_weights
from tests.cases import few, slow_but


def objective(W, x, target, zeta):
    """The paper's, of w = W / n, n times as large."""
    n = len(x)
    return (1 - zeta) * np.mean(W**2) + zeta * n * np.abs(target - x.T @ W / n).max() ** 2


def by_slsqp(x, target, zeta, least, ftol=1e-14):
    """The weights, and the largest imbalance as one more variable."""
    n, d = x.shape
    sides = np.vstack([np.hstack([s * x.T / n, np.ones((d, 1))]) for s in (1, -1)])
    ends = np.concatenate([target, -target])
    found = minimize(
        lambda v: (1 - zeta) * np.mean(v[:-1] ** 2) + zeta * n * v[-1] ** 2,
        np.append(np.ones(n), np.abs(x.mean(axis=0) - target).max()),
        jac=lambda v: np.append(2 * (1 - zeta) * v[:-1] / n, 2 * zeta * n * v[-1]),
        method="SLSQP", bounds=[(least, n ** (1 / 3))] * n + [(0, None)],
        constraints=[
            {"type": "eq", "fun": lambda v: v[:-1].mean() - 1},
            {"type": "ineq", "fun": lambda v: sides @ v - ends, "jac": lambda v: sides},
        ],
        options={"ftol": ftol, "maxiter": 2000},
    )  # fmt: skip
    assert found.success
    return found.x[:-1]


CASES = [(n, d, zeta, least) for n in (4, 30, 60) for d in (1, 5) for zeta in (0.1, 0.9)
         for least in (0.0, 1e-2)]  # fmt: skip


@pytest.mark.parametrize("case", slow_but([(30, 5, 0.9, 0.0), (60, 1, 0.1, 1e-2)], CASES))
@few("case17")
def test_another_solver_finds_the_same(case):
    n, d, zeta, least = case
    rng = np.random.default_rng(n + d)
    x, target = rng.normal(size=(n, d)) + 0.5, np.zeros(d)
    W, other = residual_weights(x, target, zeta, least), by_slsqp(x, target, zeta, least)
    np.testing.assert_allclose(W, other, atol=2e-5)
    assert objective(W, x, target, zeta) <= objective(other, x, target, zeta) + 1e-6


def test_weights_are_the_best_ones_where_columns_are_large_or_alike():
    rng = np.random.default_rng(1)
    for _ in range(40):
        x = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5)) * 5.0
        target = rng.normal(size=5)
        W = residual_weights(x, target, least=1e-3)
        other = by_slsqp(x, target, 0.5, 1e-3, ftol=1e-9)
        assert objective(W, x, target, 0.5) <= 1.001 * objective(other, x, target, 0.5)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_weights_have_mean_one_and_keep_within_their_bounds(n):
    x = np.random.default_rng(n).normal(size=(n, 3)) + 1.0
    W = residual_weights(x, np.zeros(3), 0.5, 1e-3)
    assert abs(W.mean() - 1) < 1e-12
    assert W.min() >= 1e-3 * (1 - 1e-9)
    assert W.max() <= n ** (1 / 3) * (1 + 1e-9)


def test_arms_that_are_balanced_are_weighed_evenly():
    x = np.random.default_rng(0).normal(size=(40, 3))
    np.testing.assert_allclose(residual_weights(x, x.mean(axis=0)), 1.0, atol=1e-6)


def test_units_of_a_feature_do_not_matter():
    made = []
    for unit in (1.0, 1e6):
        x = np.random.default_rng(2).normal(size=(60, 2)) * [1.0, unit]
        bandit = bb.Bandit(2, bb.Ridge(), bb.Thompson(), bb.ResidualBalance(), n_features=2)
        arm = (x[:, 0] > 0).astype(int)
        bandit.update(x, arm, x[:, 0], np.full(60, 0.5))
        made.append(bandit.history.weight)
    np.testing.assert_allclose(*made, rtol=1e-6)


def kernel_by_slsqp(K, mean, noise):
    m = len(mean)
    found = minimize(
        lambda W: 0.5 * W @ (K @ W + noise * W) / m - mean @ W,
        np.ones(m),
        jac=lambda W: (K @ W + noise * W) / m - mean,
        method="SLSQP", bounds=[(0, None)] * m,
        constraints={"type": "eq", "fun": lambda W: W.mean() - 1},
        options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip
    return found.x


@few("[linear]")
@pytest.mark.parametrize("kernel", slow_but(["rbf", "linear"], KERNELS))
def test_another_solver_finds_the_same_kernel_weights(kernel, rng):
    z = rng.normal(size=(120, 3))
    mine = np.flatnonzero(z[:, 0] + rng.normal(size=120) > 0.8)
    balance = bb.KernelBalance(kernel=kernel, noise=0.5, gamma=None if kernel == "linear" else 0.3)
    product, mean = balance.problem(z, mine)
    how = {} if kernel == "linear" else {"gamma": 0.3}
    K = pairwise_kernels(z, z[mine], metric=kernel, **how)
    np.testing.assert_allclose(mean, K.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(product(mean), K[mine] @ mean, rtol=1e-12)
    W = kernel_weights(product, mean, 0.5)
    np.testing.assert_allclose(W, kernel_by_slsqp(K[mine], mean, 0.5), atol=1e-3)
    assert (W == 0).any() == (W.min() < 1e-6)


def test_the_landmarks_of_all_rounds_are_the_kernel(rng):
    z, mine = rng.normal(size=(50, 2)), np.arange(20, 50)
    exact, nystroem = bb.KernelBalance(), bb.KernelBalance(landmarks=29)
    few = nystroem.problem(z, mine)[0](np.ones(30)) - exact.problem(z, mine)[0](np.ones(30))
    assert np.abs(few).max() < 0.05 * 30  # 29 landmarks of 50 rows: nearly


HALVES = np.repeat([0, 1], 12)
ALIKE = {
    "balanced": np.tile([[-1.0], [1.0]], (12, 1)),
    "none": np.zeros((24, 0)),
    "zero": np.zeros((24, 2)),
    "constant": np.full((24, 2), 1e8),
    "constant but for one": np.eye(24)[:, :1],
    "constant in one arm": np.where(HALVES[:, None] == 0, 3.0, np.arange(24.0)[:, None]),
}


@pytest.mark.parametrize("landmarks", [300, 3])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ALIKE)
def test_contexts_that_tell_little_apart(name, kernel, landmarks):
    """Which are balanced already: there each arm's rounds weigh the same."""
    x, balance = ALIKE[name], bb.KernelBalance(kernel=kernel, landmarks=landmarks)
    bandit = bb.Bandit(2, bb.Ridge(), bb.Thompson(), balance, n_features=x.shape[1])
    bandit.update(x, HALVES, np.arange(24.0) % 5, propensity=np.full(24, 0.5))
    weight = bandit.history.weight
    np.testing.assert_allclose([weight[:12].mean(), weight[12:].mean()], 1.0, atol=1e-6)
    if "but" not in name and "in one" not in name:
        np.testing.assert_allclose(weight, 1.0, atol=1e-4)
