"""Exact beliefs of declared linear-Gaussian models that arms share: their mean rewards depend on
each other, and arms are compared by joint draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.inference.plan import Plan
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.predictions import Joint

Array = np.ndarray


class JointBelief(AffineBelief):
    """K arms that share a model: one φ for all, so that their mean rewards depend on each other.

    All rounds are kept, for arms that come and go: an update is tried on a fork.
    """

    separate = False

    @property
    def kernel(self) -> None:
        return None

    def __init__(self, plan: Plan, n_arms: int, normalize: bool = False) -> None:
        super().__init__(plan, n_arms, normalize)
        self.rounds = Rounds(plan.n_features)

    @property
    def n_posteriors(self) -> int:
        """One for all arms."""
        return 1

    def predict(self, x: Array) -> Joint:
        z, offset = self.features(x)
        posterior = self.inner.posterior(0)
        spreads = z @ posterior.spread @ z.transpose(0, 2, 1)
        variance, axes = np.linalg.eigh(spreads)  # singular where arms are alike
        root = axes * np.sqrt(np.maximum(variance, 0.0))[:, None, :]
        return Joint(z @ posterior.location + offset, root, posterior.df)

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        self._learn(x, arm, reward, weight)
        self.rounds.append(x, arm, reward, weight)

    def _learn(self, x: Array, arm: Array, reward: Array, weight: Array | None) -> None:
        one = np.zeros(len(x), dtype=np.int64)
        self.inner.update(*self.observed(x, one, reward, weight, arm), weight)
        self.n += np.bincount(arm, minlength=len(self.n))

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self._learn_again(len(self.n))

    def fork(self) -> Self:
        twin = super().fork()
        twin.rounds = self.rounds.fork()
        return twin

    def add_arm(self) -> None:
        self._anew(len(self.n) + 1)

    def remove_arm(self, k: int) -> None:
        self.rounds.drop(k)
        self._anew(len(self.n) - 1)

    def _anew(self, n_arms: int) -> None:
        """The model of so many arms, from the rounds."""
        self.plan = self.plan.of_arms(n_arms)
        self._learn_again(n_arms)

    def _learn_again(self, n_arms: int) -> None:
        """All rounds, of so many arms, from the prior on."""
        self.n = np.zeros(n_arms)
        self._begin()
        self._learn(**self.rounds.of())

    def posterior(self, k: int, rows: dict[str, Array]) -> Posterior:
        """What is known of all arms' variables."""
        return Posterior(self.plan, self.rounds.of(), self.known(0), 0)

    def state(self) -> dict[str, Any]:
        return super().state() | {"rounds": self.rounds.state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.rounds.restore(state["rounds"], len(self.n))

    def verify(self, total: int) -> None:
        super().verify(total)
        self.rounds.verify(len(self.n))
