"""One round on arrays: context → moments → arm (propensity) → reward → weight → update.

`Bandit` calls these functions once a round from Python, the experiment runner from one compiled
loop (`kernels/play.py`): same functions, same stream of random numbers, same bits. An arm is a
regression (`kernels/linear.py`), or, in the kernels that are `without` LINEAR, a probability or a
rate (`kernels/conjugate/arms.py`). `kernels/row_layout.py` has the names of a round's numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesbandit.checks import MAX_ABS_VALUE, Array
from bayesbandit.kernels.algebra.dense import copy_into
from bayesbandit.kernels.arm import columns_of, head_of, named, stride
from bayesbandit.kernels.conjugate import arms as conjugate
from bayesbandit.kernels.conjugate.families import is_possible
from bayesbandit.kernels.fading import MIN_ROWS_LEFT, share_of
from bayesbandit.kernels.linear import pool_noise, scratch, unreached, update
from bayesbandit.kernels.moments import moments, moments_of_block
from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.row_layout import record, row_of
from bayesbandit.kernels.selection import is_short, select_arm
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit, without

CONTEXTS_AT_A_TIME = 64  # contexts whose moments are computed together
UNWEIGHTED, DECISION, GIVEN = range(3)  # where an observation's weight comes from
NOT_FINITE, STREAM_EMPTY = -1, -2  # why no arm was chosen
# whether a reward was taken in: not where the history has no room, where the model gives it the
# likelihood 0, or where the kernel is `without` the rule of the row
DONE = 0
FULL = -1
REFUSED = -2
OTHER = -3
LINEAR = True  # whether arms are regressions; see `kernels/selection.py`
MOVING = True  # whether rows may fade, or coefficients walk; see `kernels/fading.py`
BALANCED = True  # whether weights may come from propensities that are yet to be computed


@njit(cache=True, inline="always")
def describe(row, arms, available, kind, work):
    """Fill in every arm's moments, or its a and b where a rule of this kind draws from them."""
    for k in range(arms.shape[0]):
        mean = -np.inf
        scale = 0.0
        last = np.inf if LINEAR else 0.0
        if available[k]:
            if LINEAR:
                mean, scale = moments(arms[k], row.x, row.x.size, work)
                last = head_of(arms[k]).df
                n = head_of(arms[k]).n
            else:
                mean, scale, last = conjugate.moments_or_shape(arms[k], kind)
                n = conjugate.head_of(arms[k]).n
            # the sign says whether the arm is new
            last = last if n > 0.0 else -last
        row.mean[k] = mean
        row.scale[k] = scale
        row.last[k] = last


@njit(cache=True)
def describe_many(rows, arms, available, settings, kind):
    """Do `describe` for rows (n, width) whose contexts are in place, block by block."""
    rows = unmanaged(rows)
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    D = columns_of(settings)
    K = arms.shape[0]
    if LINEAR:
        describe_blocks(rows, arms, available, D)
    else:
        for i in range(rows.shape[0]):
            describe(row_of(rows[i], D, K), arms, available, kind, rows[i])


@njit(cache=True)
def describe_blocks(rows, arms, available, D):
    """Do `describe_many` for regressions."""
    K = arms.shape[0]
    memory = np.empty((2 * D + 10, CONTEXTS_AT_A_TIME))
    zt = unmanaged(memory)[:D]
    work = unmanaged(memory)[D : 2 * D + 8]
    means = unmanaged(memory)[2 * D + 8]
    scales = unmanaged(memory)[2 * D + 9]
    for start in range(0, rows.shape[0], CONTEXTS_AT_A_TIME):
        block = rows[start : start + CONTEXTS_AT_A_TIME]
        B = block.shape[0]
        # contexts side by side, (D, B): loops over contexts vectorise, loops over D are short
        for b in range(CONTEXTS_AT_A_TIME):
            for i in range(D):
                zt[i, b] = block[b, i] if b < B else 0.0
        for k in range(K):
            means[:] = -np.inf
            scales[:] = 0.0
            df = np.inf
            if available[k]:
                moments_of_block(arms[k], zt, means, scales, work)
                df = head_of(arms[k]).df
                df = df if head_of(arms[k]).n > 0.0 else -df
            for b in range(B):
                row = row_of(block[b], D, K)
                row.mean[k] = means[b]
                row.scale[k] = scales[b]
                row.last[k] = df
    keep_alive(memory)


@njit(cache=True)
def room(settings):
    """Return how many numbers of scratch a round takes."""
    return scratch(settings) if LINEAR else 0


@njit(cache=True)
def put(row, x):
    """Put context x (d,) into its row, with the constant column behind it where there is one."""
    for i in range(row.x.size):
        row.x[i] = x[i] if i < x.size else 1.0


@njit(cache=True, inline="always")
def choose_into(row, x, arms, available, kind, param, floor, stream, work):
    """Fill a whole row for context x (d,) and return the chosen arm."""
    put(row, x)
    describe(row, arms, available, kind, work)
    arm = select_arm(row, kind, param, floor, stream)
    record(row, arm, kind, param, floor)
    return arm


@njit(cache=True)
def choose_one(numbers, x, arms, available, settings, kind, param, floor, stream):
    """Check, and choose by `choose_into`, with the row's numbers (width,). NOT_FINITE (or too
    large) and STREAM_EMPTY leave all as it was."""
    for i in range(x.size):
        if not abs(x[i]) <= MAX_ABS_VALUE:
            return NOT_FINITE
    if is_short(stream, arms.shape[0]):
        return STREAM_EMPTY
    numbers = unmanaged(numbers)
    x = unmanaged(x)
    stream = unmanaged(stream)
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    available = unmanaged(available)
    D = columns_of(settings)
    memory = np.empty(stride(D))
    row = row_of(numbers, D, arms.shape[0])
    work = unmanaged(memory)
    stream[-1] += 1.0
    arm = choose_into(row, x, arms, available, kind, param, floor, stream, work)
    keep_alive(memory)
    return arm


