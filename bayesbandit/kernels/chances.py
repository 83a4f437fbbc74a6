"""With what probability a rule picks an arm, given the row of a round (`kernels/rules.py`)."""

import numpy as np

from bayesbandit.kernels.best_arm import best_probabilities, best_probability
from bayesbandit.kernels.compiling import njit
from bayesbandit.kernels.conjugate.best import SHAPE, best, reshape
from bayesbandit.kernels.rules import (
    ARM,
    DRAWN,
    EPSILON_GREEDY,
    FLOOR,
    KIND,
    OLD,
    PARAM,
    TABULATED,
    THOMPSON,
    UCB,
    available_in,
    df_at,
    is_among,
    moments_in,
    new_in,
    scale_at,
    tail_at,
    ucb_score,
)


@njit(cache=True)
def by_score(row, a, D, K, kind, param):
    """Probability that a rule of scores picks the old arm a among the old ones."""
    explore = param if kind == EPSILON_GREEDY else 0.0
    alpha = param if kind == UCB else 0.0
    score, count, ties, beaten = ucb_score(row, a, K, D, alpha), 0, 0, False
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            other = ucb_score(row, k, K, D, alpha)
            count += 1
            ties += other == score
            beaten = beaten or other > score
    return explore / count + (0.0 if beaten else (1.0 - explore) / ties)


@njit(cache=True)
def scaled(scale, alpha):
    """α times the scales (K,)."""
    out = np.empty(scale.size)
    for k in range(out.size):
        out[k] = alpha * scale[k]
    return out


@njit(cache=True)
def scores_among_old(row, D, K, kind, param, out):
    """`by_score` of every old arm, out (K,)."""
    explore = param if kind == EPSILON_GREEDY else 0.0
    alpha = param if kind == UCB else 0.0
    best, count, ties = -np.inf, 0, 0
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            out[k] = ucb_score(row, k, K, D, alpha)
            count += 1
            if out[k] > best:
                best, ties = out[k], 1
            elif out[k] == best:
                ties += 1
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            out[k] = explore / count + (0.0 if out[k] < best else (1.0 - explore) / ties)


@njit(cache=True)
def best_among_old(row, D, K, alpha, out):
    """Probabilities out (K,) with which Thompson sampling picks the old arms among themselves."""
    seen = np.empty((3, K))
    for k in range(K):
        is_new = row[df_at(D, K) + k] < 0.0
        seen[0, k] = -np.inf if is_new else row[D + k]
        seen[1, k] = 0.0 if is_new else alpha * row[scale_at(D, K) + k]
        seen[2, k] = abs(row[df_at(D, K) + k])
    best_probabilities(seen[0], seen[1], seen[2], out)


@njit(cache=True)
def chance(row, a, D, K):
    """Probability that arm a is picked, given the row's moments and rule."""
    tail = row[tail_at(D, K) :]
    if int(tail[KIND]) == THOMPSON and tail[FLOOR] == 0.0 and new_in(row, D, K) == 0:
        mean, scale, df = moments_in(row, D, K)
        if mean[a] == -np.inf:
            return 0.0
        return best_probability(a, mean, scaled(scale, tail[PARAM]), df)
    return chance_among(row, a, D, K)


@njit(cache=True)
def chance_among(row, a, D, K):
    """`chance`, of any rule, above a floor, and where some arms are new."""
    tail = row[tail_at(D, K) :]
    kind, param, floor = int(tail[KIND]), tail[PARAM], tail[FLOOR]
    if row[D + a] == -np.inf:
        return 0.0
    if kind == TABULATED:
        return row[df_at(D, K) + a]
    count, new = available_in(row, D, K), new_in(row, D, K)
    if row[df_at(D, K) + a] < 0.0:
        return 1.0 / count
    if kind in DRAWN:
        out = np.empty(K)
        drawn_chances(row, shapes_in(row, D, K), D, K, out)
        return out[a]
    if kind == THOMPSON:
        out = np.empty(K)
        best_among_old(row, D, K, param, out)
        p = out[a]
    else:
        p = by_score(row, a, D, K, kind, param)
    return floor + (1.0 - count * floor) * (p * (1.0 - new / count))


