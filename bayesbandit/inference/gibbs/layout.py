"""Layouts: the arrays of a log density for the compiled sweep, made from its form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bayesbandit.checks import FLOAT_EPSILON, Array
from bayesbandit.inference.graph_analysis.form import Form, Squares, below, some
from bayesbandit.kernels.algebra.cholesky import padded, room
from bayesbandit.kernels.gibbs import conditionals

SPARSE_SIZE = 4  # coordinates that a square may have to be kept sparse
CENTRE_DIGITS = 1e-10  # of the precision that a centre is found with
LARGEST_AT_CENTRE = 1e20  # of a prior's square there; beyond it θ would lose its digits
NEARLY_EXACT = 1e-8  # relative residual at a centre of what some δ may fit exactly
ROUNDINGS_OF_FIT = 8  # that a fit of least squares may leave


class Rows(NamedTuple):
    """Dense squares for the kernel: each on its own, or those with the same φ as statistics."""

    coef: Array
    powers: csr_array
    rows: Array
    groups: Array
    group_rest: Array


class Layout(NamedTuple):
    """A log density of δ = θ − centre and u = log v, in the arrays of the kernel, up to a constant.

    dense: the squares from which rows and groups were made. sparse: the others. powers (T, P): the
    exponents of all terms. unbounded: as of `unbounded_scale`.
    """

    terms: conditionals.Terms
    centre: Array
    dense: Squares[Array]
    sparse: Squares[csr_array]
    powers: csr_array
    unbounded: int

    @property
    def dim(self) -> int:
        return len(self.centre)

    def log_density(self, theta: Array, u: Array) -> float:
        """Return the log density at θ (D,) and u (P,), without the Jacobian of the logarithm."""
        work = conditionals.workspace(self.terms, self.dim)
        whole = conditionals.log_density(self.terms, theta - self.centre, u, work)
        # p(u) = p(v) Π v with v = e^u, and so log p(v) is log p(u) − Σ u
        return float(whole - u.sum())

    def rounding(self, theta: Array, u: Array) -> Array:
        """Return the rounding of each dense square's form at θ (D,), in its sds at u (P,)."""
        _, _, forms, offset = self.dense
        size = np.abs(forms) @ np.abs(theta) + np.abs(offset + forms @ self.centre)
        # φ = −1/2 sd², so that a form of this rounding is rounded by √(−2φ) times it in sds
        return np.asarray(FLOAT_EPSILON * size * np.sqrt(-2.0 * self.dense.factors(u)))


class Apart(NamedTuple):
    """A form in θ alone: squares of many coordinates, of few, and monomials of u, each apart."""

    dense: Squares[Array]
    sparse: Squares[csr_array]
    pure: Squares[csr_array]
    linear: Array
    square: Array


def apart(form: Form, A: Array, b: Array) -> Apart:
    """Return a form in θ (D,) and, behind it, the mean rewards A θ + b (n,) as one in θ."""
    coef, powers, forms, offset = form.squares
    # forms are of θ and of the mean rewards m = Aθ + b: a'θ + c'm − o = (a + A'c)'θ − (o − c'b)
    means = forms[:, A.shape[1] :]
    forms = forms[:, : A.shape[1]]
    # coordinates of a form of θ alone
    size = np.diff(forms.indptr)
    many = (np.diff(means.indptr) > 0) | (size > SPARSE_SIZE)
    wide = forms[many].toarray() + means[many] @ A
    dense = Squares(coef[many], powers[many], wide, offset[many] - means[many] @ b)
    of_theta = form.squares._replace(forms=forms)
    sparse = some(of_theta, ~many & (size > 0))
    pure = some(of_theta, ~many & (size == 0))
    return Apart(dense, sparse, pure, form.linear, form.square)


