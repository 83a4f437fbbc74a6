"""Rounds in one compiled loop, on simulated rewards."""

import numpy as np

from bayesbandit.kernels.algebra.dense import copy_into
from bayesbandit.kernels.arm import columns_of, head_of, is_moving
from bayesbandit.kernels.fading import advance
from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.reweighted import Known, estimated
from bayesbandit.kernels.rounds import choose_into, learn, room, weight_of
from bayesbandit.kernels.row_layout import row_of, row_width
from bayesbandit.kernels.selection import is_short
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

MOVING = True  # whether rows may fade, or coefficients walk; see `kernels/fading.py`
REWEIGHTED = True  # whether past rounds are weighed again
NOTHING_KNOWN = Known()
NO_ARM_DUE = np.empty(0)  # no arm is ever due


@njit(cache=True)
def play(x, reward, start, every, tick, arms, available, settings, kind, params, source, clip,
         known, due, stream, chosen, propensity, history):  # fmt: skip
    """Play rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K).

    Fill in the chosen arms and their propensities: of every round where the weights need them, else
    of each `every`-th, and NaN. Log the rounds into the ring `history`. Return the next round: T,
    or where the stream ran short.

    tick: the clock in round 0. known: a `Known`. due (K,): the number of rounds at which an arm is
    reweighted. Then weights are 1 / max(clip, p) of estimated propensities p, rounds are logged
    from the first row on, and the loop ends where `history` is full, or an arm is due.
    """
    x = unmanaged(x)
    reward = unmanaged(reward)
    arms = unmanaged(arms)
    settings = unmanaged(settings)
    available = unmanaged(available)
    params = unmanaged(params)
    stream = unmanaged(stream)
    chosen = unmanaged(chosen)
    propensity = unmanaged(propensity)
    history = unmanaged(history)
    known = unmanaged(known)
    due = unmanaged(due)
    D = columns_of(settings)
    K = arms.shape[0]
    width = row_width(D, K)
    size = room(settings)
    memory = np.empty(size + 2 * width)
    work = unmanaged(memory)[:size]
    numbers = unmanaged(memory)[size : size + width]
    other = unmanaged(memory)[size + width :]
    row = row_of(numbers, D, K)
    t = start
    while t < x.shape[0] and not is_short(stream, K):
        if MOVING and is_moving(settings):
            advance(arms, tick + t, settings)
        at = t if params.shape[0] > 1 else 0
        k = choose_into(
            row, x[t], arms, available, kind, params[at, 0], params[at, 1], stream, work
        )
        log = row.log
        if t % every == 0:
            put_chances(row, k, row.propensity)
        log.reward = reward[t, k]
        if REWEIGHTED:
            p = estimated(row, x[t], k, settings, known, available, other, work)
            # (6), by the estimated propensity
            log.weight = 1.0 / max(clip, p)
        else:
            log.weight = weight_of(row, source, clip)
        learn(arms, settings, tick + t, row.x, k, log.reward, log.weight, work)
        chosen[t] = k
        propensity[t] = log.propensity
        if history.shape[0] > 0:
            copy_into(history[(t - start if REWEIGHTED else t) % history.shape[0]], numbers)
        t += 1
        if REWEIGHTED and (head_of(arms[k]).n >= due[k] or t - start >= history.shape[0]):
            break
    stream[-1] += t - start
    keep_alive(memory)
    return t
