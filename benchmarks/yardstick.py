"""The yardstick: a plain compiled LinTS, no propensity, no checks, one call a step from Python.

Each arm's state is one block of a (K, d + 3, width) array: d rows of B⁻¹, then θ̂, then B⁻¹x for
the context in hand, then the penalised residual sum of squares and the count, each begun at 1.
Rows are padded to whole cache lines, width ≥ d, which is worth a tenth at d = 100.
"""

import math
import random

import numba
import numpy as np
from clock import LINE, aligned


def start(n_arms: int, d: int, padded: bool = True) -> np.ndarray:
    """The state before any reward: ridge 1, so B⁻¹ = I; noise variance 1."""
    width = -(-d // LINE) * LINE if padded else d
    state = aligned((n_arms, d + 3, width))
    state[:, :d, :d] = np.eye(d)
    state[:, d + 2, :2] = 1.0
    return state


@numba.njit(fastmath=True)
def step(x: np.ndarray, reward: np.ndarray, state: np.ndarray) -> int:
    """Draw each arm's score N(x'θ̂, σ̂² x'B⁻¹x), pull the best, update it by Sherman–Morrison."""
    d, best, arm, mean, spread = x.shape[0], -math.inf, 0, 0.0, 0.0
    for k in range(state.shape[0]):
        V, theta, u, s = state[k, :d], state[k, d], state[k, d + 1], state[k, d + 2]
        m = q = 0.0
        for i in range(d):
            dot = 0.0
            for j in range(d):
                dot += V[i, j] * x[j]
            u[i] = dot
            q += dot * x[i]
            m += theta[i] * x[i]
        score = m + math.sqrt(q * s[0] / s[1]) * random.gauss(0.0, 1.0)
        if score > best:
            best, arm, mean, spread = score, k, m, q
    V, theta, u, s = state[arm, :d], state[arm, d], state[arm, d + 1], state[arm, d + 2]
    error, gain = reward[arm] - mean, 1.0 / (1.0 + spread)
    s[0] += error * error * gain
    s[1] += 1.0
    for i in range(d):
        c = u[i] * gain
        theta[i] += c * error
        for j in range(d):
            V[i, j] -= c * u[j]
    return arm


def prove(x: np.ndarray, reward: np.ndarray) -> None:
    """Raise unless the arms' θ̂ after these rounds solve their own ridge regressions."""
    state = start(reward.shape[1], x.shape[1])
    arm = np.array([step(*row, state) for row in zip(x, reward, strict=True)])
    for k in range(reward.shape[1]):
        own = x[arm == k]
        theta = np.linalg.solve(own.T @ own + np.eye(x.shape[1]), own.T @ reward[arm == k, k])
        gap = np.abs(theta - state[k, x.shape[1], : x.shape[1]]).max()
        if not gap < 1e-8:
            raise ValueError(f"arm {k}'s theta is {gap:.1e} away from the ridge solution")
