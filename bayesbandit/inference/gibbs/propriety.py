"""Proves from rows at hand that a posterior is no distribution: noise that may vanish.

Where squares (fδ − o)² v^−e are all 0 at one δ, the log density is flat along a ray u + t d,
u = log v, on which v vanishes, but for what is linear in u. δ then has a room of exp(−½ Σ ρ t), ρ
the rates of as many independent squares as there are, the fastest first, so that the integral is
infinite if

    a·d ≥ ½ Σ ρ.

So rewards that some means fit exactly, under noise of any scale whose prior does not vanish at 0:
n of them, of rank r, have a density of σ^−n σ^r. Where noise has tails of σ^ν, as Student-t noise,
most rewards that are fitted exactly are enough: each of the m others costs σ^ν. What is checked is
enough for an infinite integral, and not necessary: a posterior that passes may still be improper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from bayesbandit.inference.gibbs.layout import Array, Block, Layout, part_of
from bayesbandit.inference.gibbs.moves import Candidate
from bayesbandit.kernels.gibbs.monomials import FURTHEST

MANY = 64  # elements of which each is tried alone
FEW = 5  # elements that are tried together
PASSES = 5  # over what holds a ray up
TRIES = 20  # weighted least squares, by which most rewards are fitted exactly
LEAST = 1e-9  # rates are sums of a few declared exponents
ROUNDING = 32.0 * np.finfo(np.float64).eps  # of a residual, relative to what it is a difference of


def vanishing(layout: Layout, joint: Iterable[Candidate]) -> Array:
    """Return elements that together take infinite mass to 0 or to ∞; none if that is not proved.

    joint: moves of several elements that leave some of their terms unchanged.
    """
    for ray in rays(layout, joint):
        for tried in (ray, but_for_some(layout, ray)):
            free = None if tried is None else eased(layout, tried)
            if free is not None and improper(layout, free):
                return np.flatnonzero(free)
    return np.zeros(0, dtype=np.int64)


def loses_digits(layout: Layout, theta: Array, u: Array) -> bool:
    """Return whether at θ (D,) and u (P,) more rows than D have noise below the rounding of their
    means.

    The noise may go far without going to 0, if its prior vanishes there, as a log-normal prior
    does.
    """
    forms, offsets, powers = layout.dense.forms, layout.dense.offsets, layout.dense.powers
    size = np.abs(forms) @ np.abs(theta) + np.abs(offsets + forms @ layout.centre)
    with np.errstate(divide="ignore"):
        precision = np.log(-2.0 * powers.coef) + (powers.exponent * u[powers.element]).sum(axis=0)
        lost = precision + 2.0 * np.log(np.finfo(np.float64).eps * size) > 0.0
    furthest = np.abs(u) >= FURTHEST
    lost |= (powers.exponent * furthest[powers.element]).any(axis=0)
    return bool(lost.sum() > layout.dim)


def rays(layout: Layout, joint: Iterable[Candidate]) -> Iterator[Array]:
    """Yield directions d (P,) of u: of each element that may go to 0 or ∞, of several elements
    together, and of joint moves.

    Elements that go together have speeds at which their squares grow equally fast.
    """
    t, P, pure = layout.terms, len(layout.terms.linear), layout.pure
    single: list[Array] = []
    alone = (pure.coef < 0.0) & ((pure.exponent != 0.0).sum(axis=0) == 1)
    for sign, wall in ((-1.0, t.low), (1.0, t.high)):
        stopped = np.zeros(P, dtype=np.bool_)
        stopped[pure.element[:, alone][sign * pure.exponent[:, alone] > 0.0]] = True
        free = ~stopped & ~np.isfinite(wall) & (t.square == 0.0) & (sign * t.linear > LEAST)
        for i in np.flatnonzero(free)[:MANY]:
            ray = np.zeros(P)
            ray[i] = sign
            yield ray
            fast = max(rates(b, ray).max(initial=0.0) for b in (layout.dense.powers, layout.sparse))
            if fast > 0.0 and len(single) < FEW:
                single.append(ray / fast)
    for size in range(2, len(single) + 1):
        yield from (np.sum(some, axis=0) for some in combinations(single, size))
    for speed, lifted in joint:
        if not lifted:
            yield from (-speed, speed)


def eased(layout: Layout, ray: Array) -> Array | None:
    """Return the ray, extended to other elements of the monomials that would stop it.

    These monomials then stay as they are: the auxiliary variable of a half-Cauchy scale is such an
    element. None if a monomial has no other element.
    """
    t, pure, moved = layout.terms, layout.pure, ray.copy()
    for _ in range(PASSES):
        held = np.flatnonzero(rates(pure, moved) > LEAST * np.abs(moved).max())
        if not held.size:
            return moved
        for k in held:
            element, exponent = pure.element[:, k], pure.exponent[:, k]
            free = np.flatnonzero((exponent != 0.0) & (moved[element] == 0.0))
            if not free.size:
                return None
            speed = -float(exponent @ moved[element]) / exponent[free]
            best = int(np.argmax(t.linear[element[free]] * speed))
            moved[element[free[best]]] = speed[best]
    return None


def improper(layout: Layout, ray: Array) -> bool:
    """Return whether the integral along a ray is proved to be infinite."""
    t, slack = layout.terms, LEAST * np.abs(ray).max()
    walled = ((ray < 0.0) & np.isfinite(t.low)) | ((ray > 0.0) & np.isfinite(t.high))
    if walled.any() or (t.square[ray != 0.0] != 0.0).any():
        return False
    if (rates(layout.pure, ray) > slack).any():
        return False
    dense_rates, sparse_rates = rates(layout.dense.powers, ray), rates(layout.sparse, ray)
    gain = 2.0 * float(t.linear @ ray)
    if not gain >= max(dense_rates.max(initial=0.0), sparse_rates.max(initial=0.0)) - slack:
        return False
    fast = np.flatnonzero(sparse_rates > slack)
    if gain + slack < own_coordinates(layout, fast, sparse_rates):
        return False
    if not gain > slack:
        return False
    some = dense_rates > slack
    forms, offsets = squares(layout, some, fast)
    if not fits(forms, offsets, layout.centre):
        return False
    steep = np.concatenate([dense_rates[some], sparse_rates[fast]])
    return gain >= room(forms, steep) - slack


def but_for_some(layout: Layout, ray: Array) -> Array | None:
    """Return the ray, extended so that the squares that means fit worst stay as they are.

    Each of these squares is held by an element that no other square has. None if there are no such
    elements, or if they cost more than the others gain.
    """
    t = layout.terms
    rate = np.concatenate([rates(layout.dense.powers, ray), rates(layout.sparse, ray)])
    which = np.flatnonzero(rate > LEAST * np.abs(ray).max())
    element, exponent = own_elements(layout, ray)
    element, exponent = element[which], exponent[which]
    speed = np.where(element >= 0, -rate[which] / exponent, 0.0)
    cost = -t.linear[element] * speed
    if not (element >= 0).any():
        return None
    smallest = float(cost[element >= 0].min())
    most = (
        int(min(max(t.linear @ ray, 0.0) / smallest, len(which))) if smallest > 0.0 else len(which)
    )
    n = len(layout.dense.offsets)
    forms, offsets = squares(layout, which[which < n], which[which >= n] - n)
    left = ~mostly_fitted(forms, offsets, len(which) - most)
    if not 0 < left.sum() <= most or (element[left] < 0).any():
        return None
    moved = ray.copy()
    moved[element[left]] = speed[left]
    return moved


def own_elements(layout: Layout, ray: Array) -> tuple[Array, Array]:
    """Return for each square, dense and sparse, an element of u that the ray does not move and no
    other square has, and its exponent in the square.

    The element is −1 if there is none.
    """
    blocks = layout.dense.powers, layout.sparse
    count, parts = np.zeros(len(ray)), []
    for powers in blocks:
        np.add.at(count, powers.element[powers.exponent != 0.0], 1.0)
    for powers in blocks:
        elements, exponents = np.full(powers.coef.size, -1), np.ones(powers.coef.size)
        for element, exponent in zip(powers.element, powers.exponent, strict=True):
            free = (exponent != 0.0) & (count[element] == 1.0) & (ray[element] == 0.0)
            elements = np.where(free, element, elements)
            exponents = np.where(free, exponent, exponents)
        parts.append((elements, exponents))
    (a, b), (c, d) = parts
    return np.concatenate([a, c]), np.concatenate([b, d])


def mostly_fitted(forms: Array, offsets: Array, enough: int) -> Array:
    """Return which forms δ = offsets hold, to rounding, at the minimum of Σ |forms δ − offsets|.

    By iterated weighted least squares. Return none, (N,) of False, as soon as fewer than `enough`
    seem to hold.
    """
    N, D = forms.shape
    weight, first, gap = np.ones(N), np.inf, np.abs(offsets)
    enough = max(enough, D + 1)
    if enough > N:
        return np.zeros(N, dtype=np.bool_)
    for k in range(TRIES):
        F = forms * weight[:, None]
        G = F.T @ forms
        G[np.diag_indices(D)] += 1e-14 * max(np.trace(G), 1e-300)
        gap = np.abs(forms @ np.linalg.solve(G, F.T @ offsets) - offsets)
        far = float(np.partition(gap, enough - 1)[enough - 1])
        first = far if k == 0 else first
        if far <= 1e-12 * first or (k == 5 and far > 0.1 * first):
            break
        weight = 1.0 / np.maximum(gap, 0.1 * far)
    near = gap <= 1e-6 * max(float(gap.max()), 1e-300)
    if near.sum() < enough:
        return np.zeros(N, dtype=np.bool_)
    delta = np.linalg.lstsq(forms[near], offsets[near])[0]
    return np.abs(forms @ delta - offsets) <= 1e-12 * (
        np.abs(forms) @ np.abs(delta) + np.abs(offsets)
    )


def rates(powers: Block, ray: Array) -> Array:
    """Return how fast log φ of each term rises along a ray, (N,); 0 if φ pushes nothing away."""
    along = np.asarray((powers.exponent * ray[powers.element]).sum(axis=0))
    return np.where(powers.coef < 0.0, along, 0.0)


def own_coordinates(layout: Layout, fast: Array, rate: Array) -> float:
    """Return a lower bound of `room`.

    Forms with a coordinate that no other form has are independent, and so are forms of single
    coordinates.
    """
    t = layout.terms
    which = part_of(t.form_at)
    mine = np.isin(which, fast)
    form, coordinate = which[mine], t.form[mine]
    counts = np.bincount(coordinate, minlength=layout.dim)
    private = np.unique(form[counts[coordinate] == 1])
    single = np.diff(t.form_at)[form] == 1
    best = np.zeros(layout.dim)
    np.maximum.at(best, coordinate[single], rate[form[single]])
    return max(float(rate[private].sum()), float(best.sum()))


def squares(layout: Layout, dense: Array, sparse: Array) -> tuple[Array, Array]:
    """Return forms (N, D) and offsets (N,) of some dense squares, and then of some sparse ones."""
    t, forms = layout.terms, np.zeros((len(sparse), layout.dim))
    for k, i in enumerate(sparse):
        part = slice(t.form_at[i], t.form_at[i + 1])
        np.add.at(forms[k], t.form[part], t.form_coef[part])
    offsets = np.concatenate([layout.dense.offsets[dense], t.offset[sparse]])
    return np.vstack([layout.dense.forms[dense], forms]), offsets


def fits(forms: Array, offsets: Array, centre: Array) -> bool:
    """Return whether forms δ = offsets has a solution, to rounding. A few forms are tried first."""
    few = 2 * forms.shape[1] + 10
    for part in (slice(few), slice(None)):
        F, c = forms[part], offsets[part]
        delta = np.linalg.lstsq(F, c)[0] if c.any() else np.zeros(F.shape[1])
        size = np.abs(F) @ (np.abs(centre) + np.abs(delta)) + np.abs(c + F @ centre)
        if not (np.abs(F @ delta - c) <= ROUNDING * F.shape[1] * size).all():
            return False
        if len(c) == len(offsets):
            break
    return True


def room(forms: Array, rate: Array) -> float:
    """Return the sum of the rates of independent forms, as many as there are, the fastest first."""
    total, rank = 0.0, 0
    for level in np.unique(rate)[::-1]:
        more = int(np.linalg.matrix_rank(forms[rate >= level]))
        total, rank = total + float(level) * (more - rank), more
    return total
