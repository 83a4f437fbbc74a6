"""Gibbs sampling of generalised linear models: logistic, negative binomial and probit ones.

Their likelihoods are mixtures of normals: by Pólya–Gamma variables, of any weights, or by latent
normals, where weights are whole numbers (`kernels/glm`). Each sweep draws these, and all of θ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.inference.base import matching, refuse
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.gibbs.sampler import ENGINE, TUNE_WARM, Position, streams
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.glm.regression import Regression, regression
from bayesbandit.inference.graph_analysis.quadratic import Data
from bayesbandit.kernels.algebra.cholesky import factor, padded, room
from bayesbandit.kernels.glm import sweeps
from bayesbandit.kernels.glm.families import NEGATIVE_BINOMIAL, POISSON, PROBIT
from bayesbandit.runtime.one_thread import one_thread

if TYPE_CHECKING:
    import pymc as pm

TUNE = 200
REPEATS = 1000  # of a probit row, by its weight

Sweep = Callable[[np.ndarray, np.ndarray, np.random.Generator], None]


class Augmented:
    """A generalised linear model whose likelihood is a mixture of normals.

    names, shapes: the declared variables.
    """

    engine = ENGINE

    def __init__(self, glm: Regression) -> None:
        self.glm = glm
        self.block = glm.block
        self.names = glm.block.names
        self.shapes = glm.block.shapes
        self.all_shapes: dict[str, tuple[int | None, ...]] = {**self.shapes}

    def sample(
        self,
        data: Mapping[str, np.ndarray],
        draws: int = 1000,
        chains: int = 4,
        tune: int | None = None,
        seed: int | np.random.SeedSequence = 0,
        start: Sequence[Position] | None = None,
    ) -> SampledDraws:
        """Return draws of the declared variables given rows x (n, d), reward, weight, arm (n,), by
        role.

        start: states, such as `SampledDraws.state` of an earlier run on these or on other rows;
        without it, chains begin at random about the mode.
        """
        rows = self.block.data(**data)
        if tune is None:
            tune = TUNE if start is None else TUNE_WARM
        kept = []
        last = []
        with one_thread():
            self.glm.check(rows)
            A, b = self.block.linear_map(rows[0], None if self.block.n_arms is None else rows[3])
            sweep = self._sweep(A, b, rows)
            for i, stream in enumerate(streams(seed, chains)):
                rng = np.random.default_rng(stream)
                if start is None:
                    theta = self.glm.near_mode(A, b, rows, rng)
                else:
                    theta = self.block.stacked(
                        {k: v[None] for k, v in start[i % len(start)].items()}
                    )[0]
                swept = np.empty((tune + draws, theta.size))
                sweep(theta, swept, rng)
                kept.append(swept[tune:])
                last.append(self.block.split(theta))
            self.glm.check(rows, A @ theta + b)
        return SampledDraws(self.block.split(np.stack(kept)), state=last)

    def _sweep(self, A: np.ndarray, b: np.ndarray, rows: Data) -> Sweep:
        """Return what fills draws (S, D), from θ (D,) on, given these rows."""
        _, reward, _, _ = rows
        prior = self.block.prior()
        weight = self.glm.weights(rows)
        family = self.glm.family
        n, D = A.shape
        P = padded(D)
        M = room(D)[1]
        wide = np.zeros((n, M))
        wide[:, :D] = A
        joint = np.zeros((P, M))
        joint[:D, :D] = prior.precision
        joint[:D, P] = prior.shift
        padding = (np.arange(P) >= D).astype(np.float64)
        if family.kind == PROBIT:
            check_counts(weight)
            joint[:D, :D] += (A.T * weight) @ A
            factor(joint, padding, joint)
            sign = np.where(reward > 0.5, 1.0, -1.0)
            expands = not (b.any() or prior.shift.any())
            latent = wide, b, sign, weight, joint, prior.precision, prior.shift, expands
            return partial(sweeps.albert_chib, *latent)
        shape, kappa, b = mixture(family, reward, weight, b)
        wide[:, P] = -b
        joint[:D, P] = prior.shift + A.T @ kappa
        return partial(sweeps.polya_gamma, wide, shape, joint, padding)


def check_counts(weight: np.ndarray) -> None:
    """Refuse weights (n,) of probit rewards that do not say how often a row was seen."""
    if (odd := (weight != np.floor(weight)) | (weight > REPEATS)).any():
        reason = (
            "the likelihood of a probit reward is a mixture of normals where its weight is "
            f"a whole number, at most {REPEATS}; got {weight[odd][0]:g}"
        )
        raise refuse(ENGINE, reason, of_rows=True)


def mixture(
    family: Family, reward: np.ndarray, weight: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shape, κ and offset (n,) of rows with η = Aθ + b: a row's likelihood is e^{κψ} E
    exp(−ωψ²/2) with ω ~ PG(shape, 0) and ψ = Aθ + offset."""
    number = family.number
    if family.kind == NEGATIVE_BINOMIAL:
        kappa = 0.5 * weight * (reward - number)
        return weight * (reward + number), kappa, b - math.log(number)
    return weight * number, weight * (reward - 0.5 * number), b


@matching
def match(model: pm.Model) -> Augmented:
    """Return the sampler of a built model that is a generalised linear one."""
    glm = regression(model, ENGINE)
    if glm.family.kind == POISSON:
        raise refuse(ENGINE, "a Poisson likelihood is no known mixture of normals")
    return Augmented(glm)
