"""The joint moves that help a Gibbs sampler of a layout to mix: `kernels.gibbs.sweeps.Moves`.

A variable with few elements, such as a noise scale or a common prior scale, moves

- with all elements of another variable, so that the terms that they share do not change: σ² with
  the precisions of Student-t noise, a common scale with those of each coefficient (parameter
  expansion: Liu and Wu 1999), a factor of the noise with the other one;
- with the coefficients whose prior scale it is, all stretched about their prior means: those of a
  hierarchy, or the steps of a random walk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, find, vstack

from bayesbandit.checks import FLOAT_EPSILON, Array
from bayesbandit.inference.gibbs.layout import Layout, first_coordinates
from bayesbandit.kernels.gibbs.sweeps import Moves

MAX_ELEMENTS = 32  # of a variable, for each of them to be tried
NEGLIGIBLE_LOG_DENSITY = 1e-4  # of a log density, by rounding, that changes no step
DIRECTION_TOLERANCE = 1e-6  # of a direction, whose forms are to be those of the squares
RATE_DIGITS = 12  # of rates


def moves(layout: Layout, owner: Array) -> Moves:
    """Return the moves of a layout.

    owner (P,): the number of the variable that each element belongs to.
    """
    first = len(layout.terms.rows) + len(layout.terms.groups)
    first_coordinate = first_coordinates(layout.sparse)
    speeds = list[Array]()
    stretches = list[float]()
    jacobians = list[float]()
    terms = list[Array]()
    kinds = list[Array]()
    exponents = list[Array]()
    spreads = list[csr_array]()
    for speed in directions(layout.powers, owner):
        # u → u + s·speed multiplies φ_t by exp(rate_t s), rate = Σ e speed
        rates = np.round(layout.powers @ speed, RATE_DIGITS)
        # where φ of squares changes by exp(rate s), the forms change by exp(−½ rate s): the
        # squares stay as they are, and δ moves along
        rate, own, spread = stretched(layout, rates[first : first + len(layout.sparse.offset)])
        # a common scale is drawn without its coefficients, and needs no step that stretches these
        common = layout.terms.scaled if speed.argmax() == layout.terms.common else 0
        if np.count_nonzero(speed) == 1 and (first_coordinate[own] < common).all():
            continue
        # φ of the others stays, and so does Q where δ does
        live = np.arange(len(rates)) if rate else np.flatnonzero(rates)
        # Σ_t φ_t Q_t exp(rate_t s): terms of one rate are added up once a move
        distinct, kind = np.unique(rates[live], return_inverse=True)
        # φQ of a square that is stretched with its scale does not change: it is in no sum
        kind[np.isin(live, first + own)] = -1
        terms.append(live)
        speeds.append(speed)
        stretches.append(rate)
        # δ ← δ + (e^{rs} − 1) w stretches J directions by e^{rs}: its Jacobian is e^{rsJ}
        jacobians.append(rate * len(own))
        kinds.append(kind)
        exponents.append(distinct)
        spreads.append(csr_array(spread.T) @ csr_array(np.eye(len(layout.sparse.offset))[own]))
    M = len(speeds)
    width = max(map(len, exponents), default=0)
    spread = vstack([csr_array((0, len(layout.sparse.offset))), *spreads], format="csr")
    return Moves(
        speed=np.array(speeds).reshape(M, len(owner)),
        rate=np.array(stretches),
        jacobian=np.array(jacobians),
        term_at=np.cumsum([0, *map(len, terms)]),
        term=np.concatenate([np.zeros(0, np.int64), *terms]),
        exponent_of=np.concatenate([np.zeros(0, np.int64), *kinds]),
        exponent=np.array([np.pad(e, (0, width - len(e))) for e in exponents]).reshape(M, width),
        square_at=spread.indptr.astype(np.int64),
        square=spread.indices.astype(np.int64),
        share=spread.data,
    )


def directions(powers: csr_array, owner: Array) -> Iterator[Array]:
    """Yield speeds (P,) along which moves may help: of one element, and of one with a variable such
    that the terms that they share stay.

    powers (T, P): the exponents of all terms.
    """
    term, element, exponent = find(powers)
    # one of a variable's many elements moves little: they mix by themselves
    few = np.bincount(owner)[owner] <= MAX_ELEMENTS
    enters = np.zeros((powers.shape[0], owner.max(initial=-1) + 1))  # a variable in a term
    enters[term, owner[element]] = 1.0
    shared = np.zeros((len(owner), enters.shape[1]))  # terms of an element with a variable
    np.add.at(shared, element, enters[term])
    shared[np.arange(len(owner)), owner] = 0.0
    for i in np.flatnonzero(few & (np.bincount(element, minlength=len(owner)) > 1)):
        # v_i alone, with the coefficients whose scale it is
        alone = np.zeros(len(owner))
        alone[i] = 1.0
        yield alone
        # v_i with all of a variable w: e_i + e_w speed_w = 0 in each term that both enter, so
        # that these do not change; each term must have one element of w, and each element one
        # speed in its terms
        mine = np.zeros(powers.shape[0])
        mine[term[element == i]] = exponent[element == i]
        for v in np.flatnonzero(shared[i] > 1.0):
            of = (mine[term] != 0.0) & (owner[element] == v)
            # e_i + e_w speed_w = 0 solved for the speed of w's element in the term
            speeds = -mine[term[of]] / exponent[of]
            speed = alone.copy()
            speed[element[of]] = speeds
            if np.count_nonzero(of) == shared[i, v] and (speed[element[of]] == speeds).all():
                yield speed


def stretched(layout: Layout, rates: Array) -> tuple[float, Array, Array]:
    """Return how coefficients move along with the squares (m,) whose φ change at these rates: a
    rate, the squares (k,) that a move stretches by exp(rate s), and the direction (k, D) of δ for
    each.

    There are none where rates differ, where no directions are the squares' own, or where digits do
    not suffice.
    """
    own = np.flatnonzero(rates)
    none = 0.0, own[:0], np.zeros((0, layout.dim))
    if not 2 <= len(own) <= layout.dim or np.ptp(rates[own]) > 0.0 or loses_digits(layout):
        return none
    # δ + spread'x has the forms F δ + x: F spread' = I, the least such spread
    F = layout.sparse.forms[own].toarray()
    spread = np.linalg.lstsq(F @ F.T, F)[0]
    apart = np.allclose(F @ spread.T, np.eye(len(own)), rtol=0.0, atol=DIRECTION_TOLERANCE)
    return (-0.5 * float(rates[own[0]]), own, spread) if apart else none


def loses_digits(layout: Layout) -> bool:
    """Return whether a stretch changes the log density by less than its rounding.

    It does if means are many sds of a known noise from the rewards.
    """
    dense = layout.dense
    known = np.diff(dense.powers.indptr) == 0
    # a known noise keeps Σ c o² as large as the squares are, and its rounding hides what a move
    # changes
    far = np.abs(dense.coef[known]) @ dense.offset[known] ** 2
    return bool(far * FLOAT_EPSILON > NEGLIGIBLE_LOG_DENSITY)
