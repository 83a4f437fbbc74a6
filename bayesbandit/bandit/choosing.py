"""Decisions for any contexts, where `Bandit.choose` cannot make one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import arm_features, fast_path, random_streams, transactions
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.fast_path import Deciding
from bayesbandit.beliefs.base import Kernel, parts, predicted
from bayesbandit.checks import Contexts, Name, floats, sums
from bayesbandit.kernels import rounds
from bayesbandit.kernels.row_layout import TABULATED, THOMPSON, put_moments
from bayesbandit.policies import chosen
from bayesbandit.predictions import Comparison, Prediction

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

NOTHING = np.empty(0)  # the context of a bandit without features


def choose(bandit: Bandit, x: Contexts, arms: Iterable[Name] | None) -> Decision:
    """Choose an arm for one context (d,) or a batch (n, d), among `arms` (None: all).

    If arms have features, contexts are as in `arm_features.contexts`.
    """
    if bandit.of_arms:
        with bandit.lock:
            return _by_arm_features(bandit, *arm_features.contexts(bandit, x, arms))
    x = checks.floats(x if bandit.encoder is not None else bandit.encoded(x), "contexts")
    with bandit.lock:
        layout = bandit.layout
        available = bandit.all_arms if arms is None else bandit.among(arms)
        if x is NOTHING and layout.n_features > 0:
            raise ValueError(f"contexts must have {layout.n_features} features; got none")
        live = bandit.deciding
        if live is None and bandit.rule is not None:  # a fork
            live = fast_path.calls(bandit)["deciding"]
        if x.shape == layout.shape and live is not None:
            return Decision(layout, _decide_one(bandit, live, x, available))
        rows = _many(bandit, checks.contexts(x, layout.n_features), available)
        return Decision(layout, rows[0] if x.ndim == 1 else rows)


def _decide_one(bandit: Bandit, live: Deciding, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Return a decided row (width,) for a context x (d,), by a compiled call (see `fast_path`)."""
    choose_one, layout, stats, _, settings, kind, _, _, stream = live
    [[number, floor]] = bandit.numbers(1)
    row = np.empty(layout.width)
    arm = choose_one(row, x, stats, available, settings, kind, number, floor, stream)
    if arm == rounds.NOT_FINITE:
        checks.contexts(x, bandit.n_features)
    if arm == rounds.STREAM_EMPTY:
        random_streams.refill(bandit)
        return _decide_one(bandit, (*live[:-1], bandit.stream), x, available)
    return row


