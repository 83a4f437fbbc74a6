"""Which arm is best, and how often, where the arms' mean rewards are known by draws.

A tie is split evenly, as if each arm broke it by a number of its own from [0, 1).
"""

from functools import cache

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.runtime.compiling import njit

N_LEVELS = 2048
LEVELS = (np.arange(N_LEVELS)[:, None] + 0.5) / N_LEVELS  # by whose quantiles `scaled` compares


@njit(cache=True)
def ranked(values, mass, points, weights, out):
    """Fill in P(arm is best), (n, K), for arms drawn independently from their own S values (n, K,
    S), which count `mass` (K · S,) times.

    Exact for these empirical distributions, from one sort of all values. With c_k of arm k's values
    below v and e_k equal to it, an arm that draws v beats arm k if its own tie-breaker u is the
    larger: with probability (c_k + u e_k)/S. The product over k is a polynomial in u, and its
    integral a sum over Gauss–Legendre points (m,) and weights on [0, 1].
    """
    n, K, S = values.shape
    below = np.empty(K)
    equal = np.empty(K)
    for i in range(n):
        flat = values[i].copy().reshape(K * S)
        order = np.argsort(flat)
        below[:] = 0.0
        out[i] = 0.0
        start = 0
        # all values in ascending order, those that are equal together
        while start < K * S:
            stop = start + 1
            v = flat[order[start]]
            equal[:] = 0.0
            equal[order[start] // S] = mass[order[start]]
            while stop < K * S and flat[order[stop]] == v:
                equal[order[stop] // S] += mass[order[stop]]
                stop += 1
            # a value that no other arm has needs no tie-breaker: the product is a constant in u
            alone = stop == start + 1
            for a in range(K):
                if equal[a] == 0.0:
                    continue
                # ∫₀¹ Π_{k≠a} (c_k + u e_k)/S du: of degree K − 1, and m nodes are exact to 2m − 1
                chance = 0.0
                for m in range(1 if alone else points.size):
                    term = 1.0 if alone else weights[m]
                    for k in range(K):
                        if k != a:
                            tied = 0.0 if alone else points[m] * equal[k]
                            term *= (below[k] + tied) / S
                    chance += term
                out[i, a] += equal[a] / S * chance
            for k in range(K):
                # from here on these draws are below
                below[k] += equal[k]
            start = stop


@cache
def quadrature(points: int) -> tuple[Array, Array]:
    """Return the nodes in (0, 1) and the weights of Gauss–Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def masses(weights: Array | None, S: int) -> Array:
    """Return how often S draws count, (S,) or (K, S), with an average of 1."""
    if weights is None:
        return np.ones(S)
    return np.asarray(weights * (S / weights.sum(axis=-1, keepdims=True)))


def independent(values: Array, weights: Array | None = None) -> Array:
    """Return P(arm is best) (n, K) for arms drawn independently, each from its S values (n, K, S),
    with weights (S,), or (K, S) of each arm."""
    _, K, S = values.shape
    out = np.empty(values.shape[:2])
    mass = np.broadcast_to(masses(weights, S), (K, S)).ravel()
    ranked(np.ascontiguousarray(values), mass, *quadrature((K + 1) // 2), out)
    return _summing(out, weights)


def joint(values: Array, weights: Array | None = None) -> Array:
    """Return P(arm is best) (n, K) for arms drawn together: draws (n, S, K) with weights (S,)."""
    scores = np.ascontiguousarray(values.transpose(0, 2, 1))
    S = scores.shape[2]
    is_best = scores == scores.max(axis=1, keepdims=True)
    # a draw's mass is split among the arms that are best in it
    each = masses(weights, S) / is_best.sum(axis=1)  # counts are whole: one arm is best S times
    return _summing(np.einsum("nks,ns->nk", is_best, each) / S, weights)


def _summing(p: Array, weights: Array | None) -> Array:
    """Return probabilities (n, K) without their rounding errors above 1, those of weights too."""
    if weights is not None:
        p = p / p.sum(axis=1, keepdims=True)
    return np.minimum(p, 1.0)


def scaled(mean: Array, alpha: float, values: Array) -> Array:
    """Return P(arm is best) (K,) by the scores m + α(v − m) of independent v.

    mean (K,). values (S, K): v at the probabilities LEVELS. The result is off by less than 1e-4.
    """
    if alpha == 0.0:
        return joint(mean[None, None])[0]
    # the order of the scores less the largest m, over α: this keeps the digits of a tiny α
    scores = (mean - mean.max()) / alpha + (values - mean)
    return independent(scores.T[None])[0]
