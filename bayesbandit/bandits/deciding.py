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
from bayesbandit.policies import Among, chosen

if TYPE_CHECKING:
    from bayesbandit.bandits.bandit import Bandit


def choose(bandit: Bandit, x: Any, arms: Iterable[Name] | None) -> Decision:
    """For one context (d,) or a batch (n, d), among these arms or all."""
    with bandit.lock:
        forks.release(bandit)
        layout = bandit.layout
        available = bandit.every if arms is None else bandit.among(arms)
        x = checks.floats(x, "contexts")
        if x.shape == layout.shape and bandit.compiled and bandit.rule is not None:
            return Decision(layout, _one(bandit, x, available))
        rows = _many(bandit, checks.contexts(x, layout.n_features), available)
        return Decision(layout, rows[0] if x.ndim == 1 else rows)


def _one(bandit: Bandit, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """A decided row (width,) for a context x (d,), by a compiled belief."""
    belief, rule, [param] = bandit.belief, bandit.rule, forks.params(bandit, 1)
    row, arm = np.empty(bandit.layout.width), rounds.STREAM_EMPTY
    while arm < 0:
        arm = rounds.choose_one(
            row, x, belief.arms, available, belief.settings, rule, param, bandit.stream
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
    bandit: Bandit, x: np.ndarray, available: np.ndarray, params: np.ndarray, held: bool = False
) -> tuple[np.ndarray, bool, int]:
    """Rows (n, width) with contexts x (n, d) and all arms' moments, whether all available arms
    have been pulled, and the rule that then decides. held: they are all of the next round."""
    rows, kind = np.empty((len(x), bandit.layout.width)), bandit.rule
    rows[:, : bandit.n_features] = x
    if kind is None:
        return rows, tabulate(bandit, rows, x, available, held), rules.TABULATED
    alpha = params if kind == rules.THOMPSON else None
    ready = bandit.belief.describe(rows, available, alpha)
    tabulated = kind == rules.THOMPSON and bandit.belief.tabulates
    return rows, ready, rules.TABULATED if tabulated else kind


def tabulate(
    bandit: Bandit, rows: np.ndarray, x: np.ndarray, available: np.ndarray, held: bool
) -> bool:
    """Fill rows (n, width) with the moments and a policy's own probabilities at contexts x (n, d);
    whether all available arms have been pulled."""
    belief, layout = bandit.belief, bandit.layout
    t = bandit.t + 1 + (np.zeros(len(x), dtype=int) if held else np.arange(len(x)))
    known = belief.describe(rows[:0], available)
    p = np.zeros((len(x), len(layout.arms)))
    if known:
        p[:, available] = chosen(bandit.policy, Among(belief, available), x, t)
    mean, sd = belief.moments(x)  # of the draws that the policy has seen
    known = belief.describe(rows, available) and known
    rules.put_moments(rows, layout.n_columns, available, mean, sd, p)
    return known
