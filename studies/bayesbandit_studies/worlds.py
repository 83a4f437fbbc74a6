"""Worlds of linear rewards, whose coefficients are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesbandit.checks import finite, floats, integer, number
from bayesbandit.environments import Sample


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear rewards r(k) = x'θ_k + ε with x ~ N(0, I) and ε ~ N(0, sigma²).

    All arms of a round have the same ε. Test contexts are the unit vectors, so their mean rewards
    are the elements of θ.

    mean: the mean (K, d) of θ.
    spread: the standard deviation of θ, a number or (K, d). Every sample draws a new θ; with 0 it
        is always the mean.
    sigma: the noise's standard deviation.
    constant: whether the last feature is 1.
    """

    mean: np.ndarray
    spread: np.ndarray | float = 0.0
    sigma: float = 1.0
    constant: bool = False
    horizon: int = 1000
    name: str = "linear"

    def __post_init__(self) -> None:
        mean = finite(floats(self.mean, "mean"), "mean")
        if mean.ndim != 2 or 0 in mean.shape:
            raise ValueError(f"mean must be (K, d), of K arms and d features; got {mean.shape}")
        spread = finite(floats(self.spread, "spread"), "spread")
        if np.shape(self.spread) not in ((), mean.shape) or (spread < 0.0).any():
            raise ValueError(
                f"spread must be a number or {mean.shape}, and not negative; got {self.spread!r}"
            )
        number(self.sigma, "sigma", least=0)
        integer(self.horizon, "horizon", least=1)
        object.__setattr__(self, "mean", mean.copy())
        object.__setattr__(self, "spread", np.broadcast_to(spread, mean.shape).copy())

    @cached_property
    def arms(self) -> tuple[int, ...]:
        return tuple(range(len(self.mean)))

    @property
    def n_features(self) -> int:
        return int(self.mean.shape[1])

    @property
    def fingerprint(self) -> str:
        """Return a text with all settings of the environment."""
        numbers = self.mean.tolist(), np.asarray(self.spread).tolist(), self.sigma
        return f"Linear{(*numbers, self.constant, self.horizon)}"

    def contexts(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return contexts (n, d)."""
        x = rng.standard_normal((n, self.n_features))
        if self.constant:
            x[:, -1] = 1.0
        return x

    def theta(self, rng: np.random.Generator) -> np.ndarray:
        """Return true coefficients (K, d): those of `sample` with a generator of the same seed."""
        return self.mean + self.spread * rng.standard_normal(self.mean.shape)

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        T = self.horizon if horizon is None else integer(horizon, "horizon", least=1)
        theta = self.theta(rng)
        x = self.contexts(T, rng)
        noise = rng.standard_normal((T, 1))
        mean = x @ theta.T
        unit = np.eye(self.n_features)
        return Sample(x, mean, mean + self.sigma * noise, test_x=unit, test_mean=theta.T.copy())
