"""What all exact posteriors answer, from the distribution of their block θ."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.inference.draws import Diagnostics, Moments, Planned, described, moments
from bayesbandit.inference.posterior_protocol import DRAWS


class ClosedForm:
    """A distribution of θ (D,) around `mean`, with precision Λ = LL', L = `cholesky` (D, D)."""

    mean: np.ndarray
    cholesky: np.ndarray
    log_evidence: float

    diagnostics: ClassVar[Diagnostics] = Diagnostics({}, {})
    stats: ClassVar[Mapping[str, np.ndarray]] = {}

    @abstractmethod
    def drawn(
        self, method: Any, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Draws of θ (size, D), and of the variables by name."""

    @property
    @abstractmethod
    def widening(self) -> float:
        """What the sds of N(mean, Λ⁻¹) are multiplied by."""

    @property
    @abstractmethod
    def covariance(self) -> np.ndarray:
        """The covariance of θ (D, D)."""

    @abstractmethod
    def further(self, plan: Planned) -> dict[str, Moments]:
        """Moments, by name, of what is not in θ and has them in closed form."""

    @abstractmethod
    def marginals(self, plan: Planned) -> dict[str, Any]:
        """The distribution, of scipy.stats, of each element of each variable by itself, by name."""

    @property
    def evidence(self) -> float | None:
        """Log marginal likelihood of the rewards; None where these were streamed."""
        return None if math.isnan(self.log_evidence) else self.log_evidence

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Independent draws of the free variables by name, (size, *shape)."""
        found = self.drawn(plan.method, size, rng)[1]
        return {k: found[k] for k in plan.outcomes.names}

    def chains(
        self, plan: Planned, chains: int, draws: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """As many as are wanted: see `Known.chains`."""
        flat = self.samples(plan, chains * draws, rng)
        return {k: v.reshape(chains, draws, *v.shape[1:]) for k, v in flat.items()}

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Mean rewards at x (n, d) under `size` draws: (size, n), or (size, n, K) over arms."""
        method, theta = plan.method, self.drawn(plan.method, size, rng)[0]
        if not method.affine:
            return np.asarray(method.mean_reward(theta, x))
        A, b = method.linear_map(x)
        return np.asarray(np.tensordot(theta, A, axes=(1, -1)) + b)

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of A θ + b, where mean rewards are that; else of draws."""
        if not plan.method.affine:
            means = self.rewards(plan, x, DRAWS, rng)
            return means.mean(axis=0), means.std(axis=0, ddof=1)
        A, b = plan.method.linear_map(x)
        half = solve_triangular(self.cholesky, A.reshape(-1, A.shape[-1]).T, lower=True)
        sd = np.sqrt((half**2).sum(axis=0)) * self.widening
        return A @ self.mean + b, sd.reshape(b.shape)

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        """In closed form; of draws where there is none."""
        inside = plan.method.moments(self.mean, self.covariance)
        found = {k: described(mean, covariance) for k, (mean, covariance) in inside.items()}
        found |= self.further(plan)
        if set(plan.outcomes.deterministic) - set(found):
            draws = plan.outcomes.rest(self.samples(plan, DRAWS, rng))
            found |= {k: moments(v) for k, v in draws.items() if k not in found}
        order = [*plan.outcomes.names, *plan.outcomes.deterministic]
        return {k: found[k] for k in order}
