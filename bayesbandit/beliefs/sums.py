"""Many rows of an arm at once, by matrix products, and arms that become one.

An arm depends on its rows through n, Σw, the moments of the rewards, and the root of its regression
or, where λ or the weights' divisor changes, Σwr², X'Wr and X'WX, for cross-validation of each fold.
So rows are learned as fast as BLAS multiplies matrices, in any number of parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.blas import dsyrk

from bayesbandit.kernels import bulk, linear
from bayesbandit.kernels.arm import (
    HEAD,
    Arm,
    is_shifted,
    keeps_sums,
    named,
    stride,
    sums_of,
    view,
)
from bayesbandit.kernels.reward_moments import add_moments
from bayesbandit.runtime.compiling import interpreted, without

MIN_ROWS_TO_SUM = 1000  # an arm with at least so many new rows learns them together
MIN_BLOCK = 8192  # a block of rows has at least so many,
MIN_ROWS_OF_EACH = 32  # and so many for each arm and fold,
MAX_NUMBERS = 2**22  # but at most so many numbers
MIN_PIVOT = 1e-5  # the least pivot, as a share of its diagonal, of a product that is factorised

Array = np.ndarray


def learn(
    arms: Array, settings: Array, x: Array, arm: Array, reward: Array, weight: Array
) -> Array:
    """Learn the rows of each arm that has many, and return a mask (n,) of the rows that are left.

    x (n, d), arm numbers, rewards and weights (n,). λ and the average of normalised weights are
    updated at the end.
    """
    count = np.bincount(arm, minlength=len(arms))
    many = np.flatnonzero(count >= MIN_ROWS_TO_SUM)
    if not many.size:
        return np.ones(len(arm), dtype=np.bool_)
    own = [view(arms[k], _sizes(settings)[0]) for k in many]
    D, folds = _sizes(settings)
    if interpreted(is_shifted)(settings):
        first = np.empty(len(arms), dtype=np.int64)
        first[arm[::-1]] = np.arange(len(arm))[::-1]  # the last one assigned stays
        for k, one in zip(many, own, strict=True):
            if one.head.n == 0.0:
                one.origin[: D - 1], one.head.shift = x[first[k]], reward[first[k]]
    new = np.zeros(len(many), HEAD)
    F = max(folds, 1)
    n = np.zeros((len(many), F))
    products = np.zeros((len(many), F, D + 1, D + 1))
    for i, f, A in _groups(many, own, F, new, x, arm, reward, weight):
        n[i, f] += len(A)
        products[i, f] += dsyrk(1.0, A.T)  # BLAS fills the upper triangle
    products += np.triu(products, 1).swapaxes(2, 3)
    for i, one in enumerate(own):
        mine = arms[many[i]]
        if _keeps_sums(settings):
            _add_products(one, settings, n[i], products[i])
        elif (R := root_of(products[i, 0])) is not None:
            _add_root(mine, settings, R)
        else:
            spare = np.zeros(1, HEAD)
            for _, _, A in _groups(many[[i]], [one], F, spare, x, arm, reward, weight):
                _add_root(mine, settings, np.linalg.qr(A, mode="r"))
        _count(one.head, n[i].sum(), new[i])
        renew(mine, settings)
    return count[arm] < MIN_ROWS_TO_SUM


def merge(mine: Array, its: Array, settings: Array) -> None:
    """Add the rounds of another arm to those of an arm, as if they had come next, and its prior to
    none: it is in both."""
    a, b = view(mine, _sizes(settings)[0]), view(its, _sizes(settings)[0])
    if a.head.n == 0.0 or b.head.n == 0.0:
        if b.head.n > 0.0:
            mine[:] = its
        return
    step = b.origin - a.origin
    shift = float(b.head.shift - a.head.shift)
    moved = bool(shift or step.any())
    if _keeps_sums(settings):
        n, products = _products_of(b, settings)
        if moved:
            move = np.eye(len(step) + 1)
            move[-2] += np.append(step, shift)
            products = move.T @ products @ move
        _add_products(a, settings, n, products)
    else:
        prior = np.empty_like(mine)
        interpreted(linear.initialise)(prior, settings)
        p = view(prior, _sizes(settings)[0])
        rows = np.sqrt(b.d)[:, None] * np.column_stack([b.U, b.t])
        if moved:  # c of rewards less b's shift about b's origin, by c of a's
            rows += np.outer(rows[:, -2], np.append(step, shift))
            rows = np.linalg.qr(rows, mode="r")
        _add_root(mine, settings, rows)
        _add_root(mine, settings, np.column_stack([p.U, p.t]), p.d, -1.0)
        a.head.loss = max(a.head.loss + b.head.loss, 0.0)
    a.head.left += b.head.left
    _count(a.head, b.head.n, b.head)
    renew(mine, settings)


def renew(arm: Array, settings: Array) -> None:
    """Set λ, the weights' divisor and the noise of an arm, from all that it has learned."""
    kernel = without(bulk.renew, *linear.unreached(settings))
    kernel(arm, settings, _keeps_sums(settings))


