"""Rewards of several rounds, or of a belief that is not compiled: all learned or none."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from bayesbandit import checks
from bayesbandit.bandits import deciding, forks, of_arms
from bayesbandit.bandits.decision import Decision
from bayesbandit.bandits.state import BanditState
from bayesbandit.beliefs.base import kernels_of
from bayesbandit.kernels import rounds, rules
from bayesbandit.kernels.compiling import without


def observe(bandit: BanditState, decision: Decision, reward: Any) -> None:
    """The reward of a decision, or the rewards (n,) of a batch."""
    if type(decision) is not Decision:
        raise TypeError(f"observe takes a Decision of this bandit; got {decision!r}")
    with bandit.lock:
        forks.release(bandit)
        if bandit.source != rounds.UNWEIGHTED or bandit.history.limit != 0:
            decision.settle()
        rows, layout, one = decision.rows, bandit.layout, decision.rows.ndim == 1
        if decision.layout.of_arms != layout.of_arms:
            given, own = ("(d,)", "(K, d)") if layout.of_arms else ("(K, d)", "(d,)")
            raise ValueError(
                f"observe takes a Decision of this bandit, whose contexts are {own}; got one about "
                f"contexts {given}"
            )
        if decision.layout != layout:
            x, p = np.atleast_2d(decision.x), np.atleast_1d(decision.propensity)
            numbers = checks.contexts(x, bandit.n_features)  # encoded by now
            _update(bandit, numbers, np.atleast_1d(decision.arm), reward, p)
            return
        reward = checks.column(reward, 1 if one else len(rows), "reward" if one else "rewards")
        alone = one and bandit.reweighting is None and bandit.compiled
        if alone and _one(bandit, rows, float(reward[0])) != rounds.OTHER:
            return
        rows = np.atleast_2d(rows).copy()
        rows[:, layout.tail + rules.REWARD] = reward
        learn(bandit, rows)


def update(bandit: BanditState, x: Any, arm: Any, reward: Any, propensity: Any) -> None:
    """Rounds logged elsewhere; without propensities, today's policy and belief supply them."""
    with bandit.lock:  # no arm comes or goes meanwhile
        _update(bandit, of_arms.logged(bandit, x, arm, propensity), arm, reward, propensity)


def _update(bandit: BanditState, x: np.ndarray, arm: Any, reward: Any, propensity: Any) -> None:
    """Of contexts (n, d) or (n, K, d) that have been checked."""
    n = len(x)
    if n == 0:
        raise ValueError("an update needs at least one round; got none")
    arm = np.atleast_1d(checks.unmasked(arm, "arm"))
    if arm.shape != (n,):
        raise ValueError(f"arm must have one name for each of {n} rows; got {arm.shape}")
    reward = checks.column(reward, n, "rewards")
    p = np.nan if propensity is None else checks.propensities(propensity, n)
    with bandit.lock:
        forks.release(bandit)
        index, tail = [bandit.number(a) for a in arm], bandit.layout.tail
        now = forks.params(bandit, 1)
        twin = bandit if bandit.compiled else forks.asked(bandit)
        if bandit.of_arms and x.ndim == 2:
            rows, kind = _of_chosen(bandit, x, index), rules.TABULATED
        else:
            rows, kind = deciding.describe(twin, x, bandit.all_arms, now, held=True)
        rows[:, tail + rules.ARM] = index
        if x.ndim == 3:
            rows[:, : bandit.n_features] = x[np.arange(n), index]
        rows[:, tail + rules.KIND] = kind
        rows[:, tail + rules.PARAM : tail + rules.FLOOR + 1] = now
        rows[:, tail + rules.PROPENSITY] = p
        rows[:, tail + rules.REWARD] = reward
        rows[:, tail + rules.WEIGHT] = np.nan
        learn(twin, rows)
        if twin is not bandit:
            forks.become(bandit, twin)


def _of_chosen(bandit: BanditState, x: np.ndarray, index: list[int]) -> np.ndarray:
    """Rows (n, width) of which the features x (n, d) of the chosen arms are known, and not what the
    others were."""
    rows, layout = np.empty((len(x), bandit.layout.width)), bandit.layout
    rows[:, : bandit.n_features] = x
    for which, absent in enumerate((-np.inf, 0.0, 0.0)):
        layout.moment(rows, which)[:] = absent
    mine = np.arange(len(x)), index
    layout.moment(rows, 0)[mine], layout.moment(rows, 2)[mine] = 0.0, 1.0
    return rows


def _one(bandit: BanditState, row: np.ndarray, reward: float) -> Any:
    """By a compiled belief; `rounds.OTHER` where its kernel does not know the rule of the row."""
    belief, history = cast(Any, bandit.belief), bandit.history
    if (check := getattr(belief, "check_rewards", None)) is not None:
        check(row[None, : bandit.n_features], np.array([reward]))
    forks.reserve(bandit, 1)
    return forks.observer(bandit)(
        row, reward, belief.arms, belief.settings, bandit.source, bandit.clip,
        history.rows, history.count,
    )  # fmt: skip


def learn(bandit: BanditState, rows: np.ndarray) -> None:
    """Weigh rows (n, width) that carry their rewards, update the belief, keep them."""
    if bandit.reweighting is None and bandit.streamed:
        _stream(bandit, rows)
    else:
        _try(bandit, rows)


def _stream(bandit: BanditState, rows: np.ndarray) -> None:
    """Belief and history in one compiled call, which cannot fail half-way."""
    x, arm, reward, weight = _weighed(bandit, rows)
    belief = cast(Any, bandit.belief)
    z, reward, arms, settings = belief.regression(x, arm, reward, weight)
    forks.reserve(bandit, len(rows))
    kept, count = bandit.history.rows, bandit.history.count
    kernels = kernels_of(belief)
    observe_many = without(kernels.observe_many, *kernels.unreached(settings))
    observe_many(rows, z, arm, reward, weight, arms, settings, kept, count)


@forks.alone
def _try(bandit: BanditState, rows: np.ndarray) -> None:
    """On a fork."""
    twin = forks.fork(bandit)
    belief, history, reweighting = twin.belief, twin.history, twin.reweighting
    if reweighting is not None:
        reweighting.weigh(rows, belief, bandit.policy, bandit.layout, max(bandit.t, 1))
    told, before = _weighed(bandit, rows), np.array(belief.n)
    belief.update(*told)
    counted = before + np.bincount(told[1], minlength=len(before))
    if not np.array_equal(belief.n, counted):
        name = type(belief).__name__
        raise ValueError(
            f"{name}.update must leave n = {counted}, rounds of each arm; got {belief.n}"
        )
    history.extend(rows)
    if reweighting is not None:
        reweighting.settle(rows, belief, history)
    forks.become(bandit, twin)


def _weighed(bandit: BanditState, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Contexts, arm numbers, rewards and weights of rows."""
    layout, tail = bandit.layout, rows[:, bandit.layout.tail :]
    if bandit.source == rounds.UNWEIGHTED:
        tail[:, rules.WEIGHT] = 1.0
    elif bandit.source == rounds.DECISION:
        tail[:, rules.WEIGHT] = 1.0 / np.maximum(bandit.clip, layout.fill_propensities(rows))
    arm = tail[:, rules.ARM].astype(np.int64)
    return rows[:, : layout.n_features], arm, tail[:, rules.REWARD], tail[:, rules.WEIGHT].copy()
