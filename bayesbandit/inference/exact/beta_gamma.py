"""The posterior of one number: a beta probability, or a gamma rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

from bayesbandit.checks import Array
from bayesbandit.inference.draws import Moments
from bayesbandit.inference.exact.distributions import Exact

if TYPE_CHECKING:
    from bayesbandit.inference.plan import Plan


@dataclass(frozen=True)
class OneNumber(Exact):
    """v ~ v^{a−1} (1 − v)^{b−1} or v^{a−1} e^{−bv}, of the variable `name`.

    is_beta: whether it is the first of the two, a Beta(a, b), and not a Gamma(a, b) of mean a/b.
    a, b > 0. log_evidence: log of the density of the rewards, all constants included; NaN where
    they were streamed.
    """

    name: str
    is_beta: bool
    a: float
    b: float
    log_evidence: float = math.nan

    @property
    def mean(self) -> float:
        return float(self.distribution.mean())

    @property
    def sd(self) -> float:
        return float(self.distribution.std())

    @property
    def distribution(self) -> Any:
        """The same, of scipy.stats."""
        if self.is_beta:
            return stats.beta(self.a, self.b)
        return stats.gamma(self.a, scale=1.0 / self.b)

    @property
    def log_volume(self) -> float:
        if self.is_beta:  # ∫₀¹ v^{a−1} (1 − v)^{b−1} dv = B(a, b)
            return float(betaln(self.a, self.b))
        # ∫₀^∞ v^{a−1} e^{−bv} dv = Γ(a)/b^a
        return float(gammaln(self.a) - self.a * math.log(self.b))

    def samples(self, plan: Plan, size: int, rng: np.random.Generator) -> dict[str, Array]:
        return {self.name: np.asarray(self.distribution.rvs(size, random_state=rng))}

    def moments(self, plan: Plan, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        if plan.method.itself:
            return np.full(len(x), self.mean), np.full(len(x), self.sd)
        return super().moments(plan, x, rng)

    def closed(self, plan: Plan) -> dict[str, Moments]:
        return {self.name: (self.mean, self.sd)}

    def marginals(self, plan: Plan) -> dict[str, Any]:
        return {self.name: self.distribution}
