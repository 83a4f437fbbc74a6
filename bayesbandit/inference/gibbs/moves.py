"""The joint moves that help a Gibbs sampler of a layout to mix: `kernels.gibbs.orbits.Moves`.

A variable with few elements, such as a noise scale or a common prior scale, moves together with the
coefficients whose prior scale it is, all stretched about their prior means: those of a hierarchy,
or the steps of a random walk.
"""

from __future__ import annotations

import numpy as np

from bayesbandit.inference.gibbs.layout import FLOAT_EPSILON, Layout
from bayesbandit.kernels.gibbs.orbits import Moves

MAX_ELEMENTS = 32  # of a variable, for each of them to be tried
NEGLIGIBLE_LOG_DENSITY = 1e-4  # of a log density, by rounding, that changes no step
DIRECTION_TOLERANCE = 1e-6  # of a direction, whose forms are to be those of the squares


def moves(layout: Layout, owner: np.ndarray) -> Moves:
    """Return the moves of a layout.

    owner (P,): the number of the variable that each element belongs to.
    """
    t, D = layout.terms, layout.dim
    first = len(t.rows) + len(t.groups)
    here = slice(first, first + len(t.offset))
    forms = layout.sparse.dense(D)
    found: list[tuple[int, float, np.ndarray, np.ndarray]] = []
    few = () if loses_digits(layout) else np.flatnonzero(np.bincount(owner)[owner] <= MAX_ELEMENTS)
    for i in few:
        rates = (t.exponent[here] * (t.element[here] == i)).sum(axis=1)
        own = np.flatnonzero(rates)
        if 2 <= len(own) <= D and np.ptp(rates[own]) == 0.0:
            F = forms[own]
            spread = np.linalg.lstsq(F @ F.T, F)[0]
            if np.allclose(F @ spread.T, np.eye(len(own)), rtol=0.0, atol=DIRECTION_TOLERANCE):
                found.append((int(i), -0.5 * float(rates[own[0]]), own, spread))
    k = max((len(own) for _, _, own, _ in found), default=0)
    whole = Moves(
        element=np.array([i for i, *_ in found], dtype=np.int64),
        stretch=np.array([r for _, r, *_ in found], dtype=np.float64),
        own=np.full((len(found), k), -1),
        spread=np.zeros((len(found), k, D)),
    )
    for m, (_, _, own, spread) in enumerate(found):
        whole.own[m, : len(own)] = own
        whole.spread[m, : len(own)] = spread
    return whole


def loses_digits(layout: Layout) -> bool:
    """Return whether a stretch changes the log density by less than its rounding.

    It does if means are many sds of a known noise from the rewards.
    """
    powers = layout.dense.powers
    known = (powers.exponent == 0.0).all(axis=0)
    far = np.abs(powers.coef[known]) @ layout.dense.offsets[known] ** 2
    return bool(far * FLOAT_EPSILON > NEGLIGIBLE_LOG_DENSITY)
