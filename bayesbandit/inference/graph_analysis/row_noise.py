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
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.graph_analysis.degrees import Analytic, Degrees
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.form import quartered, rounded
from bayesbandit.inference.graph_analysis.quadratic import Given

Curvature = Callable[[Array, Rows, Given], tuple[Array, Array, float]]

RELATIVE_TOLERANCE = 1e-9  # relative to the largest number compared
VARIANCE_DIGITS = 14  # of a variance


@dataclass(frozen=True)
class RowNoise:
    """How precise every row is, whatever its context, reward, arm and weight are.

    by_weight: whether its precision is its weight times what does not depend on weights, or does
    not depend on weights. weighted: whether it depends on them. normal: whether its log density has
    the logarithms of a normal one in what it is given. factor, powers: κ and {v: e} where it is
    N(reward | mean reward, κ Π v^e / weight), or without the weight if it is not `weighted`; of a v
    with a value for each row, its own. κ is None where it is another.
    """

    by_weight: bool = False
    weighted: bool = True
    normal: bool = False
    factor: float | None = None
    powers: Mapping[str, float] = field(default_factory=dict)


def row_noise(
    density: Density, likelihood: Variable, given: Sequence[Variable], curvature: Curvature
) -> RowNoise:
    """Return how precise rows are, of a likelihood in which each row has its own mean reward alone.

    The likelihood, quadratic in mean rewards, is read as a function of the positive variables that
    it is given, and of contexts, rewards and weights, at random rows of every arm and at others.
    curvature: computes slopes and curvatures of the likelihood at mean rewards, and its value.
    """
    behind = set(ancestors([likelihood]))
    every = given
    given = [v for v in every if v in behind]
    rows = [v for role, v in density.inputs.items() if role != "arm" and v in behind]
    weights = [v for v in rows if v is density.inputs.get("weight")]
    nothing = RowNoise(not weights, bool(weights))
    seeds = dict.fromkeys([density.mean_input, *given, *rows], 1.0)
    analytic = Analytic([likelihood], seeds, [*given, *weights])
    by_row = any(v.type.shape not in ((), (None,)) for v in given)
    if by_row or analytic.fault(likelihood, most=1):
        return nothing

    def at(data: Rows, values: Sequence[Array]) -> Seen:
        n = len(data["x"])
        known = dict(zip(given, values, strict=True))
        others = {v: np.ones([n if k is None else k for k in v.type.shape]) for v in every}
        where = data, list((others | known).values())
        # u m − ½ p m² + c of each row: u, −p and Σ c at m = 0
        u, bend, _ = curvature(np.zeros(n), *where)
        precision = -bend
        with np.errstate(all="ignore"):
            centre = u / precision
            return Seen(precision, centre, curvature(centre, *where)[2])

    here = random_rows(density, seed=0)
    there = random_rows(density, seed=1)
    weight, weight_there = (
        data["weight"] if weights else np.ones(len(data["weight"])) for data in (here, there)
    )
    n = len(here["x"])
    rng = np.random.default_rng(0)
    ones = [np.ones(v.type.ndim * (n,)) for v in given]
    other = [np.exp(rng.normal(size=one.shape)) for one in ones]
    first = at(here, ones)
    moved = at(here, other)
    second = at(there, other)
    heavier = at({**here, "weight": there["weight"]}, ones)
    if not all((seen.precision > 0.0).all() for seen in (first, moved, second, heavier)):
        return nothing
    by_weight = not weights or close(heavier.precision / first.precision, weight_there / weight)
    # where means are the rows' centres, a normal log density is ½ Σ log p and a constant
    expected = 0.5 * np.log(moved.precision / first.precision).sum()
    normal = by_weight and close(np.array([moved.left - expected]), np.array([first.left]))
    noise = RowNoise(by_weight, bool(weights), normal)
    # p = weight Π v^e / κ: e of each v from its value at 2, and all at random values
    doubled = [
        at(here, [v + (i == k) for i, v in enumerate(ones)]).precision[0] for k in range(len(given))
    ]
    with np.errstate(all="ignore"):  # NaN where there is none, which equals nothing
        powers = quartered(np.log2(np.array(doubled) / first.precision[0]), RELATIVE_TOLERANCE)
    factor = float(rounded(weight / first.precision, VARIANCE_DIGITS)[0])
    scale = [np.broadcast_to(v, n) ** e for v, e in zip(other, powers, strict=True)]
    precision = weight_there * np.prod(scale, axis=0) / factor
    # of degree 2 in means, contexts and rewards together, precisions depend on none of these and
    # centres are affine in them: else numbers may be others far from where they were looked at, as
    # those of a noise scale that a sigmoid of the context raises
    known = [v for role, v in density.inputs.items() if role in ("x", "reward")]
    degrees = Degrees([likelihood], dict.fromkeys([density.mean_input, *known], 1.0))
    # a reward that is observed several times is that of no one normal
    if len(density.likelihood) > 1 or not (
        degrees.of(likelihood) <= 2
        and close(first.precision, weight / factor)
        and close(second.precision, precision)
        and close(first.centre, here["reward"])
        and close(second.centre, there["reward"])
    ):
        return noise
    names = [str(v.name) for v in given]
    return replace(noise, factor=factor, powers=dict(zip(names, (-powers).tolist(), strict=True)))


class Seen(NamedTuple):
    """What a likelihood says of n rows: precision and centre (n,) of each as an observation of its
    mean reward, and the log density that is left where means are the centres."""

    precision: Array
    centre: Array
    left: float


def random_rows(density: Density, seed: int) -> Rows:
    """Return random rows of positive numbers, of every arm; the first has weight 1."""
    K = density.n_arms or 1
    n = max(5, 2 * K)
    rng = np.random.default_rng(seed)
    rows = positive(density, n, seed)
    weight = np.exp(rng.normal(size=n))
    arm = rng.integers(0, K, n)
    weight[0] = 1.0
    arm[:K] = np.arange(K)
    return rows | {"weight": weight, "arm": arm}


def positive(density: Density, n: int, seed: int = 0) -> dict[str, Array]:
    """Return n random contexts and rewards that have logarithms."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, density.n_features)))
    return {"x": x, "reward": np.exp(rng.normal(size=n))}


def close(a: Array, b: Array) -> bool:
    """Return whether two arrays of one shape are finite and differ by rounding, relative to the
    largest absolute value in the two."""
    largest = np.abs([a, b]).max(initial=0.0)
    near = np.abs(a - b) <= RELATIVE_TOLERANCE * largest
    return bool(np.isfinite(largest) and near.all())
