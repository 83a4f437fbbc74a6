"""The exact linear belief: each arm a weighted ridge regression, updated one row at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bayesbandit.beliefs import sums
from bayesbandit.beliefs.base import Belief, Kernel
from bayesbandit.beliefs.linear_posterior import LinearPosterior, WeightedRows
from bayesbandit.beliefs.memory import GONE
from bayesbandit.checks import COUNT, integer
from bayesbandit.kernels import arm as layout
from bayesbandit.kernels import fading, scoring
from bayesbandit.kernels import linear as kernel
from bayesbandit.kernels.root import UNKNOWN
from bayesbandit.kernels.rounds import describe_many, update_many
from bayesbandit.kernels.row_layout import UCB, row_type
from bayesbandit.predictions import Joint, JointRows, LocationScale, product, scaled
from bayesbandit.runtime.compiling import interpreted, without
from bayesbandit.runtime.schema import demand

if TYPE_CHECKING:
    from bayesbandit.inference.plan import Plan

ENDLESS = 1e300  # bound of a belief's numbers: sums of a few stay finite
FAR = 1e150  # bound of a coefficient
SUMS = ["n", "sum_w", "sum_wrr", "loss", "sigma2", "residual", "left", "walked"]
DIVISORS = ["df", "lam", "w_bar"]

Array = np.ndarray


def aligned(rows: int, width: int) -> Array:
    """Return an uninitialised float64 array (rows, width) that begins at a cache line."""
    buffer = np.empty(rows * width + 8)
    start = -buffer.ctypes.data // 8 % 8
    return buffer[start : start + rows * width].reshape(rows, width)


class RidgeSettings(Protocol):
    """The part of `Ridge` that the linear belief needs."""

    @property
    def intercept(self) -> Any: ...

    @property
    def clock(self) -> Literal["rounds", "time"]: ...

    def settings(self, n_features: int, normalize: bool) -> Array:
        """Return the settings for the kernels (`kernels/arm.py`)."""
        ...


class LinearBelief(Belief, Kernel):
    """K independent weighted ridge regressions with their exact posteriors, as arrays.

    `arms` (K, …) has one row of numbers for each arm, which the kernels update in place. The
    properties below are views of its parts. plan: of a declared model.
    """

    plan: Plan | None = None

    def __init__(
        self, model: RidgeSettings, n_arms: int, n_features: int, normalize: bool = False,
        prior: tuple[Array, Array] | None = None,
    ) -> None:  # fmt: skip
        """Make the belief before any data.

        prior: m (D,) and Λ (D, D) of θ ~ N(m, σ²Λ⁻¹), which replaces the penalty λ.
        """
        self.model = model
        self.n_features = integer(n_features, "n_features", least=0 if model.intercept else 1)
        self.normalize = normalize
        self.settings = model.settings(n_features, normalize)
        if prior is not None:
            m, Lam = prior
            interpreted(layout.named)(self.settings).penalised = 0.0
            root = cholesky(Lam)
            d = np.diag(root) ** 2
            U = root / np.diag(root)[:, None]
            self.settings = np.concatenate([self.settings, d, U @ m, U.ravel()])
        is_moving = bool(interpreted(layout.is_moving)(self.settings))
        self.clock, self.computes_when_asked = model.clock if is_moving else None, is_moving
        self.setting = interpreted(layout.named)(self.settings)
        self.rate = float(self.setting.rate)
        # whether arms measure contexts from an origin of their own (`kernels/fading.py`)
        self.is_shifted = bool(interpreted(layout.is_shifted)(self.settings))
        self.arms = aligned(n_arms, layout.arm_width(self.settings))
        for arm in self.arms:
            self._begin(arm)

    def _begin(self, arm: Array) -> None:
        """Set an arm to the prior, in Python, to avoid a compilation."""
        interpreted(kernel.initialise)(arm, self.settings)

    @property
    def head(self) -> Any:
        """The heads of the arms (K,), by name (`kernels/arm.py`): a view."""
        return layout.heads(self.arms)

    def __repr__(self) -> str:
        return f"LinearBelief({self.model}, n_arms={len(self.arms)}, n_features={self.n_features})"

    @property
    def best(self) -> LinearBelief:
        """The belief that decides: itself, where there is one half-life."""
        return self

    @property
    def n(self) -> Array:
        """Observations of each arm (K,)."""
        return self.head["n"]

    @property
    def new(self) -> Array:
        return self.n == 0

    @property
    def kernel(self) -> Kernel:
        return self

    @property
    def n_columns(self) -> int:
        return layout.columns_of.py_func(self.settings)

    @property
    def sigma2(self) -> Array:
        """Noise variance σ² of each arm (K,); ∞ where it is estimated and there are no data."""
        return self.head["sigma2"]

    @property
    def lam(self) -> Array:
        """The penalty λ of each arm (K,)."""
        return self.head["lam"]

    def design(self, x: Array) -> Array:
        """Return the design (n, D): contexts (n, d), with a constant column if there is one."""
        if self.n_columns == x.shape[1]:
            return np.ascontiguousarray(x)
        return np.column_stack([x, np.ones(len(x))])

    def predict(self, x: Array) -> LocationScale:
        K, D = len(self.arms), self.n_columns
        kind = row_type(D, K)
        rows = np.empty((len(x), kind.itemsize // 8))
        log = rows.view(kind)[:, 0]
        log["x"] = self.design(x)
        describe_many(rows, self.arms, np.ones(K, dtype=np.bool_), self.settings, UCB)
        return LocationScale(log["mean"], log["scale"], np.abs(log["last"]))

    def predict_together(self, x: Array) -> JointRows:
        known = LinearBelief.posterior(self, 0)
        if (about := known.about) is not None:
            x = x - about.origin
            return JointRows(x, about.location, root_of(about.spread), known.df)
        return JointRows(x, known.location, root_of(known.spread), known.df)

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, precision weights (n,; None: 1).

        An arm with many of them (`sums.MANY`) learns their sums, as fast as matrices multiply. The
        result is that of one round at a time, to rounding, but λ by cross-validation and the
        average of normalised weights are settled at the end. Rounds are learned one at a time where
        the scales of the columns differ so much that sums would lose digits.
        """
        weight = np.ones(len(x)) if weight is None else weight
        rows = x, *map(np.ascontiguousarray, (arm, reward, weight))
        if len(x) >= sums.MANY and self.setting.walk == 0:
            left = sums.learn(self.arms, self.settings, *rows)
            rows = rows if left.all() else tuple(values[left] for values in rows)
        x, arm, reward, weight = rows
        learn = without(update_many, *kernel.unreached(self.settings))
        learn(self.arms, self.design(x), arm, reward, weight, self.settings)

    def update_scored(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> Array:
        """Learn as `update_at`, in order; return the log density (n,) of each reward before.

        It is NaN where nothing was known of the arm, or it was certain.
        """
        weight = np.ones(len(x)) if weight is None else weight
        rows = self.design(x), *map(np.ascontiguousarray, (arm, reward, weight))
        score = np.empty(len(x))
        scoring.learn_scored(self.arms, self.settings, np.ascontiguousarray(tick), *rows, score)
        return score

    def update_foretold(self, tick: Array, x: Array, arm: Array, reward: Array) -> Array:
        """Learn as `update_at`, in order; return each reward's error before it was learned, and the
        variance that was foretold (n, 2). The noise variance is a number."""
        rows = self.design(x), *map(np.ascontiguousarray, (arm, reward)), np.ones(len(x))
        out = np.empty((len(x), 2))
        scoring.learn_foretold(self.arms, self.settings, np.ascontiguousarray(tick), *rows, out)
        return out

    def update_chances(self, tick: Array, x: Array, arm: Array, happened: Array) -> Array:
        """Learn rows of a probit regression at these ticks, in order: 1 or 0 (n,), whether it
        happened. Return the log probability (n,) of each before it was learned."""
        rows = self.design(x), *map(np.ascontiguousarray, (arm, happened))
        out = np.empty(len(x))
        scoring.learn_chances(self.arms, self.settings, np.ascontiguousarray(tick), *rows, out)
        return out

    def absorb(self, other: Belief) -> None:
        """Learn the rounds that another belief has learned, as if they had come next.

        The sums of its rounds are added, and never its prior: so beliefs about parts of a log
        become the belief about the whole, to rounding, with cross-validation by the same folds. λ
        and the average of normalised weights are settled at the end.

        Where rounds fade, the result is as of the later clock.

        Raise ValueError unless both have the same settings and number of arms.
        """
        if not (
            isinstance(other, LinearBelief)
            and self.arms.shape == other.arms.shape
            and np.array_equal(self.settings, other.settings, equal_nan=True)
        ):
            raise ValueError(f"{self!r} absorbs a belief with the same settings; got {other!r}")
        if self.setting.walk > 0:
            raise ValueError(
                "coefficients that walk do not depend on sums of rounds, which merge: let one "
                "bandit learn all rounds, in their order, by bandit.update"
            )
        for mine, its in zip(self.arms, other.arms, strict=True):
            if self.rate:
                now = float(max(layout.heads(mine)["clock"], layout.heads(its)["clock"]))
                its = its.copy()
                for arm in (mine, its):
                    self._fade_to(now, arm)
            sums.merge(mine, its, self.settings)
        kernel.pool_noise(self.arms, self.settings)

    def _fade_to(self, tick: float, arm: Array) -> None:
        """Bring an arm to this tick, also if fading could wait."""
        head = layout.heads(arm)
        share = np.exp(self.rate * (head["clock"] - tick))
        head["clock"] = tick
        if head["n"] > 0 and share < 1.0:
            fading.fade(arm, share, self.settings, np.empty(kernel.scratch(self.settings)))

    def postpone(self, ticks: float) -> None:
        self.head["clock"] += ticks

    def advance(self, tick: float) -> None:
        fading.advance(self.arms, tick, self.settings)

    def update_at(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> None:
        """Learn rounds that were decided at ticks (n,).

        Those of the past count by the share that has not faded, if it is at least 1e-30. Where
        coefficients walk, rounds are learned in the order of their ticks, and late ones as of now.
        """
        if self.setting.walk > 0:
            order = np.argsort(tick, kind="stable")
            weight = None if weight is None else weight[order]
            self.update_scored(tick[order], x[order], arm[order], reward[order], weight)
            return
        self.advance(tick.max(initial=-np.inf))
        if self.rate == 0.0:
            self.update(x, arm, reward, weight)
            return
        share = self._share(tick, arm)
        if (share < GONE).any():
            left = np.flatnonzero(share >= GONE)
            weight = None if weight is None else weight[left]
            self.update_at(tick[left], x[left], arm[left], reward[left], weight)
            return
        weight = share if weight is None else share * weight
        if not self.normalize:
            self._count_left(arm, share)
            self.update(x, arm, reward, weight)
            return
        # the weights' average needs the rows that are left by then: of an arm's sums, or row by row
        many = np.bincount(arm, minlength=len(self.arms))[arm] >= sums.MANY
        self._count_left(arm[many], share[many])
        sums.learn(self.arms, self.settings, x, arm, reward, weight)
        for i in np.flatnonzero(~many)[:, None]:
            self._count_left(arm[i], share[i])
            self.update(x[i], arm[i], reward[i], weight[i])
        kernel.pool_noise(self.arms, self.settings)

    def _count_left(self, arm: Array, share: Array) -> None:
        """Add to what is left of the arms' rows."""
        self.head["left"] += np.bincount(arm, share, len(self.arms))

    def share_of(self, tick: Array, arm: Array) -> Array:
        """Return what is left of rows of these ticks (n,) and arm numbers, at least 1e-9."""
        return np.maximum(self._share(tick, arm), fading.FORGOTTEN)

    def _share(self, tick: Array, arm: Array) -> Array:
        return np.asarray(np.exp(self.rate * (tick - self.head["clock"][arm])))

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Refit the arms that are due, from all rounds: see `update`."""
        for k in due:
            mine = arm == k
            self.rebuild(k, self.design(x[mine]), reward[mine], weight[mine])
        kernel.pool_noise(self.arms, self.settings)

    def reweigh_at(
        self, tick: Array, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        for k in due:
            mine = np.flatnonzero(arm == k)
            share = self.share_of(tick[mine], np.full(len(mine), k))
            mine, share = mine[share > fading.FORGOTTEN], share[share > fading.FORGOTTEN]
            self.rebuild(k, self.design(x[mine]), reward[mine], weight[mine], share)
        kernel.pool_noise(self.arms, self.settings)

    def rebuild(
        self, k: int, z: Array, reward: Array, weight: Array, share: Array | None = None
    ) -> None:
        """Refit arm k from rows z (n, D), rewards and weights (n,), and no others.

        share: what is left of them (n,), if rows fade.
        """
        arm, rebuild = self.arms[k], without(kernel.rebuild, *kernel.unreached(self.settings))
        if share is None:
            rebuild(arm, z, reward, weight, self.settings)
            return
        head = layout.heads(arm)
        clock = float(head["clock"])
        rebuild(arm, z, reward, share * weight, self.settings)
        head["clock"], head["left"] = clock, share.sum()
        sums.renew(arm, self.settings)

    def coefficients(self, k: int) -> Array:
        """Return the posterior mean (D,) of arm k's coefficients, about its origin."""
        arm = layout.view(self.arms[k], self.n_columns)
        theta = solve_triangular(arm.U, arm.t, unit_diagonal=True)
        theta[-1] += arm.head.shift
        return np.asarray(theta)

    def inverse(self, k: int) -> Array:
        """Return B⁻¹ (D, D) of arm k, about its origin; ∞ where nothing is known."""
        arm = layout.view(self.arms[k], self.n_columns)
        half = solve_triangular(arm.U, np.eye(len(arm.d)), unit_diagonal=True) / np.sqrt(arm.d)
        P = half @ half.T
        return np.asarray(np.where(P > UNKNOWN, np.inf, P))

    def precision(self, k: int) -> Array:
        """Return B (D, D) of arm k, about its origin."""
        arm = layout.view(self.arms[k], self.n_columns)
        return np.asarray(arm.U.T @ (arm.d[:, None] * arm.U))

    def posterior(self, k: int, rows: dict[str, Array] | None = None) -> Any:
        """Return the posterior of arm k's coefficients."""
        arm = layout.view(self.arms[k], self.n_columns)
        P, location, weighted = self.inverse(k), self.coefficients(k), None
        origin = arm.origin[: self.n_features].copy() if self.is_shifted and self.n[k] else None
        if rows is not None and self.clock is None:
            weight = rows["weight"] / arm.head.w_bar
            x = rows["x"] if origin is None else rows["x"] - origin
            weighted = WeightedRows(self.design(x), rows["reward"], weight, P, int(arm.head.n))
        spread = scaled(P, arm.head.sigma2)
        known = location, spread, float(arm.head.df), self.n_features
        if origin is None:
            return LinearPosterior(*known, weighted=weighted)
        return LinearPosterior.from_origin(origin, *known, weighted)

    def learned(self, x: Array, arm: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        return self.design(x), np.ascontiguousarray(reward)

    def snapshot(self) -> Self:
        """Return a copy that can predict but not learn."""
        width = interpreted(layout.core_width)(self.n_columns)
        return self._with_arms(self.arms[:, :width].copy())

    def recall(self, state: dict[str, Array]) -> Self:
        return self._with_arms(state["arms"])

    def _with_arms(self, arms: Array) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), arms=arms)
        return twin

    def fork(self) -> Self:
        """Return a copy that may change while this belief stays as it is."""
        twin = object.__new__(type(self))
        twin.__setstate__(vars(self))
        return twin

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state, with a copy of the arms that begins at a cache line."""
        arms = aligned(*state["arms"].shape)
        arms[:] = state["arms"]
        vars(self).update(state, arms=arms)

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays and plain values, for `restore`."""
        return {"arms": self.arms}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise ValueError if the shape is another."""
        arms = state["arms"]
        if arms.shape != self.arms.shape:
            raise ValueError(f"arms of shape {arms.shape}, not {self.arms.shape}")
        self.arms[:] = arms

    def verify(self, total: int) -> None:
        head, n = self.head, self.n
        demand((n == np.floor(n)).all(), "its arms' rounds are no counts")
        df = layout.NAMES.index("df")  # the only number that may be infinite
        for part in (self.arms[:, :df], self.arms[:, df + 1 :]):  # views: no copy of the arms
            ends = np.array([part.min(axis=1, initial=0.0), part.max(axis=1, initial=0.0)])
            demand(not np.isnan(ends).any(), "its belief has NaN")
            demand((np.abs(ends[:, n > 0]) <= ENDLESS).all(), "its belief is not finite")
        for arm in self.arms:
            root = layout.view(arm, self.n_columns)
            demand((root.d > 0).all(), "its belief has a pivot of 0")
            demand((np.abs(root.t) <= FAR).all(), "its coefficients are too large")
        demand(all((head[name] >= 0).all() for name in SUMS), "its belief has a negative sum")
        demand(all((head[name] > 0).all() for name in DIVISORS), "its belief has a divisor of 0")
        clock = head["clock"]
        demand(((clock >= 0) & (clock <= COUNT)).all(), f"its clocks are {clock}")
        if self.rate > 0:
            left = head["left"][n > 0]
            most = n[n > 0] * np.exp(self.setting.slack) * (1 + 1e-9)
            demand(((left > 0) & (left <= most)).all(), "its rows have no share")

    def add_arm(self) -> None:
        """Add an arm about which nothing is known."""
        arms = aligned(len(self.arms) + 1, self.arms.shape[1])
        arms[:-1] = self.arms
        self._begin(arms[-1])
        kernel.pool_noise(arms, self.settings)
        self.arms = arms

    def remove_arm(self, k: int) -> None:
        """Remove arm k; later arms move up by one."""
        arms = aligned(len(self.arms) - 1, self.arms.shape[1])
        arms[:] = np.delete(self.arms, k, axis=0)
        kernel.pool_noise(arms, self.settings)
        self.arms = arms


def together(z: Array, offset: Array | float, known: LinearPosterior, n: int, m: int) -> Joint:
    """Return the joint prediction (n, m) of mean rewards z θ + b of n · m rows that share θ.

    z (n m, D), offset b (n m,) or a number, known: the posterior of θ.
    """
    mean = product(z, known.location[:, None])[:, 0] + offset
    root = product(z, root_of(known.spread))
    return Joint(mean.reshape(n, m), root.reshape(n, m, -1), known.df)


def root_of(spread: Array) -> Array:
    """Return R with RR' = spread (D, D), which may be singular."""
    try:
        return np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        variance, axes = np.linalg.eigh(spread)
        return axes * np.sqrt(np.maximum(variance, 0.0))
