"""The exact linear belief: each arm a weighted ridge regression, updated one row at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, Snapshot
from bayesbandit.beliefs.linear_posterior import LinearPosterior, LinearSnapshot
from bayesbandit.checks import integer, number, one_of
from bayesbandit.kernels import linear as kernel
from bayesbandit.kernels.best_arm import best_of_location_scale
from bayesbandit.kernels.rounds import describe_many, update_many
from bayesbandit.kernels.rules import HUGE, spread
from bayesbandit.schedule import Schedule

MOST = 1e100  # the greatest setting: a square of the largest reward
LAMBDAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
RULES = {
    "empirical_bayes": kernel.EMPIRICAL_BAYES,
    "rss/n": kernel.RSS_N,
    "rss": kernel.RSS,
    "nig": kernel.NIG,
}
TINY = 1e-6  # the floor under σ² of "rss/n" and "rss", where none is given
REFRESH = 2000  # rank-one updates between two factorisations; keeps the drift below 1e-8


@dataclass(frozen=True)
class Ridge:
    """Weighted ridge regression of an arm's rewards: B = X'WX + λI, θ = B⁻¹X'Wr, V(θ) = σ² B⁻¹.

    ridge: λ > 0, or "cv": chosen from `grid` by exact `folds`-fold cross-validation (an arm's rows
        go to the folds in turn; a tie goes to the larger λ).
    variance: how σ² comes about. "rss/n": weighted residual sum of squares over the number of
        rows; "rss": without the division, the paper's Algorithms 1 and 2 to the letter (it never
        shrinks); "empirical_bayes": (RSS + ν s²)/n, with s² the mean penalised squared residual of
        all arms' rows: the posterior mean under a prior learned from all arms,
        σ² ~ InverseGamma(1, ν s²/2), which knows no units and lets no arm be certain because its
        first rewards were alike; "nig": the normal-inverse-gamma posterior (Student-t) under
        θ | σ² ~ N(0, σ²/λ), σ² ~ InverseGamma(shape, scale) given by `prior` (an unpenalised
        intercept is its limit and costs no degree of freedom); a number: known.
    prior_rows: ν of "empirical_bayes".
    intercept: a constant column, penalised like the rest (True), "unpenalised", or none (False).
    floor: the least σ² where it is estimated from residuals; by default 1e-6 of "rss/n" and "rss",
        so that a perfect first fit does not lock an arm out, and 0 of "empirical_bayes".
    refit_every: when λ (and the weights' normalisation) is settled and B factorised anew: every m
        rows of an arm (an int), or each time they have grown by a share (a float, .05 = 5 %). None:
        with "cv" or normalised weights at every row up to 32 columns and at growth by 5 % beyond,
        and else every 2,000 rows, which bounds rounding errors only.
    """

    ridge: float | Literal["cv"] = 1.0
    variance: float | Literal["empirical_bayes", "rss/n", "rss", "nig"] = "empirical_bayes"
    intercept: bool | Literal["unpenalised"] = True
    floor: float | None = None
    grid: tuple[float, ...] = LAMBDAS
    folds: int = 5
    refit_every: int | float | None = None
    prior: tuple[float, float] = (1.0, 1.0)
    prior_rows: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.ridge, str):
            one_of(self.ridge, "ridge, where it is not a number > 0,", ("cv",))
        else:
            number(self.ridge, "ridge", above=0, largest=MOST)
        if isinstance(self.variance, str):
            one_of(self.variance, "variance", tuple(RULES))
        else:
            number(self.variance, "a known variance", above=0, largest=MOST)
        one_of(self.intercept, "intercept", (True, False, "unpenalised"))
        if self.floor is not None:
            number(self.floor, "floor", least=0, largest=MOST)
        number(self.prior_rows, "prior_rows", above=0, largest=MOST)
        if isinstance(self.grid, str) or not isinstance(self.grid, Iterable):
            raise ValueError(f"grid must be a sequence of numbers > 0; got {self.grid!r}")
        grid = tuple(number(lam, "each λ of the grid", above=0, largest=MOST) for lam in self.grid)
        if not grid:
            raise ValueError("the grid of λ must not be empty")
        object.__setattr__(self, "grid", grid)
        integer(self.folds, "folds", least=2)
        if self.refit_every is not None:
            Schedule(self.refit_every)
        if not isinstance(self.prior, Sequence | np.ndarray) or len(self.prior) != 2:
            raise ValueError(f"prior must be a pair (shape, scale); got {self.prior!r}")
        shape, scale = self.prior
        object.__setattr__(
            self,
            "prior",
            (
                number(shape, "prior shape", above=0, largest=MOST),
                number(scale, "prior scale", above=0, largest=MOST),
            ),
        )

    def n_columns(self, n_features: int) -> int:
        """Columns of the design: the features and the constant, where there is one."""
        return n_features + bool(self.intercept)

    def settings(self, n_features: int, normalize: bool) -> np.ndarray:
        """What the kernels take, as one array (kernels/linear.py says what stands where)."""
        D = self.n_columns(n_features)
        if isinstance(self.variance, str):
            rule, value = RULES[self.variance], self.prior_rows
        else:
            rule, value = kernel.KNOWN_SIGMA2, float(self.variance)
        floor = self.floor
        if floor is None:
            floor = 0.0 if rule == kernel.EMPIRICAL_BAYES else TINY
        cv = self.ridge == "cv"
        refit = self.refit_every
        if refit is None:
            refit = REFRESH if not (cv or normalize) else 1 if D <= 32 else 0.05
        grid = sorted(self.grid, reverse=True) if cv else [float(self.ridge)]
        return np.array([
            D, n_features if self.intercept == "unpenalised" else D, rule,
            value if rule in (kernel.EMPIRICAL_BAYES, kernel.KNOWN_SIGMA2) else math.nan,
            floor, *self.prior, float(normalize), -refit if isinstance(refit, float) else refit,
            self.folds if cv else 0, *grid,
        ])  # fmt: skip

    def belief(
        self, n_arms: int, n_features: int, normalize: bool = False, seed: Any = None
    ) -> LinearBelief:
        """The belief about `n_arms` arms before any data; `normalize` scales an arm's weights to
        mean 1. It has no use for a seed."""
        return LinearBelief(self, n_arms, n_features, normalize)


def aligned(rows: int, width: int) -> np.ndarray:
    """An uninitialised float64 array (rows, width) that begins a cache line."""
    buffer = np.empty(rows * width + 8)
    start = -buffer.ctypes.data // 8 % 8
    return buffer[start : start + rows * width].reshape(rows, width)


class LinearBelief(Belief):
    """K independent weighted ridge regressions with their exact posteriors, as arrays.

    `arms` (K, …) holds one row of numbers an arm, updated in place by the kernels; the views below
    name its parts.
    """

    compiled = True  # the kernels play it by `arms` and `settings`
    streams = True
    tabulates = False  # the arms are independent normals, or Student-t

    def __init__(
        self, model: Ridge, n_arms: int, n_features: int, normalize: bool = False,
        prior: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        """prior: m (D,) and Λ (D, D) of θ ~ N(m, σ²Λ⁻¹), in the place of the penalty λ."""
        self.model = model
        self.n_features = integer(n_features, "n_features", least=0 if model.intercept else 1)
        self.normalize = normalize
        self.settings = model.settings(n_features, normalize)
        if prior is not None:
            m, Lam = prior
            self.settings[kernel.PENALISED] = 0.0
            parts = self.settings, Lam.ravel(), Lam @ m, [m @ Lam @ m]
            self.settings = np.concatenate(parts)
        folds = int(self.settings[kernel.FOLDS])
        self.arms = aligned(n_arms, kernel.arm_width(self.n_columns, folds))
        for arm in self.arms:
            kernel.initialise(arm, self.settings)

    def __repr__(self) -> str:
        return f"LinearBelief({self.model}, n_arms={len(self.arms)}, n_features={self.n_features})"

    @property
    def n(self) -> np.ndarray:  # type: ignore[override]
        """Observations of each arm (K,)."""
        return self.arms[:, kernel.N]

    @property
    def n_columns(self) -> int:
        return int(self.settings[kernel.D_])

    @property
    def sigma2(self) -> np.ndarray:
        """Noise variance σ² of each arm (K,); ∞ where it is estimated and there are no data."""
        return self.arms[:, kernel.SIGMA2]

    @property
    def lam(self) -> np.ndarray:
        """The penalty λ of each arm (K,)."""
        return self.arms[:, kernel.LAM]

    def design(self, x: np.ndarray) -> np.ndarray:
        """Contexts (n, d) with their constant column, where there is one: (n, D)."""
        if self.n_columns == x.shape[1]:
            return np.ascontiguousarray(x)
        return np.column_stack([x, np.ones(len(x))])

    def location_scale(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, scales and degrees of freedom of the mean rewards at x (n, d): (n, K) each."""
        K, D = len(self.arms), self.n_columns
        rows = np.empty((len(x), D + 3 * K))
        rows[:, :D] = self.design(x)
        describe_many(rows, self.arms, np.ones(K, dtype=np.bool_), self.settings)
        mean, scale, df = rows[:, D : D + K], rows[:, D + K : D + 2 * K], rows[:, D + 2 * K :]
        return mean, scale, np.abs(df)

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        """Fill the constant column and the available arms' moments into rows (n, width) of
        contexts."""
        rows[:, self.n_features : self.n_columns] = 1.0
        describe_many(rows, self.arms, available, self.settings)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Means of the mean rewards at x (n, d): (n, K)."""
        theta = self.arms[:, kernel.HEAD : kernel.HEAD + self.n_columns]
        return self.design(x) @ theta.T

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the mean rewards at x (n, d): (n, K) each."""
        mean, scale, df = self.location_scale(x)
        return mean, spread(scale, df)

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        every = np.ones(len(self.arms), np.bool_) if available is None else available
        which = np.flatnonzero(every).tolist()
        return np.stack([self.posterior(k).draw(x, size, rng) for k in which], axis=2)

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        """P(arm has the largest such draw) at x (n, d), α a number or (n,): (n, K), or (n, A) among
        the `available`."""
        mean, scale, df = self.location_scale(x)
        scale = np.reshape(alpha, (-1, 1)) * np.minimum(scale, HUGE)
        which = slice(None) if available is None else available
        return best_of_location_scale(mean[:, which], scale[:, which], df[:, which])

    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        """Rounds x (n, d), arm indices (n,), rewards (n,), precision weights (n,; None: 1)."""
        weight = np.ones(len(x)) if weight is None else weight
        arm, reward, weight = map(np.ascontiguousarray, (arm, reward, weight))
        update_many(self.arms, self.design(x), arm, reward, weight, self.settings)

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
        """The arms that are due afresh, from all rows: see `update`."""
        for k in due:
            mine = arm == k
            z = self.design(x[mine])
            kernel.rebuild(self.arms[k], z, reward[mine], weight[mine], self.settings)
        kernel.pool_noise(self.arms, self.settings)

    def posterior(self, k: int, rows: dict[str, np.ndarray] | None = None) -> Any:
        """What is known of arm k's coefficients."""
        D, arm = self.n_columns, self.arms[k]
        P, sigma2 = kernel.matrix(kernel.P_of(arm, D), D)[:, :D], arm[kernel.SIGMA2]
        return LinearPosterior(
            kernel.theta_of(arm, D).copy(),
            np.multiply(P, sigma2, where=P != 0.0, out=np.zeros_like(P)),  # ∞ on the diagonal alone
            float(arm[kernel.DF]),
            self.n_features,
        )

    def regression(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What `update_many` takes for these rounds: regressors and rewards, arms and settings."""
        return self.design(x), np.ascontiguousarray(reward), self.arms, self.settings

    def snapshot(self) -> Snapshot:
        core = kernel.core_width(self.n_columns)
        return LinearSnapshot(self.arms[:, :core].copy(), self.settings)

    def recall(self, state: dict[str, np.ndarray]) -> Snapshot:
        return LinearSnapshot(state["arms"], self.settings)

    def fork(self) -> Self:
        """What is known now, to be gone on with while this stays as it is."""
        twin = object.__new__(type(self))
        twin.__setstate__(vars(self))
        return twin

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arms of its own, which begin a cache line wherever those of a copy or a pickle do."""
        arms = aligned(*state["arms"].shape)
        arms[:] = state["arms"]
        vars(self).update(state, arms=arms)

    def state(self) -> dict[str, Any]:
        """All that is known, as arrays and plain values."""
        return {"arms": self.arms}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        if state["arms"].shape != self.arms.shape:
            raise ValueError(f"arms of shape {state['arms'].shape}, not {self.arms.shape}")
        self.arms[:] = state["arms"]

    def add_arm(self) -> None:
        """One more arm, about which nothing is known."""
        arms = aligned(len(self.arms) + 1, self.arms.shape[1])
        arms[:-1] = self.arms
        kernel.initialise(arms[-1], self.settings)
        kernel.pool_noise(arms, self.settings)
        self.arms = arms

    def remove_arm(self, k: int) -> None:
        """Forget arm k; those behind it move up."""
        arms = aligned(len(self.arms) - 1, self.arms.shape[1])
        arms[:] = np.delete(self.arms, k, axis=0)
        kernel.pool_noise(arms, self.settings)
        self.arms = arms
