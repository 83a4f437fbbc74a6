"""An arm's posterior after one more row (`kernels/ridge_state.py`).

A row z is learned in one of three ways, by how many digits each costs. The Sherman–Morrison update
of P loses as many as s = 1 + w z'Pz has. A factorisation of B, from the sums X'WX, loses as many as
the ratio of B's largest to its smallest direction has, in units of its own diagonal. Where this is
too many (contexts of 1e8, λ = 1, and fewer rows than columns), Potter's update of a root R of P =
R'R loses half as many, and R stands for P from there on, until a factorisation is good again.
Where nothing helps (λ or the weights' divisor change at every row, or s is beyond STEEPEST), λ is
in effect at least LOST·D of a column's weighted sum of squares (`factor_by`).
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import (
    LOST,
    add_outer,
    add_scaled,
    dot,
    factor_by,
    symmetric_times,
)
from bayesbandit.kernels.ridge_state import FORM, LOSS, ROOTED, P_of, is_rooted, matrix, theta_of
from bayesbandit.runtime.compiling import njit

STEEP = 1e4  # the factor s of a rank-one update from which on a factorisation takes its place
STEEPEST = 1e24  # and of an update of the root; it leaves 4 digits


@njit(cache=True)
def rank_one(arm, z, r, w, v):
    """Update P, θ and the loss by a row of weight w (Sherman and Morrison); v (stride,) is scratch.

    Return False, and do nothing, where the update would lose more than 4 of the 16 digits: it loses
    as many as s = 1 + w z'Pz has, and s is large when a large context shows a new direction.
    """
    if arm[FORM] > 0.0 and is_rooted(arm):
        return rank_one_of_root(arm, z, r, w, v)
    symmetric_times(P_of(arm, z.size), z, v)
    s = 1.0 + w * dot(z, v)
    if not 0.5 < s < STEEP:
        return False
    take_in(arm, z, r, w, s, v)
    return True


@njit(cache=True)
def rank_one_anyway(arm, z, r, w, v):
    """Update by a steep row where P is all that is known; digits are lost only along z."""
    symmetric_times(P_of(arm, z.size), z, v)
    take_in(arm, z, r, w, 1.0 + w * max(dot(z, v), 0.0), v)


@njit(cache=True)
def take_in(arm, z, r, w, s, v):
    """Update P, θ and the loss by Sherman and Morrison, from v = Pz and s = 1 + w z'v."""
    D = z.size
    theta, P = theta_of(arm, D), P_of(arm, D)
    error = r - dot(z, theta)
    arm[LOSS] += w * error * error / s
    add_scaled(theta, w * error / s, v)
    add_outer(P, v.size, -w / s, v)


@njit(cache=True)
def rank_one_of_root(arm, z, r, w, v):
    """Update as `rank_one` a root R of P: Potter's R − c (Rz)(Pz)', c = w/(s + √s) (Bierman 1977,
    Factorization Methods for Discrete Sequential Estimation, section II.8)."""
    D = z.size
    theta, R = theta_of(arm, D), matrix(P_of(arm, D), D)
    v[:] = 0.0
    q = 0.0
    for j in range(D):
        u = dot(z, R[j])
        q += u * u
        add_scaled(v, u, R[j])
    error = r - dot(z, theta)
    s = 1.0 + w * q
    if not s < STEEPEST:
        return False
    arm[LOSS] += w * error * error / s
    add_scaled(theta, w * error / s, v)
    c = w / (s + np.sqrt(s))
    for j in range(D):
        add_scaled(R[j], -c * dot(z, R[j]), v)
    return True


@njit(cache=True)
def take_root(arm, z, w, v, diagonal):
    """Put a root R = U of P = U'U in the place of P; diagonal (D,) is scratch.

    False where P has none, or z is too steep for it; P is then of no use any more.
    """
    D = z.size
    R = matrix(P_of(arm, D), D)
    symmetric_times(P_of(arm, D), z, v)
    if not 0.0 <= w * dot(z, v) < STEEPEST or factor_by(R, diagonal) < LOST * D:
        return False
    for j in range(D):
        for i in range(j):
            R[j, i] = 0.0
    arm[FORM] += ROOTED
    return True
