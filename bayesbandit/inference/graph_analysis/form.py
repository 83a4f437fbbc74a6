"""The form of a log density: squares of reals, logarithms and powers of positive variables.

A term of a conditionally Gaussian log density is a sum of numbers, (9) of mathematics.md,

    f(z, u) = Σ_k c_k exp(e_k'u) (a_k'z − o_k)²  +  Σ_i (α_i u_i + β_i u_i²)  +  Σ_j c_j exp(e_j'u)

in reals z and the logarithms u of positive variables. `form_reader` finds it by evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bayesbandit.checks import FLOAT_EPSILON, Array

FORM_ROUNDING = 64.0 * FLOAT_EPSILON  # of a form, relative to the terms that it is a sum of
RELATIVE_TOLERANCE = 1e-8  # relative to the terms of a sum, in tests at random points
COEFFICIENT_DIGITS = 12  # of the coefficients of monomials


class NoForm(Exception):
    """The error of numbers that have another form; the message says how they differ."""


class RowsTogether(NoForm):
    """Numbers that depend on the values of a variable at several rows."""


class Squares[Matrix](NamedTuple):
    """N squares c exp(e'u) (a'z − o)²: coef (N,), the c; powers (N, P), sparse: the e; forms
    (N, D), sparse or not: the a; offset o (N,).

    A monomial of u alone has an empty form, and the offset 1.
    """

    coef: Array
    powers: csr_array
    forms: Matrix
    offset: Array

    def factors(self, u: Array) -> Array:
        """Return what multiplies each square (…, N) at logarithms u (…, P)."""
        return np.asarray(self.coef * np.exp((self.powers @ u.T).T))


def gaps(squares: Squares[csr_array], z: Array) -> tuple[Array, Array]:
    """Return the forms a'z − o (…, N) at z (…, D), and the rounding of their squares."""
    # g = a'z − o; its rounding b makes one of 2 |g| b + b² in g², at most twice what is returned
    gap = (squares.forms @ z.T).T - squares.offset
    size = (abs(squares.forms) @ np.abs(z).T).T + np.abs(squares.offset)
    blur = FORM_ROUNDING * size
    return gap, blur**2 + blur * np.abs(gap)


def some(squares: Squares[csr_array], which: Array) -> Squares[csr_array]:
    """Return some squares."""
    coef, powers, forms, offset = squares
    return Squares(coef[which], powers[which], forms[which], offset[which])


class Form(NamedTuple):
    """What a part adds to a log density of D reals and P positive variables.

    linear, square (P,): α and β.
    """

    squares: Squares[csr_array]
    linear: Array
    square: Array

    def log_density(self, z: Array, u: Array) -> tuple[Array, Array]:
        """Return the value (…) at reals z (…, D) and logarithms u (…, P), and the size of what it
        is a sum of, with the rounding of squares that are nearly 0."""
        gap, blur = gaps(self.squares, z)
        # f(z, u) = Σ c exp(e'u) (a'z − o)² + Σ α u + Σ β u², and the sum of absolute terms: what
        # is left of them by cancelling has the rounding of their size
        by = self.squares.factors(u)
        terms = [by * gap**2, self.linear * u, self.square * u**2]
        whole = np.concatenate(terms, axis=-1)
        rounding = (np.abs(by) * blur).sum(axis=-1) / RELATIVE_TOLERANCE
        return whole.sum(axis=-1), np.abs(whole).sum(axis=-1) + rounding

    def about(self, base: Array) -> Form:
        """Return the form as a function of u, of one that is a function of u − base."""
        squares, linear, square = self
        # with t = u − base: c exp(e't) = (c exp(−e'base)) exp(e'u), α t + β t² = (α − 2 β base) u
        # + β u² + a constant
        coef = squares.factors(-base)
        monomial = np.diff(squares.forms.indptr) == 0
        # monomials of several terms may cancel, as in a prior that a potential takes off: to 12
        # digits they do so exactly
        coef = np.where(monomial, rounded(coef, COEFFICIENT_DIGITS), coef)
        return Form(squares._replace(coef=coef), linear - 2.0 * square * base, square)


def together(forms: Sequence[Form], reals: int, positives: int) -> Form:
    """Return the form of several parts of a log density, of D reals and P positive variables.

    Each part may be of more or of fewer variables: its own are the first.
    """
    logs = np.zeros((2, positives))
    for form in forms:
        own = min(positives, len(form.linear))
        logs[:, :own] += form.linear[:own], form.square[:own]
    squares = Squares(
        np.concatenate([np.zeros(0), *(form.squares.coef for form in forms)]),
        below([form.squares.powers for form in forms], positives),
        below([form.squares.forms for form in forms], reals),
        np.concatenate([np.zeros(0), *(form.squares.offset for form in forms)]),
    )
    return Form(squares, *logs)


def below(matrices: Sequence[csr_array], width: int) -> csr_array:
    """Return the rows of matrices, one below the other, each with `width` columns."""
    data = np.concatenate([np.zeros(0), *(m.data for m in matrices)])
    column = np.concatenate([np.zeros(0, np.int64), *(m.indices for m in matrices)])
    entries = np.concatenate([np.zeros(1, np.int64), *(np.diff(m.indptr) for m in matrices)])
    return csr_array((data, column, np.cumsum(entries)), (len(entries) - 1, width))


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


def rounded(values: Array, digits: int) -> Array:
    """Return numbers of some significant digits: so terms that cancel do so exactly."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** (digits - np.ceil(np.log10(np.abs(values))))
    return np.where(np.isfinite(unit) & (unit > 0.0), np.round(values * unit) / unit, values)


def quartered(e: Array, within: float) -> Array:
    """Return numbers that are quarters of whole ones without their rounding."""
    quarter = np.round(4.0 * e) / 4.0
    return np.where(np.abs(e - quarter) <= within, quarter, e)
