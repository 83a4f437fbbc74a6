"""Simulated runs on a fork of the bandit: contexts x (T, d), and the rewards (T, K) of all arms.

A run returns the numbers of the chosen arms (T,) and their propensities (T,). Propensities may be
NaN except in every `every`-th round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.bandit import (
    arm_features,
    choosing,
    context_warnings,
    fast_path,
    ticks,
    transactions,
)
from bayesbandit.bandit.player import step
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.checks import Array, Contexts
from bayesbandit.kernels import rounds
from bayesbandit.kernels.play import NO_ARM_DUE, NOTHING_KNOWN
from bayesbandit.kernels.play import play as rounds_in_loop
from bayesbandit.kernels.propensities import ruled_out
from bayesbandit.kernels.reweighted import Known
from bayesbandit.kernels.selection import is_short
from bayesbandit.runtime.compiling import without
from bayesbandit.runtime.memory import AT_ONCE
from bayesbandit.weighting.reweighting import Inverse

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

Played = tuple[Array, Array]


def play(bandit: Bandit, x: Contexts, reward: ArrayLike, every: int) -> Played:
    """Check contexts x (T, d) and rewards (T, K), play them, and update the bandit."""
    reward = checks.by_arm(reward, bandit.arms, "rewards")
    reward = checks.finite(reward, "rewards", checks.MAX_ABS_VALUE)
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
    """Return the faster function that can play this bandit: `loop` or `step`."""
    kernel = bandit.kernel
    if kernel is None or fast_path.kind_played(bandit) is None:
        return step
    belief = bandit.belief
    linear = kernel.functions is rounds.REGRESSIONS
    if bandit.reweighting is None:
        by_one = isinstance(belief, Regressions) and len(belief.blocks) == 1  # half-life
        return loop if by_one or belief.clock is None else step
    weights = bandit.reweighting
    known = linear and isinstance(weights, Inverse) and weights.known(bandit.layout) is not None
    return loop if known else step


def loop(bandit: Bandit, x: Array, reward: Array, every: int) -> Played:
    """Play a run in compiled loops. Each ends at the end of a block of random numbers, or where
    past rounds must be reweighted."""
    T = len(x)
    belief = bandit.belief
    kernel = bandit.kernel
    layout = bandit.layout
    kind = fast_path.kind_played(bandit)
    assert kernel is not None
    assert kind is not None
    for of_arm in reward.T:
        kernel.check_rewards(x, of_arm)
    absent = list(kernel.functions.unreached(kernel.settings))
    reweighting = bandit.reweighting
    assert reweighting is None or isinstance(reweighting, Inverse)
    clip = bandit.clip
    known: Known | None = NOTHING_KNOWN
    due = NO_ARM_DUE
    if reweighting is None:
        absent += ["REWEIGHTED", *ruled_out(kind)]
        rows = bandit.history.room(T)
    else:
        clip = reweighting.clip
        rows = np.empty((min(T, 1 + AT_ONCE // layout.width), layout.width))
    run = without(rounds_in_loop, *absent)
    params = bandit.rule_parameters(T)
    tick = ticks.tick(bandit, 1) if belief.clock is not None else 0.0
    chosen = np.empty(T, dtype=np.int64)
    propensity = np.full(T, np.nan)
    done = 0
    while done < T:
        start = done
        t = bandit.t + 1
        if reweighting is not None:
            reweighting.count(belief, bandit.policy, layout, t, 0)
            known = reweighting.known(layout)
            due = np.array([float(reweighting.due.get(arm, 1)) for arm in layout.arms])
        done = run(
            x, reward, start, every, tick, kernel.arms, bandit.all_arms, kernel.settings, kind,
            params, bandit.source, clip, known, due, bandit.stream, chosen, propensity, rows,
        )  # fmt: skip
        if reweighting is not None and done > start:
            played = rows[: done - start]
            reweighting.count(belief, bandit.policy, layout, t, len(played))
            bandit.history.extend(played)
            reweighting.settle(played[-1:], belief, bandit.history)
        if done < T and is_short(bandit.stream, len(layout.arms)):
            choosing.refill(bandit)
    if reweighting is None:
        bandit.history.count_in(T)
    return chosen, propensity
