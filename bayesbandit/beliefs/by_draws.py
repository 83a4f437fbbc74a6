"""Beliefs that consist of draws: ensembles, forests, samplers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Protocol, Self

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.checks import Array, floats
from bayesbandit.forms import Arrays, Form, State, picked
from bayesbandit.predictions import Draws, Prediction
from bayesbandit.runtime.memory import AT_ONCE
from bayesbandit.schedule import Schedule


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
        self.n_features = n_features
        self.normalize = normalize
        self.seed = np.random.SeedSequence(0) if seed is None else seed
        self.rounds = Rounds(n_features)
        self.n = np.zeros(n_arms)

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
        self.seed = seed
        self.learn(range(len(self.n)))

    def rng(self, k: int, n: int | None = None) -> np.random.Generator:
        """Return a generator for arm k after n rounds (None: its current number).

        It gives the same numbers after a reload.
        """
        n = int(self.n[k]) if n is None else n
        key = (*self.seed.spawn_key, k, n)
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))

    def rows(self, k: int | None = None) -> Arrays:
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
        what = f"{type(self).__name__}.values"
        n = len(x)
        K = len(self.n)
        values = floats(self.values(x.copy()), what)
        if values.ndim != 3 or values.shape[:2] != (n, K) or values.shape[2] == 0:
            raise ValueError(f"{what} must give ({n}, {K}, S), S ≥ 1; got {values.shape}")
        if not np.isfinite(values).all():
            drawn = values[:, ~np.isnan(values).all(axis=(0, 2))]
            wrong = drawn[~np.isfinite(drawn)]
            if wrong.size:
                raise ValueError(f"{what} must be finite, or NaN of the whole arm; got {wrong[0]}")
        return values

    def max_batch(self, x: Array) -> int:
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
        self.n = self.n + np.bincount(arm, minlength=len(self.n))
        self.learn(sorted(set(arm.tolist())))

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        self.rounds.replace(x, arm, reward, weight)
        self.learn(due)

    def add_arm(self) -> None:
        self.recount(len(self.n) + 1)

    def remove_arm(self, k: int) -> None:
        self.rounds.drop(k)
        self.recount(len(self.n) - 1)

    def recount(self, n_arms: int) -> None:
        """Learn all rounds again, of so many arms, after one has come or gone."""
        self.n = self.rounds.counts(n_arms)
        self.learn(range(n_arms))

    # ---- all that is known -----------------------------------------------------------------------

    def fork(self) -> Self:
        twin = copy(self)
        rounds = self.rounds.fork()
        shared = "rounds", "seed"
        copied = {k: v for k, v in vars(self).items() if k not in shared}
        vars(twin).update(deepcopy(copied), rounds=rounds)
        return twin

    def state(self) -> State:
        """Return the rounds; `restore` computes the rest from them by `learn`."""
        return {"rounds": self.rounds.state()}

    def form(self, state: State, total: int) -> Form:
        return {"rounds": self.rounds.form(len(self.n))}

    def restore(self, state: State) -> None:
        self.restore_rounds(state)
        self.learn(range(len(self.n)))

    def restore_rounds(self, state: State) -> None:
        """Restore the rounds that `state` returned, and nothing that is computed from them."""
        self.rounds.restore(state["rounds"])
        self.n = self.rounds.counts(len(self.n))


class Fit(Protocol):
    """What is computed from the rounds of an arm. n: how many they were; 0: none so far."""

    @property
    def n(self) -> int: ...


class ByFits[F: Fit](ByDraws):
    """A belief by draws with a fit for each arm, which is computed again on a schedule.

    Write `fit`, and set what follows. blank: the fit of an arm with fewer than `least` rounds.
    schedule: when an arm is fitted again. fits: one for each arm, at first `blank`. They are
    replaced and never changed in place, so forks can share them.
    """

    blank: F
    schedule: Schedule
    least: int
    fits: tuple[F, ...]

    @abstractmethod
    def fit(self, rounds: Arrays, rng: np.random.Generator) -> F:
        """Return the fit to rounds of an arm, by role: x (n, d), reward, weight (n,)."""

    def unfitted(self, rounds: Arrays) -> F:
        """Return the fit of an arm that has too few rounds for one."""
        return self.blank

    @property
    def fitted(self) -> Array:
        """How many rounds each arm's fit is of (K,); 0 before the first."""
        return np.array([fit.n for fit in self.fits], np.float64)

    @property
    def new(self) -> Array:
        """A mask (K,) of the arms without a fit."""
        return self.fitted == 0

    def learn(self, arms: Iterable[int]) -> None:
        for k in arms:
            fitted = self.fits[k].n
            n = int(self.n[k])
            due = self.schedule.latest(0 if n < fitted else fitted, n, self.least)
            if due != fitted or fitted == 0:
                self.refit(k, due)

    def refit(self, k: int, n: int) -> None:
        """Fit arm k to its first n rounds."""
        rounds = self.rounds.of(k)
        if n >= self.least:
            fit = self.fit(picked(rounds, slice(n)), self.rng(k, n))
        else:
            fit = self.unfitted(rounds)
        self.fits = (*self.fits[:k], fit, *self.fits[k + 1 :])

    def reweigh(
        self, due: Iterable[int], x: Array, arm: Array, reward: Array, weight: Array
    ) -> None:
        super().reweigh((), x, arm, reward, weight)
        for k in due:
            self.refit(k, int(self.n[k]))

    def add_arm(self) -> None:
        self.fits = (*self.fits, self.blank)
        super().add_arm()

    def remove_arm(self, k: int) -> None:
        self.fits = (*self.fits[:k], *self.fits[k + 1 :])
        super().remove_arm(k)

    def fork(self) -> Self:
        twin = copy(self)
        twin.rounds = self.rounds.fork()
        twin.n = self.n.copy()
        return twin
