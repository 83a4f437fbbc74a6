"""What exact posteriors answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.inference.draws import DRAWS, Known, Moments, Planned, described, moments


class Exact(Known):
    """A posterior in closed form. log_evidence: NaN where the rewards were streamed."""

    log_evidence: float

    @property
    def evidence(self) -> float | None:
        return None if math.isnan(self.log_evidence) else self.log_evidence

    def others(
        self, plan: Planned, rng: np.random.Generator, known: Collection[str]
    ) -> dict[str, Moments]:
        """Return moments, by draws, of deterministic quantities that are not yet known."""
        if not set(plan.outcomes.deterministic) - set(known):
            return {}
        draws = plan.outcomes.rest(self.samples(plan, DRAWS, rng))
        return {k: moments(v) for k, v in draws.items() if k not in known}


class ClosedForm(Exact):
    """A distribution of θ (D,) around `mean`, with precision Λ = LL', L = `cholesky` (D, D)."""

    mean: np.ndarray
    cholesky: np.ndarray

    @abstractmethod
    def drawn(
        self, method: Any, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return draws of θ (size, D), and of the variables by name."""

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
        """Return moments, by name, of what is not in θ and has them in closed form."""

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw independently."""
        found = self.drawn(plan.method, size, rng)[1]
        return {k: found[k] for k in plan.outcomes.names}

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        method, theta = plan.method, self.drawn(plan.method, size, rng)[0]
        if not method.affine:
            return np.asarray(method.mean_reward(theta, x))
        A, b = method.linear_map(x)
        return np.asarray(np.tensordot(theta, A, axes=(1, -1)) + b)

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those of A θ + b, where mean rewards are that; else those of draws."""
        if not plan.method.affine:
            means = self.rewards(plan, x, DRAWS, rng)
            return means.mean(axis=0), means.std(axis=0, ddof=1)
        A, b = plan.method.linear_map(x)
        half = solve_triangular(self.cholesky, A.reshape(-1, A.shape[-1]).T, lower=True)
        sd = np.sqrt((half**2).sum(axis=0)) * self.widening
        return A @ self.mean + b, sd.reshape(b.shape)

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        """Return moments in closed form; of draws where there is none."""
        inside = plan.method.moments(self.mean, self.covariance)
        found = {k: described(mean, covariance) for k, (mean, covariance) in inside.items()}
        found |= self.further(plan)
        found |= self.others(plan, rng, found)
        order = [*plan.outcomes.names, *plan.outcomes.deterministic]
        return {k: found[k] for k in order}
