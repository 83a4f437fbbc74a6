"""How a belief becomes an arm: Thompson, UCB, Greedy, EpsilonGreedy, and their propensities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from bayesbandit.checks import LARGEST, finite, floats, number
from bayesbandit.kernels.best_arm import best_of_location_scale
from bayesbandit.kernels.rules import EPSILON_GREEDY, HUGE, THOMPSON
from bayesbandit.kernels.rules import UCB as UCB_RULE

Alpha = float | Callable[[int], float]


class Belief(Protocol):
    """What is known now about the mean rewards of all K arms at once."""

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and standard deviations of the mean rewards at x (n, d): (n, K) each."""
        ...

    def draw(self, x: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        """Mean rewards under `size` posterior draws (size, n, K); one draw spans all contexts."""
        ...

    def update(self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any) -> None:
        """Rounds x (n, d), arm indices (n,), rewards (n,), precision weights (n,) arrive."""
        ...

    def sample(self, x: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
        """A draw of every arm's mean reward at x (n, d), α times as far from its mean: (n, K).
        Each row has a draw of its own."""
        ...

    def best(self, x: np.ndarray, alpha: float) -> np.ndarray:
        """P(arm has the largest such draw) at x (n, d): (n, K)."""
        ...


class Policy(Protocol):
    """A rule from moments to an arm: `kind` and one number that may change with the round."""

    kind: ClassVar[int]

    def param(self, t: int) -> float:
        """The rule's number at round t = 1, 2, …"""
        ...

    def scores(self, belief: Belief, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What the rule maximises (n, K), one independent draw a row where it draws."""
        ...

    def probabilities(self, belief: Belief, x: np.ndarray) -> np.ndarray:
        """Probability of each arm (n, K)."""
        ...


def choice_probabilities(mean: Any, sd: Any) -> np.ndarray:
    """P(arm k has the largest mean reward) under independent normals N(mean_k, sd_k²).

    mean, sd: (…, K), finite, sd ≥ 0; a zero sd is a point mass, and ties between point masses are
    split evenly. Returns (…, K) with absolute error < 1e-6:

        P(a best) = ∫ φ(u) Π_{k≠a} Φ((m_a + s_a u − m_k) / s_k) du

    by quadrature, K = 2 and 3 in closed form; section 2.3 of the paper uses Monte Carlo.
    """
    mean, sd = finite(floats(mean, "mean"), "mean"), finite(floats(sd, "sd"), "sd")
    if mean.shape != sd.shape or mean.ndim == 0 or mean.shape[-1] == 0:
        raise ValueError(
            f"mean and sd must have the same shape (…, K), K ≥ 1; got {mean.shape} and {sd.shape}"
        )
    if (sd < 0).any():
        raise ValueError(f"sd must be ≥ 0; got {sd.min()}")
    return best_of_location_scale(mean, sd, np.full_like(sd, np.inf))


def _winners(scores: np.ndarray) -> np.ndarray:
    """The best arms of each row (n, K), a tie split evenly."""
    best = scores == scores.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def _alpha(alpha: Alpha, t: int) -> float:
    if not callable(alpha):
        return float(alpha)
    return number(alpha(t), f"alpha({t})", least=0, largest=LARGEST)


def _check_alpha(alpha: Alpha) -> None:
    if not callable(alpha):
        number(alpha, "alpha", least=0, largest=LARGEST)


@dataclass(frozen=True)
class Thompson:
    """Draw each arm's mean reward from N(mean, α² sd²) and take the best (paper, section 2.2)."""

    alpha: Alpha = 1.0
    kind: ClassVar[int] = THOMPSON

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def param(self, t: int) -> float:
        return _alpha(self.alpha, t)

    def scores(
        self, belief: Belief, x: np.ndarray, rng: np.random.Generator, t: int = 1
    ) -> np.ndarray:
        return belief.sample(x, self.param(t), rng)

    def probabilities(self, belief: Belief, x: np.ndarray, t: int = 1) -> np.ndarray:
        return belief.best(x, self.param(t))


@dataclass(frozen=True)
class UCB:
    """Take the arm with the largest mean + α sd (paper, section 2.2); ties are broken evenly."""

    alpha: Alpha = 1.0
    kind: ClassVar[int] = UCB_RULE

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def param(self, t: int) -> float:
        return _alpha(self.alpha, t)

    def scores(
        self, belief: Belief, x: np.ndarray, rng: np.random.Generator, t: int = 1
    ) -> np.ndarray:
        mean, sd = belief.moments(x)
        return mean + self.param(t) * np.minimum(sd, HUGE)

    def probabilities(self, belief: Belief, x: np.ndarray, t: int = 1) -> np.ndarray:
        mean, sd = belief.moments(x)
        return _winners(mean + self.param(t) * np.minimum(sd, HUGE))


@dataclass(frozen=True)
class Greedy:
    """Take the arm with the largest posterior mean; ties are broken evenly."""

    kind: ClassVar[int] = UCB_RULE

    def param(self, t: int) -> float:
        return 0.0

    def scores(
        self, belief: Belief, x: np.ndarray, rng: np.random.Generator, t: int = 1
    ) -> np.ndarray:
        return belief.moments(x)[0]

    def probabilities(self, belief: Belief, x: np.ndarray, t: int = 1) -> np.ndarray:
        return _winners(belief.moments(x)[0])


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability ε any arm alike, else the greedy one; ε may be a callable of t."""

    epsilon: Alpha = 0.1
    kind: ClassVar[int] = EPSILON_GREEDY

    def __post_init__(self) -> None:
        if not callable(self.epsilon):
            number(self.epsilon, "epsilon", least=0, most=1)

    def param(self, t: int) -> float:
        if callable(self.epsilon):
            return number(self.epsilon(t), f"epsilon({t})", least=0, most=1)
        return float(self.epsilon)

    def scores(
        self, belief: Belief, x: np.ndarray, rng: np.random.Generator, t: int = 1
    ) -> np.ndarray:
        mean = belief.moments(x)[0]
        explore = rng.random(len(mean)) < self.param(t)
        return np.where(explore[:, None], rng.random(mean.shape), mean)

    def probabilities(self, belief: Belief, x: np.ndarray, t: int = 1) -> np.ndarray:
        winners = _winners(belief.moments(x)[0])
        epsilon = self.param(t)
        return epsilon / winners.shape[1] + (1.0 - epsilon) * winners
