"""Exact posteriors, from PyMC's gradients alone: Gaussian, or Gaussian given one positive variable.

A log density is Gaussian's where its gradient is affine, at all distances: 10⁻¹ to 10² posterior
standard deviations. Given one more variable it is integrated over that one, by quadrature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from tests.hunt.truth import Truth

DISTANCES = (0.1, 1.0, 10.0, 100.0)  # posterior standard deviations
EXACT = 1e-4  # of a standard deviation: a larger difference is an error
ILL = 1e11  # condition of a precision beyond which differences of gradients say nothing

Draw = Mapping[str, np.ndarray]


class Wrong(Exception):
    """An answer that is not the posterior of the declaration on its rows; says what differs."""


class Unjudged(Exception):
    """What these means cannot judge; says why."""


def has_digits(truth: Truth, theta: np.ndarray) -> None:
    """Raises `Unjudged` where log densities are so large that their rounding hides a step."""
    rounding = np.finfo(np.float64).eps * abs(truth.logp(theta))
    if np.isfinite(rounding) and rounding > 1e-2:
        raise Unjudged(f"log densities are rounded by {rounding:.2g}")


@dataclass(frozen=True)
class Normal:
    """N(mean, H⁻¹) of coordinates `block` of θ, with H = LL', and log p at the mean."""

    mean: np.ndarray
    L: np.ndarray
    peak: float

    @property
    def covariance(self) -> np.ndarray:
        """H⁻¹ (D, D)."""
        half = solve_triangular(self.L, np.eye(len(self.L)), lower=True)
        return half.T @ half


def normal(
    truth: Truth, start: np.ndarray, block: np.ndarray, rng: np.random.Generator,
    distances: tuple[float, ...] = DISTANCES, spread: np.ndarray | None = None,
) -> Normal:  # fmt: skip
    """The Gaussian that the log density is in coordinates `block` of θ, others as in `start`."""

    def at(z: np.ndarray) -> np.ndarray:
        theta = start.copy()
        theta[block] = z
        return theta

    def gradient(z: np.ndarray) -> np.ndarray:
        return truth.gradient(at(z))[block]

    has_digits(truth, start)
    z0, D = start[block], len(block)
    steps = np.ones(D) if spread is None else spread
    with np.errstate(all="ignore"):
        H = np.array([
            (gradient(z0 - h * e) - gradient(z0 + h * e)) / (2.0 * h)
            for h, e in zip(steps, np.eye(D), strict=True)
        ])  # fmt: skip
    if not np.isfinite(H).all():
        raise Wrong("the gradient of the log density is not finite near the reported mean")
    scale = np.sqrt(np.abs(np.diag(H)))
    if not scale.all():
        raise Wrong("the log density has no curvature where the answer is Gaussian")
    standard = H / np.outer(scale, scale)
    asymmetry = np.abs(standard - standard.T).max()
    if asymmetry > 1e-4:
        raise Wrong(f"the gradient is not linear: its slopes differ by {asymmetry:.2g}")
    standard = (standard + standard.T) / 2.0
    if np.linalg.cond(standard) > ILL:
        raise Unjudged("ill-conditioned precision")
    try:
        L = scale[:, None] * cholesky(standard, lower=True)
    except LinAlgError:
        raise Wrong("the log density is not concave at the reported mean") from None

    def half(v: np.ndarray) -> np.ndarray:
        return np.asarray(solve_triangular(L, v, lower=True))

    mean = z0
    for _ in range(3):
        mean = mean + solve_triangular(L, half(gradient(mean)), lower=True, trans=1)
    off = np.abs(half(gradient(mean))).max()
    if not off <= EXACT * 10:
        raise Wrong(f"the gradient does not vanish at its Newton point: {off:.2g} sd")
    peak = truth.logp(at(mean))
    for distance in distances:
        for _ in range(2):
            e = rng.normal(size=D)
            e *= distance / np.linalg.norm(e)
            z = mean + solve_triangular(L, e, lower=True, trans=1)
            error = np.abs(half(gradient(z)) + e).max()
            if not error <= EXACT * max(distance, 1.0):
                raise Wrong(f"the gradient is not affine: {error:.2g} off at {distance:g} sd")
            value = truth.logp(at(z)) - peak + distance**2 / 2.0
            noise = 1e-11 * abs(peak) + EXACT * max(distance**2, 1.0)
            if not abs(value) <= noise:
                raise Wrong(f"log p is not quadratic: {value:.4g} off at {distance:g} sd")
    return Normal(mean, L, peak)


