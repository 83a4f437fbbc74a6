"""Decisions about any contexts: those that are not one compiled call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.bandits import forks
from bayesbandit.bandits.decision import Decision
from bayesbandit.checks import Name
from bayesbandit.kernels import rounds, rules

if TYPE_CHECKING:
    from bayesbandit.bandits.bandit import Bandit


def choose(bandit: Bandit, x: Any, arms: Iterable[Name] | None) -> Decision:
    """For one context (d,) or a batch (n, d), among these arms or all."""
    with bandit.lock:
        forks.release(bandit)
        layout = bandit.layout
        available = bandit.every if arms is None else bandit.among(arms)
        x = checks.floats(x, "contexts")
        if x.shape == layout.shape and bandit.compiled:
            return Decision(layout, _one(bandit, x, available))
        rows = _many(bandit, checks.contexts(x, layout.n_features), available)
        return Decision(layout, rows[0] if x.ndim == 1 else rows)


def _one(bandit: Bandit, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """A decided row (width,) for a context x (d,), by a compiled belief."""
    policy, belief = bandit.policy, bandit.belief
    param = policy.param(bandit.t + 1) if bandit.param is None else bandit.param
    row, arm = np.empty(bandit.layout.width), rounds.STREAM_EMPTY
    while arm < 0:
        arm = rounds.choose_one(
            row, x, belief.arms, available, belief.settings, policy.kind, param, bandit.stream
        )
        if arm == rounds.NOT_FINITE:
            checks.contexts(x, bandit.n_features)
        if arm == rounds.STREAM_EMPTY:
            forks.refill(bandit)
    return row


@forks.alone
def _many(bandit: Bandit, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Decided rows (n, width) for contexts x (n, d)."""
    if len(x) == 0:
        raise ValueError("contexts must have at least one row; got none")
    params, done, layout = forks.params(bandit, len(x)), 0, bandit.layout
    trial = forks.asked(bandit)
    rows, ready, kind = describe(trial, x, available, params)
    while done < len(rows):
        done = rounds.choose_many(
            rows, ready, done, layout.n_columns, len(layout.arms), kind, params, trial.stream
        )
        if done < len(rows):
            forks.refill(trial)
    forks.become(bandit, trial)
    return rows


def describe(
    bandit: Bandit, x: np.ndarray, available: np.ndarray, params: np.ndarray
) -> tuple[np.ndarray, bool, int]:
    """Rows (n, width) with contexts x (n, d) and all arms' moments, whether all available arms
    have been pulled, and the rule that then decides."""
    rows, kind = np.empty((len(x), bandit.layout.width)), bandit.policy.kind
    rows[:, : bandit.n_features] = x
    alpha = params if kind == rules.THOMPSON else None
    ready = bandit.belief.describe(rows, available, alpha)
    tabulated = kind == rules.THOMPSON and bandit.belief.tabulates
    return rows, ready, rules.TABULATED if tabulated else kind
