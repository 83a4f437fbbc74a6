"""SuperLinUCB (Chu, Li, Reyzin and Schapire 2011; paper, Appendix A): levels of certainty.

There are S levels, and at most one of them learns from a round. Level s learns only where its
confidence width is above 2^−s. Given the contexts, the rewards of a level are then independent, as
the √T bound needs. A round starts at level s = 1 with all arms:

- if all remaining widths are at most 1/√T, or if s = S, choose the arm with the largest upper
  bound, and no level learns;
- if all are at most 2^−s, keep the arms within 2^(1−s) of the largest upper bound, and go to level
  s + 1;
- otherwise choose the arm with the largest width, and level s learns from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesbandit import Ridge
from bayesbandit.checks import MAX_ABS_VALUE, SETTING_BOUNDS, Array, integer, number, one_of
from bayesbandit.extend import Belief, Prediction, savable, settings_repr
from bayesbandit.forms import Form, Numbers, State, prefixed, unprefixed

FAILURE_PROBABILITY = 0.05  # δ: the bounds of Theorem 1 fail at most so often


@savable
@dataclass(frozen=True)
class SuperUCB:
    """A model of SuperLinUCB.

    With the policy `Thompson` it is the algorithm: probabilities are 0 or 1, except for ties. With
    estimated inverse propensities as weights it is SuperBLUCB. The theory assumes that rewards and
    contexts have size 1 at most.

    horizon: T, the number of rounds, which gives ln T levels.
    alpha: α; None: that of Theorem 1, √ln(TK/δ) with δ = .05.
    ridge: λ.
    intercept: whether to add a constant column, penalised like the rest.
    """

    __repr__ = settings_repr

    compares_arms: ClassVar[bool] = True  # it compares the arms at a context; `Shared` refuses it

    horizon: int = 10_000
    alpha: float | None = None
    ridge: float = 1.0
    intercept: bool = True

    def __post_init__(self) -> None:
        integer(self.horizon, "horizon", least=2)
        if self.alpha is not None:
            number(self.alpha, "alpha", above=0, largest=MAX_ABS_VALUE)
        number(self.ridge, "ridge", above=0, **SETTING_BOUNDS)
        one_of(self.intercept, "intercept", (True, False))

    @property
    def constant_penalty(self) -> float:
        """λ; 0 if there is no constant."""
        return self.ridge if self.intercept else 0.0

    def belief(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> SuperUCBBelief:
        """Return the belief before any rounds. The seed is not used.

        Raise ValueError with `normalize`.
        """
        if normalize:
            raise ValueError("the levels' weights are not scaled to mean 1")
        return SuperUCBBelief(self, n_arms, n_features)


class SuperUCBBelief(Belief):
    """A ridge regression of each arm at each level, and one of all levels together.

    levels: S + 1 beliefs of `Ridge`, the last of all rounds from which any level learned.
    level (n,): the number of the level that learned from each round; −1 where none did.
    """

    n: Array

    def __init__(self, spec: SuperUCB, n_arms: int, n_features: int) -> None:
        self.spec = spec
        self.n_features = n_features
        self.n = np.zeros(n_arms)
        self.S = max(1, math.ceil(math.log(spec.horizon)))
        self.level = np.zeros(0)
        model = Ridge(spec.ridge, variance=1.0, intercept=spec.intercept)
        self.levels = [model.belief(n_arms, n_features) for _ in range(self.S + 1)]

    def __repr__(self) -> str:
        return f"SuperUCBBelief({self.S} levels, {len(self.n)} arms, {self.n_features} features)"

    @property
    def alpha(self) -> float:
        """Return α for the current number of arms."""
        if self.spec.alpha is not None:
            return self.spec.alpha
        return math.sqrt(math.log(self.spec.horizon * len(self.n) / FAILURE_PROBABILITY))

    def climb(self, x: Array, arms: Array, taken: int | None = None) -> tuple[Array, int]:
        """Return the tied best arms at x (1, d), and the level that learns from the round.

        arms: the numbers of the available arms. The level is −1 where none learns.
        taken: an arm that was chosen for another reason. The level is then the first one where its
        width is large, or −1, and all arms are returned.
        """
        for s in range(self.S):
            prediction = self.levels[s].predict(x)
            mean = prediction.mean[0, arms]
            width = self.alpha * prediction.sd[0, arms]
            upper = mean + width
            wide = width > 2.0 ** -(s + 1)
            if taken is not None:
                if wide[arms == taken].any():
                    return arms, s
                continue
            if (width <= 1.0 / math.sqrt(self.spec.horizon)).all() or s == self.S - 1:
                return arms[upper == upper.max()], -1
            if wide.any():
                return arms[wide & (width == width.max())], s
            arms = arms[upper >= upper.max() - 2.0**-s]
        return arms, -1

    def predict(self, x: Array) -> Climb:
        return Climb(self, x, np.arange(len(self.n)))

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn from rounds one by one, each at the level where its arm's width is large.

        If the reward comes before the next decision, this is the level that chose the arm.
        """
        weight = np.ones(len(x)) if weight is None else weight
        all_arms = np.arange(len(self.n))
        for i, k in enumerate(arm.tolist()):
            row = slice(i, i + 1)
            best, s = self.climb(x[row], all_arms)
            if k not in best:
                _, s = self.climb(x[row], all_arms, taken=k)
            for level in (s, -1) if s >= 0 else ():
                self.levels[level].update(x[row], arm[row], reward[row], weight[row])
            self.level = np.append(self.level, float(s))
            self.n = self.n + (all_arms == k)

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        """Learn again with new weights. Each round keeps its level."""
        due = list(due)
        for s, belief in enumerate(self.levels):
            of_level = self.level >= 0 if s == self.S else self.level == s
            belief.reweigh(due, x[of_level], arm[of_level], reward[of_level], weight[of_level])

    def add_arm(self) -> None:
        for belief in self.levels:
            belief.add_arm()
        self.n = np.append(self.n, 0.0)

    def remove_arm(self, k: int) -> None:
        for belief in self.levels:
            belief.remove_arm(k)
        self.n = np.delete(self.n, k)

    def fork(self) -> Self:
        return deepcopy(self, {id(self.spec): self.spec})

    # ---- state -----------------------------------------------------------------------------------

    def state(self) -> State:
        state: State = {"level": self.level, "n": self.n}
        for s, belief in enumerate(self.levels):
            state |= prefixed(f"{s}.", belief.state())
        return state

    def form(self, state: State, total: int) -> Form:
        form: dict[Any, Any] = {
            "level": Numbers((total,), -1, self.S - 1, whole=True),
            "n": Numbers(self.n.shape, 0, total, whole=True),
        }
        for s, belief in enumerate(self.levels):
            form |= prefixed(f"{s}.", belief.form(unprefixed(state, f"{s}."), total))
        return form

    def restore(self, state: State) -> None:
        self.level = state["level"]
        self.n = state["n"]
        for s, belief in enumerate(self.levels):
            belief.restore(unprefixed(state, f"{s}."))


class Climb(Prediction):
    """The levels' prediction for some arms (their numbers) at contexts x (n, d).

    It changes when the belief learns. mean, sd: the estimates and √(z'B⁻¹z) of all levels together.
    """

    def __init__(self, belief: SuperUCBBelief, x: Array, arms: Array) -> None:
        self.belief = belief
        self.x = x
        self.arms = arms

    @property
    def mean(self) -> Array:
        return self.belief.levels[-1].predict(self.x).mean[:, self.arms]

    @property
    def sd(self) -> Array:
        return self.belief.levels[-1].predict(self.x).sd[:, self.arms]

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.mean + self.sd * rng.standard_normal((size, len(self.x), len(self.arms)))

    def best(self, alpha: float | Array = 1.0) -> Array:
        """Return probabilities (n, K): 1 for the arm that the levels choose, or shared by ties."""
        p = np.zeros((len(self.x), len(self.arms)))
        for i, row in enumerate(p):
            best = np.isin(self.arms, self.belief.climb(self.x[i : i + 1], self.arms)[0])
            row[best] = 1.0 / best.sum()
        return p

    def among(self, arms: Array) -> Climb:
        return Climb(self.belief, self.x, self.arms[arms])
