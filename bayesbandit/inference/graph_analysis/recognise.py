"""What a quadratic log density allows, proved from its graph.

Which rows reach which terms (`rows`), what values depend on and how they scale (`dependence`), of
what degree they are (`degrees`): statements about every row that may come. Numbers are read off
only where the graph says that they are the same for all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.dependence import depends_on
from bayesbandit.inference.graph_analysis.quadratic import (
    PYTHON,
    Data,
    Given,
    Quadratic,
    gradient,
)
from bayesbandit.inference.graph_analysis.rewrites import rewritten
from bayesbandit.inference.graph_analysis.rows import ALONG, Reach, RowWalk
from bayesbandit.inference.graph_analysis.scaling import Scaling

TOLERANCE = 1e-9  # relative to the largest number compared
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
        A, b = np.empty((len(x), self.C.shape[2])), np.empty(len(x))
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
class Form:
    """How a model may be computed faster than by its gradients.

    not_additive: why statistics of batches of rows do not add up, so that rewards cannot be
        streamed; "" where they do.
    row_wise: whether each row speaks of θ through its own mean reward alone (`Quadratic.rows`).
    features: the map from contexts to features, where the mean reward has one, else None.
    noise: σ² where rewards are N(mean reward, σ²/weight), or N(mean reward, σ²) in a declaration
        that does not take weights, else None.
    trial: a few of the model's own rows, by which numbers that are the same for all are read off.
    by_weight: whether a row's precision is its weight times what does not depend on weights.
    """

    not_additive: str
    row_wise: bool
    features: FeatureMap | None
    noise: float | None
    trial: Data
    by_weight: bool = False


def recognise(quadratic: Quadratic, given: Given = ()) -> Form:
    """Return the form of a quadratic log density, at values of what it is given."""
    density = quadratic.density
    why, row_wise = not_additive(density), False
    if not why and quadratic.through_mean is not None:
        row_wise = not _mixed([term.given_mean for term in density.terms if term.on_data], density)
    rows = RowNoise(quadratic) if row_wise else None
    return Form(
        why,
        row_wise,
        features(quadratic),
        rows.variance(given) if rows else None,
        finite_trial(quadratic, given, not why),
        rows is not None and rows.by_weight,
    )


def close(a: np.ndarray, b: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """Return whether two arrays have one shape, are finite and differ by `tolerance` at most.

    The tolerance is relative to the largest absolute value in the two.
    """
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * largest)


def differs(values: np.ndarray, closed: np.ndarray) -> str:
    """Return how log densities (S,) differ from their closed form, constants aside; "" where they
    agree to rounding or to 1e-5."""
    gap, size = (values - values[0]) - (closed - closed[0]), np.abs(closed - closed[0])
    if (np.abs(gap) <= 1e-5 * (1.0 + size) + TOLERANCE * np.abs(values).max()).all():
        return ""
    return f"on these rows the log density differs from its closed form by {np.abs(gap).max():.2g}"


def trial(density: Density, n: int = 5, own: Mapping[str, np.ndarray] | None = None) -> Data:
    """Return n rows of the model's own data, of as many arms as may be; random ones where it has
    none."""
    own, K = density.own if own is None else own, density.n_arms or 1
    if not len(own["x"]):
        own = positive(density, n)
    rows = np.arange(n) % len(own["x"])
    weight = own["weight"][rows] if "weight" in own else np.ones(n)
    arm = own["arm"][rows] if "arm" in own else np.arange(n) % K
    return own["x"][rows].astype(float), own["reward"][rows].astype(float), weight, arm


def positive(density: Density, n: int) -> dict[str, np.ndarray]:
    """Return n random contexts and rewards that have logarithms."""
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(size=(n, density.n_features)))
    return {"x": x, "reward": np.exp(rng.normal(size=n))}


def finite_trial(quadratic: Quadratic, given: Given, apart: bool) -> Data:
    """Return `trial`, or where the log density is not finite there, at positive contexts and
    rewards; all of the model's rows where they are not `apart` from each other."""
    density, theta = quadratic.density, np.zeros((1, quadratic.dim))
    own = trial(density, 5 if apart or not len(density.own["x"]) else len(density.own["x"]))
    if not apart or np.isfinite(quadratic.log_likelihood(theta, own, given)).all():
        return own
    other = trial(density, own=positive(density, len(own[0])))
    return other if np.isfinite(quadratic.log_likelihood(theta, other, given)).all() else own


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


