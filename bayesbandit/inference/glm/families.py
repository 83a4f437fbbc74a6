"""The likelihoods (families) that are known by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from bayesbandit.checks import Array
from bayesbandit.kernels.glm import families as compiled_families
from bayesbandit.kernels.glm import newton
from bayesbandit.kernels.glm.families import BINOMIAL, NEGATIVE_BINOMIAL, POISSON, PROBIT

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
GRID = np.arange(-40.0, 40.0 + 0.125, 0.25)  # of log odds


@dataclass(frozen=True)
class Family:
    """p(r | η) but for what does not depend on η.

    number: of trials, or α (`kernels/glm`).
    """

    kind: int
    number: float = 1.0

    @property
    def name(self) -> str:
        """What it is called."""
        if self.kind == BINOMIAL:
            return "Bernoulli" if self.number == 1.0 else f"binomial of {self.number:g} trials"
        names = {PROBIT: "probit", POISSON: "Poisson"}
        return names.get(self.kind, f"negative binomial of alpha {self.number:g}")

    @property
    def rewards(self) -> Array:
        """Some rewards that are possible."""
        if self.kind == PROBIT:
            return np.array([0.0, 1.0])
        if self.kind == BINOMIAL:
            return np.unique(np.round(np.linspace(0.0, self.number, 5)))
        return np.array([0.0, 1.0, 2.0, 5.0, 17.0, 100.0])

    @property
    def ends(self) -> tuple[float, float]:
        """How far η goes where a likelihood is compared: beyond, digits are lost."""
        if self.kind == PROBIT:
            return -7.0, 7.0
        return -30.0, 30.0 if self.kind == BINOMIAL else 8.0

    def possible(self, reward: Array) -> Array:
        """Return which rewards can be."""
        most = np.inf if self.kind in (POISSON, NEGATIVE_BINOMIAL) else self.number
        return (reward == np.floor(reward)) & (reward >= 0.0) & (reward <= most)

    def mean(self, eta: Array) -> Array:
        """Return the mean reward."""
        if self.kind == BINOMIAL:
            return np.asarray(self.number * expit(eta))
        return np.asarray(ndtr(eta) if self.kind == PROBIT else np.exp(eta))

    def linked(self, mean: Array) -> Array:
        """Return η of a mean reward; ±∞ beyond what can be a mean reward."""
        if self.kind == BINOMIAL:
            return np.asarray(logit(np.clip(mean / self.number, 0.0, 1.0)))
        if self.kind == PROBIT:
            return np.asarray(ndtri(np.clip(mean, 0.0, 1.0)))
        return np.asarray(np.log(np.maximum(mean, 0.0)))

    def moments(self, eta: Array, sd: Array) -> tuple[Array, Array]:
        """Return mean and sd of the mean reward under η ~ N(eta, sd²), arrays of one shape."""
        # E g⁻¹(η + sd Z) and its sd: of counts a log-normal's; of probabilities by Gauss–Hermite
        # nodes, or on a grid of log odds where sd ≥ 1
        mean = np.empty(eta.shape)
        out = np.empty(eta.shape)
        flat = [np.ascontiguousarray(v).ravel() for v in (eta, sd)]
        flat += [NODES, WEIGHTS, GRID, mean.reshape(-1), out.reshape(-1)]
        compiled_families.mean_and_sd(self.kind, self.number, *flat)
        return mean, out

    def total(self, eta: Array, reward: Array, weight: Array) -> float:
        """Return Σ w log p(r | η), but for what does not depend on η."""
        return float(compiled_families.totals(self.kind, self.number, eta, reward, weight))

    def pseudo_rows(self, eta: Array, reward: Array, weight: Array) -> tuple[Array, Array]:
        """Return normal observations of η and their precisions (n,), whose log densities have
        the slopes and curvatures at η (n,) that those of the rewards have, by their weights."""
        y = np.empty(len(eta))
        v = np.empty(len(eta))
        newton.pseudo_rows(eta, self.kind, self.number, reward, weight, y, v)
        return y, v
