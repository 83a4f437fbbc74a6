"""One round on arrays: context → moments → arm (propensity) → reward → weight → update.

`Bandit` calls these functions once a round from Python, the experiment runner from one compiled
loop (`play`): same functions, same stream of random numbers, same bits. An arm is a regression
(`kernels/linear.py`), or, in the kernels that are `without` LINEAR, a probability or a rate
(`kernels/conjugate/arms.py`). `kernels/row_layout.py` says what stands where in the row of a round.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesbandit.checks import LARGEST
from bayesbandit.kernels.algebra.dense import copy_into
from bayesbandit.kernels.arm import columns_of, head_of, is_moving, named, stride
from bayesbandit.kernels.conjugate import arms as conjugate
from bayesbandit.kernels.fading import advance, share_of
from bayesbandit.kernels.linear import pool_noise, scratch, unreached, update
from bayesbandit.kernels.moments import moments, moments_of_block
from bayesbandit.kernels.propensities import drawn_chances, put_chances
from bayesbandit.kernels.row_layout import (
    ARM,
    DRAWN,
    FLOOR,
    KIND,
    PARAM,
    PROPENSITY,
    REWARD,
    TAIL,
    WEIGHT,
    df_at,
    row_width,
    scale_at,
    tail_at,
)
from bayesbandit.kernels.selection import is_short, select_arm
from bayesbandit.kernels.uncounted_arrays import borrowed, held
from bayesbandit.runtime.compiling import njit, without

BLOCK = 64  # contexts whose moments are computed together
UNWEIGHTED, DECISION, GIVEN = range(3)  # where an observation's weight comes from
NOT_FINITE, STREAM_EMPTY = -1, -2  # why no arm was chosen
# whether a reward was taken in: not where the history has no room, where the model gives it the
# likelihood 0, or where the kernel is `without` the rule of the row
DONE, FULL, REFUSED, OTHER = 0, -1, -2, -3
LINEAR = True  # whether arms are regressions; see `kernels/selection.py`
MOVING = True  # whether rows may fade, or coefficients walk; see `kernels/fading.py`


@njit(cache=True, inline="always")
def describe(row, arms, available, settings, kind, v):
    """Fill in every arm's moments, or its a and b where a rule of this kind draws from them."""
    D, K = columns_of(settings), arms.shape[0]
    z = row[:D]
    for k in range(K):
        mean, scale, last = -np.inf, 0.0, np.inf if LINEAR else 0.0
        if available[k]:
            if LINEAR:
                mean, scale = moments(arms[k], z, D, v)
                last, n = head_of(arms[k]).df, head_of(arms[k]).n
            else:
                mean, scale, last = conjugate.moments_or_shape(arms[k], kind)
                n = arms[k][conjugate.N]
            last = last if n > 0.0 else -last
        row[D + k], row[scale_at(D, K) + k], row[df_at(D, K) + k] = mean, scale, last


@njit(cache=True)
def describe_many(rows, arms, available, settings, kind):
    """Do `describe` for rows (n, width) whose contexts are in place, block by block."""
    rows, arms, settings = borrowed(rows), borrowed(arms), borrowed(settings)
    if LINEAR:
        describe_blocks(rows, arms, available, settings)
    else:
        for i in range(rows.shape[0]):
            describe(rows[i], arms, available, settings, kind, rows[i])


@njit(cache=True)
def describe_blocks(rows, arms, available, settings):
    """Do `describe_many` for regressions."""
    D, K = columns_of(settings), arms.shape[0]
    memory = np.empty((2 * D + 10, BLOCK))
    zt, work = borrowed(memory)[:D], borrowed(memory)[D : 2 * D + 8]
    means, scales = borrowed(memory)[2 * D + 8], borrowed(memory)[2 * D + 9]
    for start in range(0, rows.shape[0], BLOCK):
        block = rows[start : start + BLOCK]
        B = block.shape[0]
        for b in range(BLOCK):
            for i in range(D):
                zt[i, b] = block[b, i] if b < B else 0.0
        for k in range(K):
            means[:], scales[:], df = -np.inf, 0.0, np.inf
            if available[k]:
                moments_of_block(arms[k], zt, means, scales, work)
                df = head_of(arms[k]).df
                df = df if head_of(arms[k]).n > 0.0 else -df
            for b in range(B):
                block[b, D + k] = means[b]
                block[b, scale_at(D, K) + k] = scales[b]
                block[b, df_at(D, K) + k] = df
    held(memory)


