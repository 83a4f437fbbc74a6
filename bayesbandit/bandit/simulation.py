"""Simulated runs on a fork of the bandit: contexts x (T, d), and the rewards (T, K) of all arms.

A run returns the numbers of the chosen arms (T,) and their propensities (T,). Propensities may be
NaN except in every `every`-th round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.bandit import (
    arm_features,
    context_warnings,
    fast_path,
    random_streams,
    ticks,
    transactions,
)
from bayesbandit.bandit.player import step
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.checks import Contexts
from bayesbandit.kernels import rounds
from bayesbandit.kernels.play import NO_ARM_DUE, NOTHING_KNOWN
from bayesbandit.kernels.play import play as rounds_in_loop
from bayesbandit.kernels.propensities import ruled_out
from bayesbandit.kernels.selection import is_short
from bayesbandit.runtime.compiling import without
from bayesbandit.runtime.memory import AT_ONCE
from bayesbandit.weighting.reweighting import Inverse

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

Played = tuple[np.ndarray, np.ndarray]


def play(bandit: Bandit, x: Contexts, reward: ArrayLike, every: int) -> Played:
    """Check contexts x (T, d) and rewards (T, K), play them, and update the bandit."""
    reward = checks.finite(checks.floats(reward, "rewards"), "rewards", checks.MAX_ABS_VALUE)
    x = arm_features.of_all(bandit, x, len(np.atleast_1d(reward)))
    checks.integer(every, "every", least=1)
    shape = len(x), len(bandit.arms)
    if reward.shape != shape:
        raise ValueError(f"rewards must be {shape}; got {reward.shape}")
    if bandit.belief.clock == "time":
        raise ValueError(
            'play has rounds, and no times: a bandit with clock="time" plays by choose and observe'
        )
    context_warnings.look(bandit, x)
    draft = transactions.fork(bandit)
    draft.encoder = None  # x is encoded by now
    played = by(bandit)(draft, x, reward, every)
    draft.encoder = bandit.encoder
    transactions.commit(bandit, draft)
    return played


def by(bandit: Bandit) -> Callable[..., Played]:
    """Return the fastest function that can play this bandit: `loop`, `stretches` or `step`."""
    kernel = bandit.kernel
    if kernel is None or fast_path.kind_played(bandit) is None:
        return step
    compiled = kernel.functions is rounds.REGRESSIONS and bandit.reweighting is None
    if bandit.belief.clock is not None and not compiled:
        return step
    if bandit.reweighting is None:
        return loop
    weigher = bandit.reweighting.weigher
    if kernel.functions is not rounds.REGRESSIONS or not isinstance(weigher, Inverse):
        return step
    return step if weigher.known(bandit.layout) is None else stretches


def loop(bandit: Bandit, x: np.ndarray, reward: np.ndarray, every: int) -> Played:
    """Play a run in one compiled loop."""
    T = len(x)
    params = bandit.numbers(len(x))
    done = 0
    chosen = np.empty(T, dtype=np.int64)
    propensity = np.full(T, np.nan)
    belief = bandit.belief
    kernel = bandit.kernel
    kind = fast_path.kind_played(bandit)
    assert kernel is not None
    assert kind is not None
    for of_arm in reward.T:
        kernel.check_rewards(x, of_arm)
    ring = bandit.history.room(T)
    tick = ticks.tick(bandit, 1) if belief.clock is not None else 0.0
    absent = "REWEIGHTED", *kernel.functions.unreached(kernel.settings), *ruled_out(kind)
    if isinstance(belief, Regressions) and len(belief.blocks) > 1:
        arms, settings, log_weight = belief.blocks, belief.rules, belief.log_weight
        absent = ("REWEIGHTED", *ruled_out(kind))
    else:
        arms = kernel.arms[None]
        settings = kernel.settings[None]
        log_weight = np.zeros(1)
        absent = "CHOOSING", *absent
    run = without(rounds_in_loop, *absent)
    while done < T:
        done = run(
            x, reward, done, every, tick, arms, bandit.all_arms, settings, log_weight, kind, params,
            bandit.source, bandit.clip, NOTHING_KNOWN, NO_ARM_DUE, bandit.stream, chosen,
            propensity, ring,
        )  # fmt: skip
        if done < T:
            random_streams.refill(bandit)
    bandit.history.count_in(T)
    return chosen, propensity


def stretches(bandit: Bandit, x: np.ndarray, reward: np.ndarray, every: int) -> Played:
    """Play a run in several compiled loops. Each ends when past rounds must be reweighted."""
    T = len(x)
    params = bandit.numbers(len(x))
    done = 0
    chosen = np.empty(T, dtype=np.int64)
    propensity = np.full(T, np.nan)
    belief, kernel, layout = bandit.belief, bandit.kernel, bandit.layout
    assert kernel is not None
    rows = np.empty((min(T, 1 + AT_ONCE // layout.width), layout.width))
    reweighting: Any = bandit.reweighting
    weigher: Inverse = reweighting.weigher
    arms = kernel.arms[None]
    settings = kernel.settings[None]
    log_weight = np.zeros(1)
    run = without(rounds_in_loop, "CHOOSING", *kernel.functions.unreached(kernel.settings))
    while done < T:
        t = bandit.t + 1
        start = done
        weigher.count(belief, bandit.policy, layout, t, 0)
        due = np.array([float(reweighting.due.get(arm, 1)) for arm in layout.arms])
        done = run(
            x, reward, start, every, 0.0, arms, bandit.all_arms, settings, log_weight, bandit.rule,
            params, rounds.GIVEN, weigher.clip, weigher.known(layout), due, bandit.stream, chosen,
            propensity, rows,
        )  # fmt: skip
        if done > start:
            weigher.count(belief, bandit.policy, layout, t, done - start)
            bandit.history.extend(rows[: done - start])
            reweighting.settle(rows[done - start - 1 : done - start], belief, bandit.history)
        if is_short(bandit.stream, len(layout.arms)):
            random_streams.refill(bandit)
    return chosen, propensity
