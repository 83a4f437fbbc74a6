"""The exact engine for models whose log density is quadratic: the posterior is Gaussian.

Recognised from the declaration's log density (`degrees`), extracted from its gradient
(`quadratic`, (8) of mathematics.md), whatever the declaration looks like: ridge, hierarchies of
means, random walks, …
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.inference.base import NotFinite, improper, matching, sound
from bayesbandit.inference.exact.distributions import Gaussian, factor
from bayesbandit.inference.graph_analysis.density import read
from bayesbandit.inference.graph_analysis.eligibility import eligible, on_own_rows
from bayesbandit.inference.graph_analysis.quadratic import (
    Data,
    Given,
    Natural,
    Quadratic,
)
from bayesbandit.inference.graph_analysis.recognise import RELATIVE_TOLERANCE, Form, part, recognise

if TYPE_CHECKING:
    import pymc as pm

Array = np.ndarray
ENGINE = "exact_gaussian"


class GaussianBlock:
    """What the exact engines share: a quadratic block, its form, and rows of data."""

    def __init__(self, quadratic: Quadratic, form: Form) -> None:
        self.quadratic, self.form = quadratic, form
        self.names, self.dim = quadratic.names, quadratic.dim
        self.slices = quadratic.slices
        self.shapes = quadratic.shapes
        self.n_features, self.n_arms = quadratic.density.n_features, quadratic.density.n_arms

    def split(self, theta: Array) -> dict[str, Array]:
        """Return θ (…, D) by declared variable, each (…, *shape)."""
        return self.quadratic.split(theta)

    def noise_drawn(self, sigma2: Array) -> dict[str, Array]:
        """Return the declared noise scale by name, where σ² (S,) is drawn; {} where it is known."""
        return {}

    def moments(self, mean: Array, covariance: Array) -> dict[str, tuple[Array, Array]]:
        """Return mean (*shape) and covariance (k, k) of each declared variable, from those of θ."""
        centres = self.split(mean)
        return {k: (centres[k], covariance[s, s]) for k, s in self.slices.items()}

    @property
    def affine(self) -> bool:
        """Whether the mean reward is A(x, arm) θ + b."""
        return self.quadratic.not_affine is None

    @property
    def row_wise(self) -> bool:
        """Whether each row speaks of θ through its own mean reward alone."""
        return self.form.row_wise

    @property
    def streams(self) -> bool:
        """Whether rows may come one by one: each an observation of its own mean reward, A θ + b,
        of a precision that is known of it (`observations`)."""
        return self.affine and self.row_wise

    def observations(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> tuple[Array, Array]:
        """Return what rows say: y (n,) is N(mean reward, 1/p), given a noise scale of 1; y and p
        (n,)."""
        data = self.data(x, reward, weight, arm)
        given = (1.0,) * len(self.quadratic.given)
        shift, curvature, value = self.quadratic.curvature(np.zeros(len(data[0])), data, given)
        precision = -curvature
        sound = np.isfinite(shift) & np.isfinite(precision)
        if not (sound.all() and np.isfinite(value)):
            each = (part(data, slice(i, i + 1)) for i in range(len(sound)))
            values = [self.quadratic.curvature(np.zeros(1), one, given)[2] for one in each]
            row = int(np.argmin(sound & np.isfinite(values)))
            said = f"reward {data[1][row]:g} in context {data[0][row].tolist()}"
            raise NotFinite(f"the log density of a row is not finite: {said}")
        if (precision < 0.0).any():
            raise ValueError(f"rows must have precisions ≥ 0; got {precision.min():g}")
        if shift[precision == 0.0].any():
            raise ValueError("a row must say how precise it is; got one of precision 0 that shifts")
        return np.divide(shift, precision, out=np.zeros_like(shift), where=precision > 0), precision

    @property
    def identity_map(self) -> bool:
        """Whether the mean reward is x'θ, for every context x: A(x) = x, b = 0."""
        return self.form.features is not None and self.form.features.is_identity

    def data(
        self,
        x: Array,
        reward: Array | None = None,
        weight: Array | None = None,
        arm: Array | None = None,
    ) -> Data:
        """Return rows as arrays x (n, d), reward, weight, arm (n,); without a weight, 1."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        n = len(x)
        if self.n_arms is not None and arm is None:
            raise ValueError("the model depends on the arm: give the arm of each row; got none")
        return (
            x,
            np.zeros(n) if reward is None else np.asarray(reward, dtype=np.float64),
            np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64),
            np.asarray(np.zeros(n) if arm is None else arm, dtype=np.int64),
        )

    def linear_map(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        """Return the mean reward A θ + b of contexts x (n, d): A (n, D), b (n,).

        Of a model over arms, without `arm`, for every arm: A (n, K, D), b (n, K).
        """
        if self.quadratic.not_affine is not None:
            raise self.quadratic.refusal(f"'mean_reward': {self.quadratic.not_affine}")
        if self.form.features is not None:
            return self.form.features(np.ascontiguousarray(x, dtype=np.float64), arm)
        A, b = self.quadratic.linear_map(self._contexts(x, arm))
        if arm is None and self.n_arms is not None:
            return A.reshape(-1, self.n_arms, self.dim), b.reshape(-1, self.n_arms)
        return A, b

    def mean_map(self, data: Data) -> tuple[Array, Array]:
        """Return the mean rewards A θ + b of rows: A (n, D), b (n,)."""
        return self.linear_map(data[0], None if self.n_arms is None else data[3])

    def mean_reward(self, theta: Array, x: Array, arm: Array | None = None) -> Array:
        """Return mean rewards under θ (S, D), affine or not: (S, n); of every arm, (S, n, K)."""
        means = self.quadratic.mean_reward(theta, self._contexts(x, arm))
        if arm is None and self.n_arms is not None:
            return means.reshape(len(theta), -1, self.n_arms)
        return means

    def _contexts(self, x: Array, arm: Array | None) -> Data:
        """Return rows of contexts, each repeated for every arm of a model over arms without
        `arm`."""
        if arm is None and self.n_arms is not None:
            n = len(x)
            K = self.n_arms
            return self.data(np.repeat(x, K, axis=0), arm=np.tile(np.arange(K), n))
        return self.data(x, arm=arm)

    def stacked(self, draws: Mapping[str, Array]) -> Array:
        """Return θ (S, D) from draws by variable, (…, *shape), chains one behind the other."""
        parts = [np.reshape(draws[k], (-1, s.stop - s.start)) for k, s in self.slices.items()]
        return np.concatenate(parts, axis=1)

    def of_rows(self, data: Data, given: Given = ()) -> Natural:
        """Return natural parameters of rows. Where they are `row_wise` each is an observation of
        precision p and shift u of its mean reward A θ + b: Λ = A'diag(p)A, η = A'u."""
        if not self.row_wise:
            return self.quadratic.likelihood(data, given)
        A, b = self.mean_map(data)
        shift, curvature, value = self.quadratic.curvature(b, data, given)
        return Natural((A.T * -curvature) @ A, A.T @ shift, value)

    def solve(self, precision: Array, shift: Array) -> tuple[Array, Array, Array]:
        """Return L with Λ = LL', L⁻¹η and Λ⁻¹η; where Λ is singular, names the variable left
        unknown.

        Under a flat prior that is an improper posterior, under another one lost digits.
        """
        L = factor(sound(precision, "the posterior precision"))
        if isinstance(L, int):
            label = self.quadratic.density.label(self.quadratic.owner(L))
            if label.endswith("Flat"):
                reason = f"{label}: improper, the posterior precision is singular"
                raise improper(self.quadratic.engine, reason)
            reason = f"{label}: the posterior precision is singular to rounding"
            raise self.quadratic.refusal(reason, of_rows=True)
        half = solve_triangular(L, sound(shift, "the posterior shift"), lower=True)
        return L, half, solve_triangular(L, half, lower=True, trans=1)


class ExactGaussian(GaussianBlock):
    """A model whose posterior is Gaussian, and how to compute it.

    names, shapes: the free variables; slices: where each is in θ (D,), `dim` D.
    """

    engine = ENGINE
    learns_noise = False

    def __init__(self, quadratic: Quadratic, form: Form) -> None:
        super().__init__(quadratic, form)
        self._prior = quadratic.prior()

    @property
    def noise(self) -> float | None:
        """σ² where rewards are N(mean reward, σ²/weight), else None (see `RowNoise`)."""
        return self.form.rows.factor

    @property
    def ridge(self) -> float | None:
        """λ where θ ~ N(0, σ²/λ I) beside such noise: a ridge regression, else None."""
        lam = ridge(self._prior)
        return None if self.noise is None or lam is None else self.noise * lam

    def prior(self) -> Natural:
        """Return natural parameters of the prior: Λ (D, D), η (D,)."""
        return self._prior

    def likelihood(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> Natural:
        """Return natural parameters of rows x (n, d), reward, weight, arm (n,); of batches, they
        add up if `form.not_additive` is empty."""
        return self.of_rows(self.data(x, reward, weight, arm))

    def posterior(
        self, x: Array, reward: Array, weight: Array | None = None, arm: Array | None = None
    ) -> Gaussian:
        """Return the posterior given rows x (n, d), reward, weight, arm (n,), if it is
        `checked`."""
        known = self.distribution(self.prior() + self.likelihood(x, reward, weight, arm))
        at_mean = self.checked(known, self.data(x, reward, weight, arm))
        return replace(known, log_evidence=at_mean + known.log_volume)

    def checked(self, known: Gaussian, data: Data) -> float:
        """Run the identity test: at the mean and up to four sds from it, the model's log density
        of these rows and its gradient are those of N(mean, Λ⁻¹), to rounding or 1e-5 posterior sds.
        Returns the log density at the mean."""
        z = tried(self.dim)
        theta = known.mean + solve_triangular(known.cholesky, z.T, lower=True, trans=1).T
        slopes, values = self.quadratic.at(theta, data)
        if not np.isfinite(values[0]):
            raise self.quadratic.not_finite(values[0])
        expected = (known.mean - theta) @ known.precision
        off = slopes - expected
        size = np.abs(theta) @ np.abs(known.precision) + np.abs(known.precision @ known.mean)
        sds = np.linalg.norm(solve_triangular(known.cholesky, off.T, lower=True), axis=0)
        close = 1e-5 * (1.0 + np.linalg.norm(z, axis=1))
        wrong = (np.abs(off) > RELATIVE_TOLERANCE * size).any(axis=1) & ~(sds <= close)
        gap = values - values[0] + 0.5 * (z**2).sum(axis=1)
        most = np.maximum(1e-5 * (1.0 + (z**2).sum(axis=1)), RELATIVE_TOLERANCE * np.abs(values))
        wrong |= ~(np.abs(gap) <= most)
        if wrong.any():
            reason = (
                "on these rows the log density differs from its closed form: by "
                f"{np.abs(gap).max():.2g}, and its mean by {np.nanmax(sds):.2g} posterior sds"
            )
            raise self.quadratic.refusal(reason, of_rows=True)
        return float(values[0])

    def distribution(self, natural: Natural) -> Gaussian:
        """Return the distribution that has these natural parameters; refused where it is
        improper."""
        L, half, mean = self.solve(natural.precision, natural.shift)
        known = Gaussian(mean, natural.precision, L, 0.0)
        evidence = natural.constant + 0.5 * (half @ half) + known.log_volume
        return replace(known, log_evidence=float(evidence))


def tried(dim: int) -> Array:
    """Return points (3, D) at which a posterior is tested: its mean, one and four sds from it."""
    z = np.random.default_rng(0).standard_normal((3, dim))
    return z * np.array([[0.0], [1.0], [4.0]])


def ridge(prior: Natural) -> float | None:
    """Return c where the prior precision is c I about 0, else None."""
    c = prior.precision[0, 0]
    off = np.abs(prior.precision - c * np.eye(len(prior.shift))).max()
    return float(c) if c > 0 and off <= 1e-12 * c and not prior.shift.any() else None


@matching
def match(model: pm.Model) -> ExactGaussian:
    """Return the exact Gaussian engine of a built model.

    An improper prior is accepted where the model's own rows make the posterior proper.
    """
    eligible(model, ENGINE)
    quadratic = Quadratic(read(model), ENGINE)
    engine = ExactGaussian(quadratic, recognise(quadratic))
    on_own_rows(engine)
    return engine
