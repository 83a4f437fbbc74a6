"""Layouts: the arrays of a log density for the compiled sweep, made from sums of monomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesbandit.inference.algebra.monomials import Leaves, Sum, Term
from bayesbandit.kernels.algebra.cholesky import padded, room
from bayesbandit.kernels.gibbs import monomials as kernel

SPARSE_SIZE = 4  # coordinates that a square may have to be kept sparse
CENTRE_DIGITS = 1e-10  # of the precision that a centre is found with
LARGEST_AT_CENTRE = 1e20  # of a prior's square there; beyond it θ would lose its digits
EPSILON = float(np.finfo(np.float64).eps)

Array = np.ndarray


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
    """N squares (form'δ − offset)² and what multiplies each: forms (N, D), offsets (N,)."""

    forms: Array
    offsets: Array
    powers: Block


class Sparse(NamedTuple):
    """m squares (form − offset)²: coordinates and coefficients (m, j) of forms, offsets (m,)."""

    form: Array
    coef: Array
    offset: Array

    def about(self, centre: Array) -> Sparse:
        """Return these squares as forms of δ = θ − centre."""
        return self._replace(offset=self.offset - (self.coef * centre[self.form]).sum(axis=1))

    def dense(self, D: int) -> Array:
        """Return the forms (m, D)."""
        forms = np.zeros((len(self.offset), D))
        np.add.at(forms, (np.arange(len(forms))[:, None], self.form), self.coef)
        return forms


class Rows(NamedTuple):
    """Dense squares for the kernel: each on its own, or those with the same φ as statistics."""

    rows: Array
    row_powers: Block
    groups: Array
    group_powers: Block
    group_rest: Array


class Layout(NamedTuple):
    """A log density of δ = θ − centre and u = log v, in the arrays of the kernel.

    constant: an additive constant. dense: the squares from which rows and groups were made.
    """

    terms: kernel.Terms
    centre: Array
    constant: float
    dense: Squares

    @property
    def dim(self) -> int:
        return len(self.centre)

    def log_density(self, theta: Array, u: Array) -> float:
        """Return the log density at θ (D,) and u (P,), without the Jacobian of the logarithm."""
        t, work = self.terms, kernel.workspace(self.terms, self.dim)
        kernel.weigh(t, u, work.phi)
        kernel.evaluate(t, theta - self.centre, work)
        return float(work.phi @ work.Q + (t.linear - 1.0) @ u + t.square @ u**2 + self.constant)

    def on_rows(self, forms: Array, offsets: Array, coef: Array, linear: Array) -> Layout:
        """Return the density with other squares of θ in the place of its one group.

        Their φ have the same powers and other coefficients (N,). linear (P,): instead of its own.
        """
        t, powers = self.terms, self.dense.powers
        sparse = Sparse(t.form, t.form_coef, t.offset).about(-self.centre)
        first = len(t.groups)
        sparse_coef = t.coef[first : first + len(t.offset)]
        centre = centred(forms, offsets, coef, sparse, sparse_coef)
        offsets = offsets - forms @ centre
        group, rest = statistics(forms, offsets, coef)
        terms = t._replace(
            linear=linear,
            groups=group[None],
            group_rest=np.array([rest]),
            offset=sparse.about(centre).offset,
        )
        same = (np.repeat(a[:, :1], len(coef), axis=1) for a in powers[1:])
        dense = Squares(forms, offsets, Block(coef, *same))
        return Layout(terms, centre, self.constant, dense)

    def rounding(self, theta: Array, u: Array) -> Array:
        """Return the rounding of each dense square's form at θ (D,), in its sds at u (P,)."""
        forms, offsets, powers = self.dense
        size = np.abs(forms) @ np.abs(theta) + np.abs(offsets + forms @ self.centre)
        log_precision = (powers.exponent * u[powers.element]).sum(axis=0)
        return EPSILON * size * np.sqrt(-2.0 * powers.coef) * np.exp(0.5 * log_precision)


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
    powers, alone = block(dense), block(sparse)
    apart = listed(sparse)
    centre = centred(forms, offsets, powers.coef, apart, alone.coef)
    whole, apart = Squares(forms, offsets - forms @ centre, powers), apart.about(centre)
    rows = grouped(whole)
    every = stacked([rows.row_powers, rows.group_powers, alone, block(pure)])
    terms = kernel.Terms(
        linear=linear,
        square=square,
        low=low,
        high=high,
        coef=every.coef,
        element=np.ascontiguousarray(every.element.T),
        exponent=np.ascontiguousarray(every.exponent.T),
        **by_element(every, size),
        rows=rows.rows,
        groups=rows.groups,
        group_rest=rows.group_rest,
        form=apart.form,
        form_coef=apart.coef,
        offset=apart.offset,
    )
    return Layout(terms, centre, constant, whole)


def divided(squares: Sequence[Term], D: int) -> tuple[list[Term], list[Term]]:
    """Return the squares of dense forms, and those of other forms."""
    dense: list[Term] = []
    sparse: list[Term] = []
    for t in squares:
        assert t.square is not None
        few = len(t.square.real) <= SPARSE_SIZE and (t.square.real < D).all()
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


def listed(sparse: Sequence[Term]) -> Sparse:
    """Return squares of few coordinates."""
    width = max((len(t.square.coef) for t in sparse if t.square is not None), default=0)
    forms, coefs, offsets = [np.zeros((width, 0), np.int64)], [np.zeros((width, 0))], [np.zeros(0)]
    for t in sparse:
        assert t.square is not None
        n, s = t.coef.size, t.square
        real, a = np.zeros((width, n), np.int64), np.zeros((width, n))
        real[: len(s.coef)] = s.real.reshape(-1, n)
        a[: len(s.coef)] = s.coef.reshape(-1, n)
        forms.append(real)
        coefs.append(a)
        offsets.append(-np.broadcast_to(s.offset, t.coef.shape).ravel())
    form, coef = (np.ascontiguousarray(np.concatenate(a, axis=1).T) for a in (forms, coefs))
    return Sparse(form, coef, np.concatenate(offsets))


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


def centred(forms: Array, offsets: Array, coef: Array, sparse: Sparse, sparse_coef: Array) -> Array:
    """Return a centre of θ (D,): about where dense squares, in θ, are smallest.

    All squares count where rows say so little of θ that a prior's would lose its digits.
    """
    centre = balanced(forms, offsets, coef)
    if (np.abs(sparse_coef) * sparse.about(centre).offset ** 2 > LARGEST_AT_CENTRE).any():
        forms = np.vstack([forms, sparse.dense(len(centre))])
        offsets = np.concatenate([offsets, sparse.offset])
        centre = balanced(forms, offsets, np.concatenate([coef, sparse_coef]))
    return centre


def balanced(forms: Array, offsets: Array, weight: Array) -> Array:
    """Return about where Σ |weight| (form − offset)² is smallest, (D,): δ = θ − it."""
    if not len(forms):
        return np.zeros(forms.shape[1])
    weight = np.abs(weight)
    weight = weight / max(weight.max(initial=0.0), 1e-300)
    G = (forms.T * weight) @ forms
    diagonal = np.diag(G).copy()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    G = G / scale[:, None] / scale + CENTRE_DIGITS * len(G) * np.eye(len(G))
    return np.asarray(np.linalg.solve(G, forms.T @ (weight * offsets) / scale) / scale)


def stacked(blocks: Sequence[Block]) -> Block:
    """Return the products of several blocks as those of one."""
    q = max(len(b.element) for b in blocks)
    wide = [np.pad(a, ((0, q - len(a)), (0, 0))) for b in blocks for a in b[1:]]
    element, exponent = np.concatenate(wide[::2], axis=1), np.concatenate(wide[1::2], axis=1)
    return Block(np.concatenate([b.coef for b in blocks]), element, exponent)


def grouped(dense: Squares) -> Rows:
    """Return squares for the kernel.

    Those with the same φ become one group of statistics, if this is less work.
    """
    forms, offsets, powers = dense
    n, D = forms.shape
    shape = room(D)
    none = Block(np.zeros(0), powers.element[:, :0], powers.exponent[:, :0])
    first, which = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if n:
        distinct = np.unique(powers.keys, axis=0, return_index=True, return_inverse=True)
        first, which = distinct[1], np.ravel(distinct[2])
    G = len(first)
    if n and (n > G * D or G == 1):
        groups, rest = np.zeros((G, *shape)), np.zeros(G)
        order = np.argsort(which, kind="stable")
        for g, members in enumerate(np.split(order, np.cumsum(np.bincount(which))[:-1])):
            of_group = forms[members], offsets[members], powers.coef[members]
            groups[g], rest[g] = statistics(*of_group)
        picked = Block(np.ones(G), powers.element[:, first], powers.exponent[:, first])
        return Rows(np.zeros((0, shape[1])), none, groups, picked, rest)
    rows = np.zeros((n, shape[1]))
    rows[:, :D] = forms
    rows[:, padded(D)] = offsets
    return Rows(rows, powers, np.zeros((0, *shape)), none, np.zeros(0))


def statistics(forms: Array, offsets: Array, coef: Array) -> tuple[Array, float]:
    """Return Σ c FF', with Σ c F offset behind it, of shape `room`, and Σ c offset²."""
    D = forms.shape[1]
    group = np.zeros(room(D))
    group[:D, :D] = (forms.T * coef) @ forms
    group[:D, padded(D)] = forms.T @ (coef * offsets)
    return group, float(coef @ offsets**2)


def by_element(powers: Block, size: int) -> dict[str, Array]:
    """Return the terms of each of P = size elements, and its distinct exponents in them."""
    t, k = np.nonzero(powers.exponent.T)
    order = np.argsort(powers.element[k, t], kind="stable")
    t, k = t[order], k[order]
    element = powers.element[k, t]
    values, code = np.unique(powers.exponent[k, t], return_inverse=True)
    pairs, which = np.unique(element * len(values) + code.ravel(), return_inverse=True)
    owner = pairs // max(len(values), 1)
    begin = np.searchsorted(owner, np.arange(size + 1))
    place = np.arange(len(pairs)) - begin[owner]
    exponents = np.zeros((size, int(np.diff(begin).max(initial=0))))
    exponents[owner, place] = values[pairs % max(len(values), 1)] if len(values) else 0.0
    term_at = np.searchsorted(element, np.arange(size + 1))
    return {
        "term": np.ascontiguousarray(t, dtype=np.int64),
        "slot": np.ascontiguousarray(place[which.ravel()], dtype=np.int64),
        "term_at": np.ascontiguousarray(term_at, dtype=np.int64),
        "slot_exponent": exponents,
    }
