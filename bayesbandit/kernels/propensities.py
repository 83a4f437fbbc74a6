"""With what probability a rule picks an arm, given the row of a round (`kernels/row_layout.py`)."""

from collections.abc import Callable
from functools import cache

import numpy as np

from bayesbandit.checks import Array
from bayesbandit.kernels.prob_best.located import best_from
from bayesbandit.kernels.prob_best.walk import best
from bayesbandit.kernels.row_layout import (
    ANY,
    DRAWN,
    EPSILON_GREEDY,
    KIND,
    NEW,
    OLD,
    PROPENSITY,
    TABULATED,
    TAIL,
    THOMPSON,
    UCB,
    count_among,
    is_among,
    row_of,
)
from bayesbandit.kernels.selection import ucb_score
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit, without

SCORES = UCB, EPSILON_GREEDY
# The rules of rows that a kernel may meet (`compiling.without`): THOMPSON; UCB and EPSILON_GREEDY;
# BETA and GAMMA. TABULATED ones are always met.
SAMPLED = SCORED = CONJUGATE = True
RULES = "SAMPLED", "SCORED", "CONJUGATE"
RULE_OF = {THOMPSON: "SAMPLED", **dict.fromkeys(SCORES, "SCORED")}
RULE_OF |= dict.fromkeys(DRAWN, "CONJUGATE")
RULED_OUT = {kind: tuple(name for name in RULES if name != rule) for kind, rule in RULE_OF.items()}


@njit(cache=True, error_model="numpy")
def scores_among_old(row, first, kind, param, out):
    """Fill out (m,) with the probabilities, by a rule of scores, of the arms from the first on,
    among the old arms alone."""
    # greedy is UCB with α = 0, and UCB never explores
    explore = param if kind == EPSILON_GREEDY else 0.0
    alpha = param if kind == UCB else 0.0
    best = -np.inf
    count = 0
    ties = 0
    for k in range(row.mean.size):
        if is_among(row, k, OLD):
            score = ucb_score(row, k, alpha)
            count += 1
            if score > best:
                best = score
                ties = 1
            elif score == best:
                ties += 1
    for a in range(out.size):
        # the best arms share 1 − ε evenly, and all old arms share ε
        wins = ucb_score(row, first + a, alpha) >= best
        out[a] = explore / count + ((1.0 - explore) / ties if wins else 0.0)


@njit(cache=True, error_model="numpy")
def best_among_old(row, first, alpha, out):
    """Fill out (m,) with Thompson sampling's probabilities of the arms from the first on, among the
    old arms alone."""
    K = row.mean.size
    memory = np.empty((3, K))
    mean = unmanaged(memory)[0]
    scale = unmanaged(memory)[1]
    df = unmanaged(memory)[2]
    for k in range(K):
        # a negative `last` marks an arm without rewards: it takes no part
        is_new = row.last[k] < 0.0
        mean[k] = -np.inf if is_new else row.mean[k]
        scale[k] = 0.0 if is_new else alpha * row.scale[k]
        df[k] = abs(row.last[k])
    # Thompson sampling draws m + α s T: (4) with α s in place of s
    best_from(first, mean, scale, df, out)
    keep_alive(memory)


@njit(cache=True, error_model="numpy")
def drawn_among_old(row, first, kind, out):
    """Fill out (m,) with the probabilities, under BETA or GAMMA, of the arms from the first on,
    among the old arms alone."""
    K = row.mean.size
    old = np.empty(K, np.bool_)
    every = np.empty(K)
    for k in range(K):
        old[k] = is_among(row, k, OLD)
    best(row.last, row.scale, old, kind, every)
    for a in range(out.size):
        out[a] = every[first + a]


@njit(cache=True, error_model="numpy")
def put_chances(row, first, out):
    """Put the probabilities with which the rule of a row picks the arms from the first on into out
    (m,). Return False, and do nothing, where the kernel is `without` this rule."""
    kind = int(row.log.rule)
    param = row.log.number
    floor = row.log.min_probability
    if kind == TABULATED:
        for a in range(out.size):
            out[a] = row.last[first + a] if row.mean[first + a] > -np.inf else 0.0
        return True
    count = count_among(row, ANY)
    new = count_among(row, NEW)
    if SAMPLED and kind == THOMPSON:
        if new < count:
            best_among_old(row, first, param, out)
    elif SCORED and kind in SCORES:
        if new < count:
            scores_among_old(row, first, kind, param, out)
    elif CONJUGATE and kind in DRAWN:
        if new < count:
            drawn_among_old(row, first, kind, out)
    else:
        return False
    for a in range(out.size):
        # an arm that may not be chosen
        if row.mean[first + a] == -np.inf:
            out[a] = 0.0
        elif row.last[first + a] < 0.0:
            # U new arms of K: each has 1/K, with and without the floor f (f + (1 − Kf)/K = 1/K)
            out[a] = 1.0 / count
        else:
            # an old one: p' = f + (1 − Kf) p (K − U)/K
            out[a] = floor + (1.0 - count * floor) * (out[a] * (1.0 - new / count))
    return True


@njit(cache=True, error_model="numpy")
def put_many(rows, arm, D, K, out):
    """Put `put_chances` of rows (n, width) into out (n, m), from this arm on; arm < 0: the row's
    own, into out (n, 1)."""
    rows = unmanaged(rows)
    out = unmanaged(out)
    for i in range(rows.shape[0]):
        row = row_of(rows[i], D, K)
        put_chances(row, arm if arm >= 0 else int(row.log.arm), out[i])


def ruled_out(kind: int) -> tuple[str, ...]:
    """Return the rules that rows of this KIND do not have."""
    return RULED_OUT.get(kind, RULES)


@cache
def putting(kind: int) -> Callable[..., None]:
    """Return `put_many` as it is compiled for rows of this KIND."""
    kernel: Callable[..., None] = without(put_many, *ruled_out(kind))
    return kernel


def put_own(row: Array, D: int, K: int) -> float:
    """Put the probability of the row's arm into the row, and return it."""
    at = PROPENSITY - TAIL
    one = row[None]
    putting(int(row[KIND - TAIL]))(one, -1, D, K, one[:, at : at + 1])
    return float(row[at])


def chances(rows: Array, arm: int, D: int, K: int, size: int = 1) -> Array:
    """Return each row's chances of so many arms from this one on, (n, size), whatever its rule is;
    arm < 0: of the row's own arm. One arm's have the bits of all."""
    out = np.empty((len(rows), size))
    kinds = rows[:, KIND - TAIL]
    for kind in kinds if len(rows) == 1 else np.unique(kinds):
        put = putting(int(kind))
        mine = kinds == kind
        if mine.all() and (len(rows) == 1 or kind not in DRAWN):
            put(rows, arm, D, K, out)
            break
        part = rows[mine]
        which = np.arange(len(part))
        if kind in DRAWN:  # context-free: rows are often equal in all but the context
            # what probabilities are computed of stands between the context and the propensity
            moments_and_rule = part[:, D : PROPENSITY - TAIL]
            _, at, which = np.unique(
                moments_and_rule, axis=0, return_index=True, return_inverse=True
            )
            part = part[at]
        p = np.empty((len(part), size))
        put(part, arm, D, K, p)
        out[mine] = p[which.ravel()]
    return out