def layout(form: Apart, low: Array, high: Array) -> Layout:
    """Return the density whose logarithm has a form. low, high (P,): the bounds of positive
    variables."""
    dense, sparse, pure, linear, square = form
    # about a centre, so that rewards far from 0 lose no digits
    centre = centred(dense, sparse)
    dense = dense._replace(offset=dense.offset - dense.forms @ centre)
    sparse = sparse._replace(offset=sparse.offset - sparse.forms @ centre)
    rows = grouped(dense)
    powers = below([rows.powers, sparse.powers, pure.powers], len(low))
    by_element = powers.tocsc()
    # terms with one exponent e of an element are one exponential e^{es} in its log density
    exponents, slot = np.unique(by_element.data, return_inverse=True)
    with np.errstate(divide="ignore"):
        low = np.log(low)
        high = np.log(high)
    common, scaled = common_scale(rows.powers, sparse, len(centre))
    terms = conditionals.Terms(
        linear=1.0 + linear,  # of log v: 1, for its Jacobian
        square=square,
        low=low,
        high=high,
        coef=np.concatenate([rows.coef, sparse.coef, pure.coef]),
        element_at=powers.indptr.astype(np.int64),
        element=powers.indices.astype(np.int64),
        exponent=powers.data,
        term_at=by_element.indptr.astype(np.int64),
        term=by_element.indices.astype(np.int64),
        slot=slot.astype(np.int64),
        slot_exponent=exponents,
        rows=rows.rows,
        groups=rows.groups,
        group_rest=rows.group_rest,
        form_at=sparse.forms.indptr.astype(np.int64),
        form_index=sparse.forms.indices.astype(np.int64),
        form_coef=sparse.forms.data,
        offset=sparse.offset,
        common=common,
        scaled=scaled,
    )
    unbounded = unbounded_scale(dense, sparse, pure, terms, centre)
    return Layout(terms, centre, dense, sparse, powers, unbounded)


def centred(dense: Squares[Array], sparse: Squares[csr_array]) -> Array:
    """Return a centre of θ (D,): about where dense squares are smallest.

    All squares count where rows say so little of θ that a prior's would lose its digits.
    """
    centre = balanced(dense.forms, dense.offset, dense.coef)
    offset = sparse.offset - sparse.forms @ centre
    if (np.abs(sparse.coef) * offset**2 > LARGEST_AT_CENTRE).any():
        forms = np.vstack([dense.forms, sparse.forms.toarray()])
        coef = np.concatenate([dense.coef, sparse.coef])
        centre = balanced(forms, np.concatenate([dense.offset, sparse.offset]), coef)
    return centre


def balanced(forms: Array, offset: Array, coef: Array) -> Array:
    """Return about where Σ |coef| (form − offset)² is smallest, (D,): δ = θ − it."""
    # min_θ Σ |c| (f'θ − o)², (F'CF) θ = F'C o, scaled to a unit diagonal: columns may be in any
    # unit
    weight = np.abs(coef)
    weight = weight / max(weight.max(initial=0.0), 1e-300)
    G = (forms.T * weight) @ forms
    diagonal = np.diag(G).copy()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    # with 1 on its diagonal and a little more: what no square knows stays at 0
    G = G / scale[:, None] / scale + CENTRE_DIGITS * len(G) * np.eye(len(G))
    return np.asarray(np.linalg.solve(G, forms.T @ (weight * offset) / scale) / scale)


def grouped(dense: Squares[Array]) -> Rows:
    """Return squares for the kernel.

    Those with the same φ but for its coefficient, ≤ 0, become one group of statistics, if this is
    less work.
    """
    coef, powers, forms, offset = dense
    n, D = forms.shape
    shape = room(D)
    # rows of one noise scale have one φ; those of several, such as an arm's each, as many groups
    _, first, which = np.unique(keys(powers), return_index=True, return_inverse=True)
    G = len(first)
    # a sweep adds up φ_g G_g, G D² / 2 sums, or weighs n rows, n D² / 2 and no statistics of them
    if (coef <= 0.0).all() and (n > G * D or G == 1):
        groups = np.zeros((G, *shape))
        rest = np.zeros(G)
        for g in range(G):
            mine = which == g
            F = forms[mine]
            c = coef[mine]
            o = offset[mine]
            # Σ c (f'δ − o)² = δ'Gδ − 2 δ'Σ c o f + Σ c o², G = Σ c ff'
            groups[g, :D, :D] = (F.T * c) @ F
            groups[g, :D, padded(D)] = F.T @ (c * o)
            rest[g] = c @ o**2
        return Rows(np.ones(G), powers[first], np.zeros((0, shape[1])), groups, rest)
    rows = np.zeros((n, shape[1]))
    rows[:, :D] = forms
    rows[:, padded(D)] = offset
    return Rows(coef, powers, rows, np.zeros((0, *shape)), np.zeros(0))


