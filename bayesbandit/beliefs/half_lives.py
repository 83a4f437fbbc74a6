"""`half_life="auto"`: a belief for each half-life; the one that predicts best decides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from bayesbandit.beliefs.base import Belief, Kernel
from bayesbandit.beliefs.linear_belief import LinearBelief, aligned
from bayesbandit.beliefs.memory import Memory
from bayesbandit.kernels import scoring
from bayesbandit.kernels.arm import NAMES
from bayesbandit.predictions import Prediction
from bayesbandit.runtime.schema import demand

if TYPE_CHECKING:
    from bayesbandit.beliefs.conjugate.belief import ConjugateBelief
    from bayesbandit.inference.plan import Plan

Array = np.ndarray
HALF_LIVES = (None, 2000.0, 500.0, 125.0)


def prior(M: int) -> Array:
    """Return the prior probabilities (M,) of half-lives."""
    rest = (1.0 - scoring.STANDING) / (M - 1)
    return np.append(scoring.STANDING, np.full(M - 1, rest))


def remembered(
    make: Callable[[Memory], LinearBelief], memory: Memory
) -> LinearBelief | LinearHalfLives:
    """Return the belief with this memory; of several half-lives if the rewards choose one.

    make: makes the belief with a given memory.
    """
    return LinearHalfLives(by_half_life(make, memory)) if memory.chooses else make(memory)


def by_half_life[B](make: Callable[[Memory], B], memory: Memory) -> list[B]:
    """Return a belief for each of the half-lives among which the rewards choose."""
    return [make(replace(memory, half_life=half_life)) for half_life in HALF_LIVES]


class HalfLives[B: (LinearBelief, ConjugateBelief)](Belief):
    """Beliefs by several half-lives. The most probable half-life decides.

    arms (M, K, …): the numbers of each belief's arms, as in `LinearBelief`. The first belief does
    not forget, and counts the rounds. settings (M, …). log_weight (M,): log probabilities of the
    half-lives, by the exact density that each gave every reward before it learned it. clock_at: the
    place of an arm's clock among its numbers.
    """

    computes_when_asked = True
    clock_at: ClassVar[int] = NAMES.index("clock")

    def __init__(self, members: list[B]) -> None:
        self.members: list[B] = members
        self.n_features = members[0].n_features
        self.clock = members[-1].clock
        for member in members:  # also that which does not forget
            member.clock = self.clock
        self.settings = np.array([member.settings for member in members])
        self.log_weight = np.log(prior(len(members)))
        self._hold([member.arms for member in members])

    def _hold(self, arms: list[Array] | Array) -> None:
        """Take a copy of these arms, M arrays (K, …)."""
        M, (K, width) = len(arms), arms[0].shape
        self.arms = aligned(M * K, width).reshape(M, K, width)
        self.arms[:] = arms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.best!r})"

    def member(self, m: int) -> B:
        """Return the belief with half-life number m. It uses `arms[m]` without a copy."""
        return self.members[m]._with_arms(self.arms[m])

    def each(self) -> list[B]:
        """Return the beliefs of all half-lives: see `member`."""
        return [self.member(m) for m in range(len(self.arms))]

    @property
    def best(self) -> B:
        """The belief with the most probable half-life."""
        return self.member(int(self.log_weight.argmax()))

    @property
    def n(self) -> Array:
        return self.member(0).n

    @property
    def new(self) -> Array:
        return self.best.new

    @property
    def plan(self) -> Plan | None:
        return self.members[0].plan

    @property
    def kernel(self) -> Kernel:
        return self.best

    @property
    def n_columns(self) -> int:
        return self.members[0].n_columns

    def predict(self, x: Array) -> Prediction:
        return self.best.predict(x)

    def predict_together(self, x: Array) -> Prediction:
        return self.best.predict_together(x)

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        """Learn rounds x (n, d), arm numbers, rewards, weights (n,; None: 1), at no new tick."""
        tick = self.arms[:, :, self.clock_at].max()
        self.update_at(np.full(len(x), tick), x, arm, reward, weight)

    def update_at(
        self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array | None = None
    ) -> None:
        """Learn rounds one after the other, and how well each half-life predicted them.

        A late round is predicted as of now, and counts as of its decision.
        """
        self._learn(tick, x, arm, reward, np.ones(len(x)) if weight is None else weight)

    @abstractmethod
    def _learn(self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        """Learn rounds as `update_at`."""

    def absorb(self, other: Belief) -> None:
        """Learn what another belief has learned: see `LinearBelief.absorb`.

        The probabilities of half-lives are those by the rewards of both.
        """
        if not (isinstance(other, HalfLives) and self.arms.shape == other.arms.shape):
            raise ValueError(f"{self!r} absorbs a belief of the same model; got {other!r}")
        members = self.each()
        for mine, its in zip(members, other.each(), strict=True):
            mine.absorb(its)
        self._hold([member.arms for member in members])
        w = self.log_weight + other.log_weight - np.log(prior(len(self.arms)))
        self.log_weight = w - logsumexp(w)

    def posterior(self, k: int, rows: dict[str, Array] | None = None) -> Any:
        """Return the posterior of arm k by the most probable half-life."""
        return self.best.posterior(k, rows)

    def add_arm(self) -> None:
        self._change_arms(lambda member: member.add_arm())

    def remove_arm(self, k: int) -> None:
        self._change_arms(lambda member: member.remove_arm(k))

    def _change_arms(self, change: Callable[[B], None]) -> None:
        members = self.each()
        for member in members:
            change(member)
        self._hold([member.arms for member in members])

    def fork(self) -> Self:
        twin = object.__new__(type(self))
        twin.__setstate__(vars(self))
        return twin

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state, with copies of the arrays that change."""
        vars(self).update(state, log_weight=state["log_weight"].copy())
        self._hold(state["arms"])

    def state(self) -> dict[str, Any]:
        """Return the whole state as arrays, for `restore`."""
        states = [member.state() for member in self.each()]
        together = {name: np.stack([state[name] for state in states]) for name in states[0]}
        return together | {"log_weight": self.log_weight}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; raise ValueError if the arrays have other shapes."""
        own = self.state()
        for name, array in own.items():
            if state[name].shape != array.shape:
                raise ValueError(f"{name} of shape {state[name].shape}, not {array.shape}")
        self.log_weight[:] = state["log_weight"]
        for m, member in enumerate(self.each()):
            member.restore({name: state[name][m] for name in own if name != "log_weight"})

    def verify(self, total: int) -> None:
        probability = np.exp(self.log_weight)
        whole = (probability > 0).all() and abs(probability.sum() - 1.0) < 1e-6
        demand(whole, "its half-lives have no probabilities")
        for member in self.each():
            n = member.n  # an arm that has forgotten all counts from 0 again
            counts = (n >= 0) & (n <= self.n) & (n == np.floor(n))
            demand(bool(counts.all()), f"a half-life has {n} of its arms' {self.n} rounds")
            member.verify(total)


class LinearHalfLives(HalfLives[LinearBelief]):
    """Regressions by several half-lives."""

    def advance(self, tick: float) -> None:
        scoring.advance_all(self.arms, self.settings, tick)

    def _learn(self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        z = self.members[0].design(x)
        rows = [np.ascontiguousarray(v) for v in (tick, z, arm, reward, weight)]
        scoring.learn_all(self.arms, self.settings, *rows, self.log_weight)
