"""Beliefs that are known by draws: ensembles, forests, samplers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.checks import floats
from bayesbandit.predictions import Draws, LocationScale, Prediction
from bayesbandit.runtime.memory import AT_ONCE

Array = np.ndarray


class ByDraws(Belief):
    """K arms whose mean rewards are known by S draws: write `values`, and `learn` if something is
    to be computed when rewards have come.

    All rounds are kept: `rows(k)` are those of arm k. The draws are the belief: Thompson sampling
    takes one of them, for each arm by itself, or for all arms together where these are `joint`, so
    that each arm's probability is known exactly. seed: for `rng`.
    """

    joint: bool = False

    def __init__(
        self, n_arms: int, n_features: int, normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> None:  # fmt: skip
        """normalize: scale each arm's weights to mean 1."""
        self.n_features, self.normalize = n_features, normalize
        self.seed = np.random.SeedSequence(0) if seed is None else seed
        self.rounds = Rounds(n_features)
        self.n = np.zeros(n_arms)
        self.refitted: dict[int, Any] = {}  # posteriors of all rounds, that were asked for

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.n)} arms, {self.n_features} features)"

    @abstractmethod
    def values(self, x: Array) -> Array:
        """Mean rewards at x (n, d) under the draws: (n, K, S); NaN of an arm of which there are
        none so far."""

    def learn(self, arms: Iterable[int]) -> None:
        """The rounds of these arms have changed: of all arms when one has come or gone."""

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.seed, self.refitted = seed, {}
        self.learn(range(len(self.n)))

    def rng(self, k: int, n: int | None = None) -> np.random.Generator:
        """Random numbers for arm k and n rounds (None: those that it has now): the same after a
        reload."""
        key = (*self.seed.spawn_key, k, int(self.n[k]) if n is None else n)
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))

    def rows(self, k: int | None = None) -> dict[str, Array]:
        """The rounds of arm k, or of all with their arms: x (n, d), reward, weight, arm (n,), by
        role; each arm's weights of mean 1 if they are normalised."""
        rows = self.rounds.of(k)
        if self.normalize:
            arm = rows.get("arm", np.zeros(len(rows["reward"]), dtype=np.int64))
            mean = np.bincount(arm, rows["weight"]) / np.maximum(np.bincount(arm), 1)
            rows["weight"] = rows["weight"] / mean[arm]
        return rows

    # ---- mean rewards ----------------------------------------------------------------------------

    def _all(self, x: Array) -> Array:
        """What `values` gives at x (n, d), checked."""
        what, n, K = f"{type(self).__name__}.values", len(x), len(self.n)
        values = floats(self.values(x.copy()), what)
        if values.ndim != 3 or values.shape[:2] != (n, K) or values.shape[2] == 0:
            raise ValueError(f"{what} must give ({n}, {K}, S), S ≥ 1; got {values.shape}")
        if not np.isfinite(values).all():
            some = values[:, ~np.isnan(values).all(axis=(0, 2))]
            odd = some[~np.isfinite(some)]
            if odd.size:
                raise ValueError(f"{what} must be finite, or NaN of the whole arm; got {odd[0]}")
        return values

    def at_once(self, x: Array) -> int:
        S = self._all(x[:1]).shape[2] if len(x) > 1 else 1
        return AT_ONCE // (S * len(self.n))

    def predict(self, x: Array) -> Prediction:
        return Draws(self._all(x), joint=self.joint)

    def predict_together(self, x: Array) -> Prediction:
        n, m, d = x.shape
        return Draws(self._all(x.reshape(-1, d)).reshape(n, m, -1), joint=True)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(self, x: Array, arm: Array, reward: Array, weight: Array | None = None) -> None:
        self.rounds.append(x, arm, reward, weight)
        self.n, self.refitted = self.n + np.bincount(arm, minlength=len(self.n)), {}
        self.learn(sorted(set(arm.tolist())))

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self.refitted = {}
        self.learn(due)

    def add_arm(self) -> None:
        self._change(len(self.n) + 1)

    def remove_arm(self, k: int) -> None:
        self.rounds.drop(k)
        self._change(len(self.n) - 1)

    def _change(self, n_arms: int) -> None:
        self._count(n_arms)
        self.refitted = {}
        self.learn(range(n_arms))

    def _count(self, n_arms: int) -> None:
        self.n = np.bincount(self.rounds.arm, minlength=n_arms).astype(np.float64)

    # ---- all that is known -----------------------------------------------------------------------

    def fork(self) -> Self:
        twin, rounds = copy(self), self.rounds.fork()
        shared = "rounds", "seed", "refitted"
        own = {k: v for k, v in vars(self).items() if k not in shared}
        vars(twin).update(deepcopy(own), rounds=rounds)
        return twin

    def state(self) -> dict[str, Any]:
        """The rounds, from which `learn` computes the rest."""
        return {"rounds": self.rounds.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.rounds.restore(state["rounds"], len(self.n))
        self._change(len(self.n))

    def verify(self, total: int) -> None:
        self.rounds.verify(len(self.n))


class ByNormal(ByDraws):
    """Of which Thompson sampling draws N(mean, sd²), each arm by itself."""

    def predict(self, x: Array) -> LocationScale:
        found = super().predict(x)
        return LocationScale(found.mean, found.sd)

    predict_together = Belief.predict_together