def _many(bandit: Bandit, x: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Return decided rows (n, width) for contexts x (n, d)."""
    if len(x) == 0:
        raise ValueError("contexts must have at least one row; got none")
    numbers = bandit.numbers(len(x))
    return _all_or_none(bandit, len(x), lambda twin: _decide(twin, x, available, numbers))


def _all_or_none[T](bandit: Bandit, n: int, decide: Callable[[Bandit], T]) -> T:
    """Return n decisions, all or none. One is one compiled call; more are made on a fork."""
    if n == 1 and not bandit.belief.computes_when_asked:
        return decide(bandit)
    return _on_fork(bandit, decide)


@transactions.alone
def _on_fork[T](bandit: Bandit, decide: Callable[[Bandit], T]) -> T:
    twin = transactions.fork_to_decide(bandit)
    decisions = decide(twin)
    transactions.become(bandit, twin)
    return decisions


def _decide(
    bandit: Bandit, x: np.ndarray, available: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Return decided rows (n, width) for contexts x (n, …)."""
    rows, kind = describe(bandit, x, available, numbers)
    layout, done = bandit.layout, 0
    choose_many = (bandit.kernel or Kernel).functions.choose_many
    while done < len(rows):
        done = choose_many(
            rows, done, layout.n_columns, len(layout.arms), kind, numbers, bandit.stream
        )
        if done < len(rows):
            random_streams.refill(bandit)
    return rows


def _by_arm_features(bandit: Bandit, x: np.ndarray, available: np.ndarray, one: bool) -> Decision:
    """Choose arms for contexts x (n, K, d); `one`: return a decision for a single context."""
    if len(x) == 0:
        raise ValueError("contexts must have at least one decision's rows; got none")
    numbers = bandit.numbers(len(x))

    def decide(bandit: Bandit) -> Decision:
        decision = _by_joint_draws(bandit, x, available, numbers)
        if decision is None:
            decision = Decision(bandit.layout, _decide(bandit, x, available, numbers))
        return decision

    decision = _all_or_none(bandit, len(x), decide)
    rows, arm = decision.rows, decision.records["arm"].astype(np.int64)
    rows[:, : bandit.n_features] = x[np.arange(len(x)), arm]
    return Decision(bandit.layout, rows[0] if one else rows, decision.late)


def _by_joint_draws(
    twin: Bandit, x: np.ndarray, available: np.ndarray, params: np.ndarray
) -> Decision | None:
    """Return Thompson decisions by joint draws; probabilities are computed when first needed.

    None unless dependent normals or Student-t order the arms and no arm is new.
    """
    if twin.rule != THOMPSON or twin.belief.new.any():
        return None
    prediction = predicted(twin.belief, x)
    if (ranking := prediction.ranking()) is None:
        return None
    layout, arms, done = twin.layout, np.flatnonzero(available), 0
    comparison = Comparison(ranking.among(arms), *params.T)
    rows = np.empty((len(x), layout.width))
    put_moments(rows, layout.n_columns, available, prediction.mean, prediction.sd, np.nan)
    while done < len(rows):
        done = comparison.choose(rows, done, layout.n_columns, len(layout.arms), arms, twin.stream)
        if done < len(rows):
            random_streams.refill(twin)
    return Decision(layout, rows, (comparison, arms))


@transactions.alone
def means(bandit: Bandit, x: np.ndarray) -> np.ndarray:
    """Return posterior means (n, K) of the arms' mean rewards at contexts x (n, d)."""
    twin = transactions.fork_to_decide(bandit)
    blocks = [predicted(twin.belief, x[part]).mean for part in parts(twin.belief, x)]
    transactions.become(bandit, twin)
    return np.concatenate(blocks) if blocks else np.empty((0, len(bandit.arms)))


def posterior(bandit: Bandit, k: int) -> Any:
    """Return the posterior of arm k, with its rounds that the history keeps."""
    layout, history = bandit.layout, bandit.history
    rows = history.ordered() if bandit.of_arms else history.of_arm(k)
    log = layout.records(rows)
    roles = {"x": rows[:, : layout.n_features], "reward": log["reward"], "weight": log["weight"]}
    known = bandit.belief.posterior(k, roles)
    if bandit.encoder is not None and hasattr(known, "encoder"):
        known = replace(known, encoder=bandit.encoder)
    return known


@transactions.alone
def probabilities(bandit: Bandit, x: np.ndarray) -> np.ndarray:
    """Return each arm's probability (n, K) at contexts x (n, d), all treated as the next round."""
    twin, layout = transactions.fork_to_decide(bandit), bandit.layout
    now = bandit.numbers(1)[:1]
    twin.belief = bandit.belief.fork()
    rows, kind = describe(twin, x, bandit.all_arms, now, held=True)
    log = layout.records(rows)
    log["rule"] = kind
    log["number"], log["min_probability"] = now.T
    return Decision(layout, rows).probabilities


def describe(
    bandit: Bandit,
    x: np.ndarray,
    available: np.ndarray,
    params: np.ndarray,
    held: bool = False,
) -> tuple[np.ndarray, int]:
    """Return rows (n, width) with contexts x (n, d) and the arms' moments, and the rows' KIND.

    params: the rule's number and minimum probability, (n, 2) or (1, 2). held: treat all rows as the
    next round.
    """
    belief, layout, kind = bandit.belief, bandit.layout, TABULATED
    rows, t = np.empty((len(x), layout.width)), np.arange(len(x)) * (not held) + bandit.t + 1
    if not bandit.of_arms:  # with arm features, the chosen arm's are written later
        rows[:, : bandit.n_features] = x
    rows[:, bandit.n_features : layout.n_columns] = 1.0
    played = None if bandit.rule is None else fast_path.kind_played(bandit)
    if played is not None and (kernel := bandit.kernel):
        kernel.functions.describe_many(rows, kernel.arms, available, kernel.settings, played)
        return rows, played
    for part in parts(belief, x):
        param, new = (params if len(params) == 1 else params[part]), belief.new
        prediction = predicted(belief, x[part])
        kind, scale, last = _entries(bandit, prediction, available, new, param, t[part])
        if kind == TABULATED:
            floor = param[:, 1:]
            last = floor + (1.0 - available.sum() * floor) * last
        put_moments(rows[part], layout.n_columns, available, prediction.mean, scale, last)
        belief.decided(len(t[part]))
    return rows, kind


def _entries(
    bandit: Bandit, prediction: Prediction, available: np.ndarray, new: np.ndarray,
    params: np.ndarray, t: np.ndarray,
) -> tuple[int, np.ndarray, np.ndarray]:  # fmt: skip
    """Return the KIND of rows, and two arrays (n, K) that they keep beside the means.

    These are scales and degrees of freedom for a compiled rule, else sds and probabilities.
    """
    rule = bandit.rule
    if rule is not None and (entries := prediction.entries(rule)) is not None:
        scale, last = entries
        return rule, scale, np.where(new, -last, last)

    def among(old: np.ndarray) -> np.ndarray:
        if bandit.rule is None:
            return chosen(bandit.policy, prediction.among(old), t)  # a copy: policies may change it
        return best_of(prediction if old.all() else prediction.among(old), params[:, 0])

    return TABULATED, prediction.sd, shared(new, available, among)


def best_of(prediction: Prediction, alpha: np.ndarray) -> np.ndarray:
    """Return `prediction.best(alpha)` (n, K); raise ValueError unless they are probabilities."""
    what, shape = f"{type(prediction).__name__}.best", prediction.mean.shape
    p = floats(prediction.best(alpha), what)
    if p.shape != shape:
        raise ValueError(f"{what} must give {shape}; got {p.shape}")
    sums(p, what, slack=1e-6 * max(1, shape[1]))
    return p


def shared(
    new: np.ndarray, available: np.ndarray, among: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return probabilities (n, K) that give each available new arm 1/K and the others the rest.

    new, available: masks (K,). among(old): the probabilities (n, A) of the other arms among
    themselves, rows that sum to 1.
    """
    if not new.any() and available.all():
        return among(available)
    count, new = int(available.sum()), available & new
    old = available & ~new
    p = among(old) * (old.sum() / count) if old.any() else np.zeros((1, 0))
    out = np.zeros((len(p), new.size))
    out[:, new], out[:, old] = 1.0 / count, p
    return out
