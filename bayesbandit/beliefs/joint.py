"""Exact beliefs of declared linear-Gaussian models that arms share.

Mean rewards of different arms depend on each other, and joint draws compare them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.memory import FOR_EVER, Memory
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Joint

Array = np.ndarray


class JointBelief(AffineBelief):
    """K arms that share a model with one φ, so that their mean rewards depend on each other.

    All rounds are kept, because a change of the arms needs a refit.
    """

    separate = False

    @property
    def kernel(self) -> None:
        return None

    def __init__(
        self, plan: Plan, n_arms: int, normalize: bool = False, memory: Memory = FOR_EVER
    ) -> None:
        super().__init__(plan, n_arms, normalize, memory)
        self.rounds = Rounds(plan.n_features, timed=memory.ticks is not None)

    @property
    def n_posteriors(self) -> int:
        """The number of posteriors: one for all arms."""
        return 1

    def predict(self, x: Array) -> Joint:
        z, offset = self.features(x)
        posterior = self.inner.posterior(0)
        spreads = z @ posterior.spread @ z.transpose(0, 2, 1)
        variance, axes = np.linalg.eigh(spreads)  # they are singular if arms are equal
        root = axes * np.sqrt(np.maximum(variance, 0.0))[:, None, :]
        return Joint(z @ posterior.location + offset, root, posterior.df)

    def advance(self, tick: float) -> None:
        super().advance(tick)
        if self.memory.fades and self.rounds.forget(tick - self.memory.lasting):
            self.n = self.rounds.counts(len(self.n))

    def _learn(
        self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array | None,
        own: Array | None = None,
    ) -> None:  # fmt: skip
        if self.memory.drift is not None and tick is not None:  # late rounds are learned as of now
            tick = np.maximum(tick, self.latest)
        self._relearn(tick, x, arm, reward, weight)
        self.rounds.append(x, arm, reward, weight, tick)

    def _relearn(
        self, tick: Array | None, x: Array, arm: Array, reward: Array, weight: Array | None
    ) -> None:
        """Update the one posterior by rounds that are kept, or will be."""
        super()._learn(tick, x, np.zeros(len(x), dtype=np.int64), reward, weight, own=arm)
        self.n += np.bincount(arm, minlength=len(self.n))

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self._refit(len(self.n))

    def absorb(self, other: Belief) -> None:
        super().absorb(other)
        assert isinstance(other, JointBelief)
        self.rounds.append(**other.rounds.of(), tick=other.rounds.tick)
        self.n = self.n + other.n

    def postpone(self, ticks: float) -> None:
        super().postpone(ticks)
        self.rounds.records["tick"] += ticks

    def fork(self) -> Self:
        twin = super().fork()
        twin.rounds = self.rounds.fork()
        return twin

    def add_arm(self) -> None:
        self._change_arms(len(self.n) + 1)

    def remove_arm(self, k: int) -> None:
        self.rounds.drop(k)
        self._change_arms(len(self.n) - 1)

    def _change_arms(self, n_arms: int) -> None:
        """Plan the model for so many arms, and refit it."""
        self.plan = self.plan.of_arms(n_arms)
        self._refit(n_arms)

    def _refit(self, n_arms: int) -> None:
        """Start from the prior, and learn all rounds again."""
        now = self.now(1)
        self.n = np.zeros(n_arms)
        self._begin()
        self._relearn(self.rounds.tick, **self.rounds.of())
        if now is not None:
            self.inner.advance(now[0])

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """Return the posterior of all arms' variables."""
        return Posterior(self.plan, self.rounds.of(), self.known(0), 0)

    def state(self) -> dict[str, Any]:
        return super().state() | {"rounds": self.rounds.state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.rounds.restore(state["rounds"], len(self.n))

    def verify(self, total: int) -> None:
        super().verify(total)
        self.rounds.verify(len(self.n))
