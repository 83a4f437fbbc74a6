"""The settings of a weighted ridge regression of each arm's rewards: `Ridge`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayesbandit.beliefs.memory import Memory
from bayesbandit.beliefs.regressions import FeatureMap, Regressions
from bayesbandit.checks import SETTING_BOUNDS, Array, integer, number, one_of
from bayesbandit.kernels import arm as arm_numbers
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr
from bayesbandit.schedule import Schedule

RIDGE_CANDIDATES = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
VARIANCE_RULES = {
    "empirical_bayes": arm_numbers.EMPIRICAL_BAYES,
    "rss/n": arm_numbers.RSS_N,
    "rss": arm_numbers.RSS,
    "nig": arm_numbers.NIG,
}
MIN_VARIANCE = 1e-6  # the default least σ² of "rss/n" and "rss"


@savable
@dataclass(frozen=True)
class Ridge:
    """Weighted ridge regression of an arm's rewards: B = X'WX + λI, θ = B⁻¹X'Wr, V(θ) = σ² B⁻¹.

    ridge: λ, from 1e-100 to 1e100, or "cv". "cv" chooses λ from `grid` by exact cross-validation
        with `folds` folds. An arm's rows go to the folds in turn; a tie goes to the larger λ.
    grid, folds: the values of λ, and the number of folds, of "cv".
    variance: how σ² is estimated, or a number if it is known.
        "empirical_bayes" is (RSS + ν κ u s²)/n, where s² is the mean penalised squared residual of
        all arms, κ the kurtosis of all rewards and u ≤ 1 the share of their variance that the fit
        leaves. It is the posterior mean under σ² ~ InverseGamma(1, ν κ u s²/2), a prior learned
        from all arms. Rescaling the rewards changes no decision, and equal first rewards do not
        make an arm certain, also where rewards are rare.
        "rss/n" is the weighted residual sum of squares over the number of rows.
        "rss" is that sum without the division, as in the pseudocode of the paper's Algorithms 1 and
        2. It never shrinks.
        "nig" is the normal-inverse-gamma posterior (Student-t) under θ | σ² ~ N(0, σ²/λ) and
        σ² ~ InverseGamma(shape, scale), given by `prior`. An unpenalised intercept has a flat prior
        and costs no degree of freedom.
    prior: shape and scale of the InverseGamma prior of σ², of "nig".
    prior_rows: ν of "empirical_bayes": for how many rows its prior stands where rewards take two
        values equally often (κ = 1). It stands for more where they are rare or have heavy tails.
    intercept: a constant column, penalised like the rest (True), "unpenalised", or none (False).
        "unpenalised" takes up any offset of the contexts and the rewards: adding a number to a
        column changes no prediction, and timestamps or years keep their digits.
    min_variance: the least σ² if it is estimated from residuals. The default is 0 for
        "empirical_bayes". For "rss/n" and "rss" it is 1e-6, so that a perfect first fit does not
        lock an arm out.
    half_life: how long until a row counts half; None: it counts as long as the bandit lives. X'WX,
        X'Wr, the folds and the noise scale fade, the penalty λ stays. So an arm without new rewards
        returns to the prior. An arm with less than 1e-9 rows left is new again. Beyond 32
        columns fading waits until 5 % are due (`refit_every`: another share).
        "auto" keeps four beliefs: by half-lives of 2,000, 500 and 125 rounds, and without one. The
        most probable one decides, by the density that each gave every reward before it learned it
        (`beliefs/half_lives.py`). It costs four times the memory and time.
    drift: the variance q of each coefficient's step in a tick, for rewards whose coefficients walk
        at random: Cov(θ) becomes Cov(θ) + qI (the Kalman filter). None or 0: they stand still.
        Exact if the noise is known; otherwise the current estimate of σ² is used, which does not
        fade. The prior is that of an arm's first reward: it does not grow before.
    clock: what ticks. "rounds" are the bandit's contexts decided and rows learned by `update`.
        "time" is the clock on the wall; half_life is then in seconds, or a text as "7d" or "12h",
        and drift is a second's. A reward that is late counts as of its decision.
    refit_every: when λ ("cv") and the average of normalised weights are updated. An int is every m
        rows of an arm; a float is growth of the rows by a share (0.05 = 5 %). None: every row up to
        32 columns, and growth by 5 % beyond. A batch with 1,000 rows of an arm ends with an update.
    """

    __repr__ = settings_repr

    ridge: float | Literal["cv"] = 1.0
    variance: float | Literal["empirical_bayes", "rss/n", "rss", "nig"] = "empirical_bayes"
    intercept: bool | Literal["unpenalised"] = True
    min_variance: float | None = None
    grid: tuple[float, ...] = RIDGE_CANDIDATES
    folds: int = 5
    refit_every: int | float | None = None
    prior: tuple[float, float] = (1.0, 1.0)
    prior_rows: float = 2.0
    half_life: float | str | None = None  # a text is "auto", or a time
    drift: float | None = None
    clock: Literal["rounds", "time"] = "rounds"

    def __post_init__(self) -> None:
        if isinstance(self.ridge, str):
            one_of(self.ridge, "ridge, where it is not a number > 0,", ("cv",))
        else:
            number(self.ridge, "ridge", above=0, **SETTING_BOUNDS)
        if isinstance(self.variance, str):
            one_of(self.variance, "variance", tuple(VARIANCE_RULES))
        else:
            number(self.variance, "a known variance", above=0, **SETTING_BOUNDS)
        one_of(self.intercept, "intercept", (True, False, "unpenalised"))
        if self.min_variance is not None:
            number(self.min_variance, "min_variance", least=0, largest=SETTING_BOUNDS["largest"])
        number(self.prior_rows, "prior_rows", above=0, **SETTING_BOUNDS)
        if isinstance(self.grid, str) or not isinstance(self.grid, Iterable):
            raise ValueError(f"grid must be a sequence of numbers > 0; got {self.grid!r}")
        grid = tuple(
            number(lam, "each λ of the grid", above=0, **SETTING_BOUNDS) for lam in self.grid
        )
        if not grid:
            raise ValueError("the grid of λ must not be empty")
        object.__setattr__(self, "grid", grid)
        integer(self.folds, "folds", least=2)
        if self.refit_every is not None:
            Schedule(self.refit_every)
        if not isinstance(self.prior, Sequence | np.ndarray) or len(self.prior) != 2:
            raise ValueError(f"prior must be a pair (shape, scale); got {self.prior!r}")
        named = zip(("prior shape", "prior scale"), self.prior, strict=True)
        prior = tuple(number(value, name, above=0, **SETTING_BOUNDS) for name, value in named)
        object.__setattr__(self, "prior", prior)
        _ = self.memory  # which raises ValueError if it is not valid
        if self.half_life is not None and self.variance == "rss":
            raise ValueError(
                'variance="rss" is a sum that never shrinks, and a half_life would make it '
                'shrink: variance must be "empirical_bayes", "rss/n", "nig" or a number'
            )
        if self.drift and (self.ridge == "cv" or self.intercept == "unpenalised"):
            raise ValueError(
                "drift needs a prior of all coefficients: ridge must be a number, and intercept "
                f"True or False; got ridge={self.ridge!r}, intercept={self.intercept!r}"
            )

    @property
    def memory(self) -> Memory:
        """How long a row counts, or how its coefficients walk."""
        return Memory(self.half_life, self.clock, self.drift)

    @property
    def constant_penalty(self) -> float:
        """λ, or the least that it can be; 0 if there is no constant, or it is not penalised."""
        if self.intercept is not True:
            return 0.0
        return min(self.grid) if isinstance(self.ridge, str) else self.ridge

    def settings(self, n_features: int, normalize: bool, memory: Memory) -> Array:
        """Return the settings for the kernels (`kernels/arm.py`), with a memory in place of its own
        half-life, clock and drift."""
        D = n_features + bool(self.intercept)
        if isinstance(self.variance, str):
            rule = VARIANCE_RULES[self.variance]
            value = self.prior_rows
        else:
            rule = arm_numbers.KNOWN_SIGMA2
            value = float(self.variance)
        least = self.min_variance
        if least is None:
            least = 0.0 if rule == arm_numbers.EMPIRICAL_BAYES else MIN_VARIANCE
        cv = self.ridge == "cv"
        refit = self.refit_every
        if refit is None:
            refit = 1 if D <= 32 else 0.05
        grid = sorted(self.grid, reverse=True) if cv else [float(self.ridge)]
        share = refit if isinstance(refit, float) else 0.0 if D <= 32 else 0.05
        has_number = rule in (arm_numbers.EMPIRICAL_BAYES, arm_numbers.KNOWN_SIGMA2)
        shape, scale = self.prior
        return arm_numbers.settings_of(
            grid,
            columns=D,
            penalised=n_features if self.intercept == "unpenalised" else D,
            variance=rule,
            noise_parameter=value if has_number else math.nan,
            min_variance=least,
            prior_shape=shape,
            prior_scale=scale,
            normalize=normalize,
            schedule=-refit if isinstance(refit, float) else refit,
            folds=self.folds if cv else 0,
            rate=memory.rate,
            slack=math.log1p(share),
            walk=memory.drift or 0.0,
        )

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> Regressions:
        """Return the belief about `n_arms` arms before any data.

        normalize: rescale each arm's weights to average 1. seed: not used.
        """
        features = FeatureMap(self, n_features)
        return Regressions(features, n_arms, n_features, normalize, memory=self.memory)
