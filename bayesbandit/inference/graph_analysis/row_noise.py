"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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

RELATIVE_TOLERANCE = 1e-9  # relative to the largest number compared
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
    """Return how precise rows are, of a likelihood in which each row has its own mean reward alone.

    The likelihood, quadratic in mean rewards, is read as a function of the positive variables that
    it is given, of weights, and of all that is computed of contexts, rewards and arms alone, as a
    clipped reward is. The last two take random values, and others at a second point.
    """
    behind = set(ancestors([likelihood]))
    given = [v for v in given if v in behind]
    weights = [v for k, v in density.inputs.items() if k == "weight" and v in behind]
    nothing = RowNoise(not weights, bool(weights))
    rows = [v for k, v in density.inputs.items() if k != "weight"]
    computed = of_rows(likelihood, [density.mean_input, *given, *weights], rows)
    vectors = all(v.type.ndim == 1 and str(v.type.dtype).startswith("float") for v in computed)
    if not vectors or any(v.type.ndim for v in given):
        return nothing
    fresh = {v: v.type.clone(dtype="float64")() for v in computed}
    above_zero = Analytic(computed, dict.fromkeys(rows, 1.0), ()).positive
    positive = {*weights, *(fresh[v] for v in computed if v in above_zero)}
    free = [*weights, *fresh.values()]
    [graph] = clone_replace([likelihood], fresh, rebuild_strict=False)
    seeds = dict.fromkeys([density.mean_input, *given, *free], 1.0)
    if Analytic([graph], seeds, [*given, *positive]).fault(graph, most=1):
        return nothing
    rng = np.random.default_rng(0)
    at, n = observer(density, graph, given, free)

    def random() -> Point:
        drawn = {v: rng.normal(size=n) for v in free}
        return {v: np.exp(z) if v in positive else z for v, z in drawn.items()}

    def weight(point: Point) -> np.ndarray:
        return point[weights[0]] if weights else np.ones(n)

    here = random()
    there = random()
    ones = np.ones(len(given))
    other = np.exp(rng.normal(size=len(given)))
    first = at(here, ones)
    moved = at(here, other)
    second = at(there, other)
    heavier = at(here | {v: there[v] for v in weights}, ones)
    if not all((seen.precision > 0.0).all() for seen in (first, moved, second, heavier)):
        return nothing
    by_weight = not weights or close(
        heavier.precision / first.precision, weight(there) / weight(here)
    )
    # where means are the rows' centres, a normal log density is ½ Σ log p and a constant
    expected = 0.5 * np.log(moved.precision / first.precision).sum()
    normal = by_weight and close(np.array([moved.left - expected]), np.array([first.left]))
    noise = RowNoise(by_weight, bool(weights), normal)
    # p = weight Π v^e / κ: e of each v from its value at 2, and all at random values
    doubled = [at(here, ones + one).precision[0] for one in np.eye(len(given))]
    with np.errstate(all="ignore"):  # NaN where there is none, which equals nothing
        powers = quartered(np.log2(np.array(doubled) / first.precision[0]), RELATIVE_TOLERANCE)
    factor = float(rounded(weight(here) / first.precision, VARIANCE_DIGITS)[0])
    own = fresh.get(density.inputs["reward"])
    for point, values, seen in ((here, ones, first), (there, other, second)):
        precision = weight(point) * np.prod(values**powers) / factor
        if own is None or not (close(seen.precision, precision) and close(seen.centre, point[own])):
            return noise
    names = [str(v.name) for v in given]
    return replace(noise, factor=factor, powers=dict(zip(names, (-powers).tolist(), strict=True)))


class Seen(NamedTuple):
    """What a likelihood says of n rows: precision and centre (n,) of each as an observation of its
    mean reward, and the log density that is left where means are the centres."""

    precision: np.ndarray
    centre: np.ndarray
    left: float


def observer(
    density: Density, graph: Variable, given: Sequence[Variable], free: Sequence[Variable]
) -> tuple[Callable[[Point, np.ndarray], Seen], int]:
    """Return a function that says what a likelihood says of rows, where `free` have the values of a
    point and `given` others (P,); and the number of rows."""
    x, reward, _, arm = random_rows(density, seed=0)
    of_role = {"x": x, "reward": reward, "arm": arm}
    roles = [role for role in density.inputs if role != "weight"]  # for their lengths alone
    m = density.mean_input
    slope = gradient(graph, m)
    inputs = [m, *given, *free, *(density.inputs[role] for role in roles)]
    read = Compiled(inputs, [slope, gradient(slope.sum(), m), graph])

    def at(point: Point, values: np.ndarray) -> Seen:
        rows = [*values, *(point[v] for v in free), *(of_role[role] for role in roles)]
        # u m − ½ p m² + c of each row: u, −p and Σ c at m = 0
        zero = np.zeros(len(x))
        u, curvature, _ = read(zero, *rows)
        precision = zero - curvature
        with np.errstate(all="ignore"):
            centre = u / precision
            return Seen(precision, centre, float(read(centre, *rows)[2]))

    return at, len(x)


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


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays of one shape are finite and differ by rounding, relative to the
    largest absolute value in the two."""
    largest = np.abs([a, b]).max(initial=0.0)
    near = np.abs(a - b) <= RELATIVE_TOLERANCE * largest
    return bool(np.isfinite(largest) and near.all())
