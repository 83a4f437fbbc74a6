"""Policies, which choose an arm by a prediction: Thompson, UCB, Greedy, EpsilonGreedy, Boltzmann,
TopTwo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import MAX_ABS_VALUE, SETTING_BOUNDS, Alpha, Array, finite, floats, number
from bayesbandit.kernels.prob_best.located import best_of_location_scale
from bayesbandit.kernels.row_layout import EPSILON_GREEDY, INFINITE_SD, THOMPSON
from bayesbandit.kernels.row_layout import UCB as UCB_RULE
from bayesbandit.predictions import Prediction, challengers, probabilities_in, resolution
from bayesbandit.runtime.capabilities import declares
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr

Rounds = int | Array
RULES = (THOMPSON, UCB_RULE, EPSILON_GREEDY)
FEW_DRAWS = 10.0  # with another best arm, that count as much as what normals tell
MANY_DRAWS = 1e4  # times as many, beside which this is rounding


@runtime_checkable
class Policy(Protocol):
    """A rule that gives the probability of choosing each arm, from a prediction.

    A bandit draws the arm and logs the probabilities. A policy may also have `kind` and `param`, so
    that a compiled rule plays it (see `rule`).
    """

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        """Return each arm's probability (n, K), in rows that sum to 1.

        A bandit raises them to the minimum probability afterwards. t: the rounds 1, 2, …, one
        number or (n,).
        """
        ...


@runtime_checkable
class Ruled(Policy, Protocol):
    """A policy that a compiled rule plays: the rule's KIND (`kernels/row_layout.py`) and number."""

    kind: ClassVar[int]

    def param(self, t: Rounds) -> Any:
        """Return the rule's number (α or ε) in round t; for rounds t (n,), the numbers (n, 1)."""
        ...


@runtime_checkable
class WithFloor(Protocol):
    """A policy with a minimum probability for each available arm."""

    @property
    def min_probability(self) -> Alpha: ...


def rule(policy: Policy) -> int | None:
    """Return the KIND of the compiled rule that gives a policy's probabilities.

    None where Python computes them: the policy has no rule, or a subclass or the object itself
    replaces `probabilities`.
    """
    kind = declares(policy, "kind", ("probabilities",))
    is_compiled = type(kind) is int and kind in RULES and isinstance(policy, Ruled)
    return kind if is_compiled else None


def chosen(policy: Policy, prediction: Prediction, t: Array) -> Array:
    """Return a policy's probabilities (n, K) in rounds t (n,); raise ValueError if they are none.

    Each row is divided by its sum.
    """
    probabilities = policy.probabilities(prediction, t)
    what = type(policy).__name__
    p = probabilities_in(probabilities, prediction.mean.shape, what)
    return p / p.sum(axis=1)[:, None]


def rule_parameters(policy: Policy, kind: int | None, t: int, K: int) -> tuple[float, float]:
    """Return α of a policy (of ε-greedy ε; 0 without a compiled rule), and its minimum probability,
    in round t.

    Raise ValueError if the minimum probability is more than 1/K.
    """
    min_probability = policy.min_probability if isinstance(policy, WithFloor) else 0.0
    if not callable(min_probability):
        number(min_probability, "min_probability", least=0)
    floor = _number(min_probability, t, "min_probability", least=0)
    if K * floor > 1.0:
        raise ValueError(f"min_probability must be ≤ 1/{K} for {K} arms; got {floor:g}")
    if kind is None or not isinstance(policy, Ruled):
        return 0.0, floor
    most = 1.0 if kind == EPSILON_GREEDY else np.inf
    return number(policy.param(t), f"param({t})", least=0, most=most, largest=MAX_ABS_VALUE), floor


def is_constant(policy: Policy) -> bool:
    """Return whether a policy's numbers are known to be the same in every round.

    They are for policies of this module, if none of the settings is a function.
    """
    is_ours = type(policy).__module__ == __name__
    return is_ours and not any(map(callable, vars(policy).values()))


def choice_probabilities(mean: ArrayLike, sd: ArrayLike) -> Array:
    """Return P(arm k has the largest mean reward) under independent normals N(mean_k, sd_k²).

    mean, sd: (…, K), finite, sd ≥ 0. An sd of 0 is a point mass; ties between point masses are
    split evenly. The result (…, K) has an absolute error < 1e-6:

        P(a best) = ∫ φ(u) Π_{k≠a} Φ((m_a + s_a u − m_k) / s_k) du

    K = 2 and 3 have a closed form, and a larger K uses quadrature. The paper (section 2.3) uses
    Monte Carlo.
    """
    mean = finite(floats(mean, "mean"), "mean")
    sd = finite(floats(sd, "sd"), "sd")
    if mean.shape != sd.shape or mean.ndim == 0 or mean.shape[-1] == 0:
        raise ValueError(
            f"mean and sd must have the same shape (…, K), K ≥ 1; got {mean.shape} and {sd.shape}"
        )
    if (sd < 0).any():
        raise ValueError(f"sd must be ≥ 0; got {sd.min()}")
    return best_of_location_scale(mean, sd, np.full_like(sd, np.inf))


def _winners(scores: Array) -> Array:
    """Return probabilities (n, K): 1 for the arm with the largest score, split evenly in a tie."""
    best = scores == scores.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def _number(value: Alpha, t: Rounds, what: str, **bounds: float) -> Any:
    """Return a setting's number in round t; for rounds t (n,) and a function, numbers (n, 1)."""
    if not callable(value):
        return float(value)  # checked when the policy was made
    if np.ndim(t) == 0:
        return number(value(int(t)), f"{what}({t})", **bounds)
    return np.array([[number(value(int(i)), f"{what}({i})", **bounds)] for i in np.ravel(t)])


