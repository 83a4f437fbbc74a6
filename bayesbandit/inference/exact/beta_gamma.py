"""The posteriors of one number: a probability that is beta, a rate that is gamma."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, gammaln
from scipy.stats import beta, gamma

from bayesbandit.inference.draws import Diagnostics, Moments, Planned, moments
from bayesbandit.inference.posterior_protocol import DRAWS


@dataclass(frozen=True)
class OneNumber(ABC):
    """v ~ v^{a−1} (1 − v)^{b−1} or v^{a−1} e^{−bv}, of the variable `name`.

    a, b > 0. log_evidence: log of the density of the rewards, all constants included; NaN where
    they were streamed.
    """

    name: str
    a: float
    b: float
    log_evidence: float = math.nan

    diagnostics: ClassVar[Diagnostics] = Diagnostics({}, {})
    stats: ClassVar[Mapping[str, np.ndarray]] = {}

    @property
    @abstractmethod
    def mean(self) -> float: ...

    @property
    @abstractmethod
    def sd(self) -> float: ...

    @property
    @abstractmethod
    def log_volume(self) -> float:
        """log of the integral over the support of the density without its constant."""

    @property
    @abstractmethod
    def distribution(self) -> Any:
        """The same, of scipy.stats."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (size,)."""

    @abstractmethod
    def log_kernel(self, v: np.ndarray) -> np.ndarray:
        """The log density without its constant."""

    @property
    def evidence(self) -> float | None:
        """Log marginal likelihood of the rewards; None where these were streamed."""
        return None if math.isnan(self.log_evidence) else self.log_evidence

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Independent draws by name, (size,)."""
        return {self.name: self.draw(size, rng)}

    def chains(
        self, plan: Planned, chains: int, draws: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """As many as are wanted: see `Known.chains`."""
        return {self.name: self.draw(chains * draws, rng).reshape(chains, draws)}

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Mean rewards at x (n, d), all alike: (size, n)."""
        return np.repeat(self.draw(size, rng)[:, None], len(x), axis=1)

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation, the same at every context."""
        return np.full(len(x), self.mean), np.full(len(x), self.sd)

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        """Of the variable in closed form; of deterministic quantities by draws."""
        found: dict[str, Moments] = {self.name: (self.mean, self.sd)}
        if plan.outcomes.deterministic:
            draws = plan.outcomes.rest(self.samples(plan, DRAWS, rng))
            found |= {k: moments(v) for k, v in draws.items()}
        return found

    def marginals(self, plan: Planned) -> dict[str, Any]:
        """Beta or gamma."""
        return {self.name: self.distribution}


@dataclass(frozen=True)
class Beta(OneNumber):
    """v ~ Beta(a, b)."""

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        n = self.a + self.b
        return math.sqrt(self.a / n * (self.b / n) / (n + 1.0))

    @property
    def log_volume(self) -> float:
        return float(betaln(self.a, self.b))

    @property
    def distribution(self) -> Any:
        return beta(self.a, self.b)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(self.a, self.b, size)

    def log_kernel(self, v: np.ndarray) -> np.ndarray:
        return np.asarray((self.a - 1.0) * np.log(v) + (self.b - 1.0) * np.log1p(-v))


@dataclass(frozen=True)
class Gamma(OneNumber):
    """v ~ Gamma(a, b), of mean a/b."""

    @property
    def mean(self) -> float:
        return self.a / self.b

    @property
    def sd(self) -> float:
        return math.sqrt(self.a) / self.b

    @property
    def log_volume(self) -> float:
        return float(gammaln(self.a) - self.a * math.log(self.b))

    @property
    def distribution(self) -> Any:
        return gamma(self.a, scale=1.0 / self.b)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.gamma(self.a, 1.0 / self.b, size)

    def log_kernel(self, v: np.ndarray) -> np.ndarray:
        return np.asarray((self.a - 1.0) * np.log(v) - self.b * v)