@dataclass(frozen=True)
class Moments:
    """Means and covariance of all free variables, stacked in their own space."""

    mean: np.ndarray
    covariance: np.ndarray

    def of(self, truth: Truth, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Of one variable, flat."""
        lengths = [np.size(v) for v in truth.constrained(np.zeros(truth.dim)).values()]
        edges = np.cumsum([0, *lengths])
        i = truth.names.index(name)
        part = slice(edges[i], edges[i + 1])
        return self.mean[part], self.covariance[part, part]


def stacked(draw: Draw) -> np.ndarray:
    """All variables' own values in one vector."""
    return np.concatenate([np.ravel(v) for v in draw.values()]).astype(float)


def gaussian(truth: Truth, start: np.ndarray, spread: np.ndarray | None) -> Moments:
    """The moments of a posterior that is Gaussian, or `Wrong` where it is not."""
    rng = np.random.default_rng(1)
    known = normal(truth, start, np.arange(truth.dim), rng, spread=spread)
    zero = stacked(truth.constrained(np.zeros(truth.dim)))
    A = np.array([stacked(truth.constrained(e)) - zero for e in np.eye(truth.dim)]).T
    for _ in range(2):
        z = rng.normal(size=truth.dim)
        if not np.allclose(stacked(truth.constrained(z)), zero + A @ z, rtol=1e-7, atol=1e-9):
            raise Wrong("a variable that the answer takes for Gaussian is constrained")
    return Moments(zero + A @ known.mean, A @ known.covariance @ A.T)


@dataclass(frozen=True)
class GivenScale:
    """A posterior that is Gaussian given u, the unconstrained coordinate of one variable.

    u (m,), its probabilities (m,), distribution function (m,); moments as of all variables.
    """

    u: np.ndarray
    probability: np.ndarray
    cdf: np.ndarray
    moments: Moments
    settled: bool  # whether the second moments have no weight at the ends of the grid


def given_scale(truth: Truth, index: int, start: np.ndarray, u0: float, sd: float) -> GivenScale:
    """Integrates coordinate `index` of θ out, about u0 with spread `sd`."""
    rng = np.random.default_rng(1)
    block = np.delete(np.arange(truth.dim), index)
    reach = max(12.0 * sd, np.log(1e3))
    near = np.linspace(-6.0 * sd, 6.0 * sd, 61)
    wide = np.linspace(-reach, reach, 41)
    u = u0 + np.unique(np.concatenate([near, wide]))
    log, means, covariances = [], [], []
    theta, spread = start.copy(), None
    order = np.argsort(np.abs(u - u0))
    found = {}
    for i in order:
        theta[index] = u[i]
        if block.size:
            few = (1.0, 100.0) if i in order[:7] else (3.0,)
            known = normal(truth, theta, block, rng, few, spread)
            theta[block] = known.mean
            spread = np.sqrt(np.diag(known.covariance))
            found[i] = known.peak - np.log(np.diag(known.L)).sum(), known.mean, known.covariance
        else:
            found[i] = truth.logp(theta), np.zeros(0), np.zeros((0, 0))
    for i in range(len(u)):
        value, mean, covariance = found[i]
        full = np.empty(truth.dim)
        full[index], full[block] = u[i], mean
        own = stacked(truth.constrained(full))
        big = np.zeros((truth.dim, truth.dim))
        big[np.ix_(block, block)] = covariance
        log.append(value)
        means.append(own)
        covariances.append(big)
    logs, M, C = np.array(log), np.array(means), np.array(covariances)
    width = np.gradient(u)
    weight = np.exp(logs - logs.max()) * width
    total = weight.sum()
    p = weight / total
    mean = p @ M
    D = M - mean
    covariance = np.einsum("m,mij->ij", p, C) + np.einsum("m,mi,mj->ij", p, D, D)
    second = p * np.array([np.diag(c).sum() for c in C] + (D**2).sum(axis=1))
    settled = max(second[:3].sum(), second[-3:].sum()) < 1e-6 * second.sum()
    return GivenScale(u, p, np.cumsum(p) - p / 2.0, Moments(mean, covariance), bool(settled))


def compare(what: str, said: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray],
            tolerance: float = 1e-3) -> None:  # fmt: skip
    """Holds a mean and sds (or a covariance) against the right ones."""
    mean, right_mean = np.ravel(said[0]), np.ravel(right[0])
    spread, right_spread = np.asarray(said[1], dtype=float), np.asarray(right[1], dtype=float)
    sd = np.sqrt(np.diag(right_spread)) if right_spread.ndim == 2 else np.atleast_1d(right_spread)
    sd = np.maximum(sd, 1e-300)
    if spread.ndim == 2:
        unit, right_unit = spread / np.outer(sd, sd), right_spread / np.outer(sd, sd)
    else:
        unit, right_unit = np.atleast_1d(spread) / sd, np.ones(len(sd))
    floor = 1e-9 * np.abs(right_mean) / sd
    off = np.abs(mean - right_mean) / sd
    if not (off <= tolerance + floor).all():
        i = int(np.nanargmax(off - floor)) if np.isfinite(off).any() else 0
        raise Wrong(
            f"{what}: mean {mean[i]:.6g}, right {right_mean[i]:.6g} ± {sd[i]:.3g} "
            f"({off[i]:.3g} sd off)"
        )
    worst = np.abs(unit - right_unit).max(initial=0.0)
    if not worst <= tolerance:
        raise Wrong(f"{what}: spread is off by a factor up to {1 + worst:.4g} of the right one")
