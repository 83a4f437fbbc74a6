"""The posterior of one arm of the linear belief."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import Array, Contexts, integer, probabilities
from bayesbandit.predictions import scaled, spread, symmetric_root
from bayesbandit.runtime.shown import html_table
from bayesbandit.tables.encoder import Encoder, contexts_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class WeightedRows:
    """The rows behind a posterior: contexts with the constant z (n, D), rewards, weights (n,).

    inverse (D, D): B⁻¹ with B = Z'WZ + the prior precision times σ². seen: how many rows the
    posterior has learned, including rows that are not kept. z and inverse are about the origin of
    the `LinearPosterior`, if it has one.
    """

    z: Array
    reward: Array
    weight: Array
    inverse: Array
    seen: int


@dataclass(frozen=True)
class LinearPosterior:
    """One arm's coefficients θ ~ N(location, spread), or Student-t with `df` degrees of freedom.

    near (D,), near_spread (D, D): location and spread of the coefficients of contexts less an
    origin (d,), with the intercept last if there is one. Mean rewards are computed from these,
    because at contexts far from 0 they keep digits that cancel otherwise. Without an origin, they
    are those of θ. encoder: turns tables into contexts, if the bandit has one.
    """

    near: Array
    near_spread: Array
    df: float
    n_features: int
    origin: Array | None = None
    encoder: Encoder | None = field(default=None, repr=False)
    weighted: WeightedRows | None = field(default=None, repr=False)
    sandwich: bool = False

    def _repr_html_(self) -> str:
        mean, covariance = self.coefficients["theta"]
        names = self.encoder.features if self.encoder is not None else range(self.n_features)
        labels = [*map(str, names), "constant"][: len(mean)]
        rows = zip(labels, mean.tolist(), np.sqrt(np.diag(covariance)).tolist(), strict=True)
        return html_table(f"Posterior of θ, {self.engine}", ("feature", "mean", "sd"), rows)

    @property
    def location(self) -> Array:
        """The posterior mean (D,) of θ."""
        return self.near if self.origin is None else self._to_zero @ self.near

    @property
    def spread(self) -> Array:
        """The scale matrix (D, D) of θ."""
        if self.origin is None:
            return self.near_spread
        return np.asarray(self._to_zero @ self.near_spread @ self._to_zero.T)

    @property
    def _to_zero(self) -> Array:
        """What makes θ of the coefficients about the origin: (x − o)'β + c = x'β + (c − o'β)."""
        to_zero = np.eye(len(self.near))
        if self.origin is not None:
            to_zero[-1, :-1] = -self.origin
        return to_zero

    @property
    def engine(self) -> str:
        """How the posterior was computed: in closed form, or by `robust`."""
        if self.sandwich:
            return "sandwich"
        return "exact_gaussian" if math.isinf(self.df) else "normal_inverse_gamma"

    def robust(self) -> LinearPosterior:
        """Return the same coefficients, normal with the sandwich covariance B⁻¹Z'W²diag(e²)ZB⁻¹.

        Use it for intervals from a bandit that weights its rewards (balancing). The posterior
        treats weights as precisions. Weights 1/p are not precisions, so its intervals are too
        short. Here each row enters by its squared residual e², for any noise (White 1980,
        Econometrica 48, 817–838). With few rows for each coefficient, or a strong prior, these
        intervals are too short too.

        Raise ValueError if the history has not kept all of the arm's rounds, or has none.
        """
        rows = self.weighted
        if rows is None or not rows.seen:
            raise ValueError(
                "robust() needs the rounds of one arm, with weights that do not fade, as they do "
                "by half_life, drift and forget; there are none here"
            )
        if len(rows.z) < rows.seen:
            raise ValueError(
                f"robust() needs all {rows.seen} rounds of the arm, and the history has kept "
                f"{len(rows.z)}: make the bandit with history=None"
            )
        score = rows.z * (rows.weight * (rows.reward - rows.z @ self.near))[:, None]
        half = score @ rows.inverse
        return replace(self, near_spread=half.T @ half, df=math.inf, sandwich=True)

    @property
    def coefficients(self) -> dict[str, tuple[Array, Array]]:
        """θ's posterior mean (D,) and covariance (D, D)."""
        variance = float(spread(1.0, self.df)) ** 2  # of the standard distribution
        return {"theta": (self.location, scaled(self.spread, variance))}

    @property
    def marginals(self) -> dict[str, Any]:
        """The marginal distributions of θ (D,), from scipy.stats."""
        from scipy import stats

        if not np.isfinite(self.spread).all():
            raise ValueError("the posterior is not proper before the arm's first reward")
        scale = np.sqrt(np.maximum(np.diag(self.spread), 0.0))
        if math.isinf(self.df):
            return {"theta": stats.norm(self.location, scale)}
        return {"theta": stats.t(self.df, self.location, scale)}

    def quantiles(self, name: str, p: ArrayLike) -> Array:
        """Return the quantiles (m, D) of each element of θ at probabilities p (m,)."""
        if name not in self.marginals:
            raise ValueError(f"no variable {name!r}; there is theta")
        return np.stack([self.marginals[name].ppf(q) for q in probabilities(np.ravel(p))])

    def _design(self, x: Contexts) -> Array:
        """Return the design (n, D) of contexts, about the origin if there is one."""
        z = contexts_of(x, self.encoder, self.n_features)
        if self.origin is not None:
            z = z - self.origin
        constant = len(self.near) > self.n_features
        return np.column_stack([z, np.ones(len(z))]) if constant else z

    def mean(self, x: Contexts) -> Array:
        """Return posterior means (n,) of the mean reward at x (n, d)."""
        return np.asarray(self._design(x) @ self.near)

    def sd(self, x: Contexts) -> Array:
        """Return posterior standard deviations (n,) of the mean reward at x (n, d)."""
        z = self._design(x)
        if not np.isfinite(self.near_spread).all():
            return np.full(len(z), np.inf)
        scale2 = np.maximum(np.einsum("ni,ij,nj->n", z, self.near_spread, z), 0.0)
        return spread(np.sqrt(scale2), self.df)

    def draw(self, x: Contexts, size: int, rng: np.random.Generator | int) -> Array:
        """Return mean rewards (size, n) under `size` draws of θ; each is used at all n contexts.

        rng: a generator, or a seed.
        """
        theta = self._near(integer(size, "size", 1), np.random.default_rng(rng))
        return np.asarray(theta @ self._design(x).T)

    def to_datatree(
        self,
        chains: int = 4,
        draws: int = 1000,
        seed: int = 0,
        features: Sequence[Any] | None = None,
    ) -> xr.DataTree:
        """Return independent draws of θ, and of the intercept if there is one, for ArviZ.

        The tree has only the group posterior, because the belief keeps no rewards. features: the
        columns' names.
        """
        import arviz as az

        integer(chains, "chains", 1)
        integer(draws, "draws", 1)
        d = self.n_features
        theta = self._near(chains * draws, np.random.default_rng(seed)) @ self._to_zero.T
        theta = theta.reshape(chains, draws, -1)
        values = {"theta": theta[..., :d]}
        if theta.shape[2] > d:
            values["intercept"] = theta[..., d]
        if features is None:
            features = range(d) if self.encoder is None else self.encoder.features
        names = list(features)
        if len(names) != d:
            raise ValueError(f"features must name {d} columns; got {names!r}")
        return az.from_dict(
            {"posterior": values},
            coords={"feature": names},
            dims={"theta": ["feature"]},
            attrs={"posterior": {"engine": self.engine}},
        )

    def _near(self, size: int, rng: np.random.Generator) -> Array:
        """Return draws (size, D) of the coefficients about the origin."""
        if not np.isfinite(self.near_spread).all():
            raise ValueError("the posterior is not proper before the arm's first reward")
        root = symmetric_root(self.near_spread)  # also of σ² = 0
        theta = rng.standard_normal((size, len(self.near))) @ root.T
        if math.isfinite(self.df):
            theta *= np.sqrt(self.df / rng.chisquare(self.df, size))[:, None]
        return np.asarray(self.near + theta)
