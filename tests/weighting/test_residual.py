"""Approximate residual balancing against another solver, the dual bound, and its own laws."""

import numpy as np
import pytest
from scipy.optimize import minimize

import bayesbandit as bb
from bayesbandit.weighting.residual import residual_weights
from tests.cases import few, slow_but


def objective(W, x, target, zeta):
    """The paper's, of w = W / n, n times as large."""
    n = len(x)
    return (1 - zeta) * np.mean(W**2) + zeta * n * np.abs(target - x.T @ W / n).max() ** 2


def by_slsqp(x, target, zeta, least):
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
        options={"ftol": 1e-14, "maxiter": 2000},
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
