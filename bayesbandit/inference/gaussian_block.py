"""A Gaussian block: variables in which a log density is quadratic, and what rows say of them.

The exact engines have all variables in it, Gibbs sampling those that are Gaussian given the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import solve_triangular

from bayesbandit.inference.base import improper, sound
from bayesbandit.inference.exact.distributions import factor
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.recognise import RowStructure

Array = np.ndarray


class GaussianBlock:
    """What engines share that have a Gaussian block: it, the structure of rows, and their data."""

    def __init__(self, quadratic: Quadratic, structure: RowStructure) -> None:
        self.quadratic = quadratic
        self.structure = structure
        self.names = quadratic.names
        self.dim = quadratic.dim
        self.slices = quadratic.slices
        self.shapes = quadratic.shapes
        self.n_features = quadratic.density.n_features
        self.n_arms = quadratic.density.n_arms

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
        return self.structure.row_wise

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
        ones = (1.0,) * len(self.quadratic.given)
        shift, curvature, value = self.quadratic.curvature(np.zeros(len(data[0])), data, ones)
        precision = -curvature
        if not np.isfinite([*shift, *precision, value]).all():
            raise self.quadratic.not_finite(value)
        if (precision < 0.0).any():
            raise ValueError(f"rows must have precisions ≥ 0; got {precision.min():g}")
        if shift[precision == 0.0].any():
            raise ValueError("a row must say how precise it is; got one of precision 0 that shifts")
        return np.divide(shift, precision, out=np.zeros_like(shift), where=precision > 0), precision

    @property
    def identity_map(self) -> bool:
        """Whether the mean reward is x'θ, for every context x: A(x) = x, b = 0."""
        return self.structure.features is not None and self.structure.features.is_identity

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
        if self.structure.features is not None:
            return self.structure.features(np.ascontiguousarray(x, dtype=np.float64), arm)
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
