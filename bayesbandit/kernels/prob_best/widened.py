"""P(arm is best) where a draw is α times as far from its mean: of m + α(v − m), v beta or gamma.

Arms then differ in where their supports end. Arm a's density is integrated over its own z (see
`kernels/prob_best/walk.py`) between points at which each arm, on its own scale, is smooth; the
distribution functions are SciPy's. The absolute error is below 1e-9.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, expit, gammainc

from bayesbandit.kernels.prob_best.walk import (
    BEGIN,
    ENTRY_FALL,
    GAMMA,
    HEIGHT,
    MODE,
    SD,
    SPAN_OF_MANY,
    A,
    B,
    fall,
    falls,
    length,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
LONGEST_STEP = 1.4  # of z at most, where another arm sees it
NEGLIGIBLE_MASS = 1e-13  # of all nodes together: nothing beside 1
MAX_LOG_ODDS = 40.0  # e^−MAX_LOG_ODDS is nothing beside 1
# of log v, beside the log of what is added to it
TURN_STEPS = np.arange(-22.0, 3.0, LONGEST_STEP)


def widened_best(shapes: np.ndarray, mean: np.ndarray, family: int, alpha: float) -> np.ndarray:
    """Return P(arm is best) (K,) with α times the spread, by arms' shapes (K, 6) and means."""
    K = len(shapes)
    if alpha == 0.0:
        winners = mean == mean.max()
        return winners / winners.sum()
    grids = [grid(shape, family) for shape in shapes]
    out = np.empty(K)
    for a in range(K):
        shift = (mean - mean[a]) * (1.0 - 1.0 / alpha)  # v_k beside v_a is v_a + shift_k
        others = [int(k) for k in np.argsort(-mean) if k != a]
        points = [grids[a], *(seen(grids[k], shift[k], family) for k in others)]
        at = np.unique(np.concatenate(points))
        at = at[(at >= grids[a][0]) & (at <= grids[a][-1])]
        half = 0.5 * np.diff(at)
        z = ((at[:-1] + half)[:, None] + half[:, None] * NODES).ravel()
        fallen = falls(shapes[a], z, family)
        product = np.exp(shapes[a, HEIGHT] + fallen) / shapes[a, SD]
        product *= (half[:, None] * WEIGHTS).ravel()
        for k in others:
            kept = product > NEGLIGIBLE_MASS / len(at)
            z, product = z[kept], product[kept]
            product = product * below(shapes[k], z, shift[k], family)
        out[a] = product.sum()
    return out / out.sum()


def grid(shape: np.ndarray, family: int) -> np.ndarray:
    """Return points of an arm's z from where it ends to where it begins, a panel apart."""
    z = float(shape[BEGIN])
    points = []
    while not (z < shape[MODE] and fall(shape, z, family) < -ENTRY_FALL):
        points.append(z)
        z -= length(shape, z, family, SPAN_OF_MANY)
    return np.array([*points, z])[::-1]


def seen(points: np.ndarray, shift: float, family: int) -> np.ndarray:
    """Return an arm's points, its support's ends, and where the shift is felt, as z of an arm that
    is shifted against it."""
    low = max(points[0], -MAX_LOG_ODDS)
    high = min(points[-1], np.inf if family == GAMMA else MAX_LOG_ODDS)
    if high > low:
        fine = np.linspace(low, high, 2 + int((high - low) / LONGEST_STEP))
        points = np.concatenate([points, fine])
    with np.errstate(all="ignore"):
        if family == GAMMA:
            v = np.append(np.exp(np.minimum(points, 700.0)), 0.0) - shift
            z = np.concatenate([np.log(v), np.log(shift) + TURN_STEPS])
        else:
            v = np.concatenate([expit(points), [0.0, 1.0]]) - shift
            rest = np.concatenate([expit(-points), [1.0, 0.0]]) + shift
            z = np.log(v) - np.log(rest)
            near = abs(shift) * np.exp(TURN_STEPS)
            z = np.append(z, np.sign(shift) * (np.log(near) - np.log1p(-near)))
    return z[np.isfinite(z)]


def below(shape: np.ndarray, z: np.ndarray, shift: float, family: int) -> np.ndarray:
    """Return P(v_k < v + shift) of an arm's v_k at another's z (n,)."""
    a, b = shape[A], shape[B]
    if family == GAMMA:
        return gammainc(a, b * np.maximum(np.exp(np.minimum(z, 700.0)) + shift, 0.0))
    v = expit(z) + shift
    rest = expit(-z) - shift
    small = v < rest
    lower = betainc(a, b, np.clip(v[small], 0.0, 1.0))
    p = np.empty(z.shape)
    p[small], p[~small] = lower, 1.0 - betainc(b, a, np.clip(rest[~small], 0.0, 1.0))
    return p
