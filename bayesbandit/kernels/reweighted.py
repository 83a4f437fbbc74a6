"""Rounds between two settlements of weights that change with hindsight, in one compiled loop.

What is known of an arm's propensity in the meantime is a multinomial logistic regression, its
logits (A, d + 1) with the constant last, or the mean over periods of past beliefs: arms (S, K, …),
rules (S, 3) by their kind, number and floor, and how many periods (S,) each stands for.
"""

import numpy as np

from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.ridge_state import D_, N, stride
from bayesbandit.kernels.rounds import GIVEN, choose_into, describe, observe_into, put
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


@njit(cache=True)
def share(x, logits, a):
    """P(a | x) at the context x (d,) by multinomial logits."""
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
    """`share` at contexts x (n, d): out (n,)."""
    for i in range(x.shape[0]):
        out[i] = share(x[i], logits, a)


@njit(cache=True)
def pooled_chance(row, x, a, arms, settings, kind, param, floor, available, v):
    """P(a | x) at the context x (d,) under a past belief and rule, in the room of a `row`."""
    D, K = int(settings[D_]), arms.shape[0]
    put(row, x, D)
    describe(row, arms, available, settings, kind, v)
    tail = row[tail_at(D, K) :]
    tail[KIND], tail[PARAM], tail[FLOOR] = kind, param, floor
    put_chances(row, a, D, K, tail[PROPENSITY : PROPENSITY + 1])
    return tail[PROPENSITY]


@njit(cache=True)
def play(x, reward, start, every, arms, available, settings, kind, params, clip, stream,
         logits, place, past, rules, periods, due, chosen, propensity, rows):  # fmt: skip
    """Rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K), as `play` of
    `rounds`, logged into rows (n, width), as many as have room there.

    place (K,): where an arm stands in the logits; −1: nowhere, its known propensity serves.
    due (K,): the rounds of an arm with which its weights are settled anew. Returns the next round:
    T, the one behind that of an arm that is due, or where the stream or the room ran short.
    """
    x, reward, arms, settings = borrowed(x), borrowed(reward), borrowed(arms), borrowed(settings)
    available, params, stream = borrowed(available), borrowed(params), borrowed(stream)
    chosen, propensity, rows = borrowed(chosen), borrowed(propensity), borrowed(rows)
    logits, past, rules = borrowed(logits), borrowed(past), borrowed(rules)
    place, periods, due = borrowed(place), borrowed(periods), borrowed(due)
    D, K, S = int(settings[D_]), arms.shape[0], past.shape[0]
    own = np.empty(stride(D) + row_width(D, K))
    v, other = borrowed(own)[: stride(D)], borrowed(own)[stride(D) :]
    total, end = periods.sum(), min(x.shape[0], start + rows.shape[0])
    for t in range(start, end):
        if is_short(stream, K):
            held(own)
            return t
        row, at = rows[t - start], t if params.shape[0] > 1 else 0
        tail = row[tail_at(D, K) :]
        stream[-1] += 1.0
        arm = choose_into(
            row, x[t], arms, available, settings, kind, params[at, 0], params[at, 1], stream, v
        )
        if t % every == 0 or (S == 0 and place[arm] < 0):
            put_chances(row, arm, D, K, tail[PROPENSITY : PROPENSITY + 1])
        p = 0.0
        if S > 0:
            periods[S - 1] += 1.0
            total += 1.0
            for s in range(S):
                p += periods[s] * pooled_chance(
                    other, x[t], arm, past[s], settings, rules[s, 0], rules[s, 1], rules[s, 2],
                    available, v,
                )  # fmt: skip
            p /= total
        elif place[arm] >= 0:
            p = share(x[t], logits, place[arm])
        else:
            p = tail[PROPENSITY]
        tail[REWARD], tail[WEIGHT] = reward[t, arm], 1.0 / max(clip, p)
        observe_into(row, arms, settings, GIVEN, clip, v)
        chosen[t], propensity[t] = arm, tail[PROPENSITY]
        if arms[arm][N] >= due[arm]:
            held(own)
            return t + 1
    held(own)
    return end
