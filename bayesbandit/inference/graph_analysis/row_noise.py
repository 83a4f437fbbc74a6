"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from bayesbandit.inference.base import Compiled, NotFinite
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.form import rounded
from bayesbandit.inference.graph_analysis.operations import elementwise_name, kind
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic, gradient

RELATIVE_TOLERANCE = 1e-9  # relative to the largest number compared
VARIANCE_DIGITS = 14  # of a variance
LOGS_TOLERANCE = 1e-7  # of the number of logarithms


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


Point = dict[Variable, np.ndarray]  # values of variables


def row_noise(quadratic: Quadratic) -> RowNoise:
    """Return how precise rows are, of a likelihood in which each row has its own mean reward m
    alone.

    The likelihood is read as a function of m, of weights, of what it is given, and of all that is
    computed of contexts, rewards and arms alone, as a clipped reward is. Each of these takes random
    values of its own. In m, a row is −½ precision (m − centre)² + peak.
    """
    density = quadratic.density
    mean = density.given_mean
    cut = quadratic.through_mean
    assert cut is not None
    behind = set(ancestors([cut]))
    given = [v for v in quadratic.given if v in behind]
    weights = [v for k, v in density.inputs.items() if k == "weight" and v in behind]
    nothing = RowNoise(not weights, bool(weights))
    rows = [v for k, v in density.inputs.items() if k != "weight"]
    parts = of_rows(cut, [mean, *given, *weights], rows)
    vectors = all(v.type.ndim == 1 and str(v.type.dtype).startswith("float") for v in parts)
    if not vectors or any(v.type.ndim for v in given):
        return nothing
    fresh = {v: v.type.clone(dtype="float64")() for v in parts}
    above_zero = Analytic(parts, dict.fromkeys(rows, 1.0), ()).positive
    positive = [*given, *weights, *(fresh[v] for v in parts if v in above_zero)]
    unknown = [mean, *given, *weights, *fresh.values()]
    [graph] = clone_replace([cut], fresh, rebuild_strict=False)
    if Analytic([graph], dict.fromkeys(unknown, 1.0), positive).fault(graph, most=1):
        return nothing
    slope = gradient(graph, mean)
    derivatives = Compiled([*unknown, *rows], [slope, gradient(slope.sum(), mean), graph])
    x, reward, _, arm = random_rows(density, seed=0)
    of_role = {"x": x, "reward": reward, "arm": arm}
    lengths = [of_role[k] for k in density.inputs if k != "weight"]  # the rest of them is in parts
    rng = np.random.default_rng(0)

    def random() -> Point:
        drawn = {v: rng.normal(size=() if v in given else len(x)) for v in unknown}
        return {v: np.exp(z) if v in positive else np.asarray(z) for v, z in drawn.items()}

    def at(point: Point) -> tuple[np.ndarray, np.ndarray, float]:
        slope, curvature, value = derivatives(*(point[v] for v in unknown), *lengths)
        precision = np.broadcast_to(-curvature, len(x))
        if not ((precision > 0.0).all() and np.isfinite(value)):
            raise NotFinite("no precision")
        step = slope / precision
        return precision, point[mean] + step, float(value + 0.5 * (slope * step).sum())

    try:
        return told(at, random(), random(), given, weights, fresh.get(density.inputs["reward"]))
    except NotFinite:
        return nothing


def told(
    at: Callable[[Point], tuple[np.ndarray, np.ndarray, float]],
    here: Point,
    there: Point,
    given: Sequence[Variable],
    weights: Sequence[Variable],
    reward: Variable | None,
) -> RowNoise:
    """Return what a likelihood says of every row, from its values about two random points.

    at: returns the precision and the centre (n,) of each row, and the sum of their peaks. reward:
    the variable of the rewards; None if they do not enter as they are.
    """
    precision, centre, peak = at(here)
    scaled, _, scaled_peak = at(here | {v: there[v] for v in given})
    heavier = at(here | {v: there[v] for v in weights})[0]
    elsewhere, its_centre, _ = at(there)
    by_weight = all(close(heavier / precision, there[v] / here[v]) for v in weights)
    powers = {}
    for v in given:
        doubled = at(here | {v: 2.0 * here[v]})[0] / precision
        powers[v] = float(np.round(4.0 * np.log2(doubled[0])) / 4.0)
    ratio = math.prod(float(there[v] / here[v]) ** e for v, e in powers.items())
    n = len(precision)
    noise = RowNoise(by_weight, bool(weights))
    if not (by_weight and close(scaled / precision, np.full(n, ratio))):
        return noise
    logs = 0.5 * n * math.log(ratio)
    normal = abs(scaled_peak - peak - logs) <= LOGS_TOLERANCE * (1.0 + abs(peak) + abs(logs))
    noise = replace(noise, normal=normal)
    if reward is None or not (close(centre, here[reward]) and close(its_centre, there[reward])):
        return noise
    for v, e in [*powers.items(), *((v, 1.0) for v in weights)]:
        precision = precision / here[v] ** e
        elsewhere = elsewhere / there[v] ** e
    constant = np.full(n, precision[0])
    if not (close(precision, constant) and close(elsewhere, constant)):
        return noise
    [factor] = rounded(1.0 / constant[:1], VARIANCE_DIGITS)
    named = {str(v.name): -e for v, e in powers.items()}
    return replace(noise, factor=float(factor), powers=named)


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
    arm[:K] = np.arange(K)
    return rows["x"], rows["reward"], weight, arm


def positive(density: Density, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return n random contexts and rewards that have logarithms."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, density.n_features)))
    return {"x": x, "reward": np.exp(rng.normal(size=n))}


def close(a: np.ndarray, b: np.ndarray, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Return whether two arrays have one shape, are finite and differ by `tolerance` at most.

    The tolerance is relative to the largest absolute value in the two.
    """
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * largest)
