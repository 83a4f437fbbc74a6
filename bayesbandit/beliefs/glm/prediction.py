"""The prediction of mean rewards that increase with a normal linear predictor."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from bayesbandit.inference.glm.families import Family
from bayesbandit.kernels.prob_best import by_draws
from bayesbandit.kernels.prob_best.points import POINTS, cells
from bayesbandit.predictions import Alpha, Joint, LocationScale, Prediction

Array = np.ndarray
MAX_NUMBERS = 2**22  # numbers that are held at a time
LAST_NODE = 8.5  # of a normal: nothing is beyond
FINE_STEP, COARSE_STEP = 1 / 16, 1 / 8  # steps of a normal
MOST_ARMS_FOR_FINE = 8


class Increasing(Prediction):
    """The prediction of mean rewards g(η) of normal η: an increasing g keeps the order of draws."""

    def __init__(self, eta: LocationScale | Joint, family: Family) -> None:
        self.eta, self.family = eta, family

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Means and standard deviations (n, K)."""
        return self.family.moments(self.eta.mean, self.eta.sd)

    @property
    def mean(self) -> Array:
        return self.moments[0]

    @property
    def sd(self) -> Array:
        return self.moments[1]

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return self.family.mean(self.eta.draw(size, rng))

    def best(self, alpha: Alpha = 1.0) -> Array:
        """Return P(arm has the largest mean reward), (n, K): see `Prediction`.

        With α = 1 the order of the arms is that of η. Another α multiplies distances of the mean
        rewards, and not of η: α = 0 is greedy.
        """
        alphas = np.broadcast_to(np.ravel(alpha), len(self.mean))
        if (alphas == 1.0).all():
            return self.eta.best()
        out = self.eta.best() if (alphas == 1.0).any() else np.empty(self.mean.shape)
        for i in np.flatnonzero(alphas != 1.0).tolist():
            if alphas[i] == 0.0:
                winners = self.mean[i] == self.mean[i].max()
                out[i] = winners / winners.sum()
            elif isinstance(self.eta, LocationScale):
                out[i] = self._best_apart(self.eta, i, alphas[i])
            else:
                out[i] = self._best_together(self.eta, i, alphas[i])
        return out

    def _best_together(self, eta: Joint, i: int, alpha: float) -> Array:
        """Return `best` (K,) at context i, as shares of the quasi-random points of `Joint`."""
        root = eta.root[i]
        mean = self.mean[i, :, None]
        shares = []
        points = ndtri((cells(root.shape[1]) + 0.5) / POINTS)
        parts = np.array_split(points, min(POINTS, 1 + len(root) * POINTS // MAX_NUMBERS), axis=1)
        for z in parts:
            draws = self.family.mean(eta.mean[i, :, None] + root @ z)
            shares.append(by_draws.joint((mean + alpha * (draws - mean)).T[None])[0])
        return np.average(shares, axis=0, weights=[part.shape[1] for part in parts])

    def _best_apart(self, eta: LocationScale, i: int, alpha: float) -> Array:
        """Return `best` (K,) at context i, by ∫ Π_{j≠k} F_j dF_k of arms' scores m + α(g(η) − m).

        The distribution functions F are exact at nodes of each arm, and linear between the nodes of
        all arms. The probabilities are off by less than 1e-4.
        """
        m = self.mean[i]
        K = self.mean.shape[1]
        u = np.arange(-LAST_NODE, LAST_NODE, FINE_STEP if K <= MOST_ARMS_FOR_FINE else COARSE_STEP)
        g = self.family.mean(eta.mean[i] + eta.scale[i] * u[:, None])
        with np.errstate(all="ignore"):
            # arm j is below arm k's node if g(η_j) < v; this form keeps the digits of a tiny α
            v = (m[:, None] - m) / alpha + (g - m)[:, :, None] + m
            z = (self.family.linked(v) - eta.mean[i]) / eta.scale[i]
        z[:, np.arange(K), np.arange(K)] = u[:, None]
        order = np.argsort(v[:, :, 0], axis=None, kind="stable")
        F = np.ones((z.size // K + 2, K))
        F[0] = 0.0
        F[1:-1] = np.maximum.accumulate(
            ndtr(np.where(np.isnan(z), LAST_NODE, z)).reshape(-1, K)[order]
        )
        out = np.zeros(K)
        for node, weight in zip(*by_draws.quadrature(min((K + 1) // 2, 4)), strict=True):
            inside = F[:-1] + node * np.diff(F, axis=0)
            others = np.ones_like(inside)
            others[:, 1:] = np.cumprod(inside[:, :-1], axis=1)
            others[:, :-1] *= np.cumprod(inside[:, :0:-1], axis=1)[:, ::-1]
            out += weight * (np.diff(F, axis=0) * others).sum(axis=0)
        return np.asarray(out / out.sum())

    def among(self, arms: Array) -> Increasing:
        return Increasing(self.eta.among(arms), self.family)

    def ranking(self) -> Joint | None:
        return self.eta.ranking()