@njit(cache=True)
def room(settings):
    """Return how many numbers of scratch a round takes."""
    return scratch(settings) if LINEAR else 0


@njit(cache=True)
def put(row, x, D):
    """Put context x (d,) into its row, with the constant column behind it where there is one."""
    for i in range(D):
        row[i] = x[i] if i < x.size else 1.0


@njit(cache=True, inline="always")
def record(row, arm, D, K, kind, param, floor):
    """Put the arm, and the rule that chose it, into a row."""
    tail = row[tail_at(D, K) :]
    tail[ARM], tail[KIND], tail[PARAM], tail[FLOOR] = arm, kind, param, floor
    tail[PROPENSITY] = tail[REWARD] = tail[WEIGHT] = np.nan


@njit(cache=True, inline="always")
def choose_into(row, x, arms, available, settings, kind, param, floor, stream, v):
    """Fill a whole row for context x (d,) and return the chosen arm."""
    D = columns_of(settings)
    put(row, x, D)
    describe(row, arms, available, settings, kind, v)
    arm = select_arm(row, D, arms.shape[0], kind, param, floor, stream)
    record(row, arm, D, arms.shape[0], kind, param, floor)
    return arm


@njit(cache=True)
def choose_one(row, x, arms, available, settings, kind, param, floor, stream):
    """Check, and choose by `choose_into`. NOT_FINITE (or too large) and STREAM_EMPTY leave all as
    it was."""
    for i in range(x.size):
        if not abs(x[i]) <= LARGEST:
            return NOT_FINITE
    if is_short(stream, arms.shape[0]):
        return STREAM_EMPTY
    row, x, stream = borrowed(row), borrowed(x), borrowed(stream)
    arms, settings, available = borrowed(arms), borrowed(settings), borrowed(available)
    v = np.empty(stride(columns_of(settings)))
    stream[-1] += 1.0
    arm = choose_into(row, x, arms, available, settings, kind, param, floor, stream, borrowed(v))
    held(v)
    return arm


@njit(cache=True)
def choose_many(rows, start, D, K, kind, params, stream):
    """Choose an arm for described rows from `start` on, until the stream runs short. Return the
    next row. params: the rule's number and minimum probability, (n, 2), or (1, 2) for all."""
    rows, params, stream = borrowed(rows), borrowed(params), borrowed(stream)
    for i in range(start, rows.shape[0]):
        if is_short(stream, K):
            stream[-1] += i - start
            return i
        at = i if params.shape[0] > 1 else 0
        arm = select_arm(rows[i], D, K, kind, params[at, 0], params[at, 1], stream)
        record(rows[i], arm, D, K, kind, params[at, 0], params[at, 1])
    stream[-1] += rows.shape[0] - start
    return rows.shape[0]


@njit(cache=True)
def weight_of(row, D, K, source, clip):
    """Return the weight of the row's reward: 1, or the paper's 1 / max(γ, p), or a given one.

    The propensity p is put into the row if it is missing. Return NaN if the kernel is `without` the
    rule of the row.
    """
    tail = row[tail_at(D, K) :]
    if source == UNWEIGHTED:
        return 1.0
    if source == GIVEN:
        return tail[WEIGHT]
    p = tail[PROPENSITY : PROPENSITY + 1]
    if np.isnan(p[0]) and not put_chances(row, int(tail[ARM]), D, K, p):
        return np.nan
    return 1.0 / max(clip, p[0])


