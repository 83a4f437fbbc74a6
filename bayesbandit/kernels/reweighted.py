"""Propensities as they are estimated until past rounds are reweighted: see `Known`."""

from typing import NamedTuple

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.kernels.arm import columns_of
from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.rounds import describe, put
from bayesbandit.kernels.row_layout import record, row_of
from bayesbandit.runtime.compiling import njit


class Known(NamedTuple):
    """How propensities are estimated until past rounds are reweighted.

    By a multinomial logistic regression: logits (A, d + 1), the constant last, and the place (K,)
    of each arm among them; −1: the arm is not there, and has its propensity of the decision.
    Or by the mean over periods of past beliefs: their arms past (S, K, …), rules (S, 3) with KIND,
    number and minimum probability, and the number of periods (S,) that each decided.
    """

    logits: Array = np.empty((0, 0))
    place: Array = np.empty(0, np.int64)
    past: Array = np.empty((0, 0, 0))
    rules: Array = np.empty((0, 3))
    periods: Array = np.empty(0)


@njit(cache=True)
def share(x, logits, a):
    """Return P(a | x) at the context x (d,) by multinomial logits."""
    largest = -np.inf
    mine = 0.0
    total = 0.0
    for k in range(logits.shape[0]):
        # less the largest logit: no exponential overflows
        largest = max(largest, dot(x, logits[k]) + logits[k, -1])
    for k in range(logits.shape[0]):
        odds = np.exp(dot(x, logits[k]) + logits[k, -1] - largest)
        total += odds
        if k == a:
            mine = odds
    return mine / total


@njit(cache=True)
def shares(x, logits, a, out):
    """Fill out (n,) with `share` at contexts x (n, d)."""
    for i in range(x.shape[0]):
        out[i] = share(x[i], logits, a)


@njit(cache=True)
def pooled(numbers, x, a, settings, known, available, work):
    """Return the mean over all periods of P(a | x) at the context x (d,); the numbers of a row
    (width,) are scratch."""
    p = 0.0
    for s in range(known.past.shape[0]):
        arms = known.past[s]
        rule = known.rules[s]
        kind = int(rule[0])
        row = row_of(numbers, columns_of(settings), arms.shape[0])
        put(row, x)
        # what the arms of that period would say of x, and how its rule would choose
        describe(row, arms, available, kind, work)
        record(row, a, kind, rule[1], rule[2])
        put_chances(row, a, row.propensity)
        # Σ_s n_s p_s(a | x) / Σ_s n_s (paper, Algorithm 1)
        p += known.periods[s] * row.log.propensity
    return p / known.periods.sum()


@njit(cache=True)
def estimated(row, x, a, settings, known, available, numbers, work):
    """Return the estimated propensity of arm a in a row with context x (d,), a row of the last of
    the periods; numbers (width,) are scratch."""
    periods = known.periods.size
    if periods > 0:
        # this round is one more of the last period, whose policy is among those that are averaged
        known.periods[periods - 1] += 1.0
        return pooled(numbers, x, a, settings, known, available, work)
    if known.place[a] >= 0:
        return share(x, known.logits, known.place[a])
    if np.isnan(row.log.propensity):
        put_chances(row, a, row.propensity)
    return row.log.propensity
