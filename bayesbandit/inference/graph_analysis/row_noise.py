"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.form import quartered, rounded
from bayesbandit.inference.graph_analysis.operations import elementwise_name, kind
from bayesbandit.inference.graph_analysis.quadratic import Data, gradient

Array = np.ndarray
RELATIVE_TOLERANCE = 1e-9  # relative to the largest number compared
POWER_ROUNDING = 1e-9  # of the power of a variable
VARIANCE_DIGITS = 14  # of a variance

Point = dict[Variable, np.ndarray]  # values of variables


@dataclass(frozen=True)
class RowNoise:
    """How precise every row is, whatever its context, reward, arm and weight are.

    by_weight: whether its precision is its weight times what does not depend on weights, or does
    not depend on weights. weighted: whether it depends on them. normal: whether its log density has
    the logarithms of a normal one in what it is given. factor, powers: κ and {v: e} where it is
    N(reward | mean reward, κ Π v^e / weight), or without the weight if it is not `weighted`; κ is
    None where it is another.
    """

    by_weight: bool = False
    weighted: bool = True
    normal: bool = False
    factor: float | None = None
    powers: Mapping[str, float] = field(default_factory=dict)


def row_noise(density: Density, likelihood: Variable, given: Sequence[Variable]) -> RowNoise:
    """Return how precise rows are, of a likelihood in which each row has its own mean reward alone,
    and in which it is quadratic.

    The likelihood is evaluated as a function of mean rewards, of the positive variables that it is
    given, of weights, and of all that is computed of contexts, rewards and arms alone, as a clipped
    reward is. The last two take random values, and others at a second point.
    """
    behind = set(ancestors([likelihood]))
    given = [v for v in given if v in behind]
    weights = [v for k, v in density.inputs.items() if k == "weight" and v in behind]
    nothing = RowNoise(not weights, bool(weights))
    rows = [v for k, v in density.inputs.items() if k != "weight"]
    computed = of_rows(likelihood, [density.given_mean, *given, *weights], rows)
    vectors = all(v.type.ndim == 1 and str(v.type.dtype).startswith("float") for v in computed)
    if not vectors or any(v.type.ndim for v in given):
        return nothing
    # a clipped reward is not analytic in the reward, but the density is in what is clipped: it
    # gets values of its own
    fresh = {v: v.type.clone(dtype="float64")() for v in computed}
    above_zero = Analytic(computed, dict.fromkeys(rows, 1.0), ()).positive
    positive = {*weights, *(fresh[v] for v in computed if v in above_zero)}
    free = [*weights, *fresh.values()]
    [graph] = clone_replace([likelihood], fresh, rebuild_strict=False)
    m = density.given_mean
    if Analytic([graph], dict.fromkeys([m, *given, *free], 1.0), [*given, *positive]).fault(
        graph, most=1
    ):
        return nothing
    x, reward, _, arm = random_rows(density, seed=0)
    of_role = {"x": x, "reward": reward, "arm": arm}  # for their lengths alone
    lengths = {v: of_role[role] for role, v in density.inputs.items() if role in of_role}
    # −½ p (m − c)² has the slope p (c − m) and the curvature −p: at m = 0, c = slope / p
    slope = gradient(graph, m)
    curvature = gradient(slope.sum(), m)
    function = Compiled([m, *given, *free, *lengths], [slope, -curvature, graph])

    def at(means: Array, scales: Array, point: Point) -> list[Array]:
        """Return slopes and precisions (n,), and the value, where variables have such values."""
        others = [*(point[v] for v in free), *lengths.values()]
        slopes, precision, value = function(means, *map(np.asarray, scales), *others)
        return [np.broadcast_to(v, means.shape) for v in (slopes, precision)] + [value]

    rng = np.random.default_rng(0)
    n = len(x)
    zero = np.zeros(n)
    ones = np.ones(len(given))
    # v at which what is read at 1 and 2 must hold
    scales = np.exp(rng.normal(size=len(given)))

    def random() -> Point:
        drawn = {v: rng.normal(size=n) for v in free}
        return {v: np.exp(z) if v in positive else z for v, z in drawn.items()}

    here = random()
    there = random()
    slopes, precision, _ = at(zero, ones, here)
    if not (precision > 0.0).all():
        return nothing
    centre = slopes / precision
    # a row's precision is w g where it is w₂ g at another weight
    heavier = at(zero, ones, here | {v: there[v] for v in weights})[1]
    by_weight = all(close(heavier / precision, there[v] / here[v]) for v in weights)
    noise = RowNoise(by_weight, bool(weights))
    # and κ⁻¹ Π v^−e: e_j is the base-2 logarithm of what doubling v_j divides it by, for all rows
    doubled = [at(zero, scale, here)[1] / precision for scale in 1.0 + np.eye(len(given))]
    powers = -quartered(np.log2([ratio[0] for ratio in doubled]), POWER_ROUNDING)
    scaled_slopes, scaled, _ = at(zero, scales, here)
    expected = precision * np.prod(scales**-powers)
    if not (by_weight and close(scaled, expected) and close(scaled_slopes, expected * centre)):
        return noise
    # at the centres −½ n Σ e_j log v_j is left of normal rewards
    low, high = (float(at(centre, v, here)[2]) for v in (ones, scales))
    logs = -0.5 * n * float(powers @ np.log(scales))
    normal = abs(high - low - logs) <= RELATIVE_TOLERANCE * (abs(high) + abs(low) + abs(logs))
    noise = replace(noise, normal=normal)
    own = fresh.get(density.inputs["reward"])
    if own is None:
        return noise
    other_slopes, other, _ = at(zero, ones, there)
    constant, other_constant = (
        p / math.prod((point[v] for v in weights), start=1.0)
        for p, point in ((precision, here), (other, there))
    )
    same = np.full(n, constant[0])
    fits = close(constant, same) and close(other_constant, same)
    if not (fits and close(centre, here[own]) and close(other_slopes / other, there[own])):
        return noise
    [factor] = rounded(1.0 / constant[:1], VARIANCE_DIGITS)
    names = [str(v.name) for v in given]
    of = dict(zip(names, powers.tolist(), strict=True))
    return replace(noise, factor=float(factor), powers=of)


