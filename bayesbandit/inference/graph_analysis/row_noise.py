"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.form import (
    Form,
    NoForm,
    Variables,
    parts,
    rounded,
    summands,
    together,
)
from bayesbandit.inference.graph_analysis.operations import elementwise_name, kind
from bayesbandit.inference.graph_analysis.quadratic import Data

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

    The likelihood is read (`form`) as a function of mean rewards, of the positive variables that it
    is given, of weights, and of all that is computed of contexts, rewards and arms alone, as a
    clipped reward is. The last two take random values, and others at a second point.
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
    fresh = {v: v.type.clone(dtype="float64")() for v in computed}
    above_zero = Analytic(computed, dict.fromkeys(rows, 1.0), ()).positive
    positive = {*weights, *(fresh[v] for v in computed if v in above_zero)}
    free = [*weights, *fresh.values()]
    [graph] = clone_replace([likelihood], fresh, rebuild_strict=False)
    seeds = dict.fromkeys([density.given_mean, *given, *free], 1.0)
    if Analytic([graph], seeds, [*given, *positive]).fault(graph, most=1):
        return nothing
    rng = np.random.default_rng(0)
    at, n = observer(density, graph, given, free)

    def random() -> Point:
        drawn = {v: rng.normal(size=n) for v in free}
        return {v: np.exp(z) if v in positive else z for v, z in drawn.items()}

    here = random()
    there = random()
    try:
        first = at(here)
        second = at(there)
        heavier = at(here | {v: there[v] for v in weights})
    except NoForm:
        return nothing
    by_weight = all(close(heavier.precision / first.precision, there[v] / here[v]) for v in weights)
    noise = RowNoise(by_weight, bool(weights))
    if not by_weight or first.powers is None or second.powers is None:
        return noise
    noise = replace(noise, normal=first.normal and second.normal)
    own = fresh.get(density.inputs["reward"])
    constants = []
    for point, rows_at in ((here, first), (there, second)):
        if own is None or not close(rows_at.centre, point[own]):
            return noise
        constants.append(
            rows_at.precision / math.prod((point[v] for v in weights), start=np.ones(n))
        )
    if not all(close(c, np.full(n, constants[0][0])) for c in constants):
        return noise
    [factor] = rounded(1.0 / constants[0][:1], VARIANCE_DIGITS)
    names = [str(v.name) for v in given]
    powers = dict(zip(names, (-first.powers).tolist(), strict=True))
    return replace(noise, factor=float(factor), powers=powers)


class Seen(NamedTuple):
    """What a likelihood says of n rows: the precision of each where what it is given is 1, and its
    centre (n,); whose powers (P,) the precisions are, None where rows differ; and whether its
    logarithms are those of normal rewards."""

    precision: np.ndarray
    centre: np.ndarray
    powers: np.ndarray | None
    normal: bool


def observer(
    density: Density, graph: Variable, given: Sequence[Variable], free: Sequence[Variable]
) -> tuple[Callable[[Point], Seen], int]:
    """Return a function that says what a likelihood says of rows where `free` have given values,
    and the number of rows."""
    x, reward, _, arm = random_rows(density, seed=0)
    of_role = {"x": x, "reward": reward, "arm": arm}
    roles = [role for role in density.inputs if role != "weight"]  # for their lengths alone
    n = len(x)
    P = len(given)
    names = [str(v.name) for v in given]
    places = {"m": np.arange(n)} | {k: np.array(i) for i, k in enumerate(names)}
    variables = Variables(places, dict.fromkeys(names, (0.0, math.inf)), ["m"], n, P)
    unknown = dict(zip(["m", *names], [density.given_mean, *given], strict=True))
    inputs = [*free, *(density.inputs[role] for role in roles)]
    numbers = parts(summands(graph), unknown, inputs)

    def at(point: Point) -> Seen:
        values = [*(point[v] for v in free), *(of_role[role] for role in roles)]
        return seen(together([part.form(values, variables) for part in numbers], n, P), n)

    return at, n


def seen(form: Form, n: int) -> Seen:
    """Return what the form of a likelihood of n mean rewards says of them.

    What is left at the centres, of squares that differ or of monomials, must be the same whatever
    it is given.
    """
    coef, powers, forms, offset = form.squares
    exponents = powers.toarray()
    squared = forms.toarray()
    share = -2.0 * coef[:, None] * squared**2
    precision = share.sum(axis=0)
    if not (precision > 0.0).all():
        raise NoForm("no precision")
    centre = -2.0 * (coef * offset) @ squared / precision
    in_rows = squared.any(axis=1)  # the others are monomials
    of_squares = exponents[in_rows]
    same = bool((of_squares == of_squares[:1]).all())
    left = np.abs(squared @ centre - offset)
    near = left <= RELATIVE_TOLERANCE * (np.abs(squared @ centre) + np.abs(offset))
    fits = (coef == 0.0) | (in_rows & near)
    logs = form.linear - 0.5 * n * of_squares[0]
    normal = not (logs.any() or form.square.any() or exponents[~fits].any())
    return Seen(precision, centre, of_squares[0] if same else None, normal)


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