@njit(cache=True)
def shapes_in(row, D, K):
    """What `kernels/conjugate/best.py` takes of the old arms of a row of BETA or GAMMA: (K, …)."""
    shapes, kind = np.empty((K, SHAPE)), int(row[tail_at(D, K) + KIND])
    for k in range(K):
        if is_among(row, k, D, K, OLD):
            reshape(shapes[k], row[df_at(D, K) + k], row[scale_at(D, K) + k], kind)
    return shapes


@njit(cache=True)
def drawn_chances(row, shapes, D, K, out):
    """`chance` of every arm under BETA or GAMMA, by the old arms' shapes: out (K,)."""
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


@njit(cache=True)
def is_repeated(rows, i, D, K):
    """Whether all arms of row i, its rule and its floor are those of the row before."""
    if i == 0:
        return False
    tail = tail_at(D, K)
    for j in range(D, tail):
        if rows[i, j] != rows[i - 1, j]:
            return False
    return rows[i, tail + KIND] == rows[i - 1, tail + KIND] and (
        rows[i, tail + FLOOR] == rows[i - 1, tail + FLOOR]
    )


@njit(cache=True)
def chances(rows, arm, D, K, out):
    """Each row's chance of the arm of that row (arm ≥ 0: of this arm instead)."""
    every = np.empty(K)
    for i in range(rows.shape[0]):
        row = rows[i]
        a = arm if arm >= 0 else int(row[tail_at(D, K) + ARM])
        if int(row[tail_at(D, K) + KIND]) in DRAWN:
            if not is_repeated(rows, i, D, K):
                drawn_chances(row, shapes_in(row, D, K), D, K, every)
            out[i] = every[a]
        else:
            out[i] = chance(row, a, D, K)


@njit(cache=True)
def all_chances(rows, D, K, out):
    """Each row's chance of every arm, out (n, K): the bits of `chance`, sooner."""
    for i in range(rows.shape[0]):
        row = rows[i]
        count, kind = available_in(row, D, K), int(row[tail_at(D, K) + KIND])
        if kind in DRAWN:
            if is_repeated(rows, i, D, K):
                out[i] = out[i - 1]
            else:
                drawn_chances(row, shapes_in(row, D, K), D, K, out[i])
        elif kind == THOMPSON and new_in(row, D, K) == 0:
            mean, scale, df = moments_in(row, D, K)
            floor = row[tail_at(D, K) + FLOOR]
            best_probabilities(mean, scaled(scale, row[tail_at(D, K) + PARAM]), df, out[i])
            for k in range(K):
                if mean[k] > -np.inf:
                    out[i, k] = floor + (1.0 - count * floor) * out[i, k]
        elif kind == TABULATED:
            for k in range(K):
                out[i, k] = row[df_at(D, K) + k] if row[D + k] > -np.inf else 0.0
        else:
            all_among(row, D, K, kind, count, out[i])


@njit(cache=True)
def all_among(row, D, K, kind, count, out):
    """`chance_among` of every arm, out (K,)."""
    param, floor = row[tail_at(D, K) + PARAM], row[tail_at(D, K) + FLOOR]
    new = new_in(row, D, K)
    if kind == THOMPSON:
        best_among_old(row, D, K, param, out)
    else:
        scores_among_old(row, D, K, kind, param, out)
    for k in range(K):
        if row[D + k] == -np.inf:
            out[k] = 0.0
        elif row[df_at(D, K) + k] < 0.0:
            out[k] = 1.0 / count
        else:
            out[k] = floor + (1.0 - count * floor) * (out[k] * (1.0 - new / count))