def of_rows(
    graph: Variable, moving: Sequence[Variable], rows: Sequence[Variable]
) -> list[Variable]:
    """Return the largest parts of a graph that are computed of `rows` alone, and of none of the
    variables in `moving`."""
    moves = set(moving)
    still = set(rows)
    parts = dict[Variable, None]()
    for node in toposort([graph], blockers=[*moving, *rows]):
        if kind(node) == "shape":
            continue
        values = node.inputs[1:] if elementwise_name(node.outputs[0]) == "Second" else node.inputs
        if not moves.isdisjoint(values):
            moves.update(node.outputs)
            parts |= dict.fromkeys(v for v in values if v in still)
        elif not still.isdisjoint(values):
            still.update(node.outputs)
    return list(parts)


def random_rows(density: Density, seed: int) -> Data:
    """Return random rows of positive numbers, of every arm; the first has weight 1."""
    K = density.n_arms or 1
    n = max(5, 2 * K)
    rng = np.random.default_rng(seed)
    rows = positive(density, n, seed)
    weight = np.exp(rng.normal(size=n))
    arm = rng.integers(0, K, n)
    weight[0] = 1.0
    # each arm has a row, so that what is of one arm alone is seen
    arm[:K] = np.arange(K)
    return rows["x"], rows["reward"], weight, arm


def positive(density: Density, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return n random contexts and rewards that have logarithms."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, density.n_features)))
    return {"x": x, "reward": np.exp(rng.normal(size=n))}


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of one shape are finite and differ by rounding, relative to the
    largest absolute value in the two."""
    largest = np.abs([a, b]).max(initial=0.0)
    near = np.abs(a - b) <= RELATIVE_TOLERANCE * largest
    return bool(np.isfinite(largest) and near.all())
