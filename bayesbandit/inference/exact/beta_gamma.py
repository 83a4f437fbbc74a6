"""The posterior of one number: a beta probability, or a gamma rate."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

from bayesbandit.inference.draws import Moments, Planned
from bayesbandit.inference.exact.distributions import Exact


@dataclass(frozen=True)
class OneNumber(Exact):
    """v ~ v^{a−1} (1 − v)^{b−1} or v^{a−1} e^{−bv}, of the variable `name`.

    a, b > 0. log_evidence: log of the density of the rewards, all constants included; NaN where
    they were streamed. upper: the upper bound of the support. points: some values.
    """

    name: str
    a: float
    b: float
    log_evidence: float = math.nan

    upper: ClassVar[float]
    points: ClassVar[np.ndarray]

    @property
    def mean(self) -> float:
        return float(self.distribution.mean())

    @property
    def sd(self) -> float:
        return float(self.distribution.std())

    @property
    @abstractmethod
    def distribution(self) -> Any:
        """The same, of scipy.stats."""

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Return draws (size,)."""
        return np.asarray(self.distribution.rvs(size, random_state=rng))

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {self.name: self.draw(size, rng)}

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        return np.asarray(plan.outcomes.mean_reward(self.samples(plan, size, rng), x))

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        if plan.method.itself:
            return np.full(len(x), self.mean), np.full(len(x), self.sd)
        return super().moments(plan, x, rng)

    def closed(self, plan: Planned) -> dict[str, Moments]:
        return {self.name: (self.mean, self.sd)}

    def marginals(self, plan: Planned) -> dict[str, Any]:
        return {self.name: self.distribution}


@dataclass(frozen=True)
class Beta(OneNumber):
    """v ~ Beta(a, b)."""

    upper = 1.0
    points = np.array([0.5, 0.25, 0.7, 0.05])

    @property
    def log_volume(self) -> float:
        # ∫₀¹ v^{a−1} (1 − v)^{b−1} dv = B(a, b)
        return float(betaln(self.a, self.b))

    @property
    def distribution(self) -> Any:
        return stats.beta(self.a, self.b)


@dataclass(frozen=True)
class Gamma(OneNumber):
    """v ~ Gamma(a, b), of mean a/b."""

    upper = math.inf
    points = np.array([1.0, 2.0, 0.3, 7.0])

    @property
    def log_volume(self) -> float:
        # ∫₀^∞ v^{a−1} e^{−bv} dv = Γ(a)/b^a
        return float(gammaln(self.a) - self.a * math.log(self.b))

    @property
    def distribution(self) -> Any:
        return stats.gamma(self.a, scale=1.0 / self.b)
