"""How a prediction becomes an arm: Thompson, UCB, Greedy, EpsilonGreedy, Boltzmann, TopTwo."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import LARGEST, SIZES, Alpha, finite, floats, number, sums
from bayesbandit.kernels.prob_best.quadrature import best_of_location_scale
from bayesbandit.kernels.row_layout import EPSILON_GREEDY, HUGE, THOMPSON
from bayesbandit.kernels.row_layout import UCB as UCB_RULE
from bayesbandit.predictions import Prediction
from bayesbandit.runtime.capabilities import declares
from bayesbandit.runtime.savable import savable

Rounds = int | np.ndarray
RULES = (THOMPSON, UCB_RULE, EPSILON_GREEDY)


@runtime_checkable
class Policy(Protocol):
    """How a prediction becomes an arm: with what probability each is chosen.

    A bandit draws the arm and logs the probabilities. `kind` and `param` are an extra: those of
    a rule that is compiled (see `rule`).
    """

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        """Return the probability of each arm of the prediction (n, K), rows that sum to 1, in
        rounds t = 1, 2, …, a number or (n,)."""
        ...


@runtime_checkable
class Ruled(Policy, Protocol):
    """A policy that a compiled rule plays: its KIND (`kernels/row_layout.py`), and its number."""

    kind: ClassVar[int]

    def param(self, t: Rounds) -> Any:
        """Return the rule's number in round t; of rounds t (n,), the numbers (n, 1)."""
        ...


@runtime_checkable
class WithFloor(Protocol):
    """A policy below whose least probability no available arm's is."""

    @property
    def min_probability(self) -> Alpha: ...


def rule(policy: Policy) -> int | None:
    """The compiled rule that gives a policy's probabilities; None where they are Python's: of a
    policy without one, or a subclass or an object that has probabilities of its own."""
    kind = declares(policy, "kind", ("probabilities",))
    known = type(kind) is int and kind in RULES and isinstance(policy, Ruled)
    return kind if known else None


def chosen(policy: Policy, prediction: Prediction, t: np.ndarray) -> np.ndarray:
    """A policy's probabilities (n, K) by a prediction, of rounds t (n,), checked."""
    found, what = policy.probabilities(prediction, t), type(policy).__name__
    p = floats(found, f"the probabilities of {what}")
    shape = prediction.mean.shape
    if p.shape != shape:
        new = "; arms without a reward so far are left out" if p.shape[1:] > shape[1:] else ""
        raise ValueError(f"{what} must give probabilities {shape}; got {p.shape}{new}")
    return p / sums(p, what)[:, None]


def numbers(policy: Policy, kind: int | None, t: int, K: int) -> tuple[float, float]:
    """Return a policy's number, if it has a rule of this kind, and its minimum probability, in
    round t, for K arms."""
    given = policy.min_probability if isinstance(policy, WithFloor) else 0.0
    least = _number(given, t, "min_probability", least=0)
    if K * least > 1.0:
        raise ValueError(f"min_probability must be ≤ 1/{K} for {K} arms; got {least:g}")
    if kind is None or not isinstance(policy, Ruled):
        return 0.0, least
    most = 1.0 if kind == EPSILON_GREEDY else np.inf
    return number(policy.param(t), f"param({t})", least=0, most=most, largest=LARGEST), least


def is_constant(policy: Policy) -> bool:
    """Whether a policy's numbers are the same in every round: it is the toolkit's own, and none of
    its settings is a function."""
    return type(policy).__module__ == __name__ and not any(map(callable, vars(policy).values()))


def choice_probabilities(mean: ArrayLike, sd: ArrayLike) -> np.ndarray:
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


def _number(value: Alpha, t: Rounds, what: str, **bounds: float) -> Any:
    """A policy's number in round t; of rounds t (n,), the numbers (n, 1)."""
    if not callable(value):
        return number(value, what, **bounds)
    if np.ndim(t) == 0:
        return number(value(int(t)), f"{what}({t})", **bounds)
    return np.array([[number(value(int(i)), f"{what}({i})", **bounds)] for i in np.ravel(t)])


def _alpha(value: Alpha, t: Rounds) -> Any:
    """α in round t, or (n, 1) of rounds t (n,); 0 where it is so small that α sd loses digits."""
    alpha = _number(value, t, "alpha", least=0, largest=LARGEST)
    return alpha * (alpha >= SIZES["smallest"])


