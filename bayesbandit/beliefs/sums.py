"""The sums of many rows, by matrix products, and regressions that learn from sums.

A regression depends on its rows through n, Σw, Σwr², X'Wr and X'WX, for cross-validation of each
fold. So rows are learned as fast as BLAS multiplies matrices, in any number of parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsyrk

from bayesbandit.kernels import bulk, linear, ridge_state
from bayesbandit.kernels.reward_moments import add_moments
from bayesbandit.runtime.compiling import interpreted, without

MOMENTS = slice(ridge_state.MEAN, ridge_state.TAIL + 1)
MANY = 1000  # an arm with at least so many new rows learns their sums, and factorises once
BLOCK = 8192  # a block of rows has at least so many,
EACH = 32  # and so many for each arm and fold,
ROOM = 2**22  # but at most so many numbers

Array = np.ndarray


@dataclass(frozen=True)
class Sums:
    """The sums of one arm's rows, by fold (F; one where λ is not chosen by cross-validation).

    n (F,): rows. weight: Σw of all rows. products (F, D + 1, D + 1): A'WA with A = (X − origin,
    r − shift). origin (D,): it ends with 0 if X ends with a column of 1. moments (4,): of the
    rewards (`kernels/reward_moments.py`).
    """

    n: Array
    weight: float
    products: Array
    shift: float
    origin: Array
    moments: Array

    def faded(self, share: float) -> Sums:
        """Return the sums after fading; share: the part of each row's weight that is left."""
        return replace(
            self,
            weight=share * self.weight,
            products=share * self.products,
            moments=self.moments * [1.0, share, 1.0, 1.0],
        )

    def about(self, origin: Array, shift: float) -> Array:
        """Return the products about another origin and shift; the last column of X must be 1."""
        move = np.eye(len(origin) + 1)
        move[-2] += np.append(self.origin - origin, self.shift - shift)
        return np.asarray(move.T @ self.products @ move)


def of_arm(arm: Array, settings: Array) -> Sums:
    """Return the sums that an arm's numbers hold (`kernels/ridge_state.py`)."""
    D, folds = _sizes(settings)
    products = np.empty((max(folds, 1), D + 1, D + 1))
    if folds:
        held = interpreted(ridge_state.folds_of)(arm, D, folds)
        n, rr, b, G = held[:, 0].copy(), held[:, 1], held[:, 2 : 2 + D], held[:, 2 + D :]
    else:
        n, rr = arm[[ridge_state.N]], arm[ridge_state.SUM_WRR]
        b, G = interpreted(ridge_state.b_of)(arm, D), _products_of(arm, D)
    products[:, :D, :D] = G.reshape(-1, D, D)
    products[:, :D, D] = products[:, D, :D] = b
    products[:, D, D] = rr
    weight, shift = arm[[ridge_state.SUM_W, ridge_state.SHIFT]].tolist()
    origin = _origin_of(arm, settings).copy()
    return Sums(n, weight, products, shift, origin, arm[MOMENTS].copy())


def add(arm: Array, settings: Array, sums: Sums) -> None:
    """Add the sums of rows that come after the arm's own. Rows go to the folds in turn."""
    D, folds = _sizes(settings)
    n, origin, products = int(arm[ridge_state.N]), _origin_of(arm, settings), sums.products
    if n == 0:
        origin[:] = sums.origin
        arm[ridge_state.SHIFT] = sums.shift
    shift = float(arm[ridge_state.SHIFT])
    if not (shift == sums.shift and np.array_equal(origin, sums.origin)):
        products = sums.about(origin, shift)
    if folds:
        held = interpreted(ridge_state.folds_of)(arm, D, folds)
        turn = (np.arange(folds) + n) % folds
        held[turn, 0] += sums.n
        held[turn, 1] += products[:, D, D]
        held[turn, 2 : 2 + D] += products[:, :D, D]
        held[turn, 2 + D :] += products[:, :D, :D].reshape(folds, -1)
    total = products.sum(axis=0)
    interpreted(add_moments)(arm, arm[ridge_state.SUM_W], sums.weight, *sums.moments)
    arm[ridge_state.N] += sums.n.sum()
    arm[ridge_state.SUM_W] += sums.weight
    arm[ridge_state.SUM_WRR] += total[D, D]
    interpreted(ridge_state.b_of)(arm, D)[:] += total[:D, D]
    _products_of(arm, D)[:] += total[:D, :D]


