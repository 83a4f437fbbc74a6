"""The form of a log density, found by evaluation: squares and logarithms of a scale mixture.

This is an independent reading of a log density, to be held against `bayesbandit/inference/algebra`.

A term of the log density is a number, or an array of such numbers, as

    c Π v^e (Σ a z − o)²  +  Σ (α log v + β (log v)²)  +  Σ c Π v^e

in reals z and positive variables v. Each of them is computed at a few points, and its coefficients
are read off the differences:

- z enters by a quadratic: a, o from values at 0, ±h and at pairs of these;
- e of a square: the ratio of its curvatures at v and at v e^δ;
- what is left, along log v in eight equal steps: third differences of a quadratic are 0, and those
  of an exponential are one again, with the same ratio (Prony's method, for up to two of them). A
  monomial of several variables has the same value along each of them.

The density must be analytic in z and v (`Analytic`). So what holds at points drawn at random holds
everywhere, and the form is tested at such points. Rows are at hand: nothing is said of others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.vm import VMLinker
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce

from bayesbandit.inference.base import Compiled
from bayesbandit.inference.graph_analysis.operations import (
    elementwise_name,
    number,
    operation,
    reduced_by,
)
from bayesbandit.inference.graph_analysis.quadratic import PYTHON

Array = np.ndarray
Points = Mapping[str, Array]  # values of variables by name, (S, size)

AS_IT_IS = Mode(VMLinker(use_cloop=False, c_thunks=False), "merge")  # ready soonest
EPS = np.finfo(np.float64).eps
STEPS = 2.0 ** np.arange(-24.0, 49.0, 6.0)  # of z, that are tried
WIDE = 3.0 * np.arange(-23.0, 24.0)  # of log v: where a power is looked for
AWAY = (-60.0, -25.0, 25.0, 60.0)  # and where a form is tested
LARGER = 40.0  # in logarithms: how much squares grow where they are read
FAR = (10.0, 1e20)  # of z: where it is asked what numbers depend on
RELIABLE = 2.0**-10  # the share of a value that a second difference must be
NOISE = 64.0 * EPS  # of a value: a difference below it is rounding
ALONG = 8  # points along log v
STRIDE = 0.6  # between them, where v has no upper bound
SAME = 1e-7  # relative to the terms that it is a difference of, in a test at random points
SQUARE = 1e-9  # relative to a curvature: what a square leaves of the second derivatives
COMMON = 1e-6  # relative difference of the value of one monomial, found along two variables
QUARTERS = 1e-5  # exponents this close to a quarter of a whole number are that
AT_ONCE = 256  # pairs of coordinates
LARGEST = 30_000_000  # numbers that one reading may compute
NOWHERE: Mapping[str, Array] = {}
SAME_SIZE = (
    *("DimShuffle", "ExpandDims", "Squeeze", "Reshape", "SpecifyShape", "TensorFromScalar"),
    *("ScalarFromTensor", "ViewOp", "JoinDims", "SplitDims", "Unbroadcast"),
)


class NoForm(Exception):
    """A term that has another form; the message says what is not as it should be."""


@dataclass(frozen=True)
class Block:
    """N products c Π v^e: coef (N,); elements v and exponents e (q, N), exponent 0 for none."""

    coef: Array
    element: Array
    exponent: Array


@dataclass(frozen=True)
class Squares:
    """N squares (Σ_j a_j z_j − o)², and what multiplies each.

    a (j, N) with a_j = 0 for none; real (j, N): the places of z_j; offset o (N,).
    """

    powers: Block
    a: Array
    real: Array
    offset: Array


@dataclass(frozen=True)
class Form:
    """What a term, or a part of it, adds to a log density. linear, square (P,): α and β."""

    squares: Squares
    pure: Block
    linear: Array
    square: Array


class Part:
    """Numbers that are summands of a term, as a function of variables and rows.

    weight: what each is multiplied by. unknown: the variables by name.
    """

    def __init__(
        self,
        graph: Variable,
        weight: float,
        unknown: Mapping[str, Variable],
        inputs: Sequence[Variable],
    ) -> None:
        self.graph, self.weight = graph, weight
        behind = set(ancestors([graph]))
        self.unknown = {k: v for k, v in unknown.items() if v in behind}
        self.inputs = [v for v in inputs if v in behind]
        self._which = [v in behind for v in inputs]

    @cached_property
    def _compiled(self) -> Compiled:
        many = {
            v: pt.tensor(k, shape=(None, *v.type.shape), dtype=v.type.dtype)
            for k, v in self.unknown.items()
        }
        graphs = vectorize_graph([self.graph], many) if many else [self.graph]
        mode = PYTHON if self.inputs else AS_IT_IS
        return Compiled([*many.values(), *self.inputs], list(graphs), mode)

    def __call__(self, values: Points, rows: Sequence[Array]) -> Array:
        """Return the numbers (S, E) at values (S, *shape) of the unknown."""
        given = [v for v, used in zip(rows, self._which, strict=True) if used]
        S = len(next(iter(values.values()))) if values else 1
        with np.errstate(all="ignore"):
            [out] = self._compiled(*[values[k] for k in self.unknown], *given)
        by_point = out.ndim > self.graph.type.ndim
        flat = np.asarray(out, np.float64).reshape(S if by_point else 1, -1) * self.weight
        return np.broadcast_to(flat, (S, flat.shape[1]))


def summands(graph: Variable, weight: float = 1.0) -> list[tuple[Variable, float]]:
    """Return graphs, and what to multiply them by, whose elements add up to those of a graph."""
    node = graph.owner
    if node is None:
        return [(graph, weight)]
    op, name, first = node.op, operation(node)[1], node.inputs[0]
    if isinstance(op, CheckAndRaise):
        return summands(first, weight)
    if isinstance(op, CAReduce) and reduced_by(node) == "Add":
        return summands(first, weight)
    if name in SAME_SIZE or elementwise_name(graph) == "Identity":
        return summands(first, weight)
    single = all(k == 1 for k in graph.type.shape)
    if name in ("Alloc", "Subtensor") and single and all(k == 1 for k in first.type.shape):
        return summands(first, weight)
    match elementwise_name(graph):
        case "Neg":
            return summands(first, -weight)
        case "Add" | "Sub" if single:
            signs = [1.0] * len(node.inputs)
            if elementwise_name(graph) == "Sub":
                signs[1] = -1.0
            pairs = zip(node.inputs, signs, strict=True)
            return [part for v, sign in pairs for part in summands(v, sign * weight)]
        case "Mul" | "TrueDiv":
            known = [number(v) for v in node.inputs]
            rest = [v for v, k in zip(node.inputs, known, strict=True) if k is None]
            wide = [v for v in rest if v.type.broadcastable == graph.type.broadcastable]
            if len(rest) == len(wide) == 1 and (name != "TrueDiv" or known[0] is None):
                numbers = [k for k in known if k is not None]
                factor = math.prod(numbers)
                divides = elementwise_name(graph) == "TrueDiv"
                if divides and known[0] is not None:
                    return [(graph, weight)]
                return summands(rest[0], weight / factor if divides else weight * factor)
    if name in ("Join", "MakeVector"):
        arrays = [v for v in node.inputs if name == "MakeVector" or v.type.ndim]  # no axis
        return [part for v in arrays for part in summands(v, weight)]
    return [(graph, weight)]


@dataclass(frozen=True)
class Slot:
    """Coordinates of one variable that are moved together; each number depends on one of them.

    owner (E,): which, −1 for none. mask (size,): which coordinates are moved.
    """

    name: str
    mask: Array
    owner: Array


@dataclass(frozen=True)
class Sums:
    """N squares c (a'z − o)² that numbers are sums of, at some v, z of one number in each slot.

    of (N,): of which number. a (R, N), coef c (N,), offset o (N,). pivot (N,): the slot in which
    the curvature is largest; −1 for one of several squares in a number.
    """

    of: Array
    a: Array
    coef: Array
    offset: Array
    pivot: Array


@dataclass(frozen=True)
class Found:
    """Where a part is read well.

    h (R,): steps of z. near: of one slot, where squares are 0. larger, balanced: moves of log v, by
    name, for squares and for the rest.
    """

    h: Array
    larger: Mapping[str, float]
    near: float
    balanced: Mapping[str, float]


@dataclass(frozen=True)
class Rest:
    """What numbers are beside squares: α u + β u², u (Q, E), and monomials: of which numbers (m,),
    their values at u = 0, and exponents (Q, m)."""

    linear: Array
    square: Array
    monomials: Sequence[tuple[Array, Array, Array]]


class Reader:
    """Reads the form of one part at the rows at hand.

    shapes: of the unknown. places: of their coordinates, among reals or positives. positive: the
    bounds of positive ones.
    """

    def __init__(
        self,
        part: Part,
        rows: Sequence[Array],
        shapes: Mapping[str, tuple[int, ...]],
        places: Mapping[str, Array],
        positive: Mapping[str, tuple[float, float]],
    ) -> None:
        self.part, self.rows, self.places = part, rows, places
        self.shapes = {k: shapes[k] for k in part.unknown}
        self.size = {k: math.prod(shape) for k, shape in self.shapes.items()}
        self.positive = {k: positive[k] for k in part.unknown if k in positive}
        self.rng = np.random.default_rng(0)
        self.base: dict[str, Array] = {}
        self.stride: dict[str, float] = {}
        for k, size in self.size.items():
            if k not in self.positive:
                self.base[k] = np.zeros(size)
                continue
            low, high = reach(*self.positive[k])
            self.stride[k] = (high - low) / (ALONG + 1)
            self.base[k] = low + self.stride[k] * self.rng.uniform(0.5, 1.0, size)
        [self.at_base] = self.values([{}])
        if np.isnan(self.at_base).any() or (np.abs(self.at_base) == np.inf).any():
            raise NoForm("not finite on these rows")
        slots = [slot for k in self.size for slot in self._slots(k)]
        self.real = [s for s in slots if s.name not in self.positive]
        self.scale = [s for s in slots if s.name in self.positive]
        points = (1 + 2 * len(self.real)) * (2 + len(self.scale)) + len(self.real) ** 2 // 2
        if points * self.at_base.size > LARGEST:
            raise NoForm("too many numbers in one term")

    def _balance(
        self, zero: Mapping[str, Array], squares: Sums, exponent: Array
    ) -> dict[str, float]:
        """Return moves of each variable without bounds to where a power of it, if the part has one,
        is about as large as its logarithm: so that both keep their digits in any units.

        zero: a move of z by which squares are 0, but for rounding.
        """
        log_v = of_slots(self.scale, self.base, self.at_base.size)[:, squares.of]
        blur = np.abs(squares.coef) * (NOISE * squares.offset) ** 2
        blur = blur * np.exp((exponent * log_v).sum(axis=0))
        moves = dict[str, float]()
        for e, slot in zip(exponent, self.scale, strict=True):
            if self.positive[slot.name] != (0.0, math.inf):
                continue
            mine = slot.owner >= 0
            others = {k: np.full(self.size[k], by) for k, by in moves.items() if k != slot.name}
            points = [{**zero, **others, slot.name: t * slot.mask} for t in WIDE]
            values = self.values(points)[:, mine]
            with np.errstate(all="ignore"):
                bend = np.abs(np.diff(values, n=3, axis=0))
                size = np.abs(values[:-3]) + np.abs(values[3:])
                rounding = np.zeros((len(WIDE), self.at_base.size))
                for k, t in enumerate(WIDE):
                    np.add.at(rounding[k], squares.of, blur * np.exp(e * t))
                rounding = rounding[:-3, mine] + rounding[3:, mine]
                seen = (bend > 1e-9 * size + 100.0 * rounding) & np.isfinite(bend)
                far = np.where(seen, np.abs(np.log(bend)), np.inf)
            nearest = np.median(far, axis=1)
            if np.isfinite(nearest).any():
                k = min(int(nearest.argmin()), len(bend) - 2)
                rises = np.median(bend[k + 1]) > np.median(bend[k])
                moves[slot.name] = float(WIDE[k + 3] if rises else WIDE[k])
        return moves

    def values(self, moves: Sequence[Mapping[str, Array]]) -> Array:
        """Return the numbers (S, E) where variables, or their logarithms, are moved from the
        base."""
        points = {}
        for k, shape in self.shapes.items():
            at = np.tile(self.base[k], (len(moves), 1))
            for s, move in enumerate(moves):
                if k in move:
                    at[s] += move[k]
            points[k] = (np.exp(at) if k in self.positive else at).reshape(len(moves), *shape)
        return self.part(points, self.rows)

    def _slots(self, name: str) -> list[Slot]:
        """Return coordinates that may move together: all, if each number depends on one at most.

        That is asked at two points z, far from 0, because where a square is 0 nothing is seen of
        what multiplies it, and next to a large square nothing is seen of a logarithm.
        """
        size, E = self.size[name], self.at_base.size
        index, reals = np.arange(size), [k for k in self.size if k not in self.positive]
        owner, several, depends = np.zeros(E, np.int64), np.zeros(E, bool), np.zeros(E, bool)
        points = [{k: far * self.rng.normal(size=self.size[k]) for k in reals} for far in FAR]
        values = self.values(points)
        for b in range(max(1, (size - 1).bit_length())):
            bit = (index >> b) & 1
            on, off = np.zeros(E, bool), np.zeros(E, bool)
            for point, there, far in zip(points, values, FAR, strict=True):
                least = self.stride[name] * 3.0 if name in self.positive else far
                away = least * (0.5 + self.rng.uniform(size=size))
                begin = point.get(name, 0.0)
                moves = [{**point, name: begin + away * which} for which in (bit, 1 - bit)]
                changed = self.values(moves) != there
                on, off = on | changed[0], off | changed[1]
            several |= on & off
            depends |= on | off
            owner += on.astype(np.int64) << b
        if several.any():
            one = np.eye(size)
            return [Slot(name, one[j], np.full(E, j)) for j in range(size)]
        return [Slot(name, np.ones(size), np.where(depends, owner, -1))] if depends.any() else []

    # ---- the quadratic in z ----------------------------------------------------------------------

    def read(self) -> Form:
        """Return the form; raise `NoForm` where the part has another."""
        begin = dict(self.base)
        return self._read(self._find(), begin)

    def _find(self) -> Found:
        """Return where to read: squares where v makes them large, so that logarithms beside them do
        not cost digits, and the rest where powers are as large as logarithms."""
        begin, larger = dict(self.base), dict[str, float]()
        h = self._steps()
        self._check_quadratic(h)
        rough = self._exponents(h, self._at_base(h)) if self.scale else np.zeros((0, 0))
        for slot, e in zip(self.scale, rough, strict=True):
            if e.size and e.all() and self.positive[slot.name] == (0.0, math.inf):
                larger[slot.name] = LARGER / float(np.median(e))
                break
        self._move_base(begin, larger)
        h = self._steps()
        squares = self._at_base(h)
        zero, left = self._zero(squares)
        near = 1.0 if left.all() else self._step(self.real[squares.pivot[~left][0]], zero)
        found = Found(h, larger, near, {})
        squares, exponent = self._squares(found)
        self._move_base(begin, {})
        zero, _ = self._zero(squares)
        return replace(found, balanced=self._balance(zero, squares, exponent))

    def _read(self, found: Found, begin: Mapping[str, Array]) -> Form:
        """Return the form, read at places that were found."""
        self._move_base(begin, found.larger)
        squares, exponent = self._squares(found)
        zero, left = self._zero(squares)
        self._move_base(begin, found.balanced)
        rest = self._rest(squares, exponent, zero, left)
        self._check(found.h, squares, exponent, rest, zero, left)
        return self._form(squares, exponent, rest)

    def _move_base(self, begin: Mapping[str, Array], by: Mapping[str, float]) -> None:
        self.base = {k: v + by.get(k, 0.0) for k, v in begin.items()}
        [self.at_base] = self.values([{}])

    def _steps(self) -> Array:
        return np.array([self._step(slot) for slot in self.real])

    def _squares(self, found: Found) -> tuple[Sums, Array]:
        """Return the squares that numbers are sums of, with coefficients at v = 1, and exponents
        (Q, N)."""
        squares = self._refined(self._at_base(found.h), found.near)
        exponent = self._exponents(found.h, squares)
        log_v = of_slots(self.scale, self.base, self.at_base.size)[:, squares.of]
        coef = squares.coef * np.exp(-(exponent * log_v).sum(axis=0))
        return replace(squares, coef=coef), exponent

    def _refined(self, squares: Sums, near: float) -> Sums:
        """Return squares with offsets that are read again, near where the squares are 0."""
        zero, left = self._zero(squares)
        if left.all():
            return squares
        moved, offset = np.flatnonzero(~left), squares.offset.copy()
        j, of = int(squares.pivot[moved[0]]), squares.of[moved]
        h = np.ones(len(self.real))
        h[j] = near
        _, slope, curvature = self._curves(h, [zero])
        steep = np.where(curvature[0, j, of] != 0.0, curvature[0, j, of], np.inf)
        offset[moved] -= squares.a[j, moved] * slope[0, j, of] / steep
        return replace(squares, offset=offset)

    def _at_base(self, h: Array) -> Sums:
        """Return the squares that numbers are sums of, at the base of v."""
        R, E = len(self.real), self.at_base.size
        none = np.zeros(0, np.int64)
        if not R:
            return Sums(none, np.zeros((0, 0)), np.zeros(0), np.zeros(0), none)
        f, s, q = self._curves(h, [{}])
        slope, curvature, each = s[0] * h[:, None], q[0] * h[:, None] ** 2, np.arange(E)
        H = self._hessians(h, f[0], curvature)  # in units of h
        pivot = np.abs(curvature).argmax(axis=0)
        top = curvature[pivot, each]
        live = top != 0.0
        if (~live & (slope != 0.0).any(axis=0)).any():
            raise NoForm(f"{self._names(self.real)} enters, but not squared")
        unit = np.where(live, top, 1.0)
        a = H[pivot, :, each].T / unit
        off = np.abs(H - top * a[:, None] * a[None]).max(axis=(0, 1))
        one = live & (off <= SQUARE * np.abs(top))
        parts = [(each[one], a[:, one], top[one], -slope[pivot, each][one] / top[one], pivot[one])]
        for e in np.flatnonzero(live & ~one):
            size, w = np.linalg.eigh(H[:, :, e])
            w, size = w[:, keep := np.abs(size) > SQUARE * np.abs(size).max()], size[keep]
            many = np.full(size.size, e)
            parts.append((many, w, size, -(slope[:, e] @ w) / size, np.full(size.size, -1)))
        of, a, top, offset, pivot = (np.concatenate(v, axis=-1) for v in zip(*parts, strict=True))
        unit = np.where(pivot >= 0, h[pivot], 1.0)  # a = 1 at the pivot, not 1/h
        return Sums(of, a / h[:, None] * unit, 0.5 * top / unit**2, offset * unit, pivot)

    def _step(self, slot: Slot, around: Mapping[str, Array] = NOWHERE) -> float:
        """Return how far a coordinate of z has to move for its curvature to keep its digits, while
        it is no farther from 0 than it must be, by which slopes keep theirs."""
        moves = [added(around, slot, sign * h) for sign in (1.0, -1.0) for h in STEPS]
        [f], values = self.values([around]), self.values(moves)
        up, down = values[: len(STEPS)], values[len(STEPS) :]
        bend = np.abs(up + down - 2.0 * f)
        size = np.abs(up) + np.abs(down) + 2.0 * np.abs(f)
        enough = (bend >= RELIABLE * size).sum(axis=1)
        wanted = 0.5 * (bend > NOISE * size).any(axis=0).sum()
        good = np.flatnonzero(enough >= max(wanted, 1.0))
        return float(STEPS[good[0]]) if good.size else 1.0

    def _curves(self, h: Array, around: Sequence[Mapping[str, Array]]) -> tuple[Array, ...]:
        """Return values (C, E), slopes and curvatures (C, R, E) at z = 0, with scales moved."""
        C, R = len(around), len(self.real)
        moves = list(around)
        for sign in (1.0, -1.0):
            for slot, step in zip(self.real, h, strict=True):
                moves += [added(u, slot, sign * step) for u in around]
        values = self.values(moves)
        f = values[:C]
        up, down = values[C:].reshape(2, R, C, values.shape[1]).transpose(0, 2, 1, 3)
        rounding = NOISE * (np.abs(up) + np.abs(down) + 2.0 * np.abs(f[:, None]))
        s, q = 0.5 * (up - down), up + down - 2.0 * f[:, None]
        wide = h[:, None]
        s = np.where(np.abs(s) > rounding, s, 0.0) / wide
        return f, s, np.where(np.abs(q) > rounding, q, 0.0) / wide**2

    def _check_quadratic(self, h: Array) -> None:
        """Raise `NoForm` unless fourth differences along random lines are 0."""
        for _ in range(2 if self.real else 0):
            move: dict[str, Array] = {}
            for slot, step in zip(self.real, h, strict=True):
                along = step * self.rng.normal(size=slot.mask.size) * slot.mask
                move[slot.name] = move.get(slot.name, 0.0) + along
            points = [{k: t * v for k, v in move.items()} for t in (-2.0, -1.0, 0.0, 1.0, 2.0)]
            v = self.values(points)
            third = v[4] - 2.0 * v[3] + 2.0 * v[1] - v[0]
            fourth = v[4] - 4.0 * v[3] + 6.0 * v[2] - 4.0 * v[1] + v[0]
            if not (np.abs(third) + np.abs(fourth) <= SAME * np.abs(v).max(axis=0) + 1e-300).all():
                raise NoForm(f"not quadratic in {self._names(self.real)}")

    def _hessians(self, h: Array, f: Array, curvature: Array) -> Array:
        """Return the second derivatives (R, R, E), in units of h."""
        R, E = len(self.real), self.at_base.size
        H = np.zeros((R, R, E))
        H[np.arange(R), np.arange(R)] = curvature
        pairs = list(combinations(range(R), 2))
        for i in range(0, len(pairs), AT_ONCE):
            some = pairs[i : i + AT_ONCE]
            moves = [self._moved({j: h[j]}) for pair in some for j in pair]
            moves += [self._moved({j: h[j], k: h[k]}) for j, k in some]
            v = self.values(moves)
            single, both = v[: 2 * len(some)].reshape(len(some), 2, E), v[2 * len(some) :]
            cross = both - single.sum(axis=1) + f
            rounding = NOISE * (np.abs(single).sum(axis=1) + np.abs(both) + np.abs(f))
            cross = np.where(np.abs(cross) > rounding, cross, 0.0)
            for (j, k), value in zip(some, cross, strict=True):
                H[j, k] = H[k, j] = value
        return H

    def _moved(self, by: Mapping[int, float]) -> dict[str, Array]:
        """Return a move of some slots of z."""
        move: dict[str, Array] = {}
        for j, step in by.items():
            slot = self.real[j]
            move[slot.name] = move.get(slot.name, 0.0) + step * slot.mask
        return move

    def _exponents(self, h: Array, squares: Sums) -> Array:
        """Return e (Q, N), by which each square is proportional to v^e."""
        steps = [3.0 * self.stride[s.name] for s in self.scale]
        moved = [{s.name: t * s.mask} for s, t in zip(self.scale, steps, strict=True)]
        if not (moved and squares.of.size):
            return np.zeros((len(moved), squares.of.size))
        _, _, now = self._curves(h, [{}])
        _, _, then = self._curves(h, moved)
        pivot = np.abs(now[0] * h[:, None] ** 2).argmax(axis=0)[squares.of]
        with np.errstate(all="ignore"):
            ratio = then[:, pivot, squares.of] / now[0][pivot, squares.of]
            e = np.log(ratio) / np.array(steps)[:, None]
        if not np.isfinite(e).all():
            raise NoForm(f"its precision is no monomial of {self._names(self.scale)}")
        return snapped(e)

    # ---- what is left, in log v ------------------------------------------------------------------

    def _zero(self, squares: Sums) -> tuple[dict[str, Array], Array]:
        """Return a move of z by which squares become 0, so that the rest keeps its digits; and
        which squares (N,) it leaves where they were."""
        left = np.ones(squares.of.size, bool)
        far = np.flatnonzero(squares.offset != 0.0)
        pivots = np.unique(squares.pivot[far])
        if pivots.size != 1 or pivots[0] < 0:
            return {}, left
        slot = self.real[pivots[0]]
        owner = slot.owner[squares.of[far]]
        touched = squares.a[pivots[0]] != 0.0
        if np.unique(owner).size < far.size or touched.sum() > far.size:
            return {}, left
        move = np.zeros(slot.mask.size)
        move[owner] = squares.offset[far] / squares.a[pivots[0], far]
        left[far] = False
        return {slot.name: move}, left

    def _rest(self, squares: Sums, exponent: Array, zero: Mapping[str, Array], left: Array) -> Rest:
        """Return logarithms and monomials: what numbers are beside the squares."""
        Q, E = len(self.scale), self.at_base.size
        linear, square = np.zeros((Q, E)), np.zeros((Q, E))
        found: list[tuple[int, Array, Array]] = []
        log_v = of_slots(self.scale, self.base, E)
        begin = np.exp((exponent * log_v[:, squares.of]).sum(axis=0))
        held = np.where(left, squares.coef * begin * squares.offset**2, 0.0)
        for k, slot in enumerate(self.scale):
            d = self.stride[slot.name]
            values = self.values([{**zero, slot.name: t * d * slot.mask} for t in range(ALONG)])
            size = np.abs(values).max(axis=0) + 1e-300
            if held.any():
                values = values.copy()
                for t in range(ALONG):
                    np.subtract.at(values[t], squares.of, held * np.exp(exponent[k] * d * t))
            mine = slot.owner >= 0
            out = split(values[:, mine], d, size[mine])
            if out is None:
                raise NoForm(f"no sum of logarithms and powers of '{slot.name}'")
            linear[k, mine], square[k, mine] = out[0] / d, out[1] / d**2
            for value, power in out[2]:
                whole_value, whole_power = np.zeros(E), np.zeros(E)
                whole_value[mine], whole_power[mine] = value, power
                found.append((k, whole_value, whole_power))
        return Rest(linear, square, joined(found, Q))

    def _check(
        self,
        h: Array,
        squares: Sums,
        exponent: Array,
        rest: Rest,
        zero: Mapping[str, Array],
        left: Array,
    ) -> None:
        """Raise `NoForm` unless the form is the part's own at points drawn at random."""
        [start] = self.values([zero])
        log_v = of_slots(self.scale, self.base, start.size)[:, squares.of]
        begin = squares.coef * np.exp((exponent * log_v).sum(axis=0))
        far = [(s, t) for s in self.scale if self.positive[s.name] == (0.0, math.inf) for t in AWAY]
        for trial in range(3 + len(far)):
            move = {k: v.copy() for k, v in zero.items()}
            if trial >= 3:
                slot, t = far[trial - 3]
                move[slot.name] = move.get(slot.name, 0.0) + t * slot.mask
            for slot, step in zip(self.real, h, strict=True):
                away = step * self.rng.normal(size=slot.mask.size) * slot.mask * (0 < trial < 3)
                move[slot.name] = move.get(slot.name, 0.0) + away
            for slot in self.scale:
                away = 6.0 * self.stride[slot.name] * self.rng.uniform(size=slot.mask.size)
                move[slot.name] = move.get(slot.name, 0.0) + away * slot.mask
            with np.errstate(all="ignore"):
                z, u = (of_slots(slots, move, start.size) for slots in (self.real, self.scale))
                each = np.vstack([squares.a * z[:, squares.of], -squares.offset])
                blur = NOISE * np.abs(each).sum(axis=0)  # where a square is 0
                factor = begin * np.exp((exponent * u[:, squares.of]).sum(axis=0))
                grown = factor * each.sum(axis=0) ** 2
                kept = np.where(left, begin * squares.offset**2, 0.0)
                each = rest.linear * u + rest.square * u**2
                said, size = each.sum(axis=0), np.abs(each).sum(axis=0)
                terms = [(squares.of, grown, kept)]
                for which, value, power in rest.monomials:
                    terms.append((which, value * np.exp((power * u[:, which]).sum(axis=0)), value))
                for which, now, before in terms:
                    np.add.at(said, which, now - before)
                    np.add.at(size, which, np.abs(now) + np.abs(before))
                np.add.at(size, squares.of, np.abs(factor) * blur**2 / SAME)
            [then] = self.values([move])
            with np.errstate(all="ignore"):
                size = size + np.abs(start) + np.abs(then)
                beyond = ~np.isfinite(size) & (trial >= 3)
                same = np.abs(then - start - said) <= SAME * size
            if not (same | beyond).all():
                names = self._names([*self.real, *self.scale])
                raise NoForm(f"no sum of squares, logarithms and monomials in {names}")

    def _form(self, squares: Sums, exponent: Array, rest: Rest) -> Form:
        """Return the form by places; coefficients are those at v = 1."""
        E = self.at_base.size
        real, element = (of_slots(s, self.places, E, np.int64) for s in (self.real, self.scale))
        log_v = of_slots(self.scale, self.base, E)
        of = squares.of
        used = np.flatnonzero((squares.a != 0.0).any(axis=1))
        there = Squares(
            compact(squares.coef, element[:, of], exponent),
            squares.a[used],
            real[used][:, of],
            squares.offset,
        )
        pure = [
            compact(value * np.exp(-(power * log_v[:, i]).sum(axis=0)), element[:, i], power)
            for i, value, power in rest.monomials
        ]
        P = int(element.max(initial=-1)) + 1
        linear, square = np.zeros(P), np.zeros(P)
        np.add.at(linear, element, rest.linear - 2.0 * rest.square * log_v)  # log v = log_v + u
        np.add.at(square, element, rest.square)
        return Form(there, stacked(pure), linear, square)

    def _names(self, slots: Sequence[Slot]) -> str:
        names = sorted({slot.name for slot in slots})
        return " and ".join(f"'{name}'" for name in names)


def added(move: Mapping[str, Array], slot: Slot, by: float) -> dict[str, Array]:
    """Return a move that also moves a slot."""
    return {**move, slot.name: move.get(slot.name, 0.0) + by * slot.mask}


def of_slots(
    slots: Sequence[Slot], values: Mapping[str, Array], E: int, dtype: type = np.float64
) -> Array:
    """Return for each slot (R,) and number (E,) the value of the coordinate that it depends on."""
    out: Array = np.zeros((len(slots), E), dtype)
    for row, slot in zip(out, slots, strict=True):
        mine = slot.owner >= 0
        row[mine] = np.ravel(values[slot.name])[slot.owner[mine]]
    return out


def reach(low: float, high: float) -> tuple[float, float]:
    """Return an interval of log v, of a variable between low and high, inside of which it is
    moved."""
    least = low if low > 0.0 else (high / 16.0 if high < np.inf else 0.25)
    most = high if high < np.inf else least * math.exp(STRIDE * (ALONG + 1))
    wide = most - least
    return math.log(least + 0.02 * wide), math.log(most - 0.02 * wide)


def snapped(e: Array) -> Array:
    """Return exponents, without rounding where they are quarters of whole numbers."""
    quarter = np.round(4.0 * e) / 4.0
    return np.where(np.abs(e - quarter) < QUARTERS, quarter, np.round(e, 10))


def split(y: Array, d: float, size: Array) -> tuple[Array, Array, list[tuple[Array, Array]]] | None:
    """Return functions y (T, m) of t = 0, 1, … as α t + β t² + Σ c e^{edt} + a constant: α, β (m,)
    and pairs of c and e (m,); None if they are others.

    size (m,): of the numbers that y is a difference of.
    """
    m = y.shape[1]
    jump = np.diff(y, n=3, axis=0)
    alive = (np.abs(jump) > 1e-11 * size).any(axis=0)
    rates = np.zeros((2, m))
    with np.errstate(all="ignore"):
        # one exponential: each difference is r times the one before
        r = (jump[1:] * jump[:-1]).sum(axis=0) / (jump[:-1] ** 2).sum(axis=0)
        off = np.abs(jump[1:] - r * jump[:-1]).max(axis=0)
        one = alive & (r > 0.0) & (off <= 1e-6 * np.abs(jump).max(axis=0) + 1e-10 * size)
        rates[0] = np.where(one, np.log(np.where(one, r, 1.0)), 0.0)
    for i in np.flatnonzero(alive & ~one):  # two: a recurrence of second order
        X = np.column_stack([jump[1:-1, i], jump[:-2, i]])
        (p, c), *_ = np.linalg.lstsq(X, jump[2:, i])
        if p * p + 4.0 * c <= 0.0:
            return None
        roots = 0.5 * (p + np.array([1.0, -1.0]) * math.sqrt(p * p + 4.0 * c))
        if (roots <= 0.0).any():
            return None
        rates[:, i] = np.log(roots)
    return fitted(y, d, size, snapped(rates / d))


def fitted(
    y: Array, d: float, size: Array, powers: Array
) -> tuple[Array, Array, list[tuple[Array, Array]]] | None:
    """Return α, β and the c of known exponents e (2, m), by least squares; None where it leaves
    something."""
    T, m = y.shape
    alpha, beta, c = np.zeros(m), np.zeros(m), np.zeros((2, m))
    t = np.arange(T, dtype=np.float64)
    for e in np.unique(powers, axis=1).T:
        mine = np.flatnonzero((powers == e[:, None]).all(axis=0))
        live = [j for j in (0, 1) if e[j]]
        X = np.column_stack([np.ones(T), t, t**2, *(np.exp(e[j] * d * t) for j in live)])
        unit = np.abs(X).max(axis=0)
        w, *_ = np.linalg.lstsq(X / unit, y[:, mine])
        if not (np.abs(X / unit @ w - y[:, mine]) <= 1e-9 * size[mine]).all():
            return None
        w = w / unit[:, None]
        w[2][np.abs(w[2]) * t[-1] ** 2 <= 1e-9 * size[mine]] = 0.0
        if not live and not w[2].any():
            w[1] = (y[-1, mine] - y[0, mine]) / t[-1]
        quarter = np.round(4.0 * w[1] / d) * d / 4.0  # most shapes are quarters of whole numbers
        rounding = NOISE * unit.max() * size[mine]
        alpha[mine] = np.where(np.abs(w[1] - quarter) <= rounding, quarter, w[1])
        beta[mine] = w[2]
        for j, value in zip(live, w[3:], strict=True):
            c[j, mine] = value
    return alpha, beta, [(c[j], powers[j]) for j in (0, 1) if powers[j].any()]


def joined(found: Sequence[tuple[int, Array, Array]], Q: int) -> list[tuple[Array, Array, Array]]:
    """Return monomials: numbers, values and exponents (Q, m), of powers found along each variable.

    Powers with the same value at the base are of one monomial, for the base was drawn at random.
    """
    left = [(k, value, power, power != 0.0) for k, value, power in found]
    out = []
    for i, (k, value, power, alive) in enumerate(left):
        which = np.flatnonzero(alive)
        if not which.size:
            continue
        exponent = np.zeros((Q, which.size))
        exponent[k] = power[which]
        for other, its, its_power, its_alive in left[i + 1 :]:
            if other == k:
                continue
            same = its_alive[which] & (
                np.abs(its[which] - value[which]) <= COMMON * np.abs(value[which])
            )
            exponent[other, same] = its_power[which[same]]
            its_alive[which[same]] = False
        out.append((which, value[which], exponent))
    return out


def compact(coef: Array, element: Array, exponent: Array) -> Block:
    """Return a block without variables that have no exponent; one that is there twice, once."""
    used = np.flatnonzero((exponent != 0.0).any(axis=1))
    element, exponent = element[used].copy(), exponent[used].copy()
    for k in range(len(element)):
        for m in range(k):
            same = (element[m] == element[k]) & (exponent[m] != 0.0)
            exponent[m, same] += exponent[k, same]
            exponent[k, same] = 0.0
    return Block(coef, element, exponent)


def stacked(blocks: Sequence[Block]) -> Block:
    """Return several blocks as one."""
    q = max((len(b.element) for b in blocks), default=0)
    more = [q - len(b.element) for b in blocks]
    pairs = list(zip(blocks, more, strict=True))
    return Block(
        np.concatenate([np.zeros(0), *(b.coef for b in blocks)]),
        np.concatenate(
            [np.zeros((q, 0), np.int64), *(np.pad(b.element, ((0, m), (0, 0))) for b, m in pairs)],
            axis=1,
        ),
        np.concatenate(
            [np.zeros((q, 0)), *(np.pad(b.exponent, ((0, m), (0, 0))) for b, m in pairs)], axis=1
        ),
    )