def _check(value: Alpha, what: str, **bounds: float) -> None:
    if not callable(value):
        number(value, what, **bounds)


@dataclass(frozen=True, repr=False)
class Floored:
    """The common part of all policies here.

    min_probability: f, the least probability of each available arm: a number, or a function of the
        round t. With K available arms, p becomes f + (1 − K f) p, (5)
        of mathematics.md; K f ≤ 1.
    """

    __repr__ = settings_repr

    min_probability: Alpha = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        _check(self.min_probability, "min_probability", least=0, most=1)


@dataclass(frozen=True, repr=False)
class Scaled(Floored):
    """The common part of policies that multiply posterior sds.

    alpha: α, by which posterior sds are multiplied: a number, or a function of the round t. It
        counts as 0 if it is so small that α · sd would lose digits.
    """

    alpha: Alpha = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.alpha, "alpha", least=0, largest=MAX_ABS_VALUE)

    def param(self, t: Rounds) -> Any:
        alpha = _number(self.alpha, t, "alpha", least=0, largest=MAX_ABS_VALUE)
        return alpha * (alpha >= SETTING_BOUNDS["smallest"])


@savable
@dataclass(frozen=True, repr=False)
class Thompson(Scaled):
    """Thompson sampling: draw each mean reward and choose the largest (paper, section 2.2).

    A draw's distance from the posterior mean is multiplied by α, whatever the posterior: a normal
    arm draws from N(mean, α² sd²), and α = 0 is greedy.
    """

    kind: ClassVar[int] = THOMPSON

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        return prediction.best(np.ravel(self.param(t)))


@savable
@dataclass(frozen=True, repr=False)
class UCB(Scaled):
    """Upper confidence bounds: choose the arm with the largest mean + α sd (paper, section 2.2).

    Ties are broken evenly.
    """

    kind: ClassVar[int] = UCB_RULE

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        return _winners(prediction.mean + self.param(t) * np.minimum(prediction.sd, INFINITE_SD))


@savable
@dataclass(frozen=True, repr=False)
class Greedy(Floored):
    """The greedy policy: choose the arm with the largest posterior mean; break ties evenly."""

    kind: ClassVar[int] = UCB_RULE

    def param(self, t: Rounds) -> float:
        return 0.0

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        return _winners(prediction.mean)


@savable
@dataclass(frozen=True, repr=False)
class EpsilonGreedy(Floored):
    """The ε-greedy policy: with probability ε choose any arm evenly, else the greedy arm.

    epsilon: ε, a number, or a function of the round t.
    """

    epsilon: Alpha = 0.1
    kind: ClassVar[int] = EPSILON_GREEDY

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.epsilon, "epsilon", least=0, most=1)

    def param(self, t: Rounds) -> Any:
        return _number(self.epsilon, t, "epsilon", least=0, most=1)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        winners = _winners(prediction.mean)
        epsilon = self.param(t)
        return epsilon / winners.shape[1] + (1.0 - epsilon) * winners


@savable
@dataclass(frozen=True, repr=False)
class Boltzmann(Floored):
    """The softmax policy: choose an arm with probability ∝ exp(posterior mean / temperature).

    temperature: > 0, in units of the reward; a number, or a function of the round t.
    Luce (1959), Individual Choice Behavior.
    """

    temperature: Alpha = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.temperature, "temperature", above=0)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        from scipy.special import softmax

        mean = prediction.mean
        gap = mean - mean.max(axis=1, keepdims=True)
        with np.errstate(over="ignore"):  # a gap of −∞ has probability 0
            return softmax(gap / _number(self.temperature, t, "temperature", above=0), axis=1)


@savable
@dataclass(frozen=True, repr=False)
class TopTwo(Floored):
    """Top-two Thompson sampling: choose Thompson's arm with probability β, else a challenger.

    The challenger is the best arm of the first further draw in which another arm is best. With the
    probabilities π of Thompson sampling, p_k = β π_k + (1 − β) Σ_{i≠k} π_i π_k / (1 − π_i). Where π
    is a share of draws, and next to none has another best arm than most, challengers share 1 − β by
    Φ(−z), z the sds of their differences by which they are behind.
    Russo (2020), Simple Bayesian algorithms for best-arm identification, section 3.3.
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.beta, "beta", least=0, most=1)

    def probabilities(self, prediction: Prediction, t: Rounds = 1) -> Array:
        best = prediction.best()
        best = best / best.sum(axis=1, keepdims=True)
        leader = best.argmax(axis=1)
        leads = np.arange(best.shape[1]) == leader[:, None]
        others = best.sum(axis=1, keepdims=True) - best  # 1 − π_i
        odds = np.where(leads, 0.0, best / np.where(leads, 1.0, others))
        second = best * (odds.sum(axis=1, keepdims=True) - odds)
        # where next to no draw finds a challenger of the leader, normals tell which it would be
        few = FEW_DRAWS * resolution(prediction)
        seen = np.where(leads, 0.0, best)
        if (seen.sum(axis=1) <= MANY_DRAWS * few).any():
            seen += few * challengers(prediction, leader)
        total = seen.sum(axis=1, keepdims=True)
        alone = total == 0.0  # one arm
        second += best.max(axis=1, keepdims=True) * seen / np.where(alone, 1.0, total)
        p = self.beta * best + (1.0 - self.beta) * (second + np.where(alone, best, 0.0))
        return p / p.sum(axis=1, keepdims=True)
