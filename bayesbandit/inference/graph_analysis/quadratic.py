"""A log density that is quadratic in a block of its variables, read off as natural parameters.

In block variables θ (D,), all flattened in the order of their declaration,

    log p = c + η'θ − ½ θ'Λθ,

for the terms that depend on rows of data (the likelihood) and for all others (the prior) apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import Self

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from bayesbandit.inference.base import Compiled, NotFinite, NotThisEngine, refuse
from bayesbandit.inference.graph_analysis.degrees import Degrees
from bayesbandit.inference.graph_analysis.density import Density

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # x (n, d), reward, weight, arm (n,)

Given = Sequence[float | np.ndarray]  # values of the variables that the block is given


@dataclass(frozen=True)
class Additive:
    """Numbers and arrays that add up, field by field, over independent parts of a density."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Natural(Additive):
    """Natural parameters of exp(c + h log q − βq + q (η'θ − ½ θ'Λθ)), q the precision of the noise.

    precision: Λ (D, D). shift: η (D,). power: h. rate: β. constant: c. Without an unknown noise
    q = 1, and h = β = 0.
    """

    precision: np.ndarray
    shift: np.ndarray
    power: float = 0.0
    rate: float = 0.0
    constant: float = 0.0


def affine(function: Callable[[np.ndarray], np.ndarray], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes (D, …) and intercept (…) of an affine function of θ, read at [0; e_1 … e_D].

    If the intercept is so large that the slopes would drown in its rounding, a second call takes
    longer steps, by a power of two.
    """
    directions = np.eye(dim)
    values = function(np.vstack([np.zeros((1, dim)), directions]))
    intercept = values[0]
    slopes = values[1:] - values[0]
    largest, smallest = np.abs(intercept).max(initial=0.0), np.abs(slopes).max(initial=0.0)
    if 8.0 * smallest < largest < math.inf and smallest > 0.0:
        step = 2.0 ** math.ceil(math.log2(largest / smallest))
        slopes = (function(step * directions) - intercept) / step
    return slopes, intercept


class Quadratic:
    """A block of variables, those other than `given`, in which a log density is quadratic.

    engine: the engine that a refusal names. Functions are compiled when they are first called.
    """

    def __init__(self, density: Density, engine: str, given: Sequence[str] = ()) -> None:
        self.density, self.engine = density, engine
        self.given = tuple(density.values[name] for name in given)
        block = {k: v for k, v in density.values.items() if k not in given}
        self.names = tuple(block)
        self.shapes = {k: tuple(v.type.shape) for k, v in block.items()}
        self.slices: dict[str, slice] = {}
        stop = 0
        for k, shape in self.shapes.items():
            self.slices[k] = slice(stop, stop := stop + math.prod(shape))
        self.dim = stop
        seeds = dict.fromkeys(block.values(), 1.0)
        degrees = Degrees([t.graph for t in density.terms] + [density.mean], seeds)
        for term in density.terms:
            if why := degrees.fault(term.graph):
                raise self.refusal(f"{term.label}: {why}")
        self.not_affine = degrees.fault(density.mean, most=1)
        self._z = pt.tensor("z", shape=(self.dim,))
        self._Z = pt.tensor("Z", shape=(None, self.dim))
        self._parts = {v: self._z[self.slices[k]].reshape(self.shapes[k]) for k, v in block.items()}

    def refusal(self, reason: str, of_rows: bool = False) -> NotThisEngine:
        """Return the engine's refusal, ready to be raised."""
        return refuse(self.engine, reason, of_rows)

    def not_finite(self, value: float) -> NotFinite:
        """Return the error of rows that are impossible whatever the variables are."""
        terms = ", ".join(term.label for term in self.density.terms if term.on_data)
        return NotFinite(f"{terms}: the log density of these rows is {value:g}, not finite")

    @cached_property
    def takes_weight(self) -> bool:
        """Whether the log density depends on the weights."""
        graphs = [term.graph for term in self.density.terms]
        return self.density.inputs.get("weight") in set(ancestors(graphs))

    def owner(self, index: int) -> str:
        """Return the name of the variable that a coordinate of θ belongs to."""
        return next(name for name, s in self.slices.items() if s.start <= index < s.stop)

    def split(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return θ (…, D) by variable, each (…, *shape)."""
        lead = theta.shape[:-1]
        return {k: theta[..., s].reshape(lead + self.shapes[k]) for k, s in self.slices.items()}

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
        m = self.density.given_mean
        cut = self.through_mean
        assert cut is not None
        slope = gradient(cut, m)
        inputs = [m, *self.given, *self.density.inputs.values()]
        return Compiled(inputs, [slope, gradient(slope.sum(), m), cut])

    @cached_property
    def through_mean(self) -> Variable | None:
        """The likelihood as a function of the mean rewards, if θ enters it only through them. A row
        then costs O(D), not O(D²)."""
        if self.not_affine or self.density.mean.type.ndim != 1:
            return None
        cut = total([term.given_mean for term in self.density.terms if term.on_data])
        if not set(self._parts).isdisjoint(ancestors([cut])):
            return None
        return cut if Degrees([cut], {self.density.given_mean: 1.0}).of(cut) <= 2 else None

    def _arguments(self, data: Data | None, given: Given = ()) -> list[np.ndarray]:
        """Return given values and those data that the model has, as compiled functions take
        them."""
        values = [np.asarray(v, dtype=np.float64) for v in given]
        return values if data is None else [*values, *self.density.arguments(data)]

    def natural(self, data: Data | None, given: Given = ()) -> Natural:
        """Return the natural parameters of the likelihood of rows; without rows, of the prior."""
        slopes, shift = affine(lambda Z: self.part(Z, data, given)[0], self.dim)
        constant = self.part(np.zeros((1, self.dim)), data, given)[1]
        return Natural(-0.5 * (slopes + slopes.T), shift.copy(), constant=float(constant[0]))

    def part(
        self, Z: np.ndarray, data: Data | None, given: Given = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return gradients (S, D) and values (S,) of the likelihood of rows at Z (S, D); without
        rows, of the prior."""
        function = self._prior if data is None else self._likelihood
        slopes, values = function(Z, *self._arguments(data, given))
        return np.broadcast_to(slopes, Z.shape), np.broadcast_to(values, len(Z))

    def at(self, z: np.ndarray, data: Data, given: Given = ()) -> tuple[np.ndarray, float]:
        """Return the gradient (D,) and the value of the whole log density at z (D,)."""
        prior, likelihood = (self.part(z[None], rows, given) for rows in (None, data))
        return prior[0][0] + likelihood[0][0], float(prior[1][0] + likelihood[1][0])

    def curvature(
        self, m: np.ndarray, data: Data, given: Given = ()
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the likelihood's slopes (n,), curvatures (n,) and value at mean rewards m (n,)."""
        rest = self._arguments(data, given)
        slope, curvature, value = self._curvature(m, *rest)
        return np.broadcast_to(slope, m.shape), np.broadcast_to(curvature, m.shape), float(value)

    def linear_map(self, data: Data) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean rewards A θ + b: A (n, D), b (n,)."""
        A, b = affine(lambda Z: self.mean_reward(Z, data), self.dim)
        return np.ascontiguousarray(A.T), b

    def mean_reward(self, theta: np.ndarray, data: Data) -> np.ndarray:
        """Return the mean rewards (S, n) under θ (S, D)."""
        n = len(data[0])
        [means] = self._means(theta, *self._arguments(data))
        return np.broadcast_to(means, (len(theta), n))


def total(graphs: Sequence[Variable]) -> Variable:
    """Return the sum of all elements of some log densities."""
    return pt.add(pt.constant(0.0), *map(pt.sum, graphs))


def gradient(graph: Variable, variable: Variable) -> TensorVariable:
    """Return the gradient, 0 where the graph does not depend on the variable."""
    slope = pt.grad(graph, variable, disconnected_inputs="ignore")
    assert isinstance(slope, Variable)
    return pt.as_tensor_variable(slope)
