"""Rounds until past rounds are reweighted, in one compiled loop.

Weights are 1 / max(γ, p̂), where p̂ is the propensity as it is estimated by then: see `Known`.
"""

from typing import NamedTuple

import numpy as np

from bayesbandit.kernels.arm import columns_of, head_of
from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.rounds import GIVEN, choose_into, describe, observe_into, put, room
from bayesbandit.kernels.row_layout import (
    FLOOR,
    KIND,
    PARAM,
    PROPENSITY,
    REWARD,
    WEIGHT,
    row_width,
    tail_at,
)
from bayesbandit.kernels.selection import is_short
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit


class Known(NamedTuple):
    """How propensities are estimated until past rounds are reweighted.

    By a multinomial logistic regression: logits (A, d + 1), the constant last, and the place (K,)
    of each arm among them; −1: the arm is not there, and has its propensity of the decision.
    Or by the mean over periods of past beliefs: their arms past (S, K, …), rules (S, 3) with KIND,
    number and minimum probability, and the number of periods (S,) that each decided.
    """

    logits: np.ndarray = np.empty((0, 0))
    place: np.ndarray = np.empty(0, np.int64)
    past: np.ndarray = np.empty((0, 0, 0))
    rules: np.ndarray = np.empty((0, 3))
    periods: np.ndarray = np.empty(0)


@njit(cache=True)
def share(x, logits, a):
    """Return P(a | x) at the context x (d,) by multinomial logits."""
    largest, mine, total = -np.inf, 0.0, 0.0
    for k in range(logits.shape[0]):
        largest = max(largest, _logit(x, logits[k]))
    for k in range(logits.shape[0]):
        odds = np.exp(_logit(x, logits[k]) - largest)
        total += odds
        if k == a:
            mine = odds
    return mine / total


@njit(cache=True)
def _logit(x, coef):
    total = coef[-1]
    for i in range(coef.size - 1):
        total += x[i] * coef[i]
    return total


@njit(cache=True)
def shares(x, logits, a, out):
    """Fill out (n,) with `share` at contexts x (n, d)."""
    for i in range(x.shape[0]):
        out[i] = share(x[i], logits, a)


@njit(cache=True)
def pooled_chance(row, x, a, arms, settings, kind, param, floor, available, v):
    """Return P(a | x) at the context x (d,) under a past belief and rule; `row` is overwritten."""
    D, K = columns_of(settings), arms.shape[0]
    put(row, x, D)
    describe(row, arms, available, settings, kind, v)
    tail = row[tail_at(D, K) :]
    tail[KIND], tail[PARAM], tail[FLOOR] = kind, param, floor
    put_chances(row, a, D, K, tail[PROPENSITY : PROPENSITY + 1])
    return tail[PROPENSITY]


@njit(cache=True)
def pooled(row, x, a, settings, known, available, v):
    """Return the mean over all periods of P(a | x) at the context x (d,); `row` is overwritten."""
    p = 0.0
    for s in range(known.past.shape[0]):
        rule = known.rules[s]
        p += known.periods[s] * pooled_chance(
            row, x, a, known.past[s], settings, rule[0], rule[1], rule[2], available, v
        )
    return p / known.periods.sum()


@njit(cache=True)
def play(x, reward, start, every, arms, available, settings, kind, params, clip, stream, known,
         due, chosen, propensity, rows):  # fmt: skip
    """Play rounds from `start` on, as `rounds.play`, and log them into rows (n, width).

    known: a `Known`. due (K,): the number of rounds at which an arm is reweighted. Return the
    next round: T, the one after an arm became due, or where the stream or the rows ran short.
    """
    x, reward, arms, settings = borrowed(x), borrowed(reward), borrowed(arms), borrowed(settings)
    available, params, stream = borrowed(available), borrowed(params), borrowed(stream)
    chosen, propensity, rows = borrowed(chosen), borrowed(propensity), borrowed(rows)
    known, due = borrowed(known), borrowed(due)
    D, K, S = columns_of(settings), arms.shape[0], known.past.shape[0]
    size = room(settings)
    memory = np.empty(size + row_width(D, K))
    v, other = borrowed(memory)[:size], borrowed(memory)[size:]
    end = min(x.shape[0], start + rows.shape[0])
    for t in range(start, end):
        if is_short(stream, K):
            held(memory)
            return t
        row, at = rows[t - start], t if params.shape[0] > 1 else 0
        tail = row[tail_at(D, K) :]
        stream[-1] += 1.0
        arm = choose_into(
            row, x[t], arms, available, settings, kind, params[at, 0], params[at, 1], stream, v
        )
        if t % every == 0 or (S == 0 and known.place[arm] < 0):
            put_chances(row, arm, D, K, tail[PROPENSITY : PROPENSITY + 1])
        if S > 0:
            known.periods[S - 1] += 1.0
            p = pooled(other, x[t], arm, settings, known, available, v)
        elif known.place[arm] >= 0:
            p = share(x[t], known.logits, known.place[arm])
        else:
            p = tail[PROPENSITY]
        tail[REWARD], tail[WEIGHT] = reward[t, arm], 1.0 / max(clip, p)
        observe_into(row, arms, settings, GIVEN, clip, v)
        chosen[t], propensity[t] = arm, tail[PROPENSITY]
        if head_of(arms[arm]).n >= due[arm]:
            held(memory)
            return t + 1
    held(memory)
    return end
