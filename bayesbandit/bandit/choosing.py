"""Decisions about any contexts: those that are not one compiled call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import arm_features, transactions
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.state import BanditState
from bayesbandit.beliefs.base import kernels_of, shared
from bayesbandit.checks import Name
from bayesbandit.kernels import rounds, rules
from bayesbandit.policies import Among, chosen

NOTHING = np.empty(0)  # the context of a bandit without features


def choose(bandit: BanditState, x: Any, arms: Iterable[Name] | None) -> Decision:
    """For one context (d,) or a batch (n, d), among these arms or all; see `of_arms` for those with
    a row an arm."""
    if bandit.of_arms:
        with bandit.lock:
            return _of_arms(bandit, *arm_features.contexts(bandit, x, arms))
    x = x if x is NOTHING else bandit.encoded(x)
    with bandit.lock:
        transactions.release(bandit)
        layout = bandit.layout
        available = bandit.all_arms if arms is None else bandit.among(arms)
        if x is NOTHING and layout.n_features > 0:
            raise ValueError(f"contexts must have {layout.n_features} features; got none")
        x = checks.floats(x, "contexts")
        kind = transactions.kind_played(bandit)
        if x.shape == layout.shape and kind is not None:
            return Decision(layout, _one(bandit, x, available, kind))
        rows = _many(bandit, checks.contexts(x, layout.n_features), available)
        return Decision(layout, rows[0] if x.ndim == 1 else rows)


def _one(bandit: BanditState, x: np.ndarray, available: np.ndarray, kind: int) -> np.ndarray:
    """A decided row (width,) of this KIND for a context x (d,), by a compiled belief and rule."""
    belief, [[param, floor]] = cast(Any, bandit.belief), transactions.params(bandit, 1)
    row, arm = np.empty(bandit.layout.width), rounds.STREAM_EMPTY
    choose_one = kernels_of(belief).choose_one
    while arm < 0:
        arm = choose_one(
            row, x, belief.arms, available, belief.settings, kind, param, floor, bandit.stream
        )
        if arm == rounds.NOT_FINITE:
            checks.contexts(x, bandit.n_features)
        if arm == rounds.STREAM_EMPTY:
            transactions.refill(bandit)
    return row


@transactions.alone
def _many(bandit: BanditState, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Decided rows (n, width) for contexts x (n, d)."""
    if len(x) == 0:
        raise ValueError("contexts must have at least one row; got none")
    params, done, layout = transactions.params(bandit, len(x)), 0, bandit.layout
    twin = transactions.asked(bandit)
    rows, kind = describe(twin, x, available, params)
    choose_many = kernels_of(twin.belief).choose_many
    while done < len(rows):
        done = choose_many(
            rows, done, layout.n_columns, len(layout.arms), kind, params, twin.stream
        )
        if done < len(rows):
            transactions.refill(twin)
    transactions.become(bandit, twin)
    return rows


@transactions.alone
def _of_arms(bandit: BanditState, x: np.ndarray, available: np.ndarray, one: bool) -> Decision:
    """Decided for contexts (n, K, d)."""
    if len(x) == 0:
        raise ValueError("contexts must have at least one decision's rows; got none")
    params, done, layout = transactions.params(bandit, len(x)), 0, bandit.layout
    twin, comparison = transactions.asked(bandit), None
    rows = np.empty((len(x), layout.width))
    if bandit.rule == rules.THOMPSON:
        comparison = cast(Any, twin.belief).compare(rows, x, available, params)
    if comparison is None:
        rows, kind = describe(twin, x, available, params)
    while done < len(rows):
        if comparison is not None:
            done = comparison.choose(rows, done, layout, twin.stream)
        else:
            K = len(layout.arms)
            done = rounds.choose_many(rows, done, layout.n_columns, K, kind, params, twin.stream)
        if done < len(rows):
            transactions.refill(twin)
    chosen = rows[:, layout.tail + rules.ARM].astype(np.int64)
    rows[:, : layout.n_features] = x[np.arange(len(x)), chosen]
    transactions.become(bandit, twin)
    return Decision(layout, rows[0] if one else rows, comparison)


