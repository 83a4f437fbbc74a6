"""What is known of a declared model's variables: a distribution, or draws of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from bayesbandit.inference.draws import Diagnostics, Moments, Planned

DRAWS = 4000  # for moments that have no closed form, of a posterior that has one


class Known(Protocol):
    """What an engine finds; the plan that found it says what a model computes from its variables
    (`outcomes`) and how an exact engine arranges them (`method`)."""

    @property
    def evidence(self) -> float | None:
        """Log marginal likelihood of the rewards, where it is known."""
        ...

    @property
    def diagnostics(self) -> Diagnostics:
        """How far draws can be trusted; of a closed form there is nothing to say."""
        ...

    @property
    def stats(self) -> Mapping[str, np.ndarray]:
        """What a sampler says of its draws, (chain, draw) each."""
        ...

    def samples(self, plan: Planned, size: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draws of the free variables by name, (size, *shape)."""
        ...

    def chains(
        self, plan: Planned, chains: int, draws: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Draws of the free variables by name, (chains, draws, *shape); those that there are, where
        no others can be had."""
        ...

    def rewards(
        self, plan: Planned, x: np.ndarray, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Mean rewards at x (n, d) under `size` draws: (size, n), or (size, n, K) over arms."""
        ...

    def moments(
        self, plan: Planned, x: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of the mean rewards at x (n, d): (n,), or (n, K)."""
        ...

    def coefficients(self, plan: Planned, rng: np.random.Generator) -> dict[str, Moments]:
        """Moments of variables and deterministic quantities by name."""
        ...

    def marginals(self, plan: Planned) -> dict[str, Any]:
        """By name, the distributions, of scipy.stats, of those variables whose elements (*shape)
        each have one in closed form."""
        ...
