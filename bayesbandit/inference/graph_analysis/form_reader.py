"""Reading the form of numbers off their values.

That numbers are quadratic in the reals z is proved on their graph (`Degrees`), and that they are
analytic in z and in the logarithms u of positive variables (`Analytic`). Two analytic functions
that agree at random points agree everywhere. So the coefficients of a `Form` are read off values at
a few points, and tested at others:

- c and a from values far out in z, where the squares are all that is left; o from slopes at z = 0;
- e of a square from its ratio at two u;
- what is left, where squares are 0, along each u: far out one exponential is all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

from bayesbandit.checks import Array
from bayesbandit.inference.graph_analysis.form import (
    FORM_ROUNDING,
    RELATIVE_TOLERANCE,
    Form,
    NoForm,
    RowsTogether,
    Squares,
    Variables,
    gaps,
    quartered,
    together,
)

if TYPE_CHECKING:
    from bayesbandit.inference.graph_analysis.summands import Part

FAR_POINT = 2.0**300  # of z: what is not squared is rounding there
OUTER_POINTS = np.array([8.0, 15.0, 25.0, 40.0, 60.0, 90.0, 120.0, 150.0])  # of u, to both sides
LOG_SCALE_GRID = np.concatenate([-OUTER_POINTS[::-1], np.linspace(-4.0, 4.0, 9), OUTER_POINTS])
LOGARITHM_ROUNDING = 1e-12  # of a logarithm, by rounding of squares that are 0
LEAST_PULL = 1e-12  # to 0, of reals that squares leave unknown, relative to their precision
RANK_TOLERANCE = 1e-9  # what a square may leave of second derivatives, relative to them
FAR_OUT = 60.0  # where powers are larger than logarithms
SMALLEST_POWER = 0.1  # that is told from a logarithm there
MAX_NUMBERS = 30_000_000  # that one evaluation may compute


class Slot(NamedTuple):
    """Coordinates that move together, since each number depends on one of them at most.

    owner (E,): the place of that coordinate; −1 for none.
    """

    name: str
    owner: Array

    @property
    def depends(self) -> Array:
        """(E,) which numbers depend on one of them."""
        return self.owner >= 0

    def of(self, values: Array) -> Array:
        """Return the value (E,) that each number depends on, 0 for none."""
        return np.where(self.depends, values[self.owner], 0.0)

    def moved(self, start: Array, by: Array | float) -> Array:
        """Return all coordinates, these moved by numbers."""
        out = start.copy()
        mine = self.owner[self.depends]
        out[mine] += np.broadcast_to(by, start.shape)[mine]
        return out


class Reader:
    """Reads the form of a part.

    base (P,): the u about which it is read, as a function of t = u − base. at_zero (E,): the
    numbers there, at z = 0. steps (D,): the size of each real in the squares.
    """

    def __init__(self, part: Part, rows: Sequence[Array], variables: Variables) -> None:
        self.part = part
        self.rows = rows
        self.variables = variables
        self.places = {k: np.asarray(variables.places[k]) for k in part.unknown}
        self.positive = [k for k in part.unknown if k in variables.between]
        self.rng = np.random.default_rng(0)
        self.base = np.zeros(variables.positives)
        for k in self.positive:
            low, high = variables.between[k]
            # a point inside the bounds; random, so that two different powers have different
            # values there
            middle = 0.5 * (low + high) if high < math.inf else low + 1.0
            self.base[self.places[k]] = math.log(middle) + self.rng.uniform(-0.05, 0.05)
        self.zero = np.zeros(variables.reals)
        self.still = np.zeros(variables.positives)
        self.numbers = 1
        self.steps = self.zero + 1.0
        # the first call tells how many numbers the graph is a sum of
        [self.at_zero] = self.values(self.zero, self.still)
        self.numbers = self.at_zero.size
        if not np.isfinite(self.at_zero).all():
            raise NoForm("not finite on these rows")

    def values(self, z: Array, t: Array) -> Array:
        """Return the numbers (S, E) at reals z (S, D) and u = base + t (S, P), or one of either."""
        z = np.atleast_2d(z)
        u = np.atleast_2d(self.base + t)
        S = max(len(z), len(u))
        given = []
        # 240 MB of float64
        if S * self.numbers > MAX_NUMBERS:
            raise NoForm("too many numbers in one term")
        for k, where in self.places.items():
            at = np.exp(u[:, where]) if k in self.positive else z[:, where]
            given.append(np.broadcast_to(at, (S, *where.shape)))
        return self.part(given, self.rows, S)

    def read(self) -> Form:
        """Return the form; raise `NoForm` where it is another."""
        D, P = self.zero.size, self.still.size
        if not self.numbers:
            return together([], D, P)
        far, other = FAR_POINT * self.rng.normal(size=(2, D))
        reals = [k for k in self.places if k not in self.positive]
        self.real = self.slots(
            reals,
            self.values(far, self.still),
            lambda i: self.values(moved(far, i, other[i]), self.still),
        )
        of, a, coef, offset = self.factors()
        forms = self.placed(self.real, a, of, D)
        mode = least(forms, offset, np.abs(coef))
        at = np.array([mode, far])
        self.scale = self.slots(
            self.positive,
            self.values(at, self.still),
            lambda i: self.values(at, moved(self.still, i, 2.0)),
        )
        e = self.exponents(of, far)
        squares = Squares(coef, self.placed(self.scale, e, of, P), forms, offset)
        found = self.rest(of, squares, e, mode)
        form = found.about(self.base)
        self.check(form, mode)
        return form

    def placed(self, slots: Sequence[Slot], values: Array, of: Array, width: int) -> csr_array:
        """Return values (slots, N) of terms of the numbers `of` (N,), by place: (N, width)."""
        owner = np.array([slot.owner[of] for slot in slots], np.int64).reshape(len(slots), of.size)
        slot, term = np.nonzero(values)
        where = term, owner[slot, term]
        return csr_array((values[slot, term], where), shape=(of.size, width))

    # ---- what numbers depend on ------------------------------------------------------------------

    def slots(
        self, names: Sequence[str], before: Array, after: Callable[[int], Array]
    ) -> list[Slot]:
        """Return the coordinates of variables: of one, one slot if no number depends on two.

        Of variables with a value for each row the i-th is taken for that of the i-th number, which
        the test at random points confirms. before, after: the numbers at some points, and where the
        coordinate at a place is another.
        """
        slots = []
        for name in names:
            where = self.places[name].ravel()
            # a number, such as a noise scale, may enter every term: all move together
            if where.size == 1:
                slots.append(Slot(name, np.repeat(where, self.numbers)))
                continue
            if name in self.variables.by_row:
                if where.size != self.numbers:
                    raise RowsTogether(f"rows are not apart in '{name}'")
                slots.append(Slot(name, where))
                continue
            if where.size * self.numbers > MAX_NUMBERS:
                raise NoForm("too many numbers in one term")
            # which numbers change with the element, by moving it alone; what does not depend on
            # it is bit for bit the same
            depends = np.array([(after(i) != before).any(axis=0) for i in where])
            # elementwise, as θ_j in its own prior: one move of all elements tells all numbers
            # apart
            if (depends.sum(axis=0) <= 1).all():
                depends = np.where(depends, where[:, None], -1).max(axis=0, keepdims=True)
                slots.append(Slot(name, depends[0]))
                continue
            slots += [Slot(name, np.where(d, i, -1)) for i, d in zip(where, depends, strict=True)]
        return slots

    def _names(self, slots: Sequence[Slot]) -> str:
        return " and ".join(f"'{name}'" for name in sorted({slot.name for slot in slots}))

    # ---- squares ---------------------------------------------------------------------------------

    def factors(self) -> tuple[Array, Array, Array, Array]:
        """Return N squares c (Σ_r a_r z_r − o)² of one real of each slot r, at t = 0: the number
        that each is in (N,), a (R, N), c and o (N,).

        By an LDL' factorisation of second derivatives.
        """
        R = len(self.real)
        none = np.zeros(0)
        found = [(none.astype(np.int64), np.zeros((R, 0)), none, none)]
        if not R:
            return found[0]
        # f = ½ z'Hz + g'z + f(0), of each number. LDL': H = Σ_k d_k a_k a_k', so that squares ½
        # d_k (a_k'z)² are taken off one pivot after the other, and what is left of H has a rank
        # less each time
        bend = self._bends()
        slope = self._slopes(bend)
        left = bend.copy()
        done = list[tuple[Array, Array]]()
        while (live := np.abs(left) > RANK_TOLERANCE * np.abs(bend)).any() and len(done) <= R:
            # the coordinate that is in most numbers, so that one column serves them all
            p = int(live.sum(axis=1).argmax())
            # column p of H, less that of the squares that are already found
            column = self._column(p, bend)
            for a, top in done:
                column -= a * (a[p] * top)
            # a_k = column / d_k, which has 1 at p
            pivot = np.where(live[p], left[p], np.inf)
            a = np.where(live, column, 0.0) / pivot
            top = np.where(live[p], left[p], 0.0)
            a[p] = live[p]
            # d a (a'z − o) has the slope −d o at z = 0 along p, so o = −g_p / d; the square's
            # slope there is taken off g
            offset = -slope[p] / pivot
            slope = slope + a * (top * offset)
            left = left - a**2 * top
            left[p][live[p]] = 0.0
            done.append((a, top))
            mine = np.flatnonzero(live[p])
            found.append((mine, a[:, mine], 0.5 * top[mine], offset[mine]))
        # what is left of g must be 0: else z enters linearly, beside no square
        size = np.abs(bend) * np.array([slot.of(self.steps) for slot in self.real])
        if (np.abs(slope) > RELATIVE_TOLERANCE * size).any():
            raise NoForm(f"{self._names(self.real)} enters, but not squared")
        of, a, coef, offset = (np.concatenate(v, axis=-1) for v in zip(*found, strict=True))
        return of, a, coef, offset

    def _bends(self) -> Array:
        """Return the second derivatives (R, E) by the real of each slot, from values far out."""
        # (f(h) + f(−h) − 2 f(0)) / h² is exact for a quadratic; at h = 2^300 all that is not
        # squared is less than rounding, and powers of two divide without any
        far = [slot.moved(self.zero, sign * FAR_POINT) for slot in self.real for sign in (1, -1)]
        values = self.values(np.array(far), self.still).reshape(-1, 2, self.numbers)
        if not np.isfinite(values).all():
            raise NoForm("not finite on these rows")
        bend = (values.sum(axis=1) - 2.0 * self.at_zero) / FAR_POINT**2
        # c (a − a)² of two rows that are equal is rounding squared, and no square
        lost = FORM_ROUNDING**2 * np.abs(bend).max(axis=1, keepdims=True)
        bend[np.abs(bend) <= lost] = 0.0  # the difference of two equal rows
        return bend

    def _slopes(self, bend: Array) -> Array:
        """Return slopes (R, E) at z = 0, by steps of the size of a square's offset or sd."""
        # a step of the size of √(2 |f(0)| / H): there the linear part, g h, is as large as the
        # rest of f, and loses no digits
        root = np.sqrt(np.where(bend != 0.0, np.abs(bend), np.inf))
        moves = []
        for slot, one in zip(
            self.real, np.sqrt(2.0 * np.abs(self.at_zero) + 2.0) / root, strict=True
        ):
            size = np.zeros(self.zero.size)
            np.maximum.at(size, slot.owner[slot.depends], one[slot.depends])
            self.steps = np.where(size > 0.0, size, self.steps)
            moves += [slot.moved(self.zero, self.steps), slot.moved(self.zero, -self.steps)]
        # (f(h) − f(−h)) / 2h = g for a quadratic: the even part cancels
        values = self.values(np.array(moves), self.still).reshape(len(self.real), 2, self.numbers)
        by = np.array([np.where(slot.depends, slot.of(self.steps), 1.0) for slot in self.real])
        return (values[:, 0] - values[:, 1]) / (2.0 * by)

    def _column(self, p: int, bend: Array) -> Array:
        """Return the second derivatives (R, E) by all reals and that of slot p, from values where
        the squares of both are of one size."""
        # H_rp = (f(h_r + h_p) − ½ H_rr h_r² − ½ H_pp h_p²) / (h_r h_p); steps by which both
        # squares are of one size, so that the product is no rounding beside either
        size = np.sqrt(np.abs(bend).max(axis=1))
        h = FAR_POINT / np.where(size > 0.0, size, 1.0)
        out = bend.copy()
        others = [r for r in range(len(bend)) if r != p]
        if others:
            start = self.real[p].moved(self.zero, h[p])
            by = h[others, None]
            both = np.array([self.real[r].moved(start, h[r]) for r in others])
            alone = 0.5 * bend[others] * by**2 + 0.5 * bend[p] * h[p] ** 2
            out[others] = (self.values(both, self.still) - alone) / (by * h[p])
        return out

    def exponents(self, of: Array, far: Array) -> Array:
        """Return e (Q, N), by which the square of each of N numbers `of` is proportional to
        exp(e't)."""
        Q = len(self.scale)
        if not of.size or not Q:
            return np.zeros((Q, of.size))
        tried = 2.0 * self.rng.uniform(size=self.still.size)
        # φ(t) / φ(0) = exp(e't): e_q = ½ log of the ratio at t_q = 2, and the random t must
        # confirm the sum of all
        t = np.array([self.still, *(slot.moved(self.still, 2.0) for slot in self.scale), tried])
        with np.errstate(all="ignore"):
            values = self.values(far, t)[:, of]
            log = np.log(values[1:] / values[0])
            depends = np.array([slot.depends[of] for slot in self.scale])
            # declared powers are ½, 1, 2 …: without their rounding, equal ones are equal
            e = quartered(np.where(depends, 0.5 * log[:-1], 0.0), 1e-9)
            at_tried = np.array([slot.of(tried)[of] for slot in self.scale])
            gap = log[-1] - (e * at_tried).sum(axis=0)
        if not (np.abs(gap) <= RELATIVE_TOLERANCE).all():
            raise NoForm(f"its precision is no monomial of {self._names(self.scale)}")
        return e

    # ---- what is left ----------------------------------------------------------------------------

    def rest(self, of: Array, squares: Squares[csr_array], e: Array, mode: Array) -> Form:
        """Return the form of numbers with such squares, as a function of t."""
        linear, square = np.zeros((2, self.still.size))
        found = []
        # at the squares' mode they are 0, or as small as they get, and what is left is of u alone
        gap, blur = gaps(squares, mode)
        for q, slot in enumerate(self.scale):
            t = np.outer(LOG_SCALE_GRID, slot.moved(self.still, 1.0))
            y = self.values(mode, t).copy()
            with np.errstate(all="ignore"):
                by = squares.factors(t)
                # the squares that do not vanish there are taken off
                np.subtract.at(y.T, of, (by * gap**2).T)
                point, which = np.nonzero(np.abs(by) * blur > LOGARITHM_ROUNDING)
            # where a square is large its rounding hides the logarithms: these points are left out
            y[point, of[which]] = np.nan
            mine = np.flatnonzero(slot.depends)
            fine = np.isfinite(y[:, mine]).all(axis=1)
            for column, which in alike(y[fine][:, mine]):
                out = split(LOG_SCALE_GRID[fine], column, np.unique(e[q]))
                if out is None:
                    raise NoForm(f"no sum of logarithms and powers of '{slot.name}'")
                alpha, beta, powers = out
                np.add.at(linear, slot.owner[mine[which]], alpha)
                np.add.at(square, slot.owner[mine[which]], beta)
                found += [(q, c, power, mine[which]) for c, power in powers]
        # b / (s τ²): one power along s and one along τ, with the same value at the base, are one
        # monomial
        pure, coef, exponents = joined(found, len(self.scale))
        placed = self.placed(self.scale, exponents, pure, self.still.size)
        none = csr_array((len(coef), mode.size))
        monomials = Squares(coef, placed, none, np.ones(len(coef)))
        logs = Form(monomials, linear, square)
        return together([Form(squares, *np.zeros((2, len(linear)))), logs], mode.size, len(linear))

    def check(self, form: Form, mode: Array) -> None:
        """Raise an error unless the numbers are the form's at random points, up to a constant."""
        # two points at the mode and two at steps from it, each at another random t: 4 numbers
        # that must agree up to one constant
        z = mode + self.steps * np.array([[0.0], [0.0], [1.0], [1.0]]) * self.rng.normal(
            size=(4, mode.size)
        )
        t = 2.0 * self.rng.normal(size=(4, self.base.size))
        values = self.values(z, t)
        ours, size = form.log_density(z, self.base + t)
        gap = values.sum(axis=1) - ours
        size = np.abs(values).sum(axis=1) + size
        if (np.abs(gap - gap[0]) <= RELATIVE_TOLERANCE * (size + size[0] + 1e-3)).all():
            return
        slots = [*self.real, *self.scale]
        by_row = any(slot.name in self.variables.by_row for slot in slots)
        error = RowsTogether if by_row and self.numbers > 1 else NoForm
        raise error(f"no sum of squares, logarithms and monomials of {self._names(slots)}")