@njit(cache=True, inline="always")
def learn_into(row, arms, settings, v, share=1.0):
    """Update the row's arm by its reward and weight. share: what is left of the reward, if rows
    fade."""
    D, K = columns_of(settings), arms.shape[0]
    tail = row[tail_at(D, K) :]
    arm = arms[int(tail[ARM])]
    if LINEAR:
        if MOVING and named(settings).rate > 0.0:
            head_of(arm).left += share
        update(arm, row[:D], tail[REWARD], share * tail[WEIGHT], settings, v)
        pool_noise(arms, settings)
    else:
        conjugate.add(arm, tail[REWARD], tail[WEIGHT], settings)
        conjugate.renew(arm, settings)


@njit(cache=True)
def observe_into(row, arms, settings, source, clip, v, share=1.0):
    """Weigh the row's reward and update its arm."""
    D, K = columns_of(settings), arms.shape[0]
    row[tail_at(D, K) + WEIGHT] = weight_of(row, D, K, source, clip)
    learn_into(row, arms, settings, v, share)


@njit(cache=True, inline="always")
def log_and_learn(row, reward, weight, arms, settings, history, count):
    """Do `observe_one` for a reward of this weight."""
    D, K, at = columns_of(settings), arms.shape[0], count[0]
    if at < 0 or (count[2] != 0 and at >= history.shape[0]):
        return FULL
    size = room(settings)
    memory = np.empty(size + row.size)
    logged = history[at] if count[2] != 0 else borrowed(memory)[size:]
    copy_into(logged, row)
    tail = logged[tail_at(D, K) :]
    tail[REWARD], tail[WEIGHT] = reward, weight
    learn_into(logged, arms, settings, borrowed(memory)[:size])
    held(memory)
    count[0] += count[2] != 0
    count[1] += 1
    return DONE


@njit(cache=True)
def observe_given(row, reward, arms, settings, source, clip, history, count):
    """Do `observe_one` where the weight is 1 or the row's own. Without a propensity to compute, the
    kernel compiles in half the time."""
    if LINEAR:
        pass
    elif not conjugate.is_possible(reward, settings):
        return REFUSED
    arms, settings, row = borrowed(arms), borrowed(settings), borrowed(row)
    history, count = borrowed(history), borrowed(count)
    weight = 1.0 if source == UNWEIGHTED else row[row.size - TAIL + WEIGHT]
    return log_and_learn(row, reward, weight, arms, settings, history, count)


@njit(cache=True)
def observe_one(row, reward, arms, settings, source, clip, history, count):
    """Learn the reward of a decided row: weigh it, log it behind the rows of `history`, and update
    its arm.

    count: rows in `history` (< 0: held), rounds so far, and the most rows to keep. Return DONE; or
    do nothing and return FULL (there is no room, or it is held), REFUSED or OTHER. A propensity
    that the weight takes is put into the row.
    """
    if LINEAR:
        pass
    elif not conjugate.is_possible(reward, settings):
        return REFUSED
    arms, settings, row = borrowed(arms), borrowed(settings), borrowed(row)
    history, count = borrowed(history), borrowed(count)
    weight = weight_of(row, columns_of(settings), arms.shape[0], source, clip)
    if weight != weight:
        return OTHER
    return log_and_learn(row, reward, weight, arms, settings, history, count)


@njit(cache=True)
def places(n, history, count):
    """Return how many of n rounds, the last ones, are kept in the history; FULL if there is no
    room."""
    if count[2] == 0:
        return 0
    kept = n if count[2] < 0 else min(n, count[2])
    return FULL if count[0] + kept > history.shape[0] else kept


@njit(cache=True)
def log_many(rows, kept, history, count):
    """Count rounds (n, width), and log the last of them: see `places`."""
    first = rows.shape[0] - kept
    for i in range(kept):
        history[count[0] + i] = rows[first + i]
    count[0] += kept
    count[1] += rows.shape[0]


@njit(cache=True)
def observe_many(rows, z, arm, reward, weight, arms, settings, history, count):
    """Log rows (n, width) that carry all of their numbers, and update their arms by the regressors
    z (n, D), arm numbers, rewards and weights (n,). Without room, do nothing and return FULL."""
    kept = places(rows.shape[0], history, count)
    if kept == FULL:
        return FULL
    update_many(arms, z, arm, reward, weight, settings)
    log_many(rows, kept, history, count)
    return DONE


