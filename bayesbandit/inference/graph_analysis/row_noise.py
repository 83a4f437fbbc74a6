"""How precise rows are, and whose powers their precisions are, read at random rows.

Numbers are believed only of a likelihood that is analytic in all that rows may be (`Analytic`):
what holds at random points then holds everywhere. Where it is not, nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.degrees import Analytic
from bayesbandit.inference.graph_analysis.density import Density
from bayesbandit.inference.graph_analysis.operations import elementwise_name, kind
from bayesbandit.inference.graph_analysis.quadratic import (
    PYTHON,
    Data,
    Given,
    Quadratic,
    gradient,
)

TOLERANCE = 1e-9  # relative to the largest number compared
AGAIN = (0.3, 2.7, 11.0)  # values of a scale at which what holds at 1 must hold again


class RowNoise:
    """How precise rows are, of a likelihood in which each row has its own mean reward m alone.

    A row's log density is −½ p m² + u m + …: an observation u/p of m. What is said of p and u is
    said of every row that may come. So the likelihood is taken as a function of m, of weights, of
    what it is given, and of all that is computed of contexts, rewards and arms alone, as a clipped
    reward is. If it is analytic in these, it is tried at random numbers.
    """

    def __init__(self, quadratic: Quadratic) -> None:
        density, cut = quadratic.density, quadratic.through_mean
        assert cut is not None
        m, given = density.given_mean, quadratic.given
        behind = set(ancestors([cut]))
        self.weights = [v for k, v in density.inputs.items() if k == "weight" and v in behind]
        rows = [v for v in density.inputs.values() if v not in self.weights]
        parts = of_rows(cut, [m, *given, *self.weights], rows)
        fresh = [v.type() for v in parts]
        [graph] = clone_replace([cut], dict(zip(parts, fresh, strict=True)), rebuild_strict=False)
        positive = Analytic(parts, dict.fromkeys(rows, 1.0), ()).positive
        scales = [*given, *self.weights]
        scales += [f for f, v in zip(fresh, parts, strict=True) if v in positive]
        analysis = Analytic([graph], dict.fromkeys([m, *scales, *fresh], 1.0), scales)
        floats = all(str(v.type.dtype).startswith("float") for v in parts)
        self.analytic = floats and analysis.fault(graph, most=1) is None
        if self.analytic:
            slope = gradient(graph, m)
            outputs = [-gradient(slope.sum(), m), slope, graph]
            inputs = [m, *given, *self.weights, *fresh, *rows]  # of rows, the shapes
            self._function = Compiled(inputs, outputs, PYTHON)
            self.ones = [np.ones(v.type.shape) for v in given]
            self.trials = [Trial.drawn(density, rows, parts, seed) for seed in (0, 1)]

    def at(
        self, given: Given, heavier: float = 1.0, m: np.ndarray | float = 0.0, trial: int = 0
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return p and u (n,) of rows, or of rows so many times heavier, and their log density at
        mean rewards m (n,)."""
        at = self.trials[trial]
        n, weights = len(at.weight), [heavier * at.weight] if self.weights else []
        values = [np.asarray(v, dtype=np.float64) for v in given]
        p, slope, value = self._function(np.full(n, m), *values, *weights, *at.numbers, *at.rows)
        return np.broadcast_to(p, n), np.broadcast_to(slope + p * m, n), float(value)

    @cached_property
    def by_weight(self) -> bool:
        """Whether p and u are the weight times what does not depend on it, or do not depend."""
        if not self.weights:
            return True
        return self.analytic and all(
            close(now, c * before)
            for c in AGAIN
            for given in (self.ones, [AGAIN[0] * one for one in self.ones])
            for before, now in zip(self.at(given)[:2], self.at(given, c)[:2], strict=True)
        )

    def variance(self, given: Given = ()) -> float | None:
        """Return σ² where a row is N(reward | mean reward, σ²/weight), whatever its context and
        arm, at values of what the log density is given; a declaration without use for weights is
        taken at weight 1. None where it is another."""
        if not (self.analytic and self.by_weight):
            return None
        weight, reward = self.trials[0].weight, self.trials[0].reward
        p, u, _ = self.at(given)
        scale = weight if self.weights else np.ones(len(weight))
        if reward is None or not p[0] > 0.0 or not close(p, p[0] * scale):
            return None
        return float(1.0 / p[0]) if close(u, p * reward) else None

    def is_normal_of(self, i: int, e: float) -> bool:
        """Return whether a row has normalised density in v^e p: at its own mean, m = u/p, the log
        density is (e/2) log v and what v does not enter.

        v: the i-th of what the log density is given, a scalar, on which u/p does not depend.
        """
        if not self.analytic:
            return False
        levels = []
        for trial, drawn in enumerate(self.trials):
            p, u, _ = self.at(self.ones, trial=trial)
            _, _, before = self.at(self.ones, m=u / p, trial=trial)
            for s in AGAIN:
                _, _, now = self.at(self.with_value(i, s), m=u / p, trial=trial)
                levels.append((now - before) / (len(drawn.weight) * math.log(s)))
        return close(np.array(levels), np.full(len(levels), 0.5 * e), 1e-7)

    def with_value(self, i: int, value: float) -> list[np.ndarray]:
        """Return what the log density is given: ones, and a value in the i-th place."""
        return [np.array(value) if j == i else one for j, one in enumerate(self.ones)]