def common_scale(rows: csr_array, sparse: Squares[csr_array], D: int) -> tuple[int, int]:
    """Return an element that scales all squares of the first J coordinates alike, and J; J = 0 if
    there is none.

    rows: the powers of dense squares.
    """
    first = first_coordinates(sparse)
    for p in rows[[0]].indices.tolist() if rows.shape[0] else ():
        of_rows = rows[:, [p]].toarray()
        others = first[sparse.powers[:, [p]].toarray()[:, 0] != of_rows[0]]
        J = int(others.min(initial=D))
        if J and np.ptp(of_rows) == 0.0:
            return p, J
    return 0, 0


def first_coordinates(sparse: Squares[csr_array]) -> Array:
    """Return the first coordinate (m,) in each square's form."""
    return np.asarray(sparse.forms.indices[sparse.forms.indptr[:-1]])


def keys(powers: csr_array) -> Array:
    """Return a number (N,) for each product, the same for equal powers: their products with random
    numbers."""
    # different rows of powers have one product with random numbers with probability 0
    return np.asarray(powers @ np.random.default_rng(0).normal(size=powers.shape[1]))


def unbounded_scale(
    dense: Squares[Array],
    sparse: Squares[csr_array],
    pure: Squares[csr_array],
    terms: conditionals.Terms,
    centre: Array,
) -> int:
    """Return a positive variable towards whose end the integral of the density is infinite, since
    squares that count ever more there are all 0 at one δ; −1 if there is none.

    So it is where means fit rewards exactly, and nothing keeps the noise from 0. Of squares with
    φ ∝ v^e, whose forms have rank r, the density of u = log v is

        ∫ p dδ ∝ exp(α u − ½ e r u).
    """
    # a square that counts ever more must be 0, to the digits of its form at the centre
    size = np.abs(centre)
    exact = np.concatenate([
        np.abs(dense.offset) <= NEARLY_EXACT * (np.abs(dense.forms) @ size),
        np.abs(sparse.offset) <= NEARLY_EXACT * (abs(sparse.forms) @ size),
    ])  # fmt: skip
    fitted = exact[: len(dense.offset)]
    if len(np.unique(keys(dense.powers))) > 1:  # the centre is that of several likelihoods
        exact[:] = True
    elif fitted.size and not fitted.any():
        return -1
    offset = np.concatenate([dense.offset, sparse.offset])
    powers = below([dense.powers, sparse.powers], len(terms.low)).tocoo()
    square, element = powers.coords
    # towards v → 0 and v → ∞, where no bound is before that
    for end, bound in ((-1.0, -terms.low), (1.0, terms.high)):
        rates = np.maximum(end * powers.data, 0.0)
        # a square that cannot be 0, or a monomial that grows, takes the density to 0 there:
        # exp(−c v^e)
        held = np.zeros(len(bound))
        np.add.at(held, element, rates * ~exact[square])
        np.add.at(held, pure.powers.indices, np.maximum(end * pure.powers.data, 0.0))
        # β u² would do so, too, as a log-normal prior does
        free = (held == 0.0) & (bound == np.inf) & (terms.square == 0.0)
        for p in np.flatnonzero(free & (end * terms.linear > 0.0)):
            rate = np.zeros(len(offset))
            rate[square[element == p]] = rates[element == p]
            grows = rate > 0.0
            # r is the rank of all their forms if they grow alike
            if len(np.unique(rate[grows])) != 1:
                continue
            forms = np.vstack([dense.forms, sparse.forms.toarray()])[grows]
            # rank by columns of norm 1, whatever the units of contexts
            unit = np.linalg.norm(forms, axis=0)  # of each δ
            unit[unit == 0.0] = 1.0
            # towards the end, α u against ½ e r u
            # ∫ exp(−½ v^e Σ (f'δ)²) dδ ∝ v^(−e r / 2) on the r directions that the forms span
            enough = 0.5 * rate[grows][0] * np.linalg.matrix_rank(forms / unit)
            diverges = end * terms.linear[p] >= enough
            if diverges and fits_exactly(forms / unit, offset[grows], centre * unit):
                return int(p)
    return -1


def fits_exactly(forms: Array, offset: Array, centre: Array) -> bool:
    """Return whether some δ fits all offsets, but for the rounding of forms at θ = centre + δ.

    forms: with columns of norm 1.
    """
    # exactly: up to the rounding of n products of θ = centre + δ
    delta = np.linalg.lstsq(forms, offset)[0]
    largest = np.max(np.abs(delta) + np.abs(centre))
    size = np.abs(forms).sum(axis=1) * largest + np.abs(offset)
    left = np.abs(forms @ delta - offset)
    return bool((left <= ROUNDINGS_OF_FIT * FLOAT_EPSILON * size).all())