@transactions.alone
def means(bandit: BanditState, x: np.ndarray) -> np.ndarray:
    """Posterior means of the arms' mean rewards at contexts x (n, d): (n, K)."""
    twin = transactions.asked(bandit)
    mean = twin.belief.mean(x)
    transactions.become(bandit, twin)
    return mean


def posterior(bandit: BanditState, k: int) -> Any:
    """Return what is known of arm k, with the rounds of it that the history keeps."""
    layout, history = bandit.layout, bandit.history
    rows = history.ordered() if bandit.of_arms else history.of_arm(k)
    tail = rows[:, layout.tail :]
    kept = {"reward": tail[:, rules.REWARD], "weight": tail[:, rules.WEIGHT]}
    known = bandit.belief.posterior(k, {"x": rows[:, : layout.n_features], **kept})
    if bandit.encoder is not None and hasattr(known, "encoder"):
        known = replace(known, encoder=bandit.encoder)
    return known


@transactions.alone
def probabilities(bandit: BanditState, x: np.ndarray) -> np.ndarray:
    """Every arm's probability (n, K) at contexts x (n, d), each as that of the next round."""
    twin, layout, now = (
        transactions.asked(bandit),
        bandit.layout,
        transactions.params(bandit, 1)[:1],
    )
    twin.belief = bandit.belief.fork()
    rows, kind = describe(twin, x, bandit.all_arms, now, held=True)
    rows[:, layout.tail + rules.KIND] = kind
    rows[:, layout.tail + rules.PARAM : layout.tail + rules.FLOOR + 1] = now
    return Decision(layout, rows).probabilities


def describe(
    bandit: BanditState,
    x: np.ndarray,
    available: np.ndarray,
    params: np.ndarray,
    held: bool = False,
) -> tuple[np.ndarray, int]:
    """Rows (n, width) with contexts x (n, d) and what they keep of all arms, and the rule that then
    decides.

    params: the rule's number and floor, (n, 2) or (1, 2). held: they are all of the next round.
    """
    belief, rule = cast(Any, bandit.belief), bandit.rule
    rows = np.empty((len(x), bandit.layout.width))
    if not bandit.of_arms:  # the context of such a row is what the arm chosen has
        rows[:, : bandit.n_features] = x
    kind = transactions.kind_played(bandit)
    if kind in rules.DRAWN:
        belief.describe_parameters(rows, available)
        return rows, kind
    if rule is None:
        _by_policy(bandit, rows, x, available, held)
    else:
        alpha = params[:, 0] if rule == rules.THOMPSON else None
        if bandit.of_arms:
            belief.describe_arms(rows, x, available, alpha)
        else:
            belief.describe(rows, available, alpha)
    if rule is None or (rule == rules.THOMPSON and belief.tabulates):
        p, floor = bandit.layout.moment(rows, 2), params[:, 1:]
        p[:, available] = floor + (1.0 - available.sum() * floor) * p[:, available]
        return rows, rules.TABULATED
    return rows, rule


def _by_policy(
    bandit: BanditState, rows: np.ndarray, x: np.ndarray, available: np.ndarray, held: bool
) -> None:
    """Fill rows (n, width) with the moments and a policy's own probabilities at contexts x."""
    belief, t = bandit.belief, bandit.t + 1 + (0 * np.arange(len(x)) if held else np.arange(len(x)))
    new = belief.new
    asked = Among(belief, available & ~new, x)
    p = shared(new, available, lambda _: chosen(bandit.policy, asked, t))
    mean, sd = asked.known()  # of the draws that it has seen
    rows[:, bandit.n_features : bandit.layout.n_columns] = 1.0
    rules.put_moments(rows, bandit.layout.n_columns, available, mean, sd, p)
    belief.decided(len(x))
