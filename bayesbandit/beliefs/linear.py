"""`Ridge`: a weighted ridge regression of each arm's rewards, and its settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.beliefs.linear_belief import LinearBelief
from bayesbandit.checks import SIZES, integer, number, one_of
from bayesbandit.kernels import ridge_state
from bayesbandit.runtime.savable import savable
from bayesbandit.schedule import Schedule

LAMBDAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
RULES = {
    "empirical_bayes": ridge_state.EMPIRICAL_BAYES,
    "rss/n": ridge_state.RSS_N,
    "rss": ridge_state.RSS,
    "nig": ridge_state.NIG,
}
TINY = 1e-6  # the floor under σ² of "rss/n" and "rss", where none is given
REFRESH = 2000  # rank-one updates between two factorisations; keeps the drift below 1e-8


@savable
@dataclass(frozen=True)
class Ridge:
    """Weighted ridge regression of an arm's rewards: B = X'WX + λI, θ = B⁻¹X'Wr, V(θ) = σ² B⁻¹.

    ridge: λ, from 1e-100 to 1e100, or "cv": chosen from `grid` by exact `folds`-fold
        cross-validation (an arm's rows go to the folds in turn; a tie goes to the larger λ).
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
            number(self.ridge, "ridge", above=0, **SIZES)
        if isinstance(self.variance, str):
            one_of(self.variance, "variance", tuple(RULES))
        else:
            number(self.variance, "a known variance", above=0, **SIZES)
        one_of(self.intercept, "intercept", (True, False, "unpenalised"))
        if self.floor is not None:
            number(self.floor, "floor", least=0, largest=SIZES["largest"])
        number(self.prior_rows, "prior_rows", above=0, **SIZES)
        if isinstance(self.grid, str) or not isinstance(self.grid, Iterable):
            raise ValueError(f"grid must be a sequence of numbers > 0; got {self.grid!r}")
        grid = tuple(number(lam, "each λ of the grid", above=0, **SIZES) for lam in self.grid)
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
                number(shape, "prior shape", above=0, **SIZES),
                number(scale, "prior scale", above=0, **SIZES),
            ),
        )

    def n_columns(self, n_features: int) -> int:
        """Columns of the design: the features and the constant, where there is one."""
        return n_features + bool(self.intercept)

    def settings(self, n_features: int, normalize: bool) -> np.ndarray:
        """Return what the kernels take (kernels/ridge_state.py)."""
        D = self.n_columns(n_features)
        if isinstance(self.variance, str):
            rule, value = RULES[self.variance], self.prior_rows
        else:
            rule, value = ridge_state.KNOWN_SIGMA2, float(self.variance)
        floor = self.floor
        if floor is None:
            floor = 0.0 if rule == ridge_state.EMPIRICAL_BAYES else TINY
        cv = self.ridge == "cv"
        refit = self.refit_every
        if refit is None:
            refit = REFRESH if not (cv or normalize) else 1 if D <= 32 else 0.05
        grid = sorted(self.grid, reverse=True) if cv else [float(self.ridge)]
        taken = rule in (ridge_state.EMPIRICAL_BAYES, ridge_state.KNOWN_SIGMA2)
        shape, scale = self.prior
        return ridge_state.settings_of(
            grid,
            columns=D,
            penalised=n_features if self.intercept == "unpenalised" else D,
            variance=rule,
            number=value if taken else math.nan,
            floor=floor,
            shape=shape,
            scale=scale,
            normalize=normalize,
            schedule=-refit if isinstance(refit, float) else refit,
            folds=self.folds if cv else 0,
        )

    def nbytes(self, n_arms: int, n_features: int) -> int:
        """Return the bytes that the belief takes before any data."""
        folds = self.folds if self.ridge == "cv" else 0
        return 8 * n_arms * ridge_state.arm_width(self.n_columns(n_features), folds)

    def belief(
        self, n_arms: int, n_features: int, normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> LinearBelief:  # fmt: skip
        """The belief about `n_arms` arms before any data; `normalize` scales an arm's weights to
        mean 1. It has no use for a seed."""
        return LinearBelief(self, n_arms, n_features, normalize)
