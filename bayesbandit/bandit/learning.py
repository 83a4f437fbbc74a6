"""Learning where `Bandit.observe` cannot make one compiled call: all rounds are learned or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit import checks
from bayesbandit.bandit import (
    arm_features,
    choosing,
    context_warnings,
    ticks,
    transactions,
)
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.logged import Logged, rounds_of
from bayesbandit.bandit.observed import keys_of
from bayesbandit.beliefs.base import Forgets, check_counted, needed
from bayesbandit.beliefs.sums import MIN_ROWS_TO_SUM
from bayesbandit.checks import Array, Contexts
from bayesbandit.history import UNLOGGED
from bayesbandit.kernels import rounds
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.weighting.reweighting import Inverse

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

Batch = tuple[Array, Array, Array, Array]  # contexts, arms, rewards, weights
SIMPLE_NAME_KINDS = "string", "integer"  # kinds of names that are looked up once each


def observe(bandit: Bandit, decision: Decision, reward: ArrayLike) -> None:
    """Learn the reward of a decision, or the rewards (n,) of a batch: see `Bandit.observe`."""
    if type(decision) is not Decision:
        raise TypeError(f"observe takes a Decision of this bandit; got {decision!r}")
    with bandit.lock:
        transactions.unlock_counts(bandit)
        context_warnings.look(bandit)
        if bandit.history.limit != 0:
            decision.settle()
        elif bandit.source == rounds.DECISION:
            decision.fill_propensity()
        layout = bandit.layout
        one = decision.rows.ndim == 1
        rows = np.atleast_2d(decision.rows)
        n = len(rows)
        what = "reward" if one else "rewards"
        if decision.layout.of_arms != layout.of_arms:
            given, right = ("(d,)", "(K, d)") if layout.of_arms else ("(K, d)", "(d,)")
            raise ValueError(
                f"observe takes a Decision of this bandit, whose contexts are {right}; got one "
                f"about contexts {given}"
            )
        r = checks.one_a_row(reward, n, what)
        if n == 0:  # the part of a batch whose rewards came is empty
            return
        if (row := bandit.observed.repeated(decision)) is not None:
            raise ValueError(
                f"the reward of decision {keys_of(decision)[row]} has been learned, and a reward "
                f"counts once{'' if one else f': row {row}'}"
            )
        tick = ticks.ticks_of(bandit, decision)
        if decision.layout != layout:
            x = checks.contexts(np.atleast_2d(decision.x), bandit.n_features)  # already encoded
            arm = np.atleast_1d(decision.arm)
            p = np.atleast_1d(decision.propensity)
            _update(bandit, x, arm, r, p, decision.layout.floors(rows), tick)
        else:
            checks.finite(r, what, checks.MAX_ABS_VALUE)
            if not one or tick is not None or not _learn_one(bandit, decision.rows, float(r[0])):
                rows = rows.copy()
                layout.records(rows)["reward"] = r
                learn(bandit, rows, tick=tick)
        bandit.observed.learned(decision)


def update(
    bandit: Bandit,
    x: Contexts | Logged,
    arm: ArrayLike | None,
    reward: ArrayLike | None,
    propensity: ArrayLike | None,
    time: object = None,
) -> None:
    """Learn rounds logged elsewhere: see `Bandit.update`."""
    checks.same_rows(x=x, arm=arm, reward=reward, propensity=propensity, time=time)
    if (arm is None) != (reward is None):
        lacking = "unknown arm None" if arm is None else "rewards must be numbers; got None"
        raise ValueError(f"{lacking}: update takes arms and rewards, or a log alone")
    with bandit.lock:  # arms cannot change meanwhile
        if arm is None or reward is None:
            if propensity is not None:
                raise TypeError("update(log) takes the log's own propensities; got others")
            z, arm, reward, propensity, time = rounds_of(bandit, x, time)
        else:
            z = arm_features.logged(bandit, cast(Contexts, x), arm)
        tick = ticks.logged(bandit, time, len(z))
        _update(bandit, z, arm, reward, propensity, tick=tick)


@transactions.exclusive
def _update(
    bandit: Bandit, x: Array, arm: ArrayLike, reward: ArrayLike, propensity: ArrayLike | None,
    floor: Array | float = 0.0, tick: Array | None = None,
) -> None:  # fmt: skip
    """Learn rounds with checked contexts x (n, d) or (n, K, d).

    floor: the minimum probabilities with which they were decided (0: not known). tick: when they
    were decided, (n,); None: they are the next rounds of a bandit that forgets.
    """
    n = len(x)
    arm = checks.arm_column(arm)
    checks.same_length(arm, n)
    reward = checks.column(reward, n, "rewards")
    p = (
        np.full(n, UNLOGGED)
        if propensity is None
        else np.broadcast_to(checks.propensities(propensity, n), n)
    )
    context_warnings.look(bandit, x)
    k = _numbers_of(bandit, arm)
    now = bandit.rule_parameters(1)
    draft = transactions.fork(bandit)
    batch = None
    rows_kept = slice(None)
    if propensity is None and weighs_by_propensity(bandit):
        if bandit.of_arms and x.ndim == 2:
            raise ValueError(
                f"give the propensities, or the features of all arms, {(n, *bandit.layout.shape)}: "
                "the weights of rounds without a propensity are by the bandit's current "
                "probabilities"
            )
        # not as of now: what is learned later, as in a replay, is the same
        latest = None if tick is None else float(tick.max())
        rows, rule = choosing.describe(draft, x, bandit.all_arms, now, held=True, tick=latest)
        if x.ndim == 3:
            rows[:, : bandit.n_features] = x[np.arange(n), k]
    else:
        x = x[np.arange(n), k] if x.ndim == 3 else x
        if bandit.reweighting is None:
            batch = _weighed_batch(bandit, x, k, reward, p)
            rows_kept = slice(n - bandit.history.kept(n), n)  # no rows of other rounds
        rows = _rows_without_moments(bandit, x[rows_kept], k[rows_kept])
        rule = TABULATED
    log = bandit.layout.records(rows)
    log["arm"] = k[rows_kept]
    log["rule"] = rule
    log["reward"] = reward[rows_kept]
    log["propensity"] = p[rows_kept]
    floor = np.broadcast_to(floor, n)[rows_kept]
    log["number"], log["min_probability"] = now.T if propensity is None else (0.0, floor)
    log["weight"] = np.nan if batch is None else batch[3][rows_kept]
    if tick is None and bandit.belief.clock is not None:
        tick = ticks.next_ticks(bandit, n)
        draft.ahead += n if bandit.belief.clock == "rounds" else 0
    _learn(draft, rows, batch, tick)
    transactions.commit(bandit, draft)


def _weighed_batch(bandit: Bandit, x: Array, arm: Array, reward: Array, p: Array) -> Batch:
    """Return rounds with their weights, by propensities p (n,) if weights depend on them."""
    if bandit.kernel is None or not x.flags.writeable:  # kernels alone leave x as it is
        x = x.copy()
    balanced = bandit.source == rounds.DECISION
    weight = 1.0 / np.maximum(bandit.clip, p) if balanced else np.ones(len(x))
    return x, arm, reward, weight


def _numbers_of(bandit: Bandit, arm: Array) -> Array:
    """Return the numbers (n,) of arms by their names (n,), integers or objects."""
    K = len(bandit.arms)
    is_typed = arm.dtype != object
    if len(arm) >= MIN_ROWS_TO_SUM:
        import pandas as pd

        if is_typed and arm.min() >= 0 and arm.max() < K and bandit.arms == tuple(range(K)):
            return arm.astype(np.int64)
        # of mixed objects, 1 and True and 1.0 would be one
        if is_typed or pd.api.types.infer_dtype(arm, skipna=False) in SIMPLE_NAME_KINDS:
            code, names = pd.factorize(arm)
            return np.array([bandit.number(name) for name in names])[code]
    return np.array([bandit.number(name) for name in arm], dtype=np.int64)


def weighs_by_propensity(bandit: Bandit) -> bool:
    """Return whether the weight of a round without a propensity comes from the current belief."""
    if bandit.reweighting is None:
        return bandit.source == rounds.DECISION
    return isinstance(bandit.reweighting, Inverse)


def _rows_without_moments(bandit: Bandit, x: Array, index: Array) -> Array:
    """Return rows (n, width) with contexts x (n, d) but no moments; `index` are the chosen arms.

    If arms have features, x are those of the chosen arms. The chosen arm gets probability 1.
    """
    rows = np.empty((len(x), bandit.layout.width))
    mine = (np.arange(len(x)), index)
    log = bandit.layout.records(rows)
    log["x"] = 1.0
    log["x"][:, : bandit.n_features] = x
    log["mean"] = -np.inf
    log["scale"] = 0.0
    log["last"] = 0.0
    log["mean"][mine] = 0.0
    log["last"][mine] = 1.0
    return rows


def _learn_one(bandit: Bandit, row: Array, reward: float) -> bool:
    """Learn a row (width,) by one compiled call, if there is one; return whether it was learned."""
    if bandit.learning is None or bandit.kernel is None:
        return False
    bandit.kernel.check_rewards(row[None, : bandit.n_features], np.array([reward]))
    transactions.reserve(bandit, 1)
    observe_one, _, *rest = bandit.learning
    return bool(observe_one(row, reward, *rest) == rounds.DONE)


@transactions.exclusive
def learn(bandit: Bandit, rows: Array, tick: Array | None = None) -> None:
    """Learn decided rows (n, width) with their rewards, on a fork.

    tick: when they were decided, (n,), if the bandit forgets.
    """
    draft = transactions.fork(bandit)
    _learn(draft, rows, None, tick)
    transactions.commit(bandit, draft)


def _learn(draft: Bandit, rows: Array, batch: Batch | None, tick: Array | None) -> None:
    """Weight rows (n, width) with their rewards, update the belief of a fork, and log the rows.

    batch: all rounds with weights, if `rows` has only those that the history keeps.
    tick: when all rounds were decided, if the bandit forgets.
    """
    belief = draft.belief
    history = draft.history
    reweighting = draft.reweighting
    if reweighting is not None:
        reweighting.weigh(rows, belief, draft.policy, draft.layout, max(draft.t, 1))
    batch = batch or _weighed(draft, rows)
    if tick is not None:
        ticks.catch_up(draft, float(tick.max()))
    before = np.array(belief.n)
    if tick is None:
        belief.update(*batch)
    else:
        needed(belief, Forgets, "time passes").update(*batch, tick=tick)
    check_counted(belief, before, batch[1])
    history.extend(rows, len(batch[0]))
    if reweighting is not None:
        reweighting.settle(rows, belief, history)


def _weighed(bandit: Bandit, rows: Array) -> Batch:
    """Return contexts, arm numbers, rewards and weights of rows; write known weights into them."""
    layout = bandit.layout
    log = bandit.layout.records(rows)
    if bandit.source == rounds.UNWEIGHTED:
        log["weight"] = 1.0
    elif bandit.source == rounds.DECISION:
        log["weight"] = 1.0 / np.maximum(bandit.clip, layout.assumed(rows))
    arm = log["arm"].astype(np.int64)
    return rows[:, : layout.n_features], arm, log["reward"], log["weight"].copy()
