"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    Part,
    Products,
    Reader,
    Variables,
    rounded,
    summands,
)
from bayesbandit.inference.graph_analysis.operations import elementwise_name, kind
from bayesbandit.inference.graph_analysis.quadratic import Data, Quadratic

RELATIVE_TOLERANCE = 1e-9  # relative to the largest number compared
VARIANCE_DIGITS = 14  # of a variance
LOGS_TOLERANCE = 1e-7  # of the number of logarithms
MEAN = "mean reward"
WEIGHT = "weight"


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


def row_noise(quadratic: Quadratic) -> RowNoise:
    """Return how precise rows are, of a likelihood in which each row has its own mean reward m
    alone.

    The likelihood is read as a function of m, of weights, of what it is given, and of all that is
    computed of contexts, rewards and arms alone, as a clipped reward is.
    """
    density = quadratic.density
    cut = quadratic.through_mean
    assert cut is not None
    behind = set(ancestors([cut]))
    unknown = {str(v.name): v for v in quadratic.given if v in behind}
    given = list(unknown)
    weight = density.inputs.get("weight")
    if weight is not None and weight in behind:
        unknown[WEIGHT] = weight
    weighted = WEIGHT in unknown
    nothing = RowNoise(not weighted, weighted)
    rows = [v for v in density.inputs.values() if v is not weight]
    parts = of_rows(cut, [density.given_mean, *unknown.values()], rows)
    if any(v.type.ndim != 1 or not str(v.type.dtype).startswith("float") for v in parts):
        return nothing
    above_zero = Analytic(parts, dict.fromkeys(rows, 1.0), ()).positive
    computed = {f"part {i}": v for i, v in enumerate(parts)}
    scales = [*unknown, *(k for k, v in computed.items() if v in above_zero)]
    fresh = {k: v.type.clone(dtype="float64")() for k, v in computed.items()}
    swap = {v: fresh[k] for k, v in computed.items()}
    [graph] = clone_replace([cut], swap, rebuild_strict=False)
    unknown |= fresh
    positive = [unknown[k] for k in scales]
    unknown[MEAN] = density.given_mean
    analytic = Analytic([graph], dict.fromkeys(unknown.values(), 1.0), positive)
    numbers = summands(graph)
    if len(numbers) != 1 or analytic.fault(graph, most=1):
        return nothing
    data = random_rows(density, seed=0)
    n = len(data[0])
    part = Part(*numbers[0], unknown, list(density.inputs.values()))
    variables = placed(unknown, scales, n)
    try:
        form = Reader(part, density.arguments(data), variables).read()
    except NoForm:
        return nothing
    if len(form.squares.offset) != n:
        return nothing
    reward = next((k for k, v in computed.items() if v is density.inputs["reward"]), "")
    return told(form, variables, given, reward)


def placed(unknown: Mapping[str, Variable], scales: Sequence[str], n: int) -> Variables:
    """Return the places of variables, those with a value for each of n rows among them."""
    places = {}
    ends = {True: 0, False: 0}
    by_row = {k for k, v in unknown.items() if None in v.type.shape}
    for k, v in unknown.items():
        shape = tuple(n if m is None else m for m in v.type.shape)
        end = ends[k in scales]
        places[k] = np.arange(end, end + math.prod(shape)).reshape(shape)
        ends[k in scales] += math.prod(shape)
    bounds = dict.fromkeys(scales, (0.0, math.inf))
    return Variables(places, bounds, by_row, ends[False], ends[True])


def told(form: Form, variables: Variables, given: Sequence[str], reward: str) -> RowNoise:
    """Return what the form of n rows, a square of each, says of every row.

    reward: the name of the rewards among the variables; "" if they are none.
    """
    squares = form.squares
    places = variables.places
    weighted = WEIGHT in places
    by_weight = not weighted or bool((exponents(squares.by, places[WEIGHT]) == 1.0).all())
    if any(places[k].ndim for k in given):
        return RowNoise(by_weight, weighted)
    entering = {k: exponents(squares.by, places[k]) for k in given}
    alike = all((e == e[0]).all() for e in entering.values())
    normal = by_weight and alike and all(has_logs(form, places[k], e) for k, e in entering.items())
    nothing = RowNoise(by_weight, weighted, normal)
    if not (by_weight and alike and reward):
        return nothing
    of_mean = np.asarray(squares.forms[:, places[MEAN]].sum(axis=1))
    of_reward = np.asarray(squares.forms[:, places[reward]].sum(axis=1))
    more = (np.diff(squares.forms.indptr) > 2).any() or squares.offset.any()
    more |= any(
        exponents(squares.by, places[k]).any()
        for k in variables.between
        if k not in (*given, WEIGHT)
    )
    if more or not close(of_mean, -of_reward):
        return nothing
    precision = -2.0 * squares.by.coef * of_mean**2
    if not (precision[0] > 0.0 and close(precision, np.full(len(precision), precision[0]))):
        return nothing
    [factor] = rounded(1.0 / precision[:1], VARIANCE_DIGITS)
    powers = {k: -float(e[0]) for k, e in entering.items()}
    return RowNoise(by_weight, weighted, normal, float(factor), powers)


def has_logs(form: Form, place: np.ndarray, e: np.ndarray) -> bool:
    """Return whether a variable of exponents e (n,) in squares has ½ Σ e log v beside them, as a
    normal density does, and enters nowhere else."""
    logs = np.array([form.linear[place].sum()])
    more = form.square[place].any() or exponents(form.pure, place).any()
    return not more and close(logs, np.array([0.5 * e.sum()]), LOGS_TOLERANCE)


def exponents(products: Products, place: np.ndarray) -> np.ndarray:
    """Return the exponents (N,) of variables in N products: of one, or of one for each product."""
    every = products.powers.toarray()
    return every[:, place] if place.ndim == 0 else every[np.arange(len(every)), place.ravel()]


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
