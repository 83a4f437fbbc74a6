"""The joint moves that help a Gibbs sampler of a layout to mix: `kernels.gibbs.orbits.Moves`.

A variable with few elements, such as a noise scale or a common prior scale, moves together

- with all elements of another variable, so that their common terms do not change (σ² with the
  precisions of Student-t noise: parameter expansion, Liu and Wu 1999);
- with the coefficients whose prior scale it is, all stretched about their prior means. This is the
  step of the non-centred parametrisation; a sweep takes the centred one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bayesbandit.inference.gibbs.layout import EPSILON, Layout
from bayesbandit.kernels.gibbs.orbits import Moves

MAX_ELEMENTS = 32  # of a variable, for each of them to be tried
MAX_MOVES = 40
LOST = 1e-4  # of a log density, by rounding, that changes no step

Array = np.ndarray


class Move(NamedTuple):
    """One move of P elements, T terms and m sparse squares, in the words of `orbits.Moves`."""

    speed: Array  # (P,)
    rates: Array  # (T,)
    stretch: float
    coordinate: Array  # (m,) −1 where a square is not the move's own
    inverse: Array  # (m,)


def moves(layout: Layout, owner: Array) -> Moves:
    """Return the moves of a layout.

    owner (P,): the number of the variable that each element belongs to.
    """
    found: list[Move] = []
    for speed in directions(layout, owner):
        for move in (shift(layout, speed), stretch(layout, speed)):
            if move is not None and len(found) < MAX_MOVES:
                found.append(move)
    m = len(layout.terms.offset)
    own = [np.count_nonzero(move.coordinate >= 0) for move in found]
    kinds = [kinds_of(move, len(layout.terms.groups) + len(layout.terms.rows)) for move in found]
    return Moves(
        speed=stacked([move.speed for move in found], (len(owner),)),
        kind=stacked([k.kind for k in kinds], (len(layout.terms.coef),)).astype(np.int16),
        rate=stacked([k.rate for k in kinds], (0,)),
        slot=stacked([k.slot for k in kinds], (0, 3)).astype(np.int64),
        exponent=stacked([k.exponent for k in kinds], (0,)),
        stretch=np.array([move.stretch for move in found]),
        jacobian=np.array([move.stretch * p for move, p in zip(found, own, strict=True)]),
        coordinate=stacked([move.coordinate for move in found], (m,)).astype(np.int64),
        inverse=stacked([move.inverse for move in found], (m,)),
    )


def stacked(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Return arrays of any lengths, 0 behind the shorter ones; of none, an empty (0, *shape)."""
    if not parts:
        return np.zeros((0, *shape))
    out = np.zeros((len(parts), max(map(len, parts)), *shape[1:]))
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out


class Kinds(NamedTuple):
    """The terms of a move by how φ and Q change along it, as in `orbits.Moves`."""

    kind: Array  # (T,)
    rate: Array  # (K,)
    slot: Array  # (K, 3)
    exponent: Array  # (E,)


def kinds_of(move: Move, first: int) -> Kinds:
    """Return the kinds of terms of a move; its own squares are one, whose φ Q stays.

    first: the number of terms before the sparse squares.
    """
    rate, kind = np.unique(np.round(move.rates, 12), return_inverse=True)
    exponents = rate[:, None] + move.stretch * np.arange(3.0)
    kind[first + np.flatnonzero(move.coordinate >= 0)] = len(rate)
    rate = np.append(rate, -2.0 * move.stretch)
    exponents = np.vstack([exponents, np.zeros(3)])
    distinct, slot = np.unique(np.round(exponents, 12), return_inverse=True)
    return Kinds(kind, rate, slot.reshape(exponents.shape), distinct)


def directions(layout: Layout, owner: Array) -> Iterator[Array]:
    """Yield speeds (P,) along which moves may help: of one element, and of one with a variable such
    that the terms that they share stay."""
    element, exponent = layout.terms.element, layout.terms.exponent
    sizes = np.bincount(owner)
    for i in np.flatnonzero(sizes[owner] <= MAX_ELEMENTS):
        mine = (exponent * (element == i)).sum(axis=1)  # log φ ∝ mine · u_i
        if np.count_nonzero(mine) < 2:
            continue
        alone = np.zeros(len(owner))
        alone[i] = 1.0
        yield alone
        shared = (mine != 0.0)[:, None] & (exponent != 0.0) & (element != i)
        for v in np.unique(owner[element[shared]]):
            term, place = np.nonzero(shared & (owner[element] == v))
            others = element[term, place]
            once = len(np.unique(term)) == len(term) == len(np.unique(others))
            if v != owner[i] and once and len(term) > 1:
                speed = alone.copy()
                speed[others] = -mine[term] / exponent[term, place]
                yield speed


def rates_of(layout: Layout, speed: Array) -> Array:
    """Return how fast log φ of each term grows, (T,)."""
    return np.asarray((layout.terms.exponent * speed[layout.terms.element]).sum(axis=1))


def shift(layout: Layout, speed: Array) -> Move | None:
    """Return the move of several elements without coefficients: a sweep draws one by itself."""
    if np.count_nonzero(speed) < 2:
        return None
    m = len(layout.terms.offset)
    return Move(speed, rates_of(layout, speed), 0.0, np.full(m, -1), np.zeros(m))


def stretch(layout: Layout, speed: Array) -> Move | None:
    """Return the move with the coefficients of the sparse squares whose φ changes; None if rates
    differ, if no coordinate of a square is its own, or where digits do not suffice."""
    t = layout.terms
    rates = rates_of(layout, speed)
    first = len(t.rows) + len(t.groups)
    m = len(t.offset)
    own = np.flatnonzero(np.abs(rates[first : first + m]) > 1e-12)
    if len(own) < 2 or np.ptp(rates[first + own]) > 0.0 or loses_digits(layout):
        return None
    form, coef = t.form[own], t.form_coef[own]
    used = np.bincount(form[coef != 0.0], minlength=layout.dim)
    private = np.abs(coef) * (used[form] == 1)  # no other square of the move has the coordinate
    best = private.argmax(axis=1)
    rows = np.arange(len(own))
    if not (private[rows, best] > 0.0).all():
        return None
    coordinate = np.full(m, -1)
    inverse = np.zeros(m)
    coordinate[own] = form[rows, best]
    inverse[own] = 1.0 / coef[rows, best]
    return Move(speed, rates, -0.5 * float(rates[first + own[0]]), coordinate, inverse)


def loses_digits(layout: Layout) -> bool:
    """Return whether a stretch changes the log density by less than its rounding.

    It does if means are many sds of a known noise from the rewards.
    """
    powers = layout.dense.powers
    known = (powers.exponent == 0.0).all(axis=0)
    far = np.abs(powers.coef[known]) @ layout.dense.offsets[known] ** 2
    return bool(far * EPSILON > LOST)