@dataclass(frozen=True)
class Trial:
    """Random rows, and `numbers` in the place of what is computed of them.

    reward: the numbers in the place of the rewards, None if these enter only as computed of.
    """

    weight: np.ndarray
    numbers: list[np.ndarray]
    reward: np.ndarray | None
    rows: list[np.ndarray]

    @classmethod
    def drawn(
        cls, density: Density, inputs: Sequence[Variable], parts: Sequence[Variable], seed: int
    ) -> Trial:
        """Return numbers near those that some parts have at random rows, with the same signs."""
        rows, rng = random_rows(density, seed), np.random.default_rng(seed)
        by_input = dict(zip(density.inputs.values(), density.arguments(rows), strict=True))
        given = [by_input[v] for v in inputs]
        numbers = []
        for value in Compiled(inputs, parts, PYTHON)(*given):
            noise = rng.normal(size=value.shape)
            number = np.where(value == 0.0, noise, value * np.exp(0.3 * noise))
            numbers.append(number.astype(value.dtype))
        by_part = dict(zip(parts, numbers, strict=True))
        return cls(rows[2], numbers, by_part.get(density.inputs["reward"]), given)


def of_rows(
    graph: Variable, moving: Sequence[Variable], rows: Sequence[Variable]
) -> list[Variable]:
    """Return the largest parts of a graph that are computed of `rows` alone, and of none of the
    variables in `moving`."""
    moves, still, parts = set(moving), set(rows), dict[Variable, None]()
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
    n, rng = max(5, 2 * K), np.random.default_rng(seed)
    rows = positive(density, n, seed)
    weight, arm = np.exp(rng.normal(size=n)), rng.integers(0, K, n)
    weight[0] = 1.0
    arm[:K] = np.arange(K)
    return rows["x"], rows["reward"], weight, arm


def power(at: Callable[[float], Sequence[np.ndarray]]) -> float | None:
    """Return e where all of some arrays are s^e times their values at s = 1; None if there is
    none."""
    base, doubled = at(1.0), at(2.0)
    largest = np.abs(base[0]).argmax()
    ratio = doubled[0].flat[largest] / (base[0].flat[largest] or math.inf)
    if not 0.0 < ratio < math.inf:
        return None
    e = round(math.log2(ratio), 6)
    same = (close(now / s**e, one) for s in AGAIN for one, now in zip(base, at(s), strict=True))
    return e if all(same) else None


def positive(density: Density, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return n random contexts and rewards that have logarithms."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(n, density.n_features)))
    return {"x": x, "reward": np.exp(rng.normal(size=n))}


def close(a: np.ndarray, b: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """Return whether two arrays have one shape, are finite and differ by `tolerance` at most.

    The tolerance is relative to the largest absolute value in the two.
    """
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= tolerance * largest)
