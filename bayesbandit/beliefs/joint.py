"""Exact beliefs of declared linear-Gaussian models that arms share: their mean rewards depend on
each other, and arms are compared by joint draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from bayesbandit.beliefs.affine import AffineBelief
from bayesbandit.beliefs.base import shared
from bayesbandit.beliefs.rounds import Rounds
from bayesbandit.beliefs.shared.comparison import POINTS, quasi_random
from bayesbandit.inference.plan import Plan
from bayesbandit.kernels.prob_best import by_draws
from bayesbandit.kernels.rules import HUGE, put_moments, spread
from bayesbandit.posteriors.posterior import Posterior
from bayesbandit.runtime.memory import AT_ONCE


class JointBelief(AffineBelief):
    """K arms that share a model: one φ for all, so that their mean rewards depend on each other.

    P(an arm is best) is the share of joint draws in which it is: of as many quasi-random ones, the
    same every time. All rounds are kept, for arms that come and go.
    """

    tabulates = True
    separate = False
    streams = False  # all rounds are kept besides: an update is tried on a fork

    def __init__(self, plan: Plan, n_arms: int, normalize: bool = False) -> None:
        super().__init__(plan, n_arms, normalize)
        self.rounds = Rounds(plan.n_features)

    @property
    def n_posteriors(self) -> int:
        """One for all arms."""
        return 1

    def location_scale(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, root, df = self.together(x)
        return mean, np.sqrt((root**2).sum(axis=2)), np.full(mean.shape, df)

    def together(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Means (n, K), roots R (n, K, K) of the scale matrices RR', degrees of freedom."""
        z, offset = self.features(x)
        posterior = self.inner.posterior(0)
        spreads = z @ posterior.spread @ z.transpose(0, 2, 1)
        variance, axes = np.linalg.eigh(spreads)  # singular where arms are alike
        root = axes * np.sqrt(np.maximum(variance, 0.0))[:, None, :]
        return z @ posterior.location + offset, root, posterior.df

    def describe(
        self, rows: np.ndarray, available: np.ndarray, alpha: np.ndarray | None = None
    ) -> None:
        """Fill the moments of the available arms into rows (n, width), and for Thompson sampling
        with spreads α (1,) or (n,) their probabilities."""
        mean, root, df = self.together(rows[:, : self.n_features])
        scale, last = np.sqrt((root**2).sum(axis=2)), np.where(self.new, -df, df)
        if alpha is not None:
            scale = spread(scale, df)
            last = shared(
                self.new, available, lambda old: compared(mean[:, old], root[:, old], df, alpha)
            )
        put_moments(rows, self.n_features, available, mean, scale, last)

    def draw(
        self, x: np.ndarray, size: int, rng: np.random.Generator, available: Any = None
    ) -> np.ndarray:
        z, offset = self.features(x)
        if available is not None:
            z, offset = z[:, available], offset[:, available]
        flat = self.inner.posterior(0).draw(z.reshape(-1, z.shape[-1]), size, rng)
        return flat.reshape(size, *offset.shape) + offset

    def best(self, x: np.ndarray, alpha: Any = 1.0, available: Any = None) -> np.ndarray:
        mean, root, df = self.together(x)
        which = slice(None) if available is None else available
        return compared(mean[:, which], root[:, which], df, np.ravel(alpha))

    def update(
        self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any = None
    ) -> None:
        self._learn(x, arm, reward, weight)
        self.rounds.append(x, arm, reward, weight)

    def _learn(self, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: Any) -> None:
        one = np.zeros(len(x), dtype=np.int64)
        self.inner.update(*self.observed(x, one, reward, weight, arm), weight)
        self.n += np.bincount(arm, minlength=len(self.n))

    def reweigh(
        self, due: Iterable[int], x: np.ndarray, arm: np.ndarray, reward: np.ndarray,
        weight: np.ndarray,
    ) -> None:  # fmt: skip
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

    def posterior(self, k: int, rows: dict[str, np.ndarray]) -> Posterior:
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


def compared(mean: np.ndarray, root: np.ndarray, df: float, alpha: np.ndarray) -> np.ndarray:
    """P(arm is best) (n, K) for normals or Student-t of means (n, K) and scale matrices α²RR',
    R = root (n, K, D), α (1,) or (n,): the shares of quasi-random joint draws.

    Only differences of arms matter: along their principal axes, the widest first, because the first
    coordinates of a Sobol sequence are its best.
    """
    axes, width, _ = np.linalg.svd(root - root.mean(axis=1, keepdims=True), full_matrices=False)
    root = (axes * width[:, None, :])[:, :, : mean.shape[1] - 1]
    noise, width = quasi_random(root.shape[2], df)
    noise, out = noise * width[:, None], np.empty(mean.shape)
    step = max(1, AT_ONCE // (POINTS * mean.shape[1]))
    for i in range(0, len(mean), step):
        part = slice(i, i + step)
        spreads = noise @ root[part].transpose(0, 2, 1)
        a = alpha if alpha.size == 1 else alpha[part]
        values = mean[part, None] + a[:, None, None] * np.clip(spreads, -HUGE, HUGE)
        out[part] = by_draws.joint(values)
    return out
