"""Layouts: the arrays of a log density for the compiled sweep, made from sums of monomials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesbandit.inference.algebra.monomials import Leaves, Sum, Term
from bayesbandit.kernels.algebra.cholesky import padded, room
from bayesbandit.kernels.gibbs import monomials as kernel

SPARSE = 4  # coordinates that a square may have to be kept sparse
DIGITS = 1e-10  # of the precision that a centre is found with
FAR = 1e20  # a prior's square at the centre, beyond which θ would lose its digits

Array = np.ndarray


def part_of(at: Array) -> Array:
    """Return the number of each entry's part, where part k has the entries from at[k] to
    at[k + 1]."""
    return np.repeat(np.arange(len(at) - 1), np.diff(at))


@dataclass(frozen=True)
class Block:
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


@dataclass(frozen=True)
class Squares:
    """Dense squares (form'δ − offset)² of a log density, ungrouped.

    forms (N, D), offsets (N,). powers: what multiplies each square, a coefficient and powers of u.
    """

    forms: Array
    offsets: Array
    powers: Block


@dataclass(frozen=True)
class Layout:
    """A log density of δ = θ − centre and u = log v, in the arrays of the kernel.

    powers: of the rows, the groups, the sparse squares and the monomials, in this order. constant:
    an additive constant. dense: the squares from which rows and groups were made.
    """

    terms: kernel.Terms
    centre: Array
    powers: tuple[Block, ...]
    constant: float
    dense: Squares

    @property
    def dim(self) -> int:
        return len(self.centre)

    @property
    def sparse(self) -> Block:
        """The powers before the sparse squares."""
        return self.powers[2]

    @property
    def pure(self) -> Block:
        """The powers of the monomials that multiply no square."""
        return self.powers[3]

    @property
    def walled(self) -> bool:
        """Whether a variable has a bound other than 0."""
        return bool(np.isfinite([self.terms.low, self.terms.high]).any())

    def log_density(self, theta: Array, u: Array) -> float:
        """Return the log density at θ (D,) and u (P,), without the Jacobian of the logarithm."""
        t, delta, P = self.terms, theta - self.centre, padded(self.dim)
        powers = np.bincount(part_of(t.element_at), t.exponent * u[t.element], len(t.coef))
        phi = t.coef * np.exp(powers)
        D = self.dim
        rows = (t.rows[:, :D] @ delta - t.rows[:, P]) ** 2
        groups = np.array(
            [
                rest + delta @ G[:D, :D] @ delta - 2.0 * G[:D, P] @ delta
                for G, rest in zip(t.groups, t.group_rest, strict=True)
            ]
        )
        forms = np.zeros(len(t.offset))
        np.add.at(forms, part_of(t.form_at), t.form_coef * delta[t.form])
        squares = (forms - t.offset) ** 2
        ones = np.ones(len(phi) - len(rows) - len(groups) - len(squares))
        Q = np.concatenate([rows, groups, squares, ones])
        return float(phi @ Q + (t.linear - 1.0) @ u + t.square @ u**2 + self.constant)


def layout(sums: Sequence[Sum], A: Array, b: Array, size: int, names: Sequence[str]) -> Layout:
    """Return the density whose logarithm is the sum of all `sums`.

    Reals are θ (D,) and then the mean rewards A θ + b (n,), for A (n, D) and b (n,). size: P, the
    number of positive elements. names: each sum's name in a refusal. Raise `Leaves` for a term that
    the kernel does not have.
    """
    D = A.shape[1]
    linear, square, constant = np.ones(size), np.zeros(size), 0.0  # of log v: 1, for its Jacobian
    low, high = np.zeros(size), np.full(size, np.inf)
    squares: list[Term] = []
    pure: list[Term] = []
    for total, name in zip(sums, names, strict=True):
        for place, lowest, highest in total.walls:
            low[place], high[place] = max(low[place], lowest), min(high[place], highest)
        for t in total.terms:
            if not np.isfinite(t.coef).all():
                raise Leaves(f"{name}: not finite on these rows")
            if t.logs and (t.powers or t.real is not None or t.square is not None):
                raise Leaves(f"{name}: product of a logarithm and something else")
            if t.real is not None:
                raise Leaves(f"{name}: a real variable that is not squared")
            if t.square is not None:
                squares.append(t)
            elif len(t.logs) == 1:
                np.add.at(linear, t.logs[0], t.coef)
            elif len(t.logs) == 2:
                if not np.array_equal(t.logs[0], t.logs[1]):
                    raise Leaves(f"{name}: product of logarithms")
                np.add.at(square, t.logs[0], t.coef)
            elif t.powers:
                pure.append(t)
            else:
                constant += float(t.coef.sum())
    with np.errstate(divide="ignore"):
        low, high = np.log(low), np.log(high)
    dense, sparse = divided(squares, D)
    forms, offsets = matrix(dense, A, b, D)
    rows_powers, alone = block(dense), block(sparse)
    centre = balanced(forms, offsets, rows_powers.coef)
    if (np.abs(alone.coef) * listed(sparse, centre)[-1] ** 2 > FAR).any():  # rows say little of θ
        more, away = matrix(sparse, A[:0], b[:0], D)
        coef = np.concatenate([rows_powers.coef, alone.coef])
        centre = balanced(np.vstack([forms, more]), np.concatenate([offsets, away]), coef)
    offsets = offsets - forms @ centre
    rows, groups, row_terms, group_terms, rest = grouped(forms, offsets, rows_powers, D)
    blocks = (row_terms, group_terms, alone, block(pure))
    compressed = incidences(blocks, size)
    fields = (linear, square, low, high, *compressed, rows, groups, rest, *listed(sparse, centre))
    whole = Squares(forms, offsets, rows_powers)
    return Layout(kernel.Terms(*fields), centre, blocks, constant, whole)


def divided(squares: Sequence[Term], D: int) -> tuple[list[Term], list[Term]]:
    """Return the squares of dense forms, and those of other forms."""
    dense: list[Term] = []
    sparse: list[Term] = []
    for t in squares:
        assert t.square is not None
        few = len(t.square.real) <= SPARSE and (t.square.real < D).all()
        (sparse if few else dense).append(t)
    return dense, sparse


def matrix(dense: Sequence[Term], A: Array, b: Array, D: int) -> tuple[Array, Array]:
    """Return forms (N, D) and offsets (N,) of squares (form − offset)²."""
    whole, shifts = np.vstack([np.eye(D), A]), np.concatenate([np.zeros(D), b])
    forms, offsets = [np.zeros((0, D))], [np.zeros(0)]
    for t in dense:
        assert t.square is not None
        s = t.square
        j, n = len(s.coef), t.coef.size
        coef, real = s.coef.reshape(j, n), s.real.reshape(j, n)
        F, c = np.zeros((n, D)), -np.broadcast_to(s.offset, t.coef.shape).ravel()
        for one, where in zip(coef, real, strict=True):
            F += one[:, None] * whole[where]
            c = c - one * shifts[where]
        forms.append(F)
        offsets.append(c)
    return np.concatenate(forms), np.concatenate(offsets)


def listed(sparse: Sequence[Term], centre: Array) -> tuple[Array, Array, Array, Array]:
    """Return coordinates, coefficients, the beginning of each form, and offsets, of squares (form −
    offset)²."""
    form, coef, counts, offsets = [np.zeros(0, np.int64)], [np.zeros(0)], [], [np.zeros(0)]
    for t in sparse:
        assert t.square is not None
        s = t.square
        j, n = len(s.coef), t.coef.size
        a, real = s.coef.reshape(j, n), s.real.reshape(j, n)
        form.append(real.T.ravel())
        coef.append(a.T.ravel())
        counts += [j] * n
        offset = -np.broadcast_to(s.offset, t.coef.shape).ravel()
        offsets.append(offset - (a * centre[real]).sum(axis=0))
    at = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
    return np.concatenate(form).astype(np.int64), np.concatenate(coef), at, np.concatenate(offsets)


def block(terms: Sequence[Term]) -> Block:
    """Return coefficients and powers of terms; each element is there once."""
    q = max((len(t.powers) for t in terms), default=0)
    coefs, elements, exponents = [np.zeros(0)], [np.zeros((q, 0), np.int64)], [np.zeros((q, 0))]
    for t in terms:
        n = t.coef.size
        element, exponent = np.zeros((q, n), np.int64), np.zeros((q, n))
        for k, (i, e) in enumerate(t.powers):
            element[k] = np.broadcast_to(i, t.coef.shape).ravel()
            exponent[k] = e
            for m in range(k):
                same = (element[m] == element[k]) & (exponent[m] != 0.0)
                exponent[m, same] += exponent[k, same]
                exponent[k, same] = 0.0
        coefs.append(t.coef.ravel())
        elements.append(element)
        exponents.append(exponent)
    coef = np.concatenate(coefs)
    return Block(coef, np.concatenate(elements, axis=1), np.concatenate(exponents, axis=1))


def balanced(forms: Array, offsets: Array, weight: Array) -> Array:
    """Return about where Σ |weight| (form − offset)² is smallest, (D,): δ = θ − it."""
    if not len(forms):
        return np.zeros(forms.shape[1])
    weight = np.abs(weight)
    weight = weight / max(weight.max(initial=0.0), 1e-300)
    G = (forms.T * weight) @ forms
    diagonal = np.diag(G).copy()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    G = G / scale[:, None] / scale + DIGITS * len(G) * np.eye(len(G))
    return np.asarray(np.linalg.solve(G, forms.T @ (weight * offsets) / scale) / scale)


def grouped(
    forms: Array, offsets: Array, powers: Block, D: int
) -> tuple[Array, Array, Block, Block, Array]:
    """Return rows, groups, the powers of each, and Σ c offset² of the groups.

    Rows with the same φ become one group of statistics, if this is less work for the kernel.
    """
    n, shape, P = len(forms), room(D), padded(D)
    q = len(powers.element)
    none = Block(np.zeros(0), np.zeros((q, 0), np.int64), np.zeros((q, 0)))
    if n:
        distinct = np.unique(powers.keys, axis=0, return_index=True, return_inverse=True)
        first, which = distinct[1], np.ravel(distinct[2])
        if len(first) * D < n or len(first) == 1:
            groups, rest = np.zeros((len(first), *shape)), np.zeros(len(first))
            order = np.argsort(which, kind="stable")
            for g, members in enumerate(np.split(order, np.cumsum(np.bincount(which))[:-1])):
                F, c, w = forms[members], offsets[members], powers.coef[members]
                groups[g, :D, :D], groups[g, :D, P] = (F.T * w) @ F, F.T @ (w * c)
                rest[g] = w @ c**2
            picked = Block(np.ones(len(first)), powers.element[:, first], powers.exponent[:, first])
            return np.zeros((0, shape[1])), groups, none, picked, rest
    rows = np.zeros((n, shape[1]))
    rows[:, :D], rows[:, P] = forms, offsets
    return rows, np.zeros((0, *shape)), powers, none, np.zeros(0)


def incidences(blocks: Sequence[Block], size: int) -> tuple[Array, ...]:
    """Return coefficients, elements and exponents by term, and terms and slots by element."""
    coef = np.concatenate([b.coef for b in blocks])
    term, element, exponent = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    start = 0
    for b in blocks:
        k, t = np.nonzero(b.exponent.T)[::-1]
        term.append(start + t)
        element.append(b.element[k, t])
        exponent.append(b.exponent[k, t])
        start += b.coef.size
    term_, element_, exponent_ = (np.concatenate(a) for a in (term, element, exponent))
    element_at = np.searchsorted(term_, np.arange(start + 1))
    order = np.argsort(element_, kind="stable")
    by_element = element_[order]
    values, code = np.unique(exponent_[order], return_inverse=True)
    pairs, which = np.unique(by_element * len(values) + code.ravel(), return_inverse=True)
    owner = pairs // max(len(values), 1)
    slot_at = np.searchsorted(owner, np.arange(size + 1))
    slot = which.ravel() - slot_at[by_element]
    slot_exponent = values[pairs % max(len(values), 1)] if len(values) else np.zeros(0)
    term_at = np.searchsorted(by_element, np.arange(size + 1))
    by, at, terms, slots, first_term, first_slot = (
        np.ascontiguousarray(a, dtype=np.int64)
        for a in (element_, element_at, term_[order], slot, term_at, slot_at)
    )
    return coef, by, exponent_, at, terms, slots, first_term, slot_exponent, first_slot
