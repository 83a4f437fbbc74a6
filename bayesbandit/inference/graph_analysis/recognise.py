"""What a quadratic log density allows beyond its gradients: the `RowStructure`.

The walk of rows proves that rows are apart; `row_noise` says how precise they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic
from bayesbandit.inference.graph_analysis.rewrites import rewritten
from bayesbandit.inference.graph_analysis.row_noise import RELATIVE_TOLERANCE, RowNoise, row_noise
from bayesbandit.inference.graph_analysis.rows import ALONG, Reach, RowWalk

MAP_SIZE = 4_000_000  # numbers that a map from contexts to features may take
DATA_ROW = Reach(ALONG, 0)


@dataclass(frozen=True)
class FeatureMap:
    """A mean reward (x C + a)'θ + x'c + e of every context x (d,).

    C (d, D), a (D,), c (d,), e (). Of a model over arms, they have an axis of the arms in front.
    """

    C: np.ndarray
    a: np.ndarray
    c: np.ndarray
    e: np.ndarray

    @cached_property
    def has_offset(self) -> bool:
        """Whether x'c + e is not 0."""
        return bool(self.c.any() or self.e.any())

    @cached_property
    def is_identity(self) -> bool:
        """Whether the mean reward is x'θ."""
        plain = self.C.ndim == 2 and not (self.has_offset or self.a.any())
        return plain and np.array_equal(self.C, np.eye(len(self.a)))

    def __call__(
        self, x: np.ndarray, arm: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return A and b of the mean rewards A θ + b of contexts x (n, d): (n, D) and (n,).

        Of a model over arms, without `arm`, (n, K, D) and (n, K).
        """
        if self.C.ndim == 2:
            return x if self.is_identity else x @ self.C + self.a, x @ self.c + self.e
        if arm is None:
            return (x @ self.C).transpose(1, 0, 2) + self.a, x @ self.c.T + self.e
        A = np.empty((len(x), self.C.shape[2]))
        b = np.empty(len(x))
        for k in set(arm.tolist()):
            mine = arm == k
            A[mine] = x[mine] @ self.C[k] + self.a[k]
            b[mine] = x[mine] @ self.c[k] + self.e[k]
        return A, b

    def of(self, m: np.ndarray, W: np.ndarray) -> FeatureMap:
        """Return the map with φ in the place of θ = m + Wφ."""
        C, a = self.C, self.a
        return FeatureMap(C @ W, a @ W, C @ m + self.c, a @ m + self.e)


@dataclass(frozen=True)
class RowStructure:
    """What is proved of every row of a model with a quadratic log density.

    features: the map from contexts to features, where the mean reward has one, else None.
    row_wise: whether each row depends on θ through its own mean reward alone
    (`Quadratic.through_mean`). rows: how precise they are, where they are `row_wise`.
    """

    features: FeatureMap | None
    row_wise: bool = False
    rows: RowNoise = field(default_factory=RowNoise)


def recognise(quadratic: Quadratic) -> RowStructure:
    """Return the structure of a quadratic log density."""
    mapped = features(quadratic)
    if not row_wise(quadratic) or not_additive(quadratic.density):
        return RowStructure(mapped)
    return RowStructure(mapped, True, row_noise(quadratic))


def row_wise(quadratic: Quadratic) -> bool:
    """Return whether each row speaks of θ through its own mean reward alone."""
    terms = [term.given_mean for term in quadratic.density.terms if term.on_data]
    return quadratic.through_mean is not None and not _mixed(terms, quadratic.density)


def differs(values: np.ndarray, closed: np.ndarray) -> str:
    """Return how log densities (S,) differ from their closed form, constants aside; "" where they
    agree to rounding or to 1e-5."""
    gap = (values - values[0]) - (closed - closed[0])
    size = np.abs(closed - closed[0])
    if (np.abs(gap) <= 1e-5 * (1.0 + size) + RELATIVE_TOLERANCE * np.abs(values).max()).all():
        return ""
    return f"on these rows the log density differs from its closed form by {np.abs(gap).max():.2g}"


def part(data: Data, rows: slice) -> Data:
    """Return some of the rows."""
    x, reward, weight, arm = data
    return x[rows], reward[rows], weight[rows], arm[rows]


def not_additive(density: Density) -> str:
    """Return why statistics of batches of rows do not add up; "" where they do, whatever the rows
    are."""
    if why := _not_apart(density):
        return f"the mean reward of a row depends on other rows: {why}"
    if why := _mixed([term.graph for term in density.terms if term.on_data], density):
        return f"the likelihood of rows together is not the product of theirs apart: {why}"
    return ""


def _not_apart(density: Density) -> str | None:
    """Return the operation by which a row's mean reward is not of this row alone, if there is
    one."""
    seeds = dict.fromkeys(density.inputs.values(), DATA_ROW)
    return RowWalk([density.mean], seeds).apart(density.mean)


def _mixed(graphs: list[Variable], density: Density) -> str | None:
    """Return the operation that mixes the rows in one of these graphs, if there is one."""
    seeds = dict.fromkeys([*density.inputs.values(), density.given_mean], DATA_ROW)
    rows = RowWalk(graphs, seeds)
    return next((why for g in graphs if (why := rows.mixed(g))), None)


def simplified(*graphs: Variable) -> list[Variable]:
    """Return equal graphs, without what cancels."""
    return rewritten(clone_replace(graphs, {}), "canonicalize")


def features(quadratic: Quadratic) -> FeatureMap | None:
    """Return the map from contexts to features, if the mean reward has one.

    A mean of degree 1 in x and in θ is known from its values at the corners.
    """
    density = quadratic.density
    degree = Degrees([density.mean], {density.inputs["x"]: 1.0}).of(density.mean)
    d = density.n_features
    K = density.n_arms or 1
    if quadratic.not_affine or degree > 1 or K * d * quadratic.dim > MAP_SIZE:
        return None
    if _not_apart(density):
        return None
    maps = []
    for k in range(K):
        A, b = quadratic.linear_map(rows_at(np.vstack([np.zeros(d), np.eye(d)]), k))
        if not (np.isfinite(A).all() and np.isfinite(b).all()):
            return None
        maps.append((A[1:] - A[0], A[0], b[1:] - b[0], b[0]))
    by_arm = [np.stack(parts) for parts in zip(*maps, strict=True)]
    return FeatureMap(*(maps[0] if density.n_arms is None else by_arm))


def rows_at(x: np.ndarray, arm: int = 0) -> Data:
    """Return contexts (n, d) with nothing known of their rewards, all of one arm."""
    n = len(x)
    return x, np.zeros(n), np.ones(n), np.full(n, arm)
