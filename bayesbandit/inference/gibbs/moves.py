"""The joint moves that help a Gibbs sampler of a layout to mix: `kernels.gibbs.orbits.Moves`.

A variable with few elements, such as a noise scale or a common prior scale, moves

- with all elements of another variable, so that the terms that they share do not change: σ² with
  the precisions of Student-t noise, a common scale with those of each coefficient (parameter
  expansion: Liu and Wu 1999);
- with the coefficients whose prior scale it is, all stretched about their prior means: those of a
  hierarchy, or the steps of a random walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bayesbandit.inference.gibbs.layout import FLOAT_EPSILON, Layout
from bayesbandit.kernels.gibbs.orbits import Moves

MAX_ELEMENTS = 32  # of a variable, for each of them to be tried
MAX_MOVES = 40
NEGLIGIBLE_LOG_DENSITY = 1e-4  # of a log density, by rounding, that changes no step
DIRECTION_TOLERANCE = 1e-6  # of a direction, whose forms are to be those of the squares
RATE_DIGITS = 12  # of rates

Array = np.ndarray


class Stretch(NamedTuple):
    """Squares (k,) whose forms a move multiplies by exp(rate s), and (k, D) by what of δ."""

    rate: float
    own: Array
    spread: Array


def moves(layout: Layout, owner: Array) -> Moves:
    """Return the moves of a layout.

    owner (P,): the number of the variable that each element belongs to.
    """
    first = len(layout.terms.rows) + len(layout.terms.groups)
    none = Stretch(0.0, np.zeros(0, np.int64), np.zeros((0, layout.dim)))
    found: list[tuple[Array, Array, Stretch]] = []
    for speed in directions(layout.powers, owner):
        rates = np.round(layout.powers @ speed, RATE_DIGITS)
        stretch = stretched(layout, rates[first : first + len(layout.sparse.offset)])
        if stretch is not None or np.count_nonzero(speed) > 1:
            found.append((speed, rates, stretch or none))
    del found[MAX_MOVES:]
    M, P, T = len(found), len(owner), len(layout.terms.coef)
    width = max((len(np.unique(rates)) for _, rates, _ in found), default=0)
    most = max((len(s.own) for _, _, s in found), default=0)
    whole = Moves(
        speed=np.zeros((M, P)),
        stretch=np.array([s.rate for _, _, s in found]),
        kind=np.zeros((M, T), np.int64),
        exponent=np.zeros((M, 3 * width)),
        own=np.full((M, most), -1),
        spread=np.zeros((M, most, layout.dim)),
    )
    for m, (speed, rates, stretch) in enumerate(found):
        distinct, kind = np.unique(rates, return_inverse=True)
        powers = distinct[:, None] + stretch.rate * np.arange(3.0)
        k = len(stretch.own)
        whole.speed[m] = speed
        whole.kind[m] = 3 * kind
        whole.kind[m, first + stretch.own] = -1
        whole.exponent[m, : powers.size] = powers.ravel()
        whole.own[m, :k] = stretch.own
        whole.spread[m, :k] = stretch.spread
    return whole


def directions(powers: csr_array, owner: Array) -> Iterator[Array]:
    """Yield speeds (P,) along which moves may help: of one element, and of one with a variable such
    that the terms that they share stay.

    powers (T, P): the exponents of all terms.
    """
    by_element = powers.tocsc()
    for i in np.flatnonzero(np.bincount(owner)[owner] <= MAX_ELEMENTS):
        mine = by_element[:, [i]].toarray().ravel()
        alone = np.zeros(len(owner))
        alone[i] = 1.0
        yield alone
        shared = powers[np.flatnonzero(mine)].tocoo()
        for v in np.unique(owner[shared.col]):
            of = owner[shared.col] == v
            term, other = shared.row[of], shared.col[of]
            apart = len(np.unique(other)) == len(np.unique(term)) == len(term) > 1
            if v != owner[i] and apart:
                speed = alone.copy()
                speed[other] = -mine[np.flatnonzero(mine)][term] / shared.data[of]
                yield speed


def stretched(layout: Layout, rates: Array) -> Stretch | None:
    """Return how coefficients move along with the squares (m,) whose φ change at these rates; None
    where rates differ, where no directions are the squares' own, or where digits do not suffice."""
    own = np.flatnonzero(rates)
    if not 2 <= len(own) <= layout.dim or np.ptp(rates[own]) > 0.0 or loses_digits(layout):
        return None
    F = layout.sparse.forms[own].toarray()
    spread = np.linalg.lstsq(F @ F.T, F)[0]
    apart = np.allclose(F @ spread.T, np.eye(len(own)), rtol=0.0, atol=DIRECTION_TOLERANCE)
    return Stretch(-0.5 * float(rates[own[0]]), own, spread) if apart else None


def loses_digits(layout: Layout) -> bool:
    """Return whether a stretch changes the log density by less than its rounding.

    It does if means are many sds of a known noise from the rewards.
    """
    by, _, offset = layout.dense
    known = np.diff(by.powers.indptr) == 0
    far = np.abs(by.coef[known]) @ offset[known] ** 2
    return bool(far * FLOAT_EPSILON > NEGLIGIBLE_LOG_DENSITY)
