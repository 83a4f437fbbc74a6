"""Layouts: the arrays of a log density for the compiled sweep, made from the forms of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesbandit.inference.graph_analysis.form import Block, Form, Squares, stacked
from bayesbandit.kernels.algebra.cholesky import padded, room
from bayesbandit.kernels.gibbs import monomials as kernel

SPARSE_SIZE = 4  # coordinates that a square may have to be kept sparse
CENTRE_DIGITS = 1e-10  # of the precision that a centre is found with
LARGEST_AT_CENTRE = 1e20  # of a prior's square there; beyond it θ would lose its digits
FLOAT_EPSILON = float(np.finfo(np.float64).eps)

Array = np.ndarray


class Dense(NamedTuple):
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
    """A log density of δ = θ − centre and u = log v, in the arrays of the kernel, up to a constant.

    dense: the squares from which rows and groups were made.
    """

    terms: kernel.Terms
    centre: Array
    dense: Dense

    @property
    def dim(self) -> int:
        return len(self.centre)

    @property
    def sparse(self) -> Sparse:
        """The sparse squares, of δ."""
        return Sparse(self.terms.form, self.terms.form_coef, self.terms.offset)

    def log_density(self, theta: Array, u: Array) -> float:
        """Return the log density at θ (D,) and u (P,), without the Jacobian of the logarithm."""
        work = kernel.workspace(self.terms, self.dim)
        whole = kernel.log_density(self.terms, theta - self.centre, u, work)
        return float(whole - u.sum())

    def on_rows(self, forms: Array, offsets: Array, coef: Array, linear: Array) -> Layout:
        """Return the density with other squares of θ in the place of its one group.

        Their φ have the same powers and other coefficients (N,). linear (P,): instead of its own.
        """
        t = self.terms
        powers = self.dense.powers
        sparse = self.sparse.about(-self.centre)
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
        return Layout(terms, centre, Dense(forms, offsets, Block(coef, *same)))

    def rounding(self, theta: Array, u: Array) -> Array:
        """Return the rounding of each dense square's form at θ (D,), in its sds at u (P,)."""
        forms, offsets, powers = self.dense
        size = np.abs(forms) @ np.abs(theta) + np.abs(offsets + forms @ self.centre)
        log_precision = (powers.exponent * u[powers.element]).sum(axis=0)
        return FLOAT_EPSILON * size * np.sqrt(-2.0 * powers.coef) * np.exp(0.5 * log_precision)


def layout(parts: Sequence[Form], A: Array, b: Array, low: Array, high: Array) -> Layout:
    """Return the density whose logarithm is the sum of all parts.

    Reals are θ (D,) and then the mean rewards A θ + b (n,), for A (n, D) and b (n,). low, high
    (P,): the bounds of positive variables.
    """
    size = len(low)
    few: list[Squares] = []
    many: list[Squares] = []
    for squares in (p.squares for p in parts):
        (few if is_sparse(squares, A, b) else many).append(squares)
    powers, alone = stacked([s.powers for s in many]), stacked([s.powers for s in few])
    forms, offsets = matrix(many, A, b)
    apart = listed(*matrix(few, A, b))
    centre = centred(forms, offsets, powers.coef, apart, alone.coef)
    whole = Dense(forms, offsets - forms @ centre, powers)
    apart = apart.about(centre)
    rows = grouped(whole)
    pure = [p.pure for p in parts]
    every = stacked([rows.row_powers, rows.group_powers, alone, *pure])
    linear, square = np.ones(size), np.zeros(size)  # of log v: 1, for its Jacobian
    for part in parts:  # those that no row enters may have been read with fewer elements
        same = min(size, len(part.linear))
        linear[:same] += part.linear[:same]
        square[:same] += part.square[:same]
    with np.errstate(divide="ignore"):
        low, high = np.log(low), np.log(high)
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
    return Layout(terms, centre, whole)


def is_sparse(squares: Squares, A: Array, b: Array) -> bool:
    """Return whether no mean reward is in squares, and few coordinates are in each."""
    if (squares.real >= A.shape[1]).any():
        return False
    forms, _ = matrix([squares], A, b)
    return bool(((forms != 0.0).sum(axis=1) <= SPARSE_SIZE).all())


def matrix(squares: Sequence[Squares], A: Array, b: Array) -> tuple[Array, Array]:
    """Return squares as those of forms of θ: forms (N, D) and offsets (N,)."""
    D = A.shape[1]
    forms = [np.zeros((0, D))]
    offsets = [np.zeros(0)]
    for _, a, real, offset in squares:
        F = np.zeros((offset.size, D))
        N = np.arange(offset.size)
        for one, where in zip(a, real, strict=True):
            of_mean = where >= D
            np.add.at(F, (N[~of_mean], where[~of_mean]), one[~of_mean])
            row = where[of_mean] - D
            F[of_mean] += one[of_mean, None] * A[row]
            offset = offset - np.bincount(N[of_mean], one[of_mean] * b[row], minlength=N.size)
        forms.append(F)
        offsets.append(offset)
    return np.concatenate(forms), np.concatenate(offsets)


def listed(forms: Array, offsets: Array) -> Sparse:
    """Return squares of few coordinates each: forms (m, D), offsets (m,)."""
    width = int((forms != 0.0).sum(axis=1).max(initial=0))
    order = np.argsort(forms == 0.0, axis=1, kind="stable")[:, :width]
    coef = np.take_along_axis(forms, order, axis=1)
    return Sparse(np.ascontiguousarray(order), np.ascontiguousarray(coef), offsets)


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


def grouped(dense: Dense) -> Rows:
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
        first = distinct[1]
        which = np.ravel(distinct[2])
    G = len(first)
    if n and (n > G * D or G == 1):
        groups = np.zeros((G, *shape))
        rest = np.zeros(G)
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
    """Return the terms of each of P = size elements, and the distinct exponents that there are."""
    t, k = np.nonzero(powers.exponent.T)
    order = np.argsort(powers.element[k, t], kind="stable")
    t, k = t[order], k[order]
    values, code = np.unique(powers.exponent[k, t], return_inverse=True)
    at = np.searchsorted(powers.element[k, t], np.arange(size + 1))
    return {
        "term": np.ascontiguousarray(t, dtype=np.int64),
        "slot": np.ascontiguousarray(code, dtype=np.int64),
        "term_at": np.ascontiguousarray(at, dtype=np.int64),
        "slot_exponent": values,
    }