def _check(value: Alpha, what: str, **bounds: float) -> None:
    if not callable(value):
        number(value, what, **bounds)


@dataclass(frozen=True, repr=False)
class Floored:
    """What all policies here have: γ, a number or a function of t, below which no available arm's
    probability is: p' = γ + (1 − K γ) p, with K available arms. K γ ≤ 1."""

    min_probability: Alpha = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        _check(self.min_probability, "min_probability", least=0, most=1)

    def __repr__(self) -> str:
        shown = {f.name: vars(self)[f.name] for f in fields(self)}
        if shown["min_probability"] == 0.0:
            del shown["min_probability"]
        own = [f.name for f in fields(self) if f.name in shown and not f.kw_only]
        names = [*own, *(name for name in shown if name not in own)]
        return f"{type(self).__name__}({', '.join(f'{n}={shown[n]!r}' for n in names)})"


@savable
@dataclass(frozen=True, repr=False)
class Thompson(Floored):
    """Draw each arm's mean reward from N(mean, α² sd²) and take the best (paper, section 2.2)."""

    alpha: Alpha = 1.0
    kind: ClassVar[int] = THOMPSON

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.alpha, "alpha", least=0, largest=LARGEST)

    def param(self, t: Rounds) -> Any:
        return _alpha(self.alpha, t)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        return prediction.best(np.ravel(self.param(t)))


@savable
@dataclass(frozen=True, repr=False)
class UCB(Floored):
    """Take the arm with the largest mean + α sd (paper, section 2.2); ties are broken evenly."""

    alpha: Alpha = 1.0
    kind: ClassVar[int] = UCB_RULE

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.alpha, "alpha", least=0, largest=LARGEST)

    def param(self, t: Rounds) -> Any:
        return _alpha(self.alpha, t)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        return _winners(prediction.mean + self.param(t) * np.minimum(prediction.sd, HUGE))


@savable
@dataclass(frozen=True, repr=False)
class Greedy(Floored):
    """Take the arm with the largest posterior mean; ties are broken evenly."""

    kind: ClassVar[int] = UCB_RULE

    def param(self, t: Rounds) -> float:
        return 0.0

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        return _winners(prediction.mean)


@savable
@dataclass(frozen=True, repr=False)
class EpsilonGreedy(Floored):
    """With probability ε any arm alike, else the greedy one; ε may be a callable of t."""

    epsilon: Alpha = 0.1
    kind: ClassVar[int] = EPSILON_GREEDY

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.epsilon, "epsilon", least=0, most=1)

    def param(self, t: Rounds) -> Any:
        return _number(self.epsilon, t, "epsilon", least=0, most=1)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        winners = _winners(prediction.mean)
        epsilon = self.param(t)
        return epsilon / winners.shape[1] + (1.0 - epsilon) * winners


@savable
@dataclass(frozen=True, repr=False)
class Boltzmann(Floored):
    """Choose an arm with probability ∝ exp(mean / temperature); also of t, as α elsewhere.

    Luce (1959), Individual Choice Behavior; the mean is the posterior's.
    """

    temperature: Alpha = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.temperature, "temperature", above=0)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        from scipy.special import softmax

        mean = prediction.mean
        short = mean - mean.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # infinitely far behind: never
            return softmax(short / _number(self.temperature, t, "temperature", above=0), axis=1)


@savable
@dataclass(frozen=True, repr=False)
class TopTwo(Floored):
    """Thompson's arm with probability β, else the arm of the next draw that finds another best.

    Russo (2020), Simple Bayesian algorithms for best-arm identification, section 3.3. With π of
    Thompson sampling, p = β π_k + (1 − β) Σ_{i≠k} π_i π_k / (1 − π_i).
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.beta, "beta", least=0, most=1)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> np.ndarray:
        best = prediction.best()
        best = best / best.sum(axis=1, keepdims=True)
        others = best.sum(axis=1, keepdims=True) - best  # 1 − π_i, of those that there are
        certain = others <= 1e-9  # no other is ever found: it stays
        odds = np.where(certain, 0.0, best / np.where(certain, 1.0, others))
        second = best * (odds.sum(axis=1, keepdims=True) - odds)
        p = self.beta * best + (1.0 - self.beta) * (second + np.where(certain, best, 0.0))
        return p / p.sum(axis=1, keepdims=True)