def least(forms: csr_array, offset: Array, weight: Array) -> Array:
    """Return reals (D,) at which squares of forms (N, D) are 0, or as small as least squares make
    them."""
    z = np.zeros(forms.shape[1])
    if not offset.any():
        return z
    # min Σ w (a'z − o)²: F'WF z = F'Wo, pulled to 0 by next to nothing where F'WF is singular
    left = forms.T @ diags_array(weight)
    precision = left @ forms
    own = precision.diagonal()
    pull = diags_array(np.where(own > 0.0, LEAST_PULL * own, 1.0))
    solver = splu((precision + pull).tocsc())
    for _ in range(2):  # the second time without what is pulled
        z = z + solver.solve(left @ (offset - forms @ z))
    return z


def moved(start: Array, place: int, to: float) -> Array:
    """Return numbers with another one at a place."""
    out = start.copy()
    out[place] = to
    return out


def alike(y: Array) -> Iterator[tuple[Array, Array]]:
    """Yield columns of y (T, m), and which are equal to them but for a constant and rounding."""
    if not y.size:
        return
    # less the number at the smallest value: rewards' terms differ by constants, and are split
    # once for all
    gap = y - y[np.abs(y).max(axis=1).argmin()]
    digits = 10.0 ** (10 - np.ceil(np.log10(np.abs(gap) + 1e-3)))
    near = np.round(gap * digits) / digits
    _, first, which = np.unique(near, axis=1, return_index=True, return_inverse=True)
    for k, i in enumerate(first):
        yield gap[:, i], np.flatnonzero(np.ravel(which) == k)


