"""Terms of the sums in `monomials`, and how two of them multiply or add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

TENSOR_SIZE = 20_000_000  # numbers that a tensor may take

Array = np.ndarray
Powers = tuple[tuple[Array, float], ...]  # elements v (k, N) and an exponent, of each factor


class Leaves(Exception):
    """An operation whose result is no sum of monomials; its message says which."""


@dataclass(frozen=True)
class Affine:
    """offset + Σ_j coef_j real_j: (k, N), and (j, k, N) twice."""

    offset: Array
    coef: Array
    real: Array


@dataclass(frozen=True)
class Term:
    """For each of N elements a sum over k; arrays are (k, N), where constant perhaps (1, N)."""

    coef: Array
    powers: Powers = ()
    logs: tuple[Array, ...] = ()
    real: Array | None = None
    square: Affine | None = None

    @property
    def positive(self) -> bool:
        """Whether it is a number times powers."""
        return not self.logs and self.real is None and self.square is None

    def alike(self, other: Term) -> bool:
        """Whether the two differ in their coefficients alone."""
        if self.square is not None or other.square is not None:
            return False
        if self.coef.shape != other.coef.shape or len(self.logs) != len(other.logs):
            return False
        a, b = self.real, other.real
        reals = a is b if a is None or b is None else np.array_equal(a, b)
        logs = all(np.array_equal(a, b) for a, b in zip(self.logs, other.logs, strict=True))
        return reals and logs and same_powers(self.powers, other.powers)

    def gathered(self, where: Array, inside: Array | None = None) -> Term:
        """At other places `where` (N',) of its elements; 0 where not `inside`."""

        def at(a: Array) -> Array:
            return np.ascontiguousarray(a[..., where])

        square = self.square
        if square is not None:
            square = Affine(at(square.offset), at(square.coef), at(square.real))
        coef = at(self.coef)
        return Term(
            coef if inside is None else np.where(inside, coef, 0.0),
            tuple((at(i), e) for i, e in self.powers),
            tuple(at(i) for i in self.logs),
            None if self.real is None else at(self.real),
            square,
        )

    def summed(self, groups: tuple[int, int]) -> Term:
        """Elements (m, N') added up over m."""
        m, n = groups

        def over(a: Array) -> Array:
            return a.reshape(*a.shape[:-2], a.shape[-2] * m, n)

        square = self.square
        if square is not None:
            square = Affine(over(square.offset), over(square.coef), over(square.real))
        return Term(
            over(self.coef),
            tuple((over(i), e) for i, e in self.powers),
            tuple(over(i) for i in self.logs),
            None if self.real is None else over(self.real),
            square,
        )


def same_powers(a: Powers, b: Powers) -> bool:
    """Whether two products of powers are the same, in whatever order."""
    rest = list(b)
    for i, e in a:
        at = next((k for k, (j, f) in enumerate(rest) if e == f and np.array_equal(i, j)), None)
        if at is None:
            return False
        del rest[at]
    return not rest


def times_powers(a: Powers, b: Powers) -> Powers:
    """The product, equal elements together."""
    out = list(a)
    for i, e in b:
        at = next((k for k, (j, _) in enumerate(out) if np.array_equal(i, j)), None)
        if at is None:
            out.append((i, e))
        else:
            out[at] = (i, out[at][1] + e)
    return tuple((i, e) for i, e in out if e)


def merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The terms, those added up that differ in their coefficients alone; no zeros."""
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
    """The product of two terms."""
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
        a, b = rows(a, left), rows(b, right)
    k = max(ka, kb)
    if ka != kb and ka * kb > 1:
        a, b = (rows(t, np.zeros(k, dtype=np.intp)) if len(t.coef) == 1 else t for t in (a, b))
    return Term(
        a.coef * b.coef,
        times_powers(a.powers, b.powers),
        a.logs + b.logs,
        a.real if a.real is not None else b.real,
        a.square or b.square,
    )


def rows(t: Term, which: Array) -> Term:
    """Some of the k."""

    def at(a: Array) -> Array:
        return a[..., which, :]

    square = t.square
    if square is not None:
        square = Affine(at(square.offset), at(square.coef), at(square.real))
    return Term(
        at(t.coef),
        tuple((at(i), e) for i, e in t.powers),
        tuple(at(i) for i in t.logs),
        None if t.real is None else at(t.real),
        square,
    )
