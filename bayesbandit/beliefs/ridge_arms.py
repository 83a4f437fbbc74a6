"""Weighted ridge regressions of K arms as arrays: how they learn rows, forget and merge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from bayesbandit.beliefs import sums
from bayesbandit.beliefs.memory import MIN_SHARE
from bayesbandit.checks import Array
from bayesbandit.forms import Numbers, Records
from bayesbandit.kernels import arm as arm_numbers
from bayesbandit.kernels import fading, linear, scoring
from bayesbandit.kernels.rounds import update_many
from bayesbandit.runtime.compiling import interpreted, without


def with_prior(settings: Array, mean: Array, precision: Array) -> Array:
    """Return the settings with the prior θ ~ N(m, σ²Λ⁻¹), m (D,) and Λ (D, D), in place of λ."""
    arm_numbers.named(settings).penalised = 0.0
    root = cholesky(precision)  # Λ = R'R = U'DU with a unit diagonal of U, as kernels keep B
    U = root / np.diag(root)[:, None]
    return np.concatenate([settings, np.diag(root) ** 2, U @ mean, U.ravel()])


def new_arms(n_arms: int, settings: Array) -> Array:
    """Return the numbers of arms before any data, computed in Python, to avoid a compilation."""
    arms = np.empty((n_arms, arm_numbers.arm_width(settings)))
    for arm in arms:
        interpreted(linear.initialise)(arm, settings)
    return arms


def form(n_arms: int, width: int) -> Records:
    """Return the form of arms of so many numbers: σ² and the degrees of freedom may be infinite."""
    head = arm_numbers.HEAD_WIDTH
    parts = np.dtype([("head", "f8", (head,)), ("root", "f8", (width - head,))])
    return Records(parts, n_arms, {"head": Numbers(least=-np.inf, most=np.inf)})


class RidgeArms:
    """K independent weighted ridge regressions.

    arms (K, …): the numbers of each, which the kernels update in place. settings: those of all
    (`kernels/arm.py`).
    """

    def __init__(self, arms: Array, settings: Array) -> None:
        self.arms = arms
        self.settings = settings
        self.setting = arm_numbers.named(settings)

    @property
    def head(self) -> Any:
        """The heads of the arms (K,), by name (`kernels/arm.py`): a view."""
        return arm_numbers.heads(self.arms)

    @property
    def n_columns(self) -> int:
        """The number D of regressors, with a constant if there is one."""
        return int(self.setting.columns)

    def design(self, x: Array) -> Array:
        """Return the regressors (n, D): x (n, d), with a constant column if there is one."""
        if self.n_columns == x.shape[1]:
            return np.ascontiguousarray(x)
        return np.column_stack([x, np.ones(len(x))])

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Learn rows x (n, d), arm numbers, rewards and weights (n,).

        An arm with many of them (`sums.MIN_ROWS_TO_SUM`) learns their sums, as fast as matrices
        multiply. The result is that of one row at a time, to rounding, but λ by cross-validation
        and the average of normalised weights are settled at the end. Rows are learned one at a time
        where the scales of the columns differ so much that sums would lose digits.
        """
        rows = x, *map(np.ascontiguousarray, (arm, reward, weight))
        if len(x) >= sums.MIN_ROWS_TO_SUM and self.setting.walk == 0:
            left = sums.learn(self.arms, self.settings, *rows)
            rows = rows if left.all() else tuple(values[left] for values in rows)
        x, arm, reward, weight = rows
        update = without(update_many, *linear.unreached(self.settings))
        update(self.arms, self.design(x), arm, reward, weight, self.settings)

    def learn_at(self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Learn rows of ticks (n,), and forget until the latest.

        Rows of the past count by the share that has not faded, if it is at least 1e-30. Where
        coefficients walk, rows are learned in the order of their ticks, and late ones as of now.
        """
        if self.setting.walk > 0:
            order = np.argsort(tick, kind="stable")
            self.learn_scored(tick[order], x[order], arm[order], reward[order], weight[order])
            return
        fading.advance(self.arms, tick.max(initial=-np.inf), self.settings)
        share = self._share(tick, arm)
        left = share >= MIN_SHARE
        if not left.all():
            x, arm, reward, weight, share = (v[left] for v in (x, arm, reward, weight, share))
        self.count_left(arm, share)
        self.learn(x, arm, reward, share * weight)

    def learn_scored(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array
    ) -> Array:
        """Learn rows of ticks (n,), in order; return the log density (n,) of each reward before.

        It is NaN where nothing was known of the arm, or it was certain.
        """
        rows = tick, self.design(x), arm, reward, weight
        score = np.empty(len(x))
        learn = scoring.learn_scored
        learn(self.arms, self.settings, *map(np.ascontiguousarray, rows), score)
        return score

    def rebuild(
        self, k: int, x: Array, reward: Array, weight: Array, tick: Array | None = None
    ) -> None:
        """Refit arm k from rows x (n, d), rewards and weights (n,), and no others.

        tick: when the rows were decided (n,), if they fade.
        """
        arm = self.arms[k]
        rebuild = without(linear.rebuild, *linear.unreached(self.settings))
        z = self.design(x)
        if tick is None:
            rebuild(arm, z, reward, weight, self.settings)
            return
        head = arm_numbers.heads(arm)
        clock = float(head["clock"])
        share = self.share_of(tick, np.full(len(tick), k))
        rebuild(arm, z, reward, share * weight, self.settings)
        head["clock"] = clock
        head["n_left"] = share.sum()
        sums.renew(arm, self.settings)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rows: see `learn`."""
        for k in due:
            mine = arm == k
            self.rebuild(k, x[mine], reward[mine], weight[mine])
        linear.pool_noise(self.arms, self.settings)

    def absorb(self, other: RidgeArms) -> None:
        """Learn the rows that another's arms have learned, as if they had come next.

        The sums of its rows are added, and never its prior: so arms of parts of a log become those
        of the whole, to rounding, with cross-validation by the same folds. λ and the average of
        normalised weights are settled at the end. Where rows fade, the result is as of the later
        clock.
        """
        others = other.arms
        if self.setting.rate:
            others = others.copy()
            at_once = self.settings.copy()
            arm_numbers.named(at_once).slack = 0.0  # fading may not wait
            for both in zip(self.arms, others, strict=True):
                now = max(float(arm_numbers.heads(arm)["clock"]) for arm in both)
                for arm in both:
                    fading.advance(arm[None], now, at_once)
        for mine, its in zip(self.arms, others, strict=True):
            sums.merge(mine, its, self.settings)
        linear.pool_noise(self.arms, self.settings)

    # ---- forgetting ------------------------------------------------------------------------------

    def count_left(self, arm: Array, share: Array) -> None:
        """Add the shares (n,) of rows to what is left of their arms' rows."""
        self.head["n_left"] += np.bincount(arm, share, len(self.arms))

    def share_of(self, tick: Array, arm: Array) -> Array:
        """Return what is left of rows of these ticks (n,) and arm numbers, at least 1e-9."""
        return np.maximum(self._share(tick, arm), fading.MIN_ROWS_LEFT)

    def _share(self, tick: Array, arm: Array) -> Array:
        # e^(−ρ age), of the age at the clock of the arm
        return np.asarray(np.exp(self.setting.rate * (tick - self.head["clock"][arm])))
