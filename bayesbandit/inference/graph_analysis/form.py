"""The form of a log density at the rows at hand, found by evaluation.

A term of a conditionally Gaussian log density is a sum of numbers, (9) of mathematics.md,

    f(z, u) = Σ_k c_k exp(e_k'u) (a_k'z − o_k)²  +  Σ_i (α_i u_i + β_i u_i²)  +  Σ_j c_j exp(e_j'u)

in reals z and the logarithms u of positive variables. That it is quadratic in z is proved on its
graph (`Degrees`), and that it is analytic in z and u (`Analytic`). Two analytic functions that
agree at random points agree everywhere. So the coefficients are read off values at a few points,
and tested at others:

- c and a from values far out in z, where the squares are all that is left; o from slopes at z = 0;
- e of a square from its ratio at two u;
- what is left, where squares are 0, along each u: far out one exponential is all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    number,
    operation,
    reduced_by,
)

Array = np.ndarray
FLOAT_EPSILON = float(np.finfo(np.float64).eps)
FAR_POINT = 2.0**300  # of z: what is not squared is rounding there
OUTER_POINTS = np.array([8.0, 15.0, 25.0, 40.0, 60.0, 90.0, 120.0, 150.0])  # of u, to both sides
LOG_SCALE_GRID = np.concatenate([-OUTER_POINTS[::-1], np.linspace(-4.0, 4.0, 9), OUTER_POINTS])
LOGARITHM_ROUNDING = 1e-12  # of a logarithm, by rounding of squares that are 0
COEFFICIENT_DIGITS = 12  # of the coefficients of monomials
RANK_TOLERANCE = 1e-9  # what a square may leave of second derivatives, relative to them
RELATIVE_TOLERANCE = 1e-8  # relative to the terms of a sum, in tests at random points
FAR_OUT = 60.0  # where powers are larger than logarithms
SMALLEST_POWER = 0.1  # that is told from a logarithm there
MAX_NUMBERS = 30_000_000  # that one evaluation may compute
KEEPS_ELEMENTS = (
    *("DimShuffle", "ExpandDims", "Squeeze", "Reshape", "SpecifyShape", "TensorFromScalar"),
    *("ScalarFromTensor", "ViewOp", "JoinDims", "SplitDims", "Unbroadcast"),
)


class NoForm(Exception):
    """The error of numbers that have another form; the message says how they differ."""


class RowsTogether(NoForm):
    """Numbers that depend on the values of a variable at several rows."""


class Block(NamedTuple):
    """N products c Π v^e: coef (N,); elements v and exponents e (q, N), exponent 0 for none."""

    coef: Array
    element: Array
    exponent: Array

    @property
    def keys(self) -> Array:
        """(N, 2q), equal for terms with the same powers."""
        order = np.argsort(np.where(self.exponent == 0.0, -1, self.element), axis=0)
        element = np.take_along_axis(self.element, order, axis=0)
        exponent = np.take_along_axis(self.exponent, order, axis=0)
        return np.vstack([np.where(exponent == 0.0, -1, element), exponent]).T


class Squares(NamedTuple):
    """N squares (Σ_j a_j z_j − o)², and what multiplies each.

    a (j, N), 0 for none; real (j, N): the places of z_j; offset o (N,).
    """

    powers: Block
    a: Array
    real: Array
    offset: Array


class Form(NamedTuple):
    """What a part adds to a log density of P positive variables. linear, square (P,): α and β."""

    squares: Squares
    pure: Block
    linear: Array
    square: Array

    @classmethod
    def empty(cls, positives: int) -> Form:
        """Return the form of no numbers."""
        none = stacked([])
        of_none = np.zeros((0, 0))
        squares = Squares(none, of_none, of_none.astype(np.int64), none.coef)
        return cls(squares, none, *np.zeros((2, positives)))


# ---- the numbers that a term is a sum of ---------------------------------------------------------


def summands(graph: Variable, sign: float = 1.0) -> list[tuple[Variable, float]]:
    """Return graphs and factors, whose elements add up to those of a graph: it is without the sums
    and joins that end it."""
    node = graph.owner
    if node is None:
        return [(graph, sign)]
    name = operation(node)[1]
    adds = isinstance(node.op, CAReduce) and reduced_by(node) == "Add"
    keeps = name in KEEPS_ELEMENTS or elementwise_name(graph) == "Identity" or repeats_none(graph)
    if adds or keeps or isinstance(node.op, CheckAndRaise):
        return summands(node.inputs[0], sign)
    if elementwise_name(graph) == "Neg":
        return summands(node.inputs[0], -sign)
    if elementwise_name(graph) in ("Add", "Sub"):
        varies = [part for part in terms(graph, sign) if not is_finite(part[0])]
        if len(varies) == 1:  # and numbers
            return summands(*varies[0])
    if elementwise_name(graph) == "Mul" and not graph.type.ndim:
        others = [v for v in node.inputs if not is_finite(v)]
        factors = [number(v) or 0.0 for v in node.inputs if is_finite(v)]
        if len(others) == 1:
            return summands(others[0], sign * math.prod(factors))
    if name in ("Join", "MakeVector"):
        arrays = [v for v in node.inputs if name == "MakeVector" or v.type.ndim]  # no axis
        return [part for v in arrays for part in summands(v, sign)]
    return [(graph, sign)]


def repeats_none(graph: Variable) -> bool:
    """Return whether a graph allocates an array of numbers that are one array of that shape."""
    if graph.owner is None or operation(graph.owner)[1] != "Alloc":
        return False
    return graph.owner.inputs[0].type.broadcastable == graph.type.broadcastable


def is_finite(graph: Variable) -> bool:
    """Return whether a graph is a finite number."""
    value = number(graph)
    return value is not None and math.isfinite(value)


def added(graph: Variable, sign: float) -> list[tuple[Variable, float]]:
    """Return the graphs that a graph is a sum of, element by element; none if it is no sum."""
    return [part for v, s in terms(graph, sign) for part in summands(v, s)]


def terms(graph: Variable, sign: float) -> list[tuple[Variable, float]]:
    """Return what is added, with its sign, to make a graph, of whose shape all are, but numbers."""
    name = elementwise_name(graph)
    if name not in ("Add", "Sub"):
        return []
    pairs = [(v, -sign if name == "Sub" and i else sign) for i, v in enumerate(graph.owner.inputs)]
    like = graph.type.broadcastable
    whole = all(v.type.broadcastable == like or number(v) is not None for v, _ in pairs)
    return pairs if whole else []


class Part:
    """Numbers that are summands of a term, as a function of variables, by name, and rows.

    fixed: whether neither data nor variables with a value for each row enter.
    """

    def __init__(
        self,
        graph: Variable,
        sign: float,
        unknown: Mapping[str, Variable],
        inputs: Sequence[Variable],
    ) -> None:
        self.graph, self.sign = graph, sign
        behind = set(ancestors([graph]))
        self.unknown = {k: v for k, v in unknown.items() if v in behind}
        self.inputs = {i: v for i, v in enumerate(inputs) if v in behind}
        by_row = any(None in v.type.shape for v in self.unknown.values())
        self.fixed = not (self.inputs or by_row)

    @cached_property
    def _compiled(self) -> Compiled:
        many = {v: v.type.clone(shape=(None, *v.type.shape))(k) for k, v in self.unknown.items()}
        graphs = vectorize_graph([self.graph], many) if many else [self.graph]
        return Compiled([*many.values(), *self.inputs.values()], list(graphs))

    def __call__(self, values: Sequence[Array], rows: Sequence[Array], points: int) -> Array:
        """Return the numbers (S, E) at S points: values (S, *shape) of the unknown."""
        given = [np.asarray(rows[i], v.type.dtype) for i, v in self.inputs.items()]
        with np.errstate(all="ignore"):
            [out] = self._compiled(*values, *given)
        by_point = out.ndim > self.graph.type.ndim
        flat = np.asarray(out, np.float64).reshape(points if by_point else 1, -1) * self.sign
        return np.broadcast_to(flat, (points, flat.shape[1]))


class Variables(NamedTuple):
    """Where variables are: the places of their elements, among the reals or the positive ones.

    between: the bounds of the positive ones. by_row: those with a value for each row. reals,
    positives: how many elements there are.
    """

    places: Mapping[str, Array]
    between: Mapping[str, tuple[float, float]]
    by_row: Collection[str]
    reals: int
    positives: int


# ---- reading -------------------------------------------------------------------------------------


class Slot(NamedTuple):
    """Coordinates that move together, since each number depends on one of them at most.

    owner (E,): the place of that coordinate; −1 for none.
    """

    name: str
    owner: Array

    @property
    def depends(self) -> Array:
        """(E,) which numbers depend on one of them."""
        return self.owner >= 0

    @property
    def coordinates(self) -> Array:
        return self.owner[self.depends]

    def of(self, values: Array) -> Array:
        """Return the value (E,) that each number depends on, 0 for none."""
        return np.where(self.depends, values[self.owner], 0.0)

    def moved(self, start: Array, by: Array | float) -> Array:
        """Return all coordinates, these moved by numbers."""
        out = start.copy()
        out[self.coordinates] += np.broadcast_to(by, start.shape)[self.coordinates]
        return out


class Factors(NamedTuple):
    """N squares c exp(e'u) (a'z − o)² of one real of each slot: a (R, N), e (Q, N), c and o (N,).

    of (N,): the number that each is in.
    """

    of: Array
    a: Array
    coef: Array
    offset: Array
    exponent: Array


class Monomials(NamedTuple):
    """m products c exp(e'u): e (Q, m), c (m,), and the number that each is in, of (m,)."""

    of: Array
    coef: Array
    exponent: Array


class Rest(NamedTuple):
    """What numbers are beside squares: α and β (Q, E), and monomials."""

    linear: Array
    square: Array
    monomials: Monomials


class Reader:
    """Reads the form of a part.

    base (P,): the u about which it is read. at_zero (E,): the numbers there, at z = 0. steps (D,):
    the size of each real in the squares.
    """

    def __init__(self, part: Part, rows: Sequence[Array], variables: Variables) -> None:
        self.part, self.rows, self.variables = part, rows, variables
        self.places = {k: np.asarray(variables.places[k]) for k in part.unknown}
        self.positive = [k for k in part.unknown if k in variables.between]
        self.rng = np.random.default_rng(0)
        self.base = np.zeros(variables.positives)
        for k in self.positive:
            low, high = variables.between[k]
            middle = 0.5 * (low + high) if high < math.inf else low + 1.0
            self.base[self.places[k]] = math.log(middle) + self.rng.uniform(-0.05, 0.05)
        self.zero, self.numbers = np.zeros(variables.reals), 1
        self.steps = self.zero + 1.0
        [self.at_zero] = self.values(self.zero, self.base)
        self.numbers = self.at_zero.size
        if not np.isfinite(self.at_zero).all():
            raise NoForm("not finite on these rows")

    def values(self, z: Array, u: Array) -> Array:
        """Return the numbers (S, E) at reals z (S, D) and logarithms u (S, P), or one of either."""
        z, u = np.atleast_2d(z), np.atleast_2d(u)
        S = max(len(z), len(u))
        given = []
        if S * self.numbers > MAX_NUMBERS:
            raise NoForm("too many numbers in one term")
        for k, where in self.places.items():
            at = np.exp(u[:, where]) if k in self.positive else z[:, where]
            given.append(np.broadcast_to(at, (S, *where.shape)))
        return self.part(given, self.rows, S)

    def read(self) -> Form:
        """Return the form; raise `NoForm` where it is another."""
        if not self.numbers:
            return Form.empty(self.variables.positives)
        far, other = FAR_POINT * self.rng.normal(size=(2, self.zero.size))
        reals = [k for k in self.places if k not in self.positive]
        self.real = list(self.slots(reals, lambda i: (far, moved(far, i, other), self.base)))
        factors = self.factors()
        mode = self.mode(factors)
        at = np.array([mode, far])
        self.scale = list(self.slots(self.positive, lambda i: (at, at, moved(self.base, i))))
        factors = self._at_one(factors, self.exponents(factors, far))
        rest = self.rest(factors, mode)
        if why := self.fault(factors, rest, mode):
            raise why
        return self.form(factors, rest)

    # ---- what numbers depend on ------------------------------------------------------------------

    def slots(
        self, names: Sequence[str], change: Callable[[int], tuple[Array, Array, Array]]
    ) -> Iterator[Slot]:
        """Yield the coordinates of variables: one slot of all of them if no number depends on two.

        Of variables with a value for each row the i-th is taken for that of the i-th number, which
        the test at random points confirms. change: from a place to z, and another z and u where
        that coordinate differs.
        """
        for name in names:
            where = self.places[name].ravel()
            if name in self.variables.by_row and where.size > 1:
                if where.size != self.numbers:
                    raise RowsTogether(f"rows are not apart in '{name}'")
                yield Slot(name, where)
                continue
            if where.size == 1:
                yield Slot(name, np.repeat(where, self.numbers))
                continue
            if where.size * self.numbers > MAX_NUMBERS:
                raise NoForm("too many numbers in one term")
            depends = np.zeros((where.size, self.numbers), bool)
            for row, place in zip(depends, where, strict=True):
                before, after, u = change(place)
                row[:] = (self.values(before, self.base) != self.values(after, u)).any(axis=0)
            if (depends.sum(axis=0) <= 1).all():
                yield Slot(name, np.where(depends.any(axis=0), where[depends.argmax(axis=0)], -1))
                continue
            for row, place in zip(depends, where, strict=True):
                if row.any():
                    yield Slot(name, np.where(row, place, -1))

    def _names(self, slots: Sequence[Slot]) -> str:
        return " and ".join(f"'{name}'" for name in sorted({slot.name for slot in slots}))

    def _of(self, slots: Sequence[Slot], values: Array, of: Array) -> Array:
        """Return the value (slots, N) in each slot that some numbers depend on."""
        return np.array([slot.of(values)[of] for slot in slots]).reshape(len(slots), of.size)

    # ---- squares ---------------------------------------------------------------------------------

    def factors(self) -> Factors:
        """Return the squares at the base of u, by an LDL' factorisation of second derivatives."""
        R = len(self.real)
        E = self.numbers
        none = np.zeros(0)
        found = [(none.astype(np.int64), np.zeros((R, 0)), none, none, np.zeros((0, 0)))]
        if not R:
            return Factors(*found[0])
        far = [
            slot.moved(self.zero, sign * FAR_POINT) for slot in self.real for sign in (1.0, -1.0)
        ]
        values = self.values(np.array(far), self.base).reshape(R, 2, E)
        if not np.isfinite(values).all():
            raise NoForm("not finite on these rows")
        bend = (values.sum(axis=1) - 2.0 * self.at_zero) / FAR_POINT**2
        least = (64.0 * FLOAT_EPSILON) ** 2 * np.abs(bend).max(axis=1, keepdims=True)
        bend[np.abs(bend) <= least] = 0.0  # the difference of two equal rows
        slope = self._slopes(bend)
        left = bend.copy()
        done = list[tuple[Array, Array]]()
        while (live := np.abs(left) > RANK_TOLERANCE * np.abs(bend)).any() and len(done) <= R:
            p = int(live.sum(axis=1).argmax())
            column = self._column(p, bend)
            for a, top in done:
                column -= a * (a[p] * top)
            pivot = np.where(live[p], left[p], np.inf)
            a = np.where(live, column, 0.0) / pivot
            top = np.where(live[p], left[p], 0.0)
            a[p] = live[p]
            offset = -slope[p] / pivot
            slope = slope + a * (top * offset)
            left = left - a**2 * top
            left[p][live[p]] = 0.0
            done.append((a, top))
            mine = np.flatnonzero(live[p])
            exponent = np.zeros((0, mine.size))
            found.append((mine, a[:, mine], 0.5 * top[mine], offset[mine], exponent))
        size = np.abs(bend) * self._of(self.real, self.steps, np.arange(E))
        if (np.abs(slope) > RELATIVE_TOLERANCE * size).any():
            raise NoForm(f"{self._names(self.real)} enters, but not squared")
        return Factors(*(np.concatenate(v, axis=-1) for v in zip(*found, strict=True)))

    def _slopes(self, bend: Array) -> Array:
        """Return slopes (R, E) at z = 0, by steps of the size of a square's offset or sd."""
        root = np.sqrt(np.where(bend != 0.0, np.abs(bend), np.inf))
        moves = []
        for slot, one in zip(
            self.real, np.sqrt(2.0 * np.abs(self.at_zero) + 2.0) / root, strict=True
        ):
            size = np.zeros(self.zero.size)
            np.maximum.at(size, slot.coordinates, one[slot.depends])
            self.steps = np.where(size > 0.0, size, self.steps)
            moves += [slot.moved(self.zero, self.steps), slot.moved(self.zero, -self.steps)]
        values = self.values(np.array(moves), self.base).reshape(len(self.real), 2, self.numbers)
        by = np.array([np.where(slot.depends, slot.of(self.steps), 1.0) for slot in self.real])
        return (values[:, 0] - values[:, 1]) / (2.0 * by)

    def _column(self, p: int, bend: Array) -> Array:
        """Return the second derivatives (R, E) by all reals and that of slot p, from values where
        the squares of both are of one size."""
        size = np.sqrt(np.abs(bend).max(axis=1))
        h = FAR_POINT / np.where(size > 0.0, size, 1.0)
        out = bend.copy()
        others = [r for r in range(len(bend)) if r != p]
        if others:
            start = self.real[p].moved(self.zero, h[p])
            by = h[others, None]
            both = np.array([self.real[r].moved(start, h[r]) for r in others])
            alone = 0.5 * bend[others] * by**2 + 0.5 * bend[p] * h[p] ** 2
            out[others] = (self.values(both, self.base) - alone) / (by * h[p])
        return out

    def mode(self, factors: Factors) -> Array:
        """Return reals (D,) at which squares are 0, or as small as least squares make them."""
        z = self.zero.copy()
        if not factors.offset.any():
            return z
        owner = np.array([slot.owner[factors.of] for slot in self.real])
        by_row = self.real[0].name in self.variables.by_row
        if len(self.real) == 1 and (by_row or np.unique(owner).size == owner.size):
            z[owner[0]] = factors.offset / factors.a[0]
            return z
        used, place = np.unique(owner, return_inverse=True)
        forms = np.zeros((factors.of.size, used.size))
        np.add.at(forms, (np.arange(len(forms)), place.reshape(owner.shape)), factors.a)
        root = np.sqrt(np.abs(factors.coef))
        z[used] = np.linalg.lstsq(forms * root[:, None], factors.offset * root)[0]
        return z

    def exponents(self, factors: Factors, far: Array) -> Array:
        """Return e (Q, N), by which each square is proportional to exp(e'u)."""
        of = factors.of
        Q = len(self.scale)
        if not of.size or not Q:
            return np.zeros((Q, of.size))
        tried = self.base + 2.0 * self.rng.uniform(size=self.base.size)
        u = np.array([self.base, *(slot.moved(self.base, 2.0) for slot in self.scale), tried])
        with np.errstate(all="ignore"):
            values = self.values(far, u)[:, of]
            log = np.log(values[1:] / values[0])
            depends = np.array([slot.depends[of] for slot in self.scale])
            e = quartered(np.where(depends, 0.5 * log[:-1], 0.0), 1e-9)
            gap = log[-1] - self._logs(of, e, tried - self.base)
        if not (np.abs(gap) <= RELATIVE_TOLERANCE).all():
            raise NoForm(f"its precision is no monomial of {self._names(self.scale)}")
        return e

    def _at_one(self, factors: Factors, e: Array) -> Factors:
        """Return squares with e (Q, N), and c at u = 0."""
        coef = factors.coef * np.exp(-self._logs(factors.of, e, self.base))
        return factors._replace(coef=coef, exponent=e)

    # ---- what is left ----------------------------------------------------------------------------

    def _gaps(self, factors: Factors, z: Array) -> tuple[Array, Array]:
        """Return the squares (N,) at z, before they are multiplied, and their rounding."""
        each = np.vstack([factors.a * self._of(self.real, z, factors.of), -factors.offset])
        form = each.sum(axis=0)
        blur = 64.0 * FLOAT_EPSILON * np.abs(each).sum(axis=0)
        return form**2, blur**2 + blur * np.abs(form)

    def _logs(self, of: Array, exponent: Array, u: Array) -> Array:
        """Return e'u (N,) of numbers at one point u."""
        return (exponent * self._of(self.scale, u, of)).sum(axis=0)

    def rest(self, factors: Factors, mode: Array) -> Rest:
        """Return what numbers are beside the squares."""
        Q = len(self.scale)
        E = self.numbers
        linear = np.zeros((Q, E))
        square = np.zeros((Q, E))
        found = []
        gap, blur = self._gaps(factors, mode)
        at_base = factors.coef * np.exp(self._logs(factors.of, factors.exponent, self.base))
        for q, slot in enumerate(self.scale):
            u = np.array([slot.moved(self.base, t) for t in LOG_SCALE_GRID])
            y = self.values(mode, u).copy()
            with np.errstate(all="ignore"):
                by = at_base * np.exp(factors.exponent[q] * LOG_SCALE_GRID[:, None])
                np.subtract.at(y.T, factors.of, (by * gap).T)
                point, which = np.nonzero(np.abs(by) * blur > LOGARITHM_ROUNDING)
            y[point, factors.of[which]] = np.nan
            mine = np.flatnonzero(slot.depends)
            linear[q, mine], alone = logarithms(y[:, mine])
            mine = mine[~alone]
            for column, which in alike(y[:, mine]):
                out = split(column, factors.exponent[q, np.isin(factors.of, mine[which])])
                if out is None:
                    raise NoForm(f"no sum of logarithms and powers of '{slot.name}'")
                linear[q, mine[which]], square[q, mine[which]], powers = out
                found += [(q, c, e, mine[which]) for c, e in powers]
            linear[q] -= 2.0 * square[q] * slot.of(self.base)  # of u, not of u − base
        monomials = joined(found, Q)
        log = self._logs(monomials.of, monomials.exponent, self.base)
        coef = rounded(monomials.coef * np.exp(-log), COEFFICIENT_DIGITS)
        return Rest(linear, square, monomials._replace(coef=coef))

    def fault(self, factors: Factors, rest: Rest, mode: Array) -> NoForm | None:
        """Return an error unless the numbers are the form's at random points, up to a constant."""
        linear, square, monomials = rest
        z = mode + self.steps * np.array([[0.0], [0.0], [1.0], [1.0]]) * self.rng.normal(
            size=(4, mode.size)
        )
        u = self.base + 2.0 * self.rng.normal(size=(4, self.base.size))
        every = np.arange(self.numbers)
        off = self.values(z, u).copy()
        size = np.abs(off)
        for k in range(len(z)):
            log, (gap, blur) = self._of(self.scale, u[k], every), self._gaps(factors, z[k])
            by = factors.coef * np.exp(self._logs(factors.of, factors.exponent, u[k]))
            powers = monomials.coef * np.exp(self._logs(monomials.of, monomials.exponent, u[k]))
            np.add.at(size[k], factors.of, np.abs(by) * blur / RELATIVE_TOLERANCE)
            terms = [(factors.of, by * gap), (monomials.of, powers)]
            terms += [(every, values) for values in (*(linear * log), *(square * log**2))]
            for of, values in terms:
                np.subtract.at(off[k], of, values)
                np.add.at(size[k], of, np.abs(values))
        if (np.abs(off - off[0]) <= RELATIVE_TOLERANCE * (size + size[0] + 1e-3)).all():
            return None
        slots = [*self.real, *self.scale]
        by_row = any(slot.name in self.variables.by_row for slot in slots)
        error = RowsTogether if by_row and self.numbers > 1 else NoForm
        return error(f"no sum of squares, logarithms and monomials of {self._names(slots)}")

    def form(self, factors: Factors, rest: Rest) -> Form:
        """Return the form by places."""
        linear, square, monomials = rest

        def owners(slots: Sequence[Slot], of: Array) -> Array:
            every = [slot.owner[of] for slot in slots]
            return np.array(every, np.int64).reshape(len(slots), of.size)

        powers = compact(factors.coef, owners(self.scale, factors.of), factors.exponent)
        real = np.where(factors.a != 0.0, owners(self.real, factors.of), 0)
        pure = compact(monomials.coef, owners(self.scale, monomials.of), monomials.exponent)
        logs = np.zeros((2, self.variables.positives))
        for total, each in zip(logs, (linear, square), strict=True):
            for slot, values in zip(self.scale, each, strict=True):
                np.add.at(total, slot.coordinates, values[slot.depends])
        return Form(Squares(powers, factors.a, real, factors.offset), pure, *logs)


def rounded(values: Array, digits: int) -> Array:
    """Return numbers of some significant digits: so terms that cancel do so exactly."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** (digits - np.ceil(np.log10(np.abs(values))))
    return np.where(np.isfinite(unit) & (unit > 0.0), np.round(values * unit) / unit, values)


def moved(start: Array, place: int, to: Array | None = None) -> Array:
    """Return numbers with another one at a place: that of `to`, or larger by 2."""
    out = start.copy()
    out[place] = out[place] + 2.0 if to is None else to[place]
    return out


def quartered(e: Array, within: float) -> Array:
    """Return numbers that are quarters of whole ones without their rounding."""
    quarter = np.round(4.0 * e) / 4.0
    return np.where(np.abs(e - quarter) <= within, quarter, e)


def logarithms(y: Array) -> tuple[Array, Array]:
    """Return α (m,) of columns y (T, m) that are α u and a constant on the grid, and which are."""
    fine = np.isfinite(y).all(axis=1)
    if fine.sum() < 3:
        return np.zeros(y.shape[1]), np.zeros(y.shape[1], bool)
    X = np.column_stack([np.ones(len(LOG_SCALE_GRID)), LOG_SCALE_GRID])[fine]
    w = np.linalg.lstsq(X, y[fine])[0]
    size = 1.0 + np.abs(y[fine]).max(axis=0)
    return quartered(w[1], 1e-11), (np.abs(X @ w - y[fine]) <= 1e-11 * size).all(axis=0)


def alike(y: Array) -> Iterator[tuple[Array, Array]]:
    """Yield columns of y (T, m), and which are equal to them but for a constant and rounding."""
    if not y.size:
        return
    with np.errstate(all="ignore"):
        gap = y - y[np.nan_to_num(np.abs(y), nan=np.inf).max(axis=1).argmin()]
        digits = 10.0 ** (10 - np.ceil(np.log10(np.abs(gap) + 1e-3)))
        near = np.round(gap * digits) / digits
    if (near == near[:, :1]).all():
        yield gap[:, 0], np.arange(y.shape[1])
        return
    _, first, which = np.unique(near, axis=1, return_index=True, return_inverse=True)
    for k, i in enumerate(first):
        yield gap[:, i], np.flatnonzero(np.ravel(which) == k)


def split(y: Array, near: Array) -> tuple[float, float, list[tuple[float, float]]] | None:
    """Return a function y of u on the grid as α u + β u² + Σ c e^{eu} + a constant: α, β, and pairs
    of c and e; None if it is another.

    Far out on either side there is one exponential at most, whose ratio at two points is e. Half of
    e is tried, too, for a power that is in a square beside a constant. The exponents `near`, of the
    squares of reals, are tried last: a square that cannot become 0 leaves such a power.
    """
    fine = np.isfinite(y)
    powers = list[float]()
    far = np.flatnonzero(fine & (np.abs(LOG_SCALE_GRID) >= FAR_OUT))
    left = far[LOG_SCALE_GRID[far] < 0.0][:2]
    right = far[LOG_SCALE_GRID[far] > 0.0][:-3:-1]
    for i, j in [pair for pair in (left, right) if pair.size == 2]:
        ratio = y[i] / y[j] if y[j] else 0.0
        e = math.log(ratio) / (LOG_SCALE_GRID[i] - LOG_SCALE_GRID[j]) if ratio > 0.0 else 0.0
        if e * np.sign(LOG_SCALE_GRID[i]) > SMALLEST_POWER:
            powers.append(float(quartered(np.array(e), 1e-6)))
    for more in ([], [0.5 * e for e in powers], [e for e in set(near.tolist()) if e]):
        for with_square in (False, True):
            every = list(dict.fromkeys([*powers, *more]))
            fit = fitted(y[fine], LOG_SCALE_GRID[fine], every, with_square)
            if fit is not None:
                alpha, beta, *c = fit
                return alpha, beta, list(zip(c, every, strict=True))
    return None


def fitted(y: Array, u: Array, powers: Sequence[float], with_square: bool) -> list[float] | None:
    """Return α, β and the c of known exponents, by least squares; None where it leaves
    something."""
    columns = [
        np.ones(u.size),
        u,
        *([u**2] if with_square else []),
        *(np.exp(e * u) for e in powers),
    ]
    if y.size <= len(columns):  # any numbers would fit
        return None
    weight = 1.0 / (1.0 + np.abs(y))
    X = np.column_stack(columns) * weight[:, None]
    size = np.abs(X).max(axis=0)
    w = np.linalg.lstsq(X / size, y * weight)[0]
    if not (np.abs(X / size @ w - y * weight) <= 1e-9).all():
        return None
    _, alpha, *rest = (w / size).tolist()
    beta = rest.pop(0) if with_square else 0.0
    return [float(quartered(np.array(alpha), 1e-11)), beta, *rest]


def joined(found: Sequence[tuple[int, float, float, Array]], Q: int) -> Monomials:
    """Return monomials, of powers found along each variable: their variable, value at the base,
    exponent and numbers. Powers of one value are of one monomial, for the base is random."""
    by_number: dict[int, list[tuple[float, Array]]] = {}
    for q, value, power, which in found:
        for i in which.tolist():
            mine = by_number.setdefault(i, [])
            same = (e for c, e in mine if not e[q] and abs(c - value) <= 1e-6 * abs(value))
            exponent = next(same, None)
            if exponent is None:
                exponent = np.zeros(Q)
                mine.append((value, exponent))
            exponent[q] = power
    flat = [(i, c, e) for i, mine in by_number.items() for c, e in mine]
    of, coef, exponents = ([f[k] for f in flat] for k in range(3))
    exponent = np.array(exponents).reshape(len(flat), Q).T
    return Monomials(np.array(of, np.int64), np.array(coef, np.float64), exponent)


# ---- products of powers --------------------------------------------------------------------------


def compact(coef: Array, element: Array, exponent: Array) -> Block:
    """Return products without variables that have no exponent; one that is there twice, once."""
    used = np.flatnonzero((exponent != 0.0).any(axis=1))
    element, exponent = element[used].copy(), exponent[used].copy()
    for k in range(len(element)):
        for m in range(k):
            same = (element[m] == element[k]) & (exponent[m] != 0.0)
            exponent[m, same] += exponent[k, same]
            exponent[k, same] = 0.0
    return Block(coef, np.where(exponent != 0.0, element, 0), exponent)


def stacked(blocks: Sequence[Block]) -> Block:
    """Return the products of several blocks as those of one."""
    q = max((len(b.element) for b in blocks), default=0)
    wide = [[np.pad(a, ((0, q - len(a)), (0, 0))) for a in b[1:]] for b in blocks]
    element = [np.zeros((q, 0), np.int64), *(w[0] for w in wide)]
    exponent = [np.zeros((q, 0)), *(w[1] for w in wide)]
    coef = np.concatenate([np.zeros(0), *(b.coef for b in blocks)])
    return Block(coef, np.concatenate(element, axis=1), np.concatenate(exponent, axis=1))