def split(u: Array, y: Array, near: Array) -> tuple[float, float, list[tuple[float, float]]] | None:
    """Return a function y of u on the grid as α u + β u² + Σ c e^{eu} + a constant: α, β, and pairs
    of c and e; None if it is another.

    Far out on either side there is one exponential at most, whose ratio at two points is e. Half of
    e is tried, too, for a power that is in a square beside a constant. The exponents `near`, of the
    squares of reals, are tried last: a square that cannot become 0 leaves such a power.
    """
    ends = list[float]()
    for far in (np.flatnonzero(u <= -FAR_OUT)[:2], np.flatnonzero(u >= FAR_OUT)[:-3:-1]):
        if far.size == 2 and y[far].all() and np.ptp(np.sign(y[far])) == 0.0:
            # far out c e^{eu} is all: the slope of log |y| is e
            e = np.diff(np.log(np.abs(y[far]))) / np.diff(u[far])
            if e[0] * np.sign(u[far[0]]) > SMALLEST_POWER:
                ends.append(float(quartered(e, 1e-6)[0]))
    half = [0.5 * e for e in ends]
    for powers, degree in product((ends, ends + half, [*ends, *near.tolist()]), (1, 2)):
        exponents = list(dict.fromkeys(e for e in powers if e))
        # least squares on the columns 1, u, (u²,) and e^{eu}: numbers that have the form are
        # fitted to rounding, others are not
        w = fitted(y, np.hstack([np.vander(u, degree + 1, True), np.exp(np.outer(u, exponents))]))
        if w is not None:
            alpha = float(quartered(w[1], 1e-11))
            beta = float(w[2]) if degree == 2 else 0.0
            return alpha, beta, list(zip(w[degree + 1 :].tolist(), exponents, strict=True))
    return None