@njit(cache=True)
def update_many(arms, z, arm, reward, weight, settings):
    """Update the arms (K, width) by rows with regressors z (n, D), arm numbers, rewards and weights
    (n,), in order. settings: those of `kernels/arm.py`, or of `conjugate.arms` unless LINEAR."""
    arms, settings, z = borrowed(arms), borrowed(settings), borrowed(z)
    if LINEAR:
        work = np.empty(scratch(settings))
        for i in range(z.shape[0]):
            update(arms[arm[i]], z[i], reward[i], weight[i], settings, borrowed(work))
        held(work)
        pool_noise(arms, settings)
    else:
        for i in range(arm.size):
            conjugate.add(arms[arm[i]], reward[i], weight[i], settings)
        conjugate.renew_all(arms, settings)


@njit(cache=True)
def put_chance(row, a, arms, settings):
    """Put the probability of arm a into the row. Where the rule draws from the posteriors of these
    arms as they are, this gives the same bits sooner."""
    D, K = columns_of(settings), arms.shape[0]
    tail = row[tail_at(D, K) :]
    if LINEAR or int(tail[KIND]) not in DRAWN:
        put_chances(row, a, D, K, tail[PROPENSITY : PROPENSITY + 1])
    else:
        out = np.empty(K)
        drawn_chances(row, arms, D, K, out)
        tail[PROPENSITY] = out[a]


@njit(cache=True)
def play(x, reward, start, every, tick, arms, available, settings, kind, params, source, clip,
         stream, chosen, propensity, history):  # fmt: skip
    """Play rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K).

    Fill in the chosen arms and their propensities: of every round where the weights need them, else
    of each `every`-th, and NaN. Log the rounds into the ring `history`. Return the next round: T,
    or where the stream ran short. tick: the clock in round 0.
    """
    x, reward, arms, settings = borrowed(x), borrowed(reward), borrowed(arms), borrowed(settings)
    available, params, stream = borrowed(available), borrowed(params), borrowed(stream)
    chosen, propensity, history = borrowed(chosen), borrowed(propensity), borrowed(history)
    D, K = columns_of(settings), arms.shape[0]
    size = room(settings)
    memory = np.empty(size + row_width(D, K))
    v, row = borrowed(memory)[:size], borrowed(memory)[size:]
    tail = row[tail_at(D, K) :]
    for t in range(start, x.shape[0]):
        if is_short(stream, K):
            stream[-1] += t - start
            held(memory)
            return t
        at = t if params.shape[0] > 1 else 0
        param, floor = params[at, 0], params[at, 1]
        if MOVING and is_moving(settings):
            advance(arms, tick + t, settings)
        arm = choose_into(row, x[t], arms, available, settings, kind, param, floor, stream, v)
        if t % every == 0 or (source == DECISION and kind in DRAWN):
            put_chance(row, arm, arms, settings)
        tail[REWARD] = reward[t, arm]
        share = 1.0
        if MOVING and named(settings).rate > 0.0:
            share = share_of(tick + t, head_of(arms[arm]), settings)
        observe_into(row, arms, settings, source, clip, v, share)
        chosen[t], propensity[t] = arm, tail[PROPENSITY]
        if history.shape[0] > 0:
            history[t % history.shape[0]] = row
    stream[-1] += x.shape[0] - start
    held(memory)
    return x.shape[0]


class Kernels(NamedTuple):
    """The compiled functions that play and learn rounds by the arrays of a belief, and what these
    can be `without` by its settings."""

    describe_many: Any
    choose_one: Any
    choose_many: Any
    observe_one: Any
    observe_given: Any
    observe_many: Any
    update_many: Any
    play: Any
    unreached: Callable[[np.ndarray], tuple[str, ...]]


COMPILED = (
    describe_many, choose_one, choose_many, observe_one, observe_given, observe_many, update_many,
    play,
)  # fmt: skip
REGRESSIONS = Kernels(*COMPILED, unreached)
NUMBERS = Kernels._make(
    [*(without(one, "LINEAR", "MOVING") for one in COMPILED), lambda settings: ()]
)
