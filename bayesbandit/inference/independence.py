"""Posterior draws that are moved to the posterior of more rows, without gradients.

The draws are resampled by their weights, and moved by independence Metropolis (Tierney 1994,
section 2.3.3; Chopin 2002, section 4): proposals are of a multivariate t that is fitted to the
weighted draws. A step moves all draws, by one evaluation of the density at as many points.

Draws are given only where the steps mix, as three things show:

1. the share of proposals that are accepted;
2. the share of draws that no step has moved: where the density has more mass than the t, in tails,
   in a second mode or in the neck of a funnel, draws stay;
3. R̂ of four groups of draws, by where they began, for each variable and for the log density.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.linalg import LinAlgError

ENGINE = "independence"
DF = 5  # degrees of freedom of the proposals
LEAST = 0.1  # the effective share of the weighted draws to which a t is fitted
ACCEPTED = 0.3  # the least share of accepted proposals,
STAY = 0.01  # the share of draws that as many steps as are taken would leave where they are,
UNMOVED = 0.02  # and the greatest that is allowed
RHAT = 1.03  # the greatest that is allowed

Array = np.ndarray


def moved(
    log_density: Callable[[Array], Array], z: Array, log_weight: Array, rng: np.random.Generator
) -> Array | None:
    """Return draws (S, D) of a posterior; None where the steps do not mix.

    log_density: its log density (S,) at points (S, D), up to a constant. z (S, D), log_weight (S,):
    weighted draws of it, or nearly.
    """
    S, D = z.shape
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    if not 1.0 / (w @ w) > max(LEAST * S, D + 1):
        return None
    mean = w @ z
    covariance = (w * (z - mean).T) @ (z - mean) / (1.0 - w @ w)
    try:
        proposal = stats.multivariate_t(mean, covariance, DF)
    except (LinAlgError, ValueError):  # draws on a line, or beyond all numbers
        return None

    def judged(points: Array) -> tuple[Array, Array]:
        log_p = log_density(points)
        return log_p, log_p - proposal.logpdf(points)

    first = z[np.minimum(np.searchsorted(w.cumsum(), (rng.random() + np.arange(S)) / S), S - 1)]
    log_p, ratio = judged(first)
    last = first.copy()
    log_p_first = log_p.copy()
    stays = np.ones(S, dtype=bool)
    accepted = 0
    steps = 0
    needed = 1
    while steps < needed:
        new = proposal.rvs(S, random_state=rng).reshape(S, D)
        log_p_new, ratio_new = judged(new)
        with np.errstate(invalid="ignore"):  # −∞ on both sides
            moves = np.log(rng.random(S)) < ratio_new - ratio
        last[moves] = new[moves]
        log_p[moves] = log_p_new[moves]
        ratio[moves] = ratio_new[moves]
        stays &= ~moves
        accepted = accepted + int(moves.sum())
        steps = steps + 1
        share = accepted / (steps * S)
        if share < ACCEPTED:
            return None
        needed = math.ceil(math.log(STAY) / math.log1p(-min(share, 0.99)))
    if stays.mean() > UNMOVED or not np.isfinite(log_p).all():
        return None
    began = np.column_stack([first, log_p_first])
    ended = np.column_stack([last, log_p])
    return last if memory(began, ended) <= RHAT else None


def memory(began: Array, ended: Array) -> float:
    """Return the greatest R̂ of m numbers at the end, (S, m), of four groups by the numbers at the
    beginning, (S, m)."""
    from arviz_stats.base import array_stats

    S = len(began) - len(began) % 4
    by_start = np.take_along_axis(ended, began.argsort(axis=0), axis=0)[:S]
    groups = by_start.reshape(2, S // 2, -1)  # R̂ splits each of them in two
    return float(array_stats.rhat(groups, chain_axis=0, draw_axis=1).max())
