"""Penalised least squares from second moments, by coordinate descent: LASSO paths.

    min_θ ½ θ'Gθ − q'θ + λ‖θ‖₁,    G = Z'VZ / Σv, q = Z'Vr / Σv,

so that the cost of a solution does not depend on the number of rows. Friedman, Hastie and
Tibshirani (2010), Regularization paths for generalized linear models via coordinate descent,
section 2.2 (covariance updates).
"""

import numpy as np

from bayesbandit.kernels import njit

compiled = njit(cache=True, error_model="numpy", nogil=True)

MAX_SWEEPS = 10_000  # the most sweeps over the coordinates
SWEEPS_PER_FULL_ONE = 9  # one sweep over all coordinates, then eight over those that are not 0


@compiled
def violation(g, theta, lam):
    """Return how far the subgradient is from 0, at its worst coordinate.

    It is |g_j − λ sign θ_j| where θ_j ≠ 0, else |g_j| − λ, with g (p,) = q − Gθ.
    """
    worst = 0.0
    for j in range(g.size):
        sign = np.sign(theta[j])
        worst = max(worst, abs(g[j] - lam * sign) - lam * (1.0 - abs(sign)))
    return worst


@compiled
def sweep(G, g, theta, lam, active_only):
    """Minimise over each coordinate in turn, given the others."""
    p = theta.size
    for j in range(p):
        old = theta[j]
        curvature = G[j, j]
        if curvature <= 0.0 or (active_only and old == 0.0):
            continue
        # the soft threshold: θ_j = sign(z) max(|z| − λ, 0) / G_jj, z = q_j − Σ_{i≠j} G_ji θ_i
        z = g[j] + curvature * old
        new = 0.0
        if z > lam:
            new = (z - lam) / curvature
        elif z < -lam:
            new = (z + lam) / curvature
        change = new - old
        if change != 0.0:
            theta[j] = new
            for i in range(p):
                g[i] -= G[j, i] * change


@compiled
def descend(G, q, theta, lam, tolerance, g):
    """Improve θ (p,) until its subgradient is within `tolerance` of 0; return its distance from 0.

    g (p,) is scratch space.
    """
    # g = q − Gθ, which every step of a coordinate keeps up to date
    for i in range(q.size):
        g[i] = q[i]
    for j in range(q.size):
        if theta[j] != 0.0:
            for i in range(q.size):
                g[i] -= theta[j] * G[j, i]
    off = violation(g, theta, lam)
    for k in range(MAX_SWEEPS):
        if off <= tolerance:
            break
        sweep(G, g, theta, lam, k % SWEEPS_PER_FULL_ONE != 0)
        if k % SWEEPS_PER_FULL_ONE == SWEEPS_PER_FULL_ONE - 1:
            off = violation(g, theta, lam)
    return off


@compiled
def paths(G, q, lams, tolerance, out):
    """Solve problems G (m, p, p), q (m, p) along penalties lams (L,), largest first.

    Writes the solutions to out (m, L, p). Each starts at the previous one, the first at out[:, 0].
    Returns the largest distance of a subgradient from 0.
    """
    worst = 0.0
    g = np.empty(q.shape[1])
    for b in range(G.shape[0]):
        for i in range(lams.size):
            if i > 0:
                out[b, i] = out[b, i - 1]
            worst = max(worst, descend(G[b], q[b], out[b, i], lams[i], tolerance, g))
    return worst


@compiled
def moments(rows, v, second):
    """Compute weighted second moments of rows (n, m) about their weighted means.

    v (B, n): B sets of weights. Fills second (B, m, m). Returns the means (B, m).
    """
    n, m = rows.shape
    centre = np.zeros((v.shape[0], m))
    centred = np.empty((n, m))
    for b in range(v.shape[0]):
        share = v[b] / v[b].sum()
        mean = centre[b]
        for i in range(n):
            for j in range(m):
                mean[j] += share[i] * rows[i, j]
        for i in range(n):
            root = np.sqrt(share[i])
            for j in range(m):
                centred[i, j] = root * (rows[i, j] - mean[j])
        second[b] = centred.T @ centred
    return centre
