"""With what probability a rule picks an arm, given the row of a round (`kernels/row_layout.py`)."""

from functools import cache
from typing import Any

import numpy as np

from bayesbandit.kernels.prob_best.located import best_from
from bayesbandit.kernels.prob_best.walk import SHAPE, best, reshape
from bayesbandit.kernels.row_layout import (
    ARM,
    DRAWN,
    EPSILON_GREEDY,
    FLOOR,
    KIND,
    OLD,
    PARAM,
    PROPENSITY,
    TABULATED,
    TAIL,
    THOMPSON,
    UCB,
    available_in,
    df_at,
    is_among,
    moments_in,
    new_in,
    row_width,
    scale_at,
    tail_at,
)
from bayesbandit.kernels.selection import ucb_score
from bayesbandit.kernels.uncounted_arrays import borrowed, held
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
def scores_among_old(row, first, D, K, kind, param, out):
    """Fill out (m,) with the probabilities, by a rule of scores, of the arms from the first on,
    among the old arms alone."""
    explore = param if kind == EPSILON_GREEDY else 0.0
    alpha = param if kind == UCB else 0.0
    best, count, ties = -np.inf, 0, 0
    for a in range(out.size):
        out[a] = ucb_score(row, first + a, K, D, alpha)
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            asked = 0 <= k - first < out.size
            score = out[k - first] if asked else ucb_score(row, k, K, D, alpha)
            count += 1
            if score > best:
                best, ties = score, 1
            elif score == best:
                ties += 1
    for a in range(out.size):
        out[a] = explore / count + (0.0 if out[a] < best else (1.0 - explore) / ties)


@njit(cache=True, error_model="numpy")
def best_among_old(row, first, D, K, alpha, new, out):
    """Fill out (m,) with Thompson sampling's probabilities of the arms from the first on, among the
    old arms alone."""
    mean, scale, df = moments_in(row, D, K)
    if new == 0 and alpha == 1.0:
        best_from(first, mean, scale, df, out)
        return
    memory = np.empty(3 * K)
    seen = borrowed(memory)
    for k in range(K):
        is_new = df[k] < 0.0
        seen[k] = -np.inf if is_new else mean[k]
        seen[K + k] = 0.0 if is_new else alpha * scale[k]
        seen[2 * K + k] = abs(df[k])
    best_from(first, seen[:K], seen[K : 2 * K], seen[2 * K :], out)
    held(memory)


@njit(cache=True, error_model="numpy")
def put_chances(row, first, D, K, out):
    """Put the probabilities with which the rule of a row picks the arms from the first on into out
    (m,). Return False, and do nothing, where the kernel is `without` this rule."""
    tail = row[tail_at(D, K) :]
    kind, param, floor = int(tail[KIND]), tail[PARAM], tail[FLOOR]
    if kind == TABULATED:
        for a in range(out.size):
            there = row[D + first + a] > -np.inf
            out[a] = row[df_at(D, K) + first + a] if there else 0.0
        return True
    count, new = available_in(row, D, K), new_in(row, D, K)
    if CONJUGATE and kind in DRAWN:
        put_drawn(row, first, D, K, out)
        return True
    if SAMPLED and kind == THOMPSON:
        if new < count:
            best_among_old(row, first, D, K, param, new, out)
    elif SCORED and kind in SCORES:
        if new < count:
            scores_among_old(row, first, D, K, kind, param, out)
    else:
        return False
    for a in range(out.size):
        if row[D + first + a] == -np.inf:
            out[a] = 0.0
        elif row[df_at(D, K) + first + a] < 0.0:
            out[a] = 1.0 / count
        else:
            out[a] = floor + (1.0 - count * floor) * (out[a] * (1.0 - new / count))
    return True


@njit(cache=True, error_model="numpy")
def put_one(row, D, K):
    """Put the probability of the row's arm into the row, and return it; or, where the row is K
    numbers longer, the probabilities of all arms into these. One kernel for both compiles once."""
    row, first, at = borrowed(row), 0, row_width(D, K)
    end = at + K
    if row.size == at:
        first, at = int(row[tail_at(D, K) + ARM]), tail_at(D, K) + PROPENSITY
        end = at + 1
    put_chances(row, first, D, K, row[at:end])
    return row[at]


@njit(cache=True, error_model="numpy")
def put_drawn(row, first, D, K, out):
    """Do `put_chances` under BETA or GAMMA."""
    every = np.empty(K)
    drawn_chances(row, shapes_in(row, D, K), D, K, every)
    for a in range(out.size):
        out[a] = every[first + a]


