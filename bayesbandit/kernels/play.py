"""Rounds in one compiled loop, on simulated rewards.

The arms of several half-lives stand in one array (M, K, …), with settings (M, …); the log
probabilities of the half-lives (M,) say which of them decides. Without a choice of half-lives M is
1.
"""

import numpy as np

from bayesbandit.kernels.algebra.dense import copy_into
from bayesbandit.kernels.arm import columns_of, head_of, is_moving
from bayesbandit.kernels.fading import advance
from bayesbandit.kernels.propensities import put_chances
from bayesbandit.kernels.reweighted import Known, estimated
from bayesbandit.kernels.rounds import choose_into, learn, room, weight_of
from bayesbandit.kernels.row_layout import row_of, row_width
from bayesbandit.kernels.scoring import learn_one, most_probable, switch
from bayesbandit.kernels.selection import is_short
from bayesbandit.kernels.uncounted_arrays import keep_alive, unmanaged
from bayesbandit.runtime.compiling import njit

MOVING = True  # whether rows may fade, or coefficients walk; see `kernels/fading.py`
CHOOSING = True  # whether rewards choose the half-life
REWEIGHTED = True  # whether past rounds are weighed again
NOTHING_KNOWN = Known()
NO_ARM_DUE = np.empty(0)  # no arm is ever due


@njit(cache=True)
def play(x, reward, start, every, tick, blocks, available, settings, log_weight, kind, params,
         source, clip, known, due, stream, chosen, propensity, history):  # fmt: skip
    """Play rounds from `start` on against contexts x (T, d) and all arms' rewards (T, K).

    Fill in the chosen arms and their propensities: of every round where the weights need them, else
    of each `every`-th, and NaN. Log the rounds into the ring `history`. Return the next round: T,
    or where the stream ran short.

    tick: the clock in round 0. known: a `Known`. due (K,): the number of rounds at which an arm is
    reweighted. Then weights are 1 / max(clip, p) of estimated propensities p, rounds are logged
    from the first row on, and the loop ends where `history` is full, or an arm is due.
    """
    x, reward, blocks, settings = (
        unmanaged(x),
        unmanaged(reward),
        unmanaged(blocks),
        unmanaged(settings),
    )
    available, params, stream = unmanaged(available), unmanaged(params), unmanaged(stream)
    chosen, propensity, history = unmanaged(chosen), unmanaged(propensity), unmanaged(history)
    known, due, log_weight = unmanaged(known), unmanaged(due), unmanaged(log_weight)
    D, (M, K) = columns_of(settings[0]), blocks.shape[:2]
    # a half-life needs the most scratch
    width = row_width(D, K)
    size = room(settings[M - 1])
    memory = np.empty(size + 2 * width + M)
    work = unmanaged(memory)[:size]
    rest = unmanaged(memory)[size:]
    numbers = rest[:width]
    other = rest[width : 2 * width]
    score = rest[2 * width :]
    row = row_of(numbers, D, K)
    t = start
    while t < x.shape[0] and not is_short(stream, K):
        if MOVING:
            for m in range(M):
                if is_moving(settings[m]):
                    advance(blocks[m], tick + t, settings[m])
        best = most_probable(log_weight) if CHOOSING else 0
        arms = blocks[best]
        setting = settings[best]
        at = t if params.shape[0] > 1 else 0
        k = choose_into(
            row, x[t], arms, available, setting, kind, params[at, 0], params[at, 1], stream, work
        )
        log = row.log
        if t % every == 0:
            put_chances(row, k, row.propensity)
        log.reward = reward[t, k]
        if REWEIGHTED:
            p = estimated(row, x[t], k, setting, known, available, other, work)
            log.weight = 1.0 / max(clip, p)
        else:
            log.weight = weight_of(row, source, clip)
        if CHOOSING:
            for m in range(M):
                score[m] = learn_one(
                    blocks[m], settings[m], tick + t, row.x, k, log.reward, log.weight, work
                )
            switch(log_weight, score)
        else:
            learn(arms, setting, tick + t, row.x, k, log.reward, log.weight, work)
        chosen[t], propensity[t] = k, log.propensity
        if history.shape[0] > 0:
            copy_into(history[(t - start if REWEIGHTED else t) % history.shape[0]], numbers)
        t += 1
        if REWEIGHTED and (head_of(arms[k]).n >= due[k] or t - start >= history.shape[0]):
            break
    stream[-1] += t - start
    keep_alive(memory)
    return t
