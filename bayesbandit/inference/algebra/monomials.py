"""An algebra of tensors whose elements are sums of monomials of positive variables.

Each element is

    Σ_k c_k Π v^e Π log v × (1, a real variable, or the square of an affine form of real variables).

It is stored as numbers: coefficients c, constant exponents e, and the place of each v in one flat
vector of all positive variables. The operations here are exact. One whose result has another form
raises `Leaves`. So a log density that can be computed in this algebra is proved to have this form,
for the rows with which it was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

TENSOR_SIZE = 20_000_000  # numbers that a tensor may take

Array = np.ndarray
Powers = tuple[tuple[Array, float], ...]  # elements v (k, N) and an exponent, of each factor


class Leaves(Exception):
    """An operation whose result is no sum of monomials; the message names it."""


@dataclass(frozen=True)
class Affine:
    """An affine form: offset + Σ_j coef_j real_j. offset (k, N), coef and real (j, k, N)."""

    offset: Array
    coef: Array
    real: Array


@dataclass(frozen=True)
class Term:
    """A term: each of its N elements is a sum over k. Arrays are (k, N), or (1, N) if they are
    constant in k."""

    coef: Array
    powers: Powers = ()
    logs: tuple[Array, ...] = ()
    real: Array | None = None
    square: Affine | None = None

    @property
    def positive(self) -> bool:
        """Whether the term is a number times powers."""
        return not self.logs and self.real is None and self.square is None

    def alike(self, other: Term) -> bool:
        """Return whether the two differ in their coefficients alone."""
        if self.square is not None or other.square is not None:
            return False
        if self.coef.shape != other.coef.shape or len(self.logs) != len(other.logs):
            return False
        a, b = self.real, other.real
        reals = a is b if a is None or b is None else np.array_equal(a, b)
        logs = all(np.array_equal(a, b) for a, b in zip(self.logs, other.logs, strict=True))
        return reals and logs and same_powers(self.powers, other.powers)

    def mapped(self, change: Callable[[Array], Array]) -> Term:
        """Return the term with each of its arrays replaced by what `change` makes of it."""
        square = self.square
        return Term(
            change(self.coef),
            tuple((change(i), e) for i, e in self.powers),
            tuple(change(i) for i in self.logs),
            None if self.real is None else change(self.real),
            square and Affine(change(square.offset), change(square.coef), change(square.real)),
        )

    def gathered(self, where: Array, inside: Array | None = None) -> Term:
        """Return the term at places `where` (N',) of its elements; 0 where not `inside`."""
        mapped = self.mapped(lambda a: np.ascontiguousarray(a[..., where]))
        if inside is None:
            return mapped
        return replace(mapped, coef=np.where(inside, mapped.coef, 0.0))

    def summed(self, groups: tuple[int, int]) -> Term:
        """Return the term with its elements (m, N') added up over m."""
        m, n = groups
        return self.mapped(lambda a: a.reshape(*a.shape[:-2], a.shape[-2] * m, n))

    def rows(self, which: Array) -> Term:
        """Return the term with some of its k."""
        return self.mapped(lambda a: a[..., which, :])


def same_powers(a: Powers, b: Powers) -> bool:
    """Return whether two products of powers are the same, in whatever order."""
    rest = list(b)
    for i, e in a:
        at = next((k for k, (j, f) in enumerate(rest) if e == f and np.array_equal(i, j)), None)
        if at is None:
            return False
        del rest[at]
    return not rest


def times_powers(a: Powers, b: Powers) -> Powers:
    """Return the product of two products of powers. Powers of equal elements become one power."""
    out = list(a)
    for i, e in b:
        at = next((k for k, (j, _) in enumerate(out) if np.array_equal(i, j)), None)
        if at is None:
            out.append((i, e))
        else:
            out[at] = (i, out[at][1] + e)
    return tuple((i, e) for i, e in out if e)


def merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Return the terms without zeros; terms that differ only in their coefficients are added up."""
    out: list[Term] = []
    for t in terms:
        if not t.coef.any():
            continue
        at = next((k for k, s in enumerate(out) if s.alike(t)), None)
        if at is None:
            out.append(t)
        else:
            out[at] = replace(out[at], coef=out[at].coef + t.coef)
    return tuple(out)


def product(a: Term, b: Term) -> Term:
    """Return the product of two terms."""
    if a.real is not None and b.real is not None:
        raise Leaves("product of real variables")
    if (a.square or b.square) and (
        a.real is not None or b.real is not None or a.square is b.square
    ):
        raise Leaves("power of real variables beyond the second")
    if a.square and b.square:
        raise Leaves("power of real variables beyond the second")
    if len(a.logs) + len(b.logs) > 2:
        raise Leaves("product of logarithms")
    ka, kb = len(a.coef), len(b.coef)
    if ka > 1 and kb > 1:
        if ka * kb * a.coef.shape[1] > TENSOR_SIZE:
            raise Leaves("product of too many monomials")
        left, right = np.repeat(np.arange(ka), kb), np.tile(np.arange(kb), ka)
        a, b = a.rows(left), b.rows(right)
    k = max(ka, kb)
    if ka != kb and ka * kb > 1:
        first = np.zeros(k, dtype=np.intp)
        a, b = (t.rows(first) if len(t.coef) == 1 else t for t in (a, b))
    return Term(
        a.coef * b.coef,
        times_powers(a.powers, b.powers),
        a.logs + b.logs,
        a.real if a.real is not None else b.real,
        a.square or b.square,
    )


Wall = tuple[int, float, float]  # an element and the interval that it is confined to


@dataclass(frozen=True)
class Sum:
    """A tensor of some shape: the sum of its terms, −∞ outside its walls."""

    shape: tuple[int, ...]
    terms: tuple[Term, ...]
    walls: tuple[Wall, ...] = field(default=())

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    # ---- places ----------------------------------------------------------------------------------

    def moved(self, move: Callable[[Array], Array]) -> Sum:
        """Return the sum with its elements rearranged, as `move` rearranges the elements of an
        array."""
        places = np.asarray(move(np.arange(self.size, dtype=np.float64).reshape(self.shape)))
        where = places.ravel().astype(np.intp)
        return Sum(places.shape, tuple(t.gathered(where) for t in self.terms), self.walls)

    def broadcast(self, shape: tuple[int, ...]) -> Sum:
        """Return the sum as a tensor of a larger shape."""
        return self if shape == self.shape else self.moved(lambda a: np.broadcast_to(a, shape))

    # ---- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Sum) -> Sum:
        shape = np.broadcast_shapes(self.shape, other.shape)
        a, b = self.broadcast(shape), other.broadcast(shape)
        return Sum(shape, merged((*a.terms, *b.terms)), self.walls + other.walls)

    def __neg__(self) -> Sum:
        return self.scaled(-1.0)

    def scaled(self, c: float) -> Sum:
        """Multiply every coefficient by a number."""
        self._unwalled("a product")
        return replace(self, terms=tuple(replace(t, coef=c * t.coef) for t in self.terms))

    def __mul__(self, other: Sum) -> Sum:
        self._unwalled("a product")
        other._unwalled("a product")
        shape = np.broadcast_shapes(self.shape, other.shape)
        a, b = self.broadcast(shape), other.broadcast(shape)
        return Sum(shape, merged([product(s, t) for s in a.terms for t in b.terms]))

    def reciprocal(self) -> Sum:
        return self.power(-1.0)

    def power(self, e: float) -> Sum:
        """Return the sum raised to a constant exponent."""
        self._unwalled(f"power {e:g}")
        if e == 1.0:
            return self
        if e == 0.0:
            return constant(np.ones(self.shape))
        if e == 2.0:
            return self.squared()
        t = self._single(f"power {e:g}")
        if (t.coef == 0.0).any() or ((t.coef < 0.0).any() and e != int(e)):
            raise Leaves(f"power {e:g}")
        return Sum(self.shape, (Term(t.coef**e, tuple((i, f * e) for i, f in t.powers)),))

    def squared(self) -> Sum:
        """Return the square; the square of an affine form of reals, which share their scale, is
        kept as one square."""
        self._unwalled("square")
        if all(t.real is None and t.square is None for t in self.terms):
            return self * self
        if any(t.logs or t.square is not None for t in self.terms):
            raise Leaves("square")
        first = next(t for t in self.terms if t.real is not None)
        powers = tuple((i[:1], e) for i, e in first.powers)
        offset, coefs, reals = np.zeros((1, self.size)), [], []
        for t in self.terms:
            for k in range(len(t.coef)):
                one = tuple((i[k : k + 1] if len(i) > 1 else i, e) for i, e in t.powers)
                if not same_powers(one, powers):
                    if not t.coef[k].any():
                        continue
                    raise Leaves("square of a sum of different scales")
            if t.real is None:
                offset = offset + t.coef.sum(axis=0)
            else:
                coefs.append(t.coef)
                reals.append(np.broadcast_to(t.real, t.coef.shape))
        form = Affine(offset, np.concatenate(coefs)[:, None], np.concatenate(reals)[:, None])
        doubled = tuple((i, 2.0 * e) for i, e in powers)
        return Sum(self.shape, (Term(np.ones((1, self.size)), doubled, square=form),))

    def log(self) -> Sum:
        self._unwalled("log")
        t = self._single("log")
        if not (t.coef > 0.0).all():
            raise Leaves("log of what may not be positive")
        logs = [Term(np.full(t.coef.shape, e), logs=(i,)) for i, e in t.powers]
        return Sum(self.shape, (Term(np.log(t.coef)), *logs))

    def exp(self) -> Sum:
        """Return the exponential of logarithms with the same coefficient everywhere."""
        self._unwalled("exp")
        coef, powers = np.ones((1, self.size)), Powers()
        for t in self.terms:
            if t.powers or t.real is not None or t.square is not None or len(t.logs) > 1:
                raise Leaves("exp")
            if len(t.coef) > 1:
                raise Leaves("exp")
            if not t.logs:
                coef = coef * np.exp(t.coef)
            elif t.coef.size and (t.coef == t.coef.flat[0]).all():
                powers = times_powers(powers, ((t.logs[0], float(t.coef.flat[0])),))
            else:
                raise Leaves("power that differs between elements")
        return Sum(self.shape, (Term(coef, powers),))

    def over(self, axes: Sequence[int]) -> Sum:
        """Return the sum over some axes."""
        axes = tuple(a % len(self.shape) for a in axes)
        keep = tuple(a for a in range(len(self.shape)) if a not in axes)
        m = math.prod(self.shape[a] for a in axes)
        shape = tuple(self.shape[a] for a in keep)
        if max((t.coef.shape[0] for t in self.terms), default=0) * self.size > TENSOR_SIZE:
            raise Leaves("sum of too many monomials")
        front = self.moved(lambda a: a.transpose(*axes, *keep))
        groups = (m, math.prod(shape))
        return Sum(shape, tuple(t.summed(groups) for t in front.terms), self.walls)

    def dot(self, other: Sum) -> Sum:
        """Return the matrix product, as NumPy's matmul."""
        a, b = self, other
        if len(b.shape) == 1:
            return (a * b).over((-1,))
        if a.shape[-1] * b.size * math.prod(a.shape[:-1]) > TENSOR_SIZE * b.shape[-2]:
            raise Leaves("product of matrices that are too large")
        if len(a.shape) == 1:
            return (a.moved(lambda v: v[:, None]) * b).over((-2,))
        return (a.moved(lambda v: v[..., None]) * b.moved(lambda v: v[..., None, :, :])).over((-2,))

    # ---- what is known of it ---------------------------------------------------------------------

    @property
    def constant(self) -> Array | None:
        """The numbers that the sum is, if it depends on no variable."""
        if self.walls or any(not t.positive or t.powers for t in self.terms):
            return None
        total = np.zeros(self.size)
        for t in self.terms:
            total = total + t.coef.sum(axis=0)
        return total.reshape(self.shape)

    @property
    def above_zero(self) -> bool:
        """Whether the sum is positive whatever the positive variables are."""
        sure = [t.positive and (t.coef >= 0.0).all() for t in self.terms]
        some = sum((t.coef.sum(axis=0) for t in self.terms), np.zeros(self.size))
        return not self.walls and all(sure) and bool((some > 0.0).all())

    def element(self) -> Array | None:
        """Return the variables (N,), if the sum consists of just one variable for each element."""
        live = [t for t in self.terms if t.coef.any()]
        if self.walls or len(live) != 1 or not live[0].positive or len(live[0].coef) != 1:
            return None
        t = live[0]
        if len(t.powers) != 1 or t.powers[0][1] != 1.0 or not (t.coef == 1.0).all():
            return None
        return t.powers[0][0][0]

    def _single(self, what: str) -> Term:
        live = [t for t in self.terms if t.coef.any()]
        if len(live) != 1 or not live[0].positive or len(live[0].coef) != 1:
            raise Leaves(f"{what} of a sum" if all(t.positive for t in live) else what)
        return live[0]

    def _unwalled(self, what: str) -> None:
        if self.walls:
            raise Leaves(f"{what} of what is −∞ somewhere")


def constant(values: Array) -> Sum:
    """Return numbers as a tensor."""
    values = np.asarray(values, dtype=np.float64)
    return Sum(values.shape, (Term(values.reshape(1, -1)),))


def positive(places: Array) -> Sum:
    """Return a tensor of positive variables, given their places in the flat vector."""
    places = np.asarray(places)
    flat = places.reshape(1, -1)
    return Sum(places.shape, (Term(np.ones(flat.shape), ((flat, 1.0),)),))


def real(places: Array) -> Sum:
    """Return a tensor of real variables, given their places in their flat vector."""
    places = np.asarray(places)
    flat = places.reshape(1, -1)
    return Sum(places.shape, (Term(np.ones(flat.shape), real=flat),))
