"""Terms of the sums in `monomials`, and how two of them multiply or add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        """Return whether the two differ in their coefficients alone."""
        if self.square is not None or other.square is not None:
            return False
        if self.coef.shape != other.coef.shape or len(self.logs) != len(other.logs):
            return False
        a, b = self.real, other.real
        reals = a is b if a is None or b is None else np.array_equal(a, b)
        logs = all(np.array_equal(a, b) for a, b in zip(self.logs, other.logs, strict=True))
        return reals and logs and same_powers(self.powers, other.powers)

    def mapped(self, of: Callable[[Array], Array]) -> Term:
        """Return the term with other arrays in the place of each of its own."""
        square = self.square
        return Term(
            of(self.coef),
            tuple((of(i), e) for i, e in self.powers),
            tuple(of(i) for i in self.logs),
            None if self.real is None else of(self.real),
            square and Affine(of(square.offset), of(square.coef), of(square.real)),
        )

    def gathered(self, where: Array, inside: Array | None = None) -> Term:
        """Return it at other places `where` (N',) of its elements; 0 where not `inside`."""
        found = self.mapped(lambda a: np.ascontiguousarray(a[..., where]))
        if inside is None:
            return found
        return replace(found, coef=np.where(inside, found.coef, 0.0))

    def summed(self, groups: tuple[int, int]) -> Term:
        """Return it with its elements (m, N') added up over m."""
        m, n = groups
        return self.mapped(lambda a: a.reshape(*a.shape[:-2], a.shape[-2] * m, n))

    def rows(self, which: Array) -> Term:
        """Return some of the k."""
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
    """Return the product, equal elements together."""
    out = list(a)
    for i, e in b:
        at = next((k for k, (j, _) in enumerate(out) if np.array_equal(i, j)), None)
        if at is None:
            out.append((i, e))
        else:
            out[at] = (i, out[at][1] + e)
    return tuple((i, e) for i, e in out if e)


def merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Return the terms, those added up that differ in their coefficients alone; no zeros."""
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