@njit(cache=True)
def choose_many(rows, start, D, K, kind, params, stream):
    """Choose an arm for described rows from `start` on, until the stream runs short. Return the
    next row. params: the rule's number and minimum probability, (n, 2), or (1, 2) for all."""
    rows = unmanaged(rows)
    params = unmanaged(params)
    stream = unmanaged(stream)
    for i in range(start, rows.shape[0]):
        if is_short(stream, K):
            # the normals are used up: Python fills the block, and goes on at this row
            stream[-1] += i - start
            return i
        at = i if params.shape[0] > 1 else 0
        row = row_of(rows[i], D, K)
        arm = select_arm(row, kind, params[at, 0], params[at, 1], stream)
        record(row, arm, kind, params[at, 0], params[at, 1])
    stream[-1] += rows.shape[0] - start
    return rows.shape[0]


@njit(cache=True)
def weight_of(row, source, clip):
    """Return the weight of the row's reward: 1, or the paper's 1 / max(γ, p), or a given one.

    The propensity p is put into the row if it is missing. Return NaN if the kernel is `without` the
    rule of the row.
    """
    if source == UNWEIGHTED:
        return 1.0
    if source == GIVEN:
        return row.log.weight
    p = row.propensity
    if BALANCED and np.isnan(p[0]) and not put_chances(row, int(row.log.arm), p):
        return np.nan
    # inverse propensity, with p clipped at γ from below: (6) of mathematics.md
    return 1.0 / max(clip, p[0])


@njit(cache=True, inline="always")
def learn(arms, settings, tick, z, k, r, w, work):
    """Update arm k by a row z (D,) with reward r and weight w, and the noise variance of every arm
    where it is pooled. Where rows fade, it is one of this tick, and counts by what is left of it.
    """
    if LINEAR:
        share = 1.0
        if MOVING and named(settings).rate > 0.0:
            # a row of an earlier tick has faded by 2^(−age/half-life); above 1 where the arm's
            # clock is behind, since all of its rows will then fade together
            share = max(share_of(tick, head_of(arms[k]), settings), MIN_ROWS_LEFT)
            head_of(arms[k]).n_left += share
        update(arms[k], z, r, share * w, settings, work)
        pool_noise(arms, settings)
    else:
        conjugate.add(arms[k], r, w, settings)
        conjugate.renew(arms[k], settings)


@njit(cache=True)
def observe_one(numbers, reward, arms, settings, source, clip, history, count):
    """Learn the reward of a decided row (width,): weigh it, log it behind the rows of `history`,
    and update the arms.

    count: rows in `history` (< 0: held), rounds so far, and the most rows to keep. Return DONE; or
    do nothing and return FULL (there is no room, or it is held), REFUSED or OTHER. A propensity
    that the weight takes is put into the row.
    """
    if not LINEAR:
        setting = conjugate.named(settings)
        if not is_possible(reward, setting.binary, setting.whole):
            return REFUSED
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    numbers = unmanaged(numbers)
    history = unmanaged(history)
    count = unmanaged(count)
    D = columns_of(settings)
    K = arms.shape[0]
    at = count[0]
    weight = weight_of(row_of(numbers, D, K), source, clip)
    # only NaN differs from itself
    if weight != weight:
        return OTHER
    if at < 0 or (count[2] != 0 and at >= history.shape[0]):
        return FULL
    size = room(settings)
    memory = np.empty(size + numbers.size)
    logged = history[at] if count[2] != 0 else unmanaged(memory)[size:]
    copy_into(logged, numbers)
    row = row_of(logged, D, K)
    row.log.reward = reward
    row.log.weight = weight
    learn(arms, settings, 0.0, row.x, int(row.log.arm), reward, weight, unmanaged(memory)[:size])
    keep_alive(memory)
    count[0] += count[2] != 0
    count[1] += 1
    return DONE


@njit(cache=True)
def update_many(arms, z, arm, reward, weight, settings):
    """Update the arms (K, width) by rows with regressors z (n, D), arm numbers, rewards and weights
    (n,), in order. settings: those of `kernels/arm.py`, or of `conjugate.arms` unless LINEAR."""
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    z = unmanaged(z)
    if LINEAR:
        work = np.empty(scratch(settings))
        for i in range(z.shape[0]):
            update(arms[arm[i]], z[i], reward[i], weight[i], settings, unmanaged(work))
        keep_alive(work)
        pool_noise(arms, settings)
    else:
        for i in range(arm.size):
            conjugate.add(arms[arm[i]], reward[i], weight[i], settings)
        conjugate.renew_all(arms, settings)


class Kernels(NamedTuple):
    """The compiled functions that choose and learn rounds by the arrays of a belief, and what these
    can be `without` by its settings."""

    describe_many: Any
    choose_one: Any
    choose_many: Any
    observe_one: Any
    update_many: Any
    unreached: Callable[[Array], tuple[str, ...]]


COMPILED_KERNELS = describe_many, choose_one, choose_many, observe_one, update_many
OF_NUMBERS = "LINEAR", "SUMS", "MOVING"
REGRESSIONS = Kernels(*COMPILED_KERNELS, unreached)
NUMBERS = Kernels._make(
    [*(without(one, *OF_NUMBERS) for one in COMPILED_KERNELS), lambda settings: OF_NUMBERS]
)