def root_of(S: Array) -> Array | None:
    """Return R, upper triangular, with R'R = S; None if pivots cancel, and S has lost digits."""
    try:
        R = np.asarray(cholesky(S, check_finite=False))
    except LinAlgError:
        return None
    return R if (np.diag(R) ** 2 >= MIN_PIVOT * np.diag(S)).all() else None


def _add_root(
    arm: Array, settings: Array, rows: Array, d: Array | None = None, weight: float = 1.0
) -> None:
    """Add rows [U t] (n, D + 1), each with weight d (n,; None: 1), to an arm's root and loss."""
    D = _sizes(settings)[0]
    U = np.zeros((min(len(rows), D), interpreted(stride)(D)))
    U[:, :D] = rows[:D, :D]
    t = np.ascontiguousarray(rows[:D, D])
    add_root = without(bulk.add_root, *linear.unreached(settings))
    add_root(arm, settings, np.ones(len(U)) if d is None else d, t, U.ravel(), weight)
    if len(rows) > D:
        view(arm, _sizes(settings)[0]).head.loss += rows[D, D] ** 2


def _count(head: Any, n: float, new: Any) -> None:
    """Count n rows, and add Σw and the moments of rewards in another head."""
    moments = new["mean_r"], new["spread"], new["skew"], new["tail"]
    interpreted(add_moments)(head, head.sum_w, new["sum_w"], *moments)
    head.n += n
    head.sum_w += new["sum_w"]


def _products_of(arm: Arm, settings: Array) -> tuple[Array, Array]:
    """Return the rows (F,) and the products A'WA (F, D + 1, D + 1) with A = (X, r) of each fold, or
    of all rows (F = 1)."""
    D, folds = _sizes(settings)
    sums = interpreted(sums_of)(arm, folds)
    products = np.empty((max(folds, 1), D + 1, D + 1))
    n = np.array([arm.head.n])
    rr = arm.head.sum_wrr
    b = sums.b
    G = sums.G.reshape(D, -1)[:, :D]
    if folds:
        n, rr, b, G = np.split(sums.folds, [1, 2, 2 + D], axis=1)
    products[:, :D, :D] = G.reshape(-1, D, D)
    products[:, :D, D] = products[:, D, :D] = b
    products[:, D, D] = np.ravel(rr)
    return n.ravel(), products


def _add_products(arm: Arm, settings: Array, n: Array, products: Array) -> None:
    """Add products of rows that come after the arm's own: see `_products_of`. Rows go to the folds
    in turn."""
    D, folds = _sizes(settings)
    sums = interpreted(sums_of)(arm, folds)
    total = products.sum(axis=0)
    if folds:
        turn = (np.arange(folds) + int(arm.head.n)) % folds
        parts = n, products[:, D, D], products[:, :D, D], products[:, :D, :D].reshape(folds, -1)
        sums.folds[turn] += np.column_stack(parts)
    arm.head.sum_wrr += total[D, D]
    sums.b[:] += total[:D, D]
    sums.G.reshape(D, -1)[:, :D] += total[:D, :D]


def _groups(
    which: Array, own: list[Arm], F: int, new: Array,
    x: Array, arm: Array, reward: Array, weight: Array,
) -> Iterator[tuple[int, int, Array]]:  # fmt: skip
    """Give the rows A = √w (x − origin, 1, r − shift) of each of `which` arms and F folds, block
    after block. Σw and the moments of the rewards are added to `new` (K,)."""
    K = len(which)
    D = len(own[0].d)
    place = np.full(arm.max() + 1, -1)
    place[which] = np.arange(K)
    shift = np.array([one.head.shift for one in own])
    origin = np.array([one.origin for one in own])
    seen = np.zeros(K, dtype=np.int64)
    size = max(1, min(max(MIN_BLOCK, MIN_ROWS_OF_EACH * K * F), MAX_NUMBERS // (D + 1), len(x)))
    out = np.empty((size, D + 1))
    ends = np.zeros(K * F + 1, dtype=np.int64)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        rows = [np.ascontiguousarray(values[part]) for values in (x, reward, weight)]
        bulk.stack(*rows, place[arm[part]], shift, origin, seen, F, out, ends, new)
        for g in np.flatnonzero(np.diff(ends)):
            yield *divmod(int(g), F), out[ends[g] : ends[g + 1]]


def _sizes(settings: Array) -> tuple[int, int]:
    """Return D, the columns of the design, and the number of folds."""
    setting = interpreted(named)(settings)
    return int(setting.columns), int(setting.folds)


def _keeps_sums(settings: Array) -> bool:
    return bool(interpreted(keeps_sums)(interpreted(named)(settings)))
