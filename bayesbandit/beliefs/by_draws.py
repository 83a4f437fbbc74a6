"""Beliefs that are known by draws: ensembles, forests, samplers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np

from bayesbandit.beliefs.base import Belief, moments_of, shared, widened
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.checks import floats
from bayesbandit.kernels.prob_best import by_draws
from bayesbandit.kernels.prob_best.quadrature import best_of_location_scale
from bayesbandit.kernels.rules import HUGE, put_moments
from bayesbandit.runtime.memory import AT_ONCE

IMPROPER = "the posterior is not proper before there are more rewards"
SQUARABLE = 1e150  # the greatest size of a number whose square float64 holds


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
    def values(self, x: np.ndarray) -> np.ndarray:
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

    def rows(self, k: int | None = None) -> dict[str, np.ndarray]:
        """The rounds of arm k, or of all with their arms: x (n, d), reward, weight, arm (n,), by
        role; each arm's weights of mean 1 if they are normalised."""
        rows = self.rounds.of(k)
        if self.normalize:
            arm = rows.get("arm", np.zeros(len(rows["reward"]), dtype=np.int64))
            mean = np.bincount(arm, rows["weight"]) / np.maximum(np.bincount(arm), 1)
            rows["weight"] = rows["weight"] / mean[arm]
        return rows

    # ---- mean rewards ----------------------------------------------------------------------------

    def _all(self, x: np.ndarray) -> np.ndarray:
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

    def parts(self, x: np.ndarray) -> Iterable[slice]:
        """Contexts x (n, d) in parts whose draws fit into memory."""
        S = self._all(x[:1]).shape[2] if len(x) > 1 else 1
        step = max(1, AT_ONCE // (S * len(self.n)))
        return [slice(i, i + step) for i in range(0, len(x), step)]

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [summary(self._all(x[part])) for part in self.parts(x)]
        mean, sd = map(np.concatenate, zip(*found, strict=True))
        return mean, sd

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        D = self.n_features
        for part in self.parts(rows[:, :D]):
            block, new = rows[part], self.new
            values = self._all(block[:, :D])
            mean, sd = summary(values)
            last = np.where(new, -np.inf, np.inf)
            if alpha is not None:
                a = alpha if alpha.size == 1 else alpha[part]
                last = shared(
                    new, available, lambda old, v=values, a=a: self._compared(v[:, old], a)
                )
            put_moments(block, D, available, mean, sd, last)
            self.decided(len(block))

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        which = slice(None) if available is None else available
        a = np.broadcast_to(np.ravel(alpha), len(x))
        parts = [self._compared(self._all(x[p])[:, which], a[p]) for p in self.parts(x)]
        return np.concatenate(parts)

    def _compared(self, values: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """P(arm is best) (n, K) from draws (n, K, S), α times as far from their means; all alike as
        long as an arm has none."""
        if np.isnan(values[:, :, 0]).any():
            return np.full(values.shape[:2], 1.0 / values.shape[1])
        values = widened(values, alpha, axis=2)
        return (
            by_draws.joint(values.transpose(0, 2, 1))
            if self.joint
            else by_draws.independent(values)
        )

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        which = slice(None) if available is None else available
        values = self._all(x)[:, which]
        if np.isnan(values).any():
            raise ValueError(f"{self!r}: {IMPROPER}")
        _, K, S = values.shape
        one = rng.integers(S, size=(size, 1 if self.joint else K))
        one = np.broadcast_to(one, (size, K))
        return np.stack([values[:, k, one[:, k]].T for k in range(K)], axis=2)

    # ---- rewards ---------------------------------------------------------------------------------

    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        self.rounds.append(x, arm, reward, weight)
        self.n, self.refitted = self.n + np.bincount(arm, minlength=len(self.n)), {}
        self.learn(sorted(set(arm.tolist())))

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
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

    tabulates: ClassVar[bool] = False
    independent: ClassVar[bool] = True  # nothing is known of how mean rewards depend on each other

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        mean, sd = moments_of(self, rows[:, : self.n_features])
        last = np.where(self.new, -np.inf, np.inf)
        put_moments(rows, self.n_features, available, mean, sd, last)

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        mean, sd = self.moments(x)
        which = slice(None) if available is None else available
        scale = np.reshape(alpha, (-1, 1)) * np.minimum(sd, HUGE)[:, which]
        return best_of_location_scale(mean[:, which], scale, np.full_like(scale, np.inf))

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        mean, sd = self.moments(x)
        which = slice(None) if available is None else available
        if not np.isfinite(sd[:, which]).all():
            raise ValueError(f"{self!r}: {IMPROPER}")
        values: np.ndarray = mean + sd * rng.standard_normal((size, 1, len(self.n)))
        return values[:, :, which]


def summary(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations (n, K) of draws (n, K, S); 0 and ∞ where there are none."""
    size = np.abs(values).max(axis=2, keepdims=True)
    unit = np.where(size > SQUARABLE, size, 1.0)
    mean, known = values.mean(axis=2), ~np.isnan(values[:, :, 0])
    sd = unit[:, :, 0] * (values / unit).std(axis=2)
    return np.where(known, mean, 0.0), np.where(known, sd, math.inf)