def fitted(y: Array, X: Array) -> Array | None:
    """Return the coefficients of columns X by least squares; None where they leave something of
    y."""
    if len(y) <= X.shape[1]:  # any numbers would fit
        return None
    # relative to y, whose values run over hundreds of orders of magnitude
    weight = 1.0 / (1.0 + np.abs(y))
    X = X * weight[:, None]
    size = np.abs(X).max(axis=0)
    w = np.linalg.lstsq(X / size, y * weight)[0]
    off = np.abs(X / size @ w - y * weight)
    return w / size if (off <= 1e-9).all() else None


def joined(found: Sequence[tuple[int, float, float, Array]], Q: int) -> tuple[Array, Array, Array]:
    """Return M products of powers found along each of Q variables: the number that each is in and
    its value at the base (M,), and exponents (Q, M).

    found: variable, value at the base, exponent and numbers of a power. Powers of one value are of
    one product, for the base is random.
    """
    by_number: dict[int, list[tuple[float, Array]]] = {}
    for q, value, power, which in found:
        for i in which.tolist():
            mine = by_number.setdefault(i, [])
            same = (e for c, e in mine if not e[q] and abs(c - value) <= 1e-6 * abs(value))
            exponent = next(same, None)
            if exponent is None:
                exponent = np.zeros(Q)
                mine.append((value, exponent))
            exponent[q] = power
    every = [(i, c, e) for i, mine in by_number.items() for c, e in mine]
    of = np.array([i for i, _, _ in every], np.int64)
    coef = np.array([c for _, c, _ in every])
    return of, coef, np.array([e for _, _, e in every]).reshape(len(every), Q).T
