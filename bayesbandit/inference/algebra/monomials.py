"""Sums of monomials of positive variables, with what is real in them once or squared.

A tensor whose every element is

    Σ_k c_k Π v^e Π log v × (1, a real variable, or the square of an affine form of them),

held as numbers: coefficients c, the elements v by their place in one flat vector of all positive
variables, constant exponents e. The operations here are exact and closed; whatever would leave the
family raises `Leaves`. So a log density that was computed in this algebra is proved to be of this
form, on the rows that it was computed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bayesbandit.inference.algebra.terms import (
    TENSOR_SIZE,
    Affine,
    Array,
    Leaves,
    Powers,
    Term,
    merged,
    product,
    same_powers,
    times_powers,
)

Wall = tuple[int, float, float]  # an element and the interval that it is confined to


@dataclass(frozen=True)
class Sum:
    """A tensor of this shape: the sum of its terms, −∞ outside its walls."""

    shape: tuple[int, ...]
    terms: tuple[Term, ...]
    walls: tuple[Wall, ...] = field(default=())

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    # ---- places ----------------------------------------------------------------------------------

    def moved(self, move: Callable[[Array], Array]) -> Sum:
        """Elements moved about as `move` moves those of an array."""
        places = np.asarray(move(np.arange(self.size, dtype=np.float64).reshape(self.shape)))
        where = places.ravel().astype(np.intp)
        return Sum(places.shape, tuple(t.gathered(where) for t in self.terms), self.walls)

    def broadcast(self, shape: tuple[int, ...]) -> Sum:
        """As a tensor of a larger shape."""
        return self if shape == self.shape else self.moved(lambda a: np.broadcast_to(a, shape))

    # ---- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Sum) -> Sum:
        shape = np.broadcast_shapes(self.shape, other.shape)
        a, b = self.broadcast(shape), other.broadcast(shape)
        return Sum(shape, merged((*a.terms, *b.terms)), self.walls + other.walls)

    def __neg__(self) -> Sum:
        return self.scaled(-1.0)

    def scaled(self, c: float) -> Sum:
        """Every coefficient times a number."""
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
        """To a constant exponent."""
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
        """The square; of an affine form of reals, which share their scale, as it is."""
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
                of = tuple((i[k : k + 1] if len(i) > 1 else i, e) for i, e in t.powers)
                if not same_powers(of, powers):
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
        """Of logarithms with the same coefficient everywhere."""
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
        """The sum over some axes."""
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
        """The matrix product, as NumPy's matmul."""
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
        """The numbers that it is, if it depends on nothing."""
        if self.walls or any(not t.positive or t.powers for t in self.terms):
            return None
        total = np.zeros(self.size)
        for t in self.terms:
            total = total + t.coef.sum(axis=0)
        return total.reshape(self.shape)

    @property
    def above_zero(self) -> bool:
        """Whether it is positive whatever the positive variables are."""
        sure = [t.positive and (t.coef >= 0.0).all() for t in self.terms]
        some = sum((t.coef.sum(axis=0) for t in self.terms), np.zeros(self.size))
        return not self.walls and all(sure) and bool((some > 0.0).all())

    def element(self) -> Array | None:
        """The variables (N,) that it is, if it is nothing else."""
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
    """Numbers as a tensor."""
    values = np.asarray(values, dtype=np.float64)
    return Sum(values.shape, (Term(values.reshape(1, -1)),))


def positive(places: Array) -> Sum:
    """Positive variables, of these places in the flat vector."""
    places = np.asarray(places)
    flat = places.reshape(1, -1)
    return Sum(places.shape, (Term(np.ones(flat.shape), ((flat, 1.0),)),))


def real(places: Array) -> Sum:
    """Real variables, of these places in their flat vector."""
    places = np.asarray(places)
    flat = places.reshape(1, -1)
    return Sum(places.shape, (Term(np.ones(flat.shape), real=flat),))