class RowNoise:
    """How precise a row is, of a likelihood in which each row has its own mean reward alone.

    In the row's mean reward m its log density is −½ p m² + u m + …. depends_on: the data that p may
    depend on. by_weight: p is the weight times what does not depend on it. of_reward: u = p·reward.
    """

    def __init__(self, quadratic: Quadratic) -> None:
        self.quadratic, density = quadratic, quadratic.density
        cut = quadratic.through_mean
        assert cut is not None
        m, inputs = density.given_mean, density.inputs
        reward, weight = inputs["reward"], inputs.get("weight")
        slope = gradient(cut, m)
        both = {m: 1.0, reward: 1.0}
        self.curvature, self.of_rewards = simplified(
            gradient(slope.sum(), m), gradient(slope.sum(), reward)
        )
        graphs, others = [self.curvature, self.of_rewards], dict(inputs)
        del others["reward"]
        self.depends_on = depends_on(graphs, others)
        self.by_weight = "weight" not in self.depends_on
        if weight is not None and not self.by_weight:
            scaling = Scaling(graphs, {weight: 1.0})
            self.by_weight = all(scaling.degree(g) == 1.0 for g in graphs)
        self.linear = (
            Degrees([cut], both).of(cut) <= 2 and Scaling([slope], both).degree(slope) == 1.0
        )

    def variance(self, given: Given = ()) -> float | None:
        """Return σ² where a row is N(reward | mean reward, σ²/weight), whatever its context and
        arm, at values of what the log density is given; a declaration without use for weights is
        taken at weight 1. None where it is another."""
        if not (self.linear and self.by_weight) or self.depends_on - {"weight"}:
            return None
        one = one_row(self.quadratic.density)
        slope, curvature, _ = self.quadratic.curvature(np.zeros(1), one, given)
        if not (np.isfinite(curvature[0]) and curvature[0] < 0.0 and close(slope, -curvature)):
            return None
        return float(-1.0 / curvature[0])


def one_row(density: Density) -> Data:
    """Return a row of the model's own contexts, or of ones, with reward 1 and weight 1."""
    x = density.own["x"][:1] if len(density.own["x"]) else np.ones((1, density.n_features))
    return x.astype(float), np.ones(1), np.ones(1), np.zeros(1, dtype=np.int64)


def level_power(quadratic: Quadratic, s: Variable) -> float | None:
    """Return e where a row whose mean reward is its reward has log density e log s, but for what s
    does not enter, whatever its context, reward, weight and arm are. None where it has another."""
    inputs, through = quadratic.density.inputs, quadratic.through_mean
    assert through is not None
    [cut] = simplified(*clone_replace([through], {quadratic.density.given_mean: inputs["reward"]}))
    [slope] = simplified(s * gradient(cut, s))
    named = inputs | {"s": s}
    free = depends_on([slope], named)
    homogeneous = (Scaling([slope], {named[k]: 1.0}).degree(slope) == 0.0 for k in free)
    if free - {"weight", "s"} or not all(homogeneous):
        return None
    rows = quadratic.density.arguments(one_row(quadratic.density))
    [power] = Compiled([s, *inputs.values()], [slope], PYTHON)(np.array(1.0), *rows)
    return float(power)


def monomial_noise(quadratic: Quadratic) -> tuple[float, dict[str, float]] | None:
    """Return κ and {v: e} where every row is N(mean reward, κ v^e / weight), v one of the variables
    that the log density is given; {} where the noise is known. None of rows that are not proved to
    be such, whatever they are."""
    density, cut = quadratic.density, quadratic.through_mean
    if cut is None or _mixed([term.given_mean for term in density.terms if term.on_data], density):
        return None
    entering = depends_on([cut], {str(v.name): v for v in quadratic.given})
    rows = RowNoise(quadratic)
    variance = rows.variance([np.ones(v.type.shape) for v in quadratic.given])
    if variance is None or len(entering) > 1:
        return None
    if not entering:
        return variance, {}
    [v] = [v for v in quadratic.given if v.name in entering]
    graphs = [rows.curvature, rows.of_rewards]
    scaling = Scaling(graphs, {v: 1.0})
    degree, same = (scaling.degree(graph) for graph in graphs)
    level = None if v.type.ndim or degree != same else level_power(quadratic, v)
    if degree is None or level is None or not close(np.array(level), np.array(0.5 * degree)):
        return None
    return variance, {str(v.name): -degree}


def simplified(*graphs: Variable) -> list[Variable]:
    """Return equal graphs, without what cancels."""
    return rewritten(clone_replace(graphs, {}), "canonicalize")


def features(quadratic: Quadratic) -> FeatureMap | None:
    """Return the map from contexts to features, if the mean reward has one.

    A mean of degree 1 in x and in θ is known from its values at the corners.
    """
    density = quadratic.density
    degree = Degrees([density.mean], {density.inputs["x"]: 1.0}).of(density.mean)
    d, K = density.n_features, density.n_arms or 1
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