@njit(cache=True, error_model="numpy")
def shapes_in(row, D, K):
    """Return the numbers (K, …) that `prob_best/walk.py` needs of the old arms of a row of
    BETA or GAMMA."""
    shapes, kind = np.empty((K, SHAPE)), int(row[tail_at(D, K) + KIND])
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            reshape(shapes[k], row[df_at(D, K) + k], row[scale_at(D, K) + k], kind)
    return shapes


@njit(cache=True, error_model="numpy")
def drawn_chances(row, shapes, D, K, out):
    """Fill out (K,) with `chance` of every arm under BETA or GAMMA, by the old arms' shapes."""
    tail, old = row[tail_at(D, K) :], np.empty(K, np.bool_)
    count, new, floor = available_in(row, D, K), new_in(row, D, K), tail[FLOOR]
    for k in range(K):
        old[k] = is_among(row, k, D, K, OLD)
    if new < count:
        best(shapes, old, int(tail[KIND]), out)
    for k in range(K):
        if old[k]:
            out[k] = floor + (1.0 - count * floor) * (out[k] * (1.0 - new / count))
        else:
            out[k] = 0.0 if row[D + k] == -np.inf else 1.0 / count


@njit(cache=True, error_model="numpy")
def is_repeated(rows, i, D, K):
    """Return whether all arms of row i, its rule and minimum probability are those of the row
    before."""
    if i == 0:
        return False
    tail = tail_at(D, K)
    for j in range(D, tail):
        if rows[i, j] != rows[i - 1, j]:
            return False
    return rows[i, tail + KIND] == rows[i - 1, tail + KIND] and (
        rows[i, tail + FLOOR] == rows[i - 1, tail + FLOOR]
    )


@njit(cache=True, error_model="numpy")
def put_many(rows, arm, D, K, out):
    """Put `put_chances` of rows (n, width) into out (n, m), from this arm on; arm < 0: the row's
    own, into out (n, 1)."""
    rows, out, every = borrowed(rows), borrowed(out), np.empty(K)
    for i in range(rows.shape[0]):
        row = rows[i]
        first = arm if arm >= 0 else int(row[tail_at(D, K) + ARM])
        if CONJUGATE and int(row[tail_at(D, K) + KIND]) in DRAWN:
            if not is_repeated(rows, i, D, K):
                drawn_chances(row, shapes_in(row, D, K), D, K, every)
            for a in range(out.shape[1]):
                out[i, a] = every[first + a]
        else:
            put_chances(row, first, D, K, out[i])


def ruled_out(kind: int) -> tuple[str, ...]:
    """Return the rules that rows of this KIND do not have."""
    return RULED_OUT.get(kind, RULES)


@cache
def put_one_by(kind: float) -> Any:
    """Return `put_one` for rows of this KIND: no other rule is compiled."""
    return without(put_one, *ruled_out(int(kind)))


def put_own(row: np.ndarray, D: int, K: int) -> float:
    """Put the probability of the row's arm into the row, and return it."""
    return put_one_by(row[KIND - TAIL])(row, D, K)


def chances(rows: np.ndarray, arm: int, D: int, K: int, out: np.ndarray) -> None:
    """Put each row's chance of the arm of that row (arm ≥ 0: of this arm instead) into out (n,)."""
    _put(rows, arm, D, K, out[:, None])


def all_chances(rows: np.ndarray, D: int, K: int, out: np.ndarray) -> None:
    """Put each row's chance of every arm into out (n, K): the bits of `chances`, sooner."""
    if len(rows) == 1:
        longer = np.concatenate((rows[0], out[0]))
        put_one_by(rows[0, KIND - TAIL])(longer, D, K)
        out[0] = longer[-K:]
    else:
        _put(rows, 0, D, K, out)


def _put(rows: np.ndarray, arm: int, D: int, K: int, out: np.ndarray) -> None:
    """Do as `put_many`, whatever the rows' rules are."""
    kinds = rows[:, KIND - TAIL]
    for kind in np.unique(kinds):
        put, mine = without(put_many, *ruled_out(int(kind))), kinds == kind
        if mine.all():
            put(rows, arm, D, K, out)
            return
        part = np.empty((np.count_nonzero(mine), out.shape[1]))
        put(rows[mine], arm, D, K, part)
        out[mine] = part
