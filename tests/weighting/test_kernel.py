"""Kernel balancing against another solver, and its own laws."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import pairwise_kernels

import bayesbandit as bb
from bayesbandit.weighting.kernel import KERNELS, kernel_weights
from tests.cases import few, slow_but


def by_slsqp(K, mean, noise):
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
def test_another_solver_finds_the_same(kernel, rng):
    z = rng.normal(size=(120, 3))
    mine = np.flatnonzero(z[:, 0] + rng.normal(size=120) > 0.8)
    balance = bb.KernelBalance(kernel=kernel, noise=0.5, gamma=None if kernel == "linear" else 0.3)
    product, mean = balance.problem(z, mine)
    how = {} if kernel == "linear" else {"gamma": 0.3}
    K = pairwise_kernels(z, z[mine], metric=kernel, **how)
    np.testing.assert_allclose(mean, K.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(product(mean), K[mine] @ mean, rtol=1e-12)
    W = kernel_weights(product, mean, 0.5)
    np.testing.assert_allclose(W, by_slsqp(K[mine], mean, 0.5), atol=1e-3)
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
