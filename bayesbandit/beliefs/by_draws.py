"""Beliefs that consist of draws: ensembles, forests, samplers."""

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
    """A belief by S draws of the mean rewards of K arms.

    Write `values`; `learn` if something is computed when rewards arrive; `weights` if draws do not
    all count the same. All rounds are kept; `rows(k)` returns those of arm k. Thompson sampling
    picks one of the draws by its weight, so each arm's probability is exact. It picks one for each
    arm, or one for all arms if `joint` is true. seed: the seed of `rng`.
    """

    n: Array
    joint: bool = False

    def __init__(
        self,
        n_arms: int,
        n_features: int,
        normalize: bool = False,
        seed: np.random.SeedSequence | None = None,
    ) -> None:
        """Make the belief before any data. normalize: rescale each arm's weights to average 1."""
        self.n_features, self.normalize = n_features, normalize
        self.seed = np.random.SeedSequence(0) if seed is None else seed
        self.rounds = Rounds(n_features)
        self.n = np.zeros(n_arms)
        self.refitted: dict[int, Any] = {}  # posteriors of all rounds that `posterior` has computed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.n)} arms, {self.n_features} features)"

    @abstractmethod
    def values(self, x: Array) -> Array:
        """Return mean rewards (n, K, S) at x (n, d) under S draws; NaN for an arm without draws."""

    def weights(self) -> Array | None:
        """Return the weights of the draws that `values` gave last: (S,), or (K, S) if arms are
        independent; None: all equal."""
        return None

    def learn(self, arms: Iterable[int]) -> None:
        """Update after the rounds of these arms have changed; all arms if one is new or removed."""

    def reseed(self, seed: np.random.SeedSequence) -> None:
        self.seed, self.refitted = seed, {}
        self.learn(range(len(self.n)))

    def rng(self, k: int, n: int | None = None) -> np.random.Generator:
        """Return a generator for arm k after n rounds (None: its current number).

        It gives the same numbers after a reload.
        """
        key = (*self.seed.spawn_key, k, int(self.n[k]) if n is None else n)
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))

    def rows(self, k: int | None = None) -> dict[str, Array]:
        """Return rounds by role: x (n, d), reward, weight (n,) of arm k, or these and arm of all.

        If `normalize` is true, each arm's weights average 1.
        """
        rows = self.rounds.of(k)
        if self.normalize:
            arm = rows.get("arm", np.zeros(len(rows["reward"]), dtype=np.int64))
            mean = np.bincount(arm, rows["weight"]) / np.maximum(np.bincount(arm), 1)
            rows["weight"] = rows["weight"] / mean[arm]
        return rows

    # ---- mean rewards ----------------------------------------------------------------------------

    def _all(self, x: Array) -> Array:
        """Return `values` at x (n, d); raise ValueError if they are not valid."""
        what, n, K = f"{type(self).__name__}.values", len(x), len(self.n)
        values = floats(self.values(x.copy()), what)
        if values.ndim != 3 or values.shape[:2] != (n, K) or values.shape[2] == 0:
            raise ValueError(f"{what} must give ({n}, {K}, S), S ≥ 1; got {values.shape}")
        if not np.isfinite(values).all():
            drawn = values[:, ~np.isnan(values).all(axis=(0, 2))]
            wrong = drawn[~np.isfinite(drawn)]
            if wrong.size:
                raise ValueError(f"{what} must be finite, or NaN of the whole arm; got {wrong[0]}")
        return values

    def at_once(self, x: Array) -> int:
        return AT_ONCE // (self._all(x[:1]).shape[2] * len(self.n))

    def predict(self, x: Array) -> Prediction:
        return Draws(self._all(x), self.weights(), joint=self.joint)

    def predict_together(self, x: Array) -> Prediction:
        n, m, d = x.shape
        values = self._all(x.reshape(-1, d)).reshape(n, m, -1)
        weights = self.weights()
        return Draws(values, None if weights is None else weights.reshape(-1), joint=True)

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
        copied = {k: v for k, v in vars(self).items() if k not in shared}
        vars(twin).update(deepcopy(copied), rounds=rounds)
        return twin

    def state(self) -> dict[str, Any]:
        """Return the rounds; `restore` computes the rest from them by `learn`."""
        return {"rounds": self.rounds.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.rounds.restore(state["rounds"], len(self.n))
        self._change(len(self.n))

    def verify(self, total: int) -> None:
        self.rounds.verify(len(self.n))


class ByNormal(ByDraws):
    """A belief by draws with independent normal predictions, of the draws' means and sds."""

    def predict(self, x: Array) -> LocationScale:
        draws = super().predict(x)
        return LocationScale(draws.mean, draws.sd)

    predict_together = Belief.predict_together
