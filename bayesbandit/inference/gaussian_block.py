"""A Gaussian block: variables in which a log density is quadratic, and what rows say of them.

The exact engines have all variables in it, Gibbs sampling those that are Gaussian given the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors
from scipy.linalg import solve_triangular

from bayesbandit.checks import Array
from bayesbandit.inference.base import Compiled, NotFinite, NotThisEngine, improper, refuse, sound
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.exact.distributions import factor
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.feature_map import FeatureMap
from bayesbandit.inference.graph_analysis.quadratic import (
    Given,
    affine,
    gradient,
    total,
)
from bayesbandit.inference.graph_analysis.row_noise import RowNoise, row_noise
from bayesbandit.inference.graph_analysis.rows import mixed, not_apart

MAP_SIZE = 4_000_000  # numbers that a map from contexts to features may take


class GaussianBlock:
    """Variables θ (D,), flattened in the order of their declaration, in which a log density is
    quadratic: all but the `given` ones.

    engine: the engine that a refusal names. Functions are compiled when they are first called.
    """

    def __init__(self, density: Density, engine: str, given: Sequence[str] = ()) -> None:
        self.density = density
        self.engine = engine
        self.given = tuple(density.values[name] for name in given)
        block = {k: v for k, v in density.values.items() if k not in given}
        self.slices: dict[str, slice] = {}
        self.dim = 0
        for k, v in block.items():
            start = self.dim
            self.dim += math.prod(v.type.shape)
            self.slices[k] = slice(start, self.dim)
        self.n_features = density.n_features
        self.n_arms = density.n_arms
        seeds = dict.fromkeys(block.values(), 1.0)
        # one walk for all terms and the mean: degree 2 at most makes θ Gaussian, degree 1 the
        # mean affine
        degrees = Degrees([t.graph for t in density.terms] + [density.mean], seeds)
        for term in density.terms:
            if why := degrees.fault(term.graph):
                raise self.refusal(f"{term.label}: {why}")
        self.not_affine = degrees.fault(density.mean, most=1)
        # z: one θ, in a row. Z: several at once, as the compiled functions take them
        self._z = pt.tensor("z", shape=(self.dim,))
        self._Z = pt.tensor("Z", shape=(None, self.dim))
        self._parts = {v: self._z[self.slices[k]].reshape(v.type.shape) for k, v in block.items()}

    def refusal(self, reason: str, of_rows: bool = False) -> NotThisEngine:
        """Return the engine's refusal, ready to be raised."""
        return refuse(self.engine, reason, of_rows)

    def not_finite(self, value: float) -> NotFinite:
        """Return the error of rows that are impossible whatever the variables are."""
        terms = ", ".join(term.label for term in self.density.terms if term.on_data)
        return NotFinite(f"{terms}: the log density of these rows is {value:g}, not finite")

    def owner(self, index: int) -> str:
        """Return the label of the variable that a coordinate of θ belongs to."""
        name = next(k for k, s in self.slices.items() if s.start <= index < s.stop)
        return self.density.label(name)

    def split(self, theta: Array) -> dict[str, Array]:
        """Return θ (…, D) by declared variable, each (…, *shape)."""
        shapes = {k: theta.shape[:-1] + self.density.values[k].type.shape for k in self.slices}
        return {k: theta[..., s].reshape(shapes[k]) for k, s in self.slices.items()}

    def noise_drawn(self, sigma2: Array) -> dict[str, Array]:
        """Return the declared noise scale by name, where σ² (S,) is drawn; {} where it is known."""
        return {}

    def moments(self, mean: Array, covariance: Array) -> dict[str, tuple[Array, Array]]:
        """Return mean (*shape) and covariance (k, k) of each declared variable, from those of θ."""
        centres = self.split(mean)
        # a part of what is jointly normal is normal, with its part of the covariance
        return {k: (centres[k], covariance[s, s]) for k, s in self.slices.items()}

    # ---- what is proved --------------------------------------------------------------------------

    @property
    def affine(self) -> bool:
        """Whether the mean reward is A(x, arm) θ + b."""
        return self.not_affine is None

    @cached_property
    def through_mean(self) -> Variable | None:
        """The likelihood as a function of the mean rewards, if θ enters it only through them. A row
        then costs O(D), not O(D²)."""
        if self.not_affine or self.density.mean.type.ndim != 1:
            return None
        # log p(r | m) as a function of m: with m = Aθ + b its Hessian in θ is A' diag(∂²/∂m²) A
        cut = total([term.given_mean for term in self.density.likelihood])
        # θ beside the mean, as in a noise scale that depends on it: no function of m alone
        if not set(self._parts).isdisjoint(ancestors([cut])):
            return None
        return cut if Degrees([cut], {self.density.mean_input: 1.0}).of(cut) <= 2 else None

    @cached_property
    def row_wise(self) -> bool:
        """Whether each row speaks of θ through its own mean reward alone."""
        terms = [term.given_mean for term in self.density.likelihood]
        apart = self.through_mean is not None and not mixed(terms, self.density)
        return apart and not not_apart(self.density)

    @cached_property
    def row_noise(self) -> RowNoise:
        """How precise rows are, where they are `row_wise`."""
        if not self.row_wise or self.through_mean is None:
            return RowNoise()
        return row_noise(self.density, self.through_mean, self.given, self.curvature)

    @cached_property
    def features(self) -> FeatureMap | None:
        """The map from contexts to features, if the mean reward has one: it is of degree 1 in x and
        in θ, and known from its values at the corners."""
        density = self.density
        d = self.n_features
        K = self.n_arms or 1
        degree = Degrees([density.mean], {density.inputs["x"]: 1.0}).of(density.mean)
        if self.not_affine or degree > 1 or K * d * self.dim > MAP_SIZE or not_apart(density):
            return None
        corners = np.vstack([np.zeros(d), np.eye(d)])
        maps = []
        # mean = A(x) θ + b(x) with A and b affine in x: A at 0 and at each unit vector tell all
        # of it
        for k in range(K):
            A, b = self._linear_map(self.data(corners, arm=np.full(d + 1, k)))
            if not (np.isfinite(A).all() and np.isfinite(b).all()):
                return None
            # A(x) = A(0) + Σ_j x_j (A(e_j) − A(0)), and so b(x)
            maps.append((A[1:] - A[0], A[0], b[1:] - b[0], b[0]))
        by_arm = [np.stack(parts) for parts in zip(*maps, strict=True)]
        return FeatureMap(*(maps[0] if self.n_arms is None else by_arm))

    @property
    def streams(self) -> bool:
        """Whether rows may come one by one: each an observation of its own mean reward, A θ + b,
        of a precision that is known of it (`observations`)."""
        return self.affine and self.row_wise

    # ---- the log density -------------------------------------------------------------------------

    @cached_property
    def _flat(self) -> list[Variable]:
        """The prior, the likelihood and the mean rewards, as functions of θ."""
        terms = self.density.terms
        totals = [total([t.graph for t in terms if t.on_data == on]) for on in (False, True)]
        return list(clone_replace([*totals, self.density.mean], self._parts, rebuild_strict=False))

    @cached_property
    def _prior(self) -> Compiled:
        return self._part(self._flat[0], [])

    @cached_property
    def _likelihood(self) -> Compiled:
        return self._part(self._flat[1], self.density.inputs.values())

    def _part(self, graph: Variable, rows: Iterable[Variable]) -> Compiled:
        """Return gradients and values of a part of the log density as a function of Z (S, D)."""
        graphs = vectorize_graph([gradient(graph, self._z), graph], {self._z: self._Z})
        return Compiled([self._Z, *self.given, *rows], list(graphs))

    @cached_property
    def _means(self) -> Compiled:
        means = vectorize_graph(self._flat[2], {self._z: self._Z})
        return Compiled([self._Z, *self.density.inputs.values()], [means])

    @cached_property
    def _curvature(self) -> Compiled:
        m = self.density.mean_input
        cut = self.through_mean
        assert cut is not None
        # each row has its own m, so that the Hessian in m is diagonal: the gradient of Σ slopes
        slope = gradient(cut, m)
        inputs = [m, *self.given, *self.density.inputs.values()]
        return Compiled(inputs, [slope, gradient(slope.sum(), m), cut])

    def _arguments(self, data: Rows | None, given: Given) -> list[Array]:
        """Return given values and those data that the model has, as compiled functions take
        them."""
        values = [np.asarray(v, dtype=np.float64) for v in given]
        return values if data is None else [*values, *self.density.arguments(data)]

    def natural(self, data: Rows | None, given: Given = ()) -> tuple[Array, Array]:
        """Return Λ (D, D) and η (D,) of the likelihood of rows; without rows, of the prior."""
        # (8): the gradient is η − Λθ
        slopes, shift = affine(lambda Z: self.part(Z, data, given)[0], self.dim)
        # symmetric, as a Hessian is, also in its last digits
        return -0.5 * (slopes + slopes.T), shift.copy()

    def part(self, Z: Array, data: Rows | None, given: Given = ()) -> tuple[Array, Array]:
        """Return gradients (S, D) and values (S,) of the likelihood of rows at Z (S, D); without
        rows, of the prior."""
        function = self._prior if data is None else self._likelihood
        slopes, values = function(Z, *self._arguments(data, given))
        return np.broadcast_to(slopes, Z.shape), np.broadcast_to(values, len(Z))

    def at(self, z: Array, data: Rows, given: Given = ()) -> tuple[Array, float]:
        """Return the gradient (D,) and the value of the whole log density at z (D,)."""
        prior, likelihood = (self.part(z[None], rows, given) for rows in (None, data))
        return prior[0][0] + likelihood[0][0], float(prior[1][0] + likelihood[1][0])

    def curvature(self, m: Array, data: Rows, given: Given = ()) -> tuple[Array, Array, float]:
        """Return the likelihood's slopes (n,), curvatures (n,) and value at mean rewards m (n,)."""
        slope, curvature, value = self._curvature(m, *self._arguments(data, given))
        return np.broadcast_to(slope, m.shape), np.broadcast_to(curvature, m.shape), float(value)

    def observations(self, data: Rows) -> tuple[Array, Array]:
        """Return what rows say: y (n,) is N(mean reward, 1/p), given a noise scale of 1; y and p
        (n,)."""
        ones = (1.0,) * len(self.given)
        shift, curvature, value = self.curvature(np.zeros(len(data["x"])), data, ones)
        precision = -curvature
        if not np.isfinite([*shift, *precision, value]).all():
            raise self.not_finite(value)
        # of p < 0 the log density rises without end in m
        if (precision < 0.0).any():
            raise ValueError(f"rows must have precisions ≥ 0; got {precision.min():g}")
        # a row of no precision says nothing; with a slope it would say that m is infinite
        if shift[precision == 0.0].any():
            raise ValueError("a row must say how precise it is; got one of precision 0 that shifts")
        # u m − ½ p m² is a normal observation y = u/p of m with precision p
        return np.divide(shift, precision, out=np.zeros_like(shift), where=precision > 0), precision

    def solve(self, precision: Array, shift: Array) -> tuple[Array, Array, Array]:
        """Return L with Λ = LL', L⁻¹η and Λ⁻¹η; where Λ is singular, names the variable left
        unknown.

        Under a flat prior that is an improper posterior, under another one lost digits.
        """
        # Λ = LL': half = L⁻¹η, and Λ⁻¹η = L'⁻¹ half; η'Λ⁻¹η = ‖half‖²
        L = factor(sound(precision, "the posterior precision"))
        if isinstance(L, int):
            label = self.owner(L)
            if label.endswith("Flat"):
                raise improper(
                    self.engine, f"{label}: improper, the posterior precision is singular"
                )
            reason = f"{label}: the posterior precision is singular to rounding"
            raise self.refusal(reason, of_rows=True)
        half = solve_triangular(L, sound(shift, "the posterior shift"), lower=True)
        return L, half, solve_triangular(L, half, lower=True, trans=1)

    # ---- rows and mean rewards -------------------------------------------------------------------

    def data(
        self,
        x: Array,
        reward: Array | None = None,
        weight: Array | None = None,
        arm: Array | None = None,
    ) -> Rows:
        """Return rows x (n, d), reward, weight, arm (n,) by role; without a weight, 1."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        n = len(x)
        if self.n_arms is not None and arm is None:
            raise ValueError("the model depends on the arm: give the arm of each row; got none")
        return {
            "x": x,
            "reward": np.zeros(n) if reward is None else np.asarray(reward, dtype=np.float64),
            "weight": np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64),
            "arm": np.asarray(np.zeros(n) if arm is None else arm, dtype=np.int64),
        }

    def linear_map(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        """Return the mean reward A θ + b of contexts x (n, d): A (n, D), b (n,).

        Of a model over arms, without `arm`, for every arm: A (n, K, D), b (n, K).
        """
        if self.not_affine is not None:
            raise self.refusal(f"'mean_reward': {self.not_affine}")
        if self.features is not None:
            return self.features(np.ascontiguousarray(x, dtype=np.float64), arm)
        K = self.n_arms
        if K is None or arm is not None:
            return self._linear_map(self.data(x, arm=arm))
        rows = self.data(np.repeat(x, K, axis=0), arm=np.tile(np.arange(K), len(x)))
        A, b = self._linear_map(rows)
        return A.reshape(-1, K, self.dim), b.reshape(-1, K)

    def mean_map(self, data: Rows) -> tuple[Array, Array]:
        """Return the mean rewards A θ + b of rows: A (n, D), b (n,)."""
        return self.linear_map(data["x"], None if self.n_arms is None else data["arm"])

    def _linear_map(self, data: Rows) -> tuple[Array, Array]:
        def mean_rewards(Z: Array) -> Array:
            [means] = self._means(Z, *self.density.arguments(data))
            return np.broadcast_to(means, (len(Z), len(data["x"])))

        # slopes are rows of A', by coordinate of θ
        A, b = affine(mean_rewards, self.dim)
        return np.ascontiguousarray(A.T), b