def solve(arm: Array, settings: Array, always: bool) -> bool:
    """Set the arm's posterior from its sums, and return whether the factorisation was accurate.

    always: use it even if it is not, with a λ that is in effect larger
    (`kernels/algebra/rank_one.py`).
    """
    solve_sums = without(bulk.solve_sums, *linear.unreached(settings))
    return bool(solve_sums(arm, settings, always))


def learn(
    arms: Array, settings: Array, x: Array, arm: Array, reward: Array, weight: Array
) -> Array:
    """Learn the rows of each arm that has many, and return a mask (n,) of the rows that are left.

    x (n, d), arm numbers, rewards and weights (n,). λ and the average of normalised weights are
    updated at the end. If an arm's factorisation would not be accurate, its rows are left.
    """
    count = np.bincount(arm, minlength=len(arms))
    many, learned = np.flatnonzero(count >= MANY), np.zeros(len(arms), dtype=np.bool_)
    if many.size:
        for k, sums in zip(
            many, _of_rows(many, arms, settings, x, arm, reward, weight), strict=True
        ):
            before = arms[k].copy()
            add(arms[k], settings, sums)
            learned[k] = solve(arms[k], settings, always=False)
            if not learned[k]:
                arms[k] = before
    return ~learned[arm]


def _of_rows(
    which: Array, arms: Array, settings: Array, x: Array, arm: Array, reward: Array, weight: Array
) -> list[Sums]:
    """Return the sums of the rows of each of `which` arms, computed in blocks of rows."""
    D, folds = _sizes(settings)
    M, F = len(which), max(folds, 1)
    place = np.full(len(arms), -1)
    place[which] = np.arange(M)
    shift = arms[which, ridge_state.SHIFT]
    origin = np.array([_origin_of(arms[k], settings) for k in which])
    if _is_shifted(settings):
        first = np.empty(len(arms), dtype=np.int64)
        first[arm[::-1]] = np.arange(len(arm))[::-1]  # the last one assigned stays
        for k in np.flatnonzero(arms[which, ridge_state.N] == 0.0):
            row = first[which[k]]
            shift[k], origin[k, : D - 1] = reward[row], x[row]
    n, products = np.zeros((M, F)), np.zeros((M, F, D + 1, D + 1))
    heads = np.zeros((M, ridge_state.HEAD))
    size = max(1, min(max(BLOCK, EACH * M * F), ROOM // (D + 1), len(x)))
    out, ends, seen = np.empty((size, D + 1)), *np.zeros((2, M * F + 1), dtype=np.int64)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        rows = [np.ascontiguousarray(values[part]) for values in (x, reward, weight)]
        bulk.stack(*rows, place[arm[part]], shift, origin, seen, F, out, ends, heads)
        counts = np.diff(ends).reshape(M, F)
        n += counts
        for k, f in np.argwhere(counts):
            g = k * F + f
            products[k, f] += dsyrk(1.0, out[ends[g] : ends[g + 1]].T)
    products += np.triu(products, 1).swapaxes(2, 3)  # BLAS fills the upper triangle
    total = heads[:, ridge_state.SUM_W].tolist()
    moments = heads[:, MOMENTS]
    parts = zip(n, total, products, shift.tolist(), origin, moments, strict=True)
    return [Sums(*sums) for sums in parts]


def _sizes(settings: Array) -> tuple[int, int]:
    """Return D, the columns of the design, and the number of folds."""
    return int(settings[ridge_state.D_]), int(settings[ridge_state.FOLDS])


def _is_shifted(settings: Array) -> bool:
    return bool(interpreted(ridge_state.is_shifted)(settings))


def _origin_of(arm: Array, settings: Array) -> Array:
    """Return the origin of an arm's contexts (D,): a view of its numbers, or 0 if it has none."""
    D, _ = _sizes(settings)
    if not _is_shifted(settings):
        return np.zeros(D)
    return np.asarray(interpreted(ridge_state.origin_of)(arm, D))


def _products_of(arm: Array, D: int) -> Array:
    """Return X'WX (D, D), a view of an arm's numbers."""
    flat = interpreted(ridge_state.G_of)(arm, D)
    return interpreted(ridge_state.matrix)(flat, D)[:, :D]
