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

from bayesbandit.checks import Array
from bayesbandit.kernels import bulk, linear
from bayesbandit.kernels.arm import (
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
MAX_NUMBERS = 2**18  # of a block of rows
MIN_PIVOT = 1e-5  # the least pivot, as a share of its diagonal, of a product that is factorised


def learn(
    arms: Array, settings: Array, x: Array, arm: Array, reward: Array, weight: Array
) -> Array:
    """Learn the rows of arms with MIN_ROWS_TO_SUM of them or more; return a mask (n,) of the
    others, which are not learned.

    x (n, d), arm numbers, rewards and weights (n,). λ and the average of normalised weights are
    updated at the end.
    """
    count = np.bincount(arm, minlength=len(arms))
    if count.max() < MIN_ROWS_TO_SUM:
        return np.ones(len(arm), dtype=np.bool_)
    ends = np.cumsum(count)
    order = np.argsort(arm, kind="stable")
    for k in np.flatnonzero(count >= MIN_ROWS_TO_SUM):
        mine = order[ends[k] - count[k] : ends[k]]
        learn_arm(arms[k], settings, x[mine], reward[mine], weight[mine])
    return count[arm] < MIN_ROWS_TO_SUM


def learn_arm(numbers: Array, settings: Array, x: Array, reward: Array, weight: Array) -> None:
    """Learn rows of one arm: x (n, d), rewards and weights (n,)."""
    D, folds = _sizes(settings)
    arm = view(numbers, D)
    if interpreted(is_shifted)(settings) and arm.head.n == 0.0:
        arm.origin[: D - 1] = x[0]
        arm.head.shift = reward[0]
    F = max(folds, 1)
    products = np.zeros((F, D + 1, D + 1))
    start = 0
    for A in _blocks(arm, x, reward, weight):
        for f in range(F):
            fold = A[(f - start) % F :: F]
            products[f] += fold.T @ fold
        start += len(A)
    if _keeps_sums(settings):
        n = np.bincount(np.arange(len(x)) % F, minlength=F)
        _add_products(arm, settings, n, products)
    elif (R := root_of(products[0])) is not None:
        _add_root(numbers, settings, R)
    else:
        for A in _blocks(arm, x, reward, weight):
            _add_root(numbers, settings, np.linalg.qr(A, mode="r"))
    sum_w = weight.sum()
    gap = reward - reward[0]  # exactly 0 of equal rewards
    mean = weight @ gap / sum_w
    gap = gap - mean
    square = weight * gap**2
    spread = square.sum()
    # skew and tail are Σ w g³ and Σ w g⁴ over Σ w g²: a fourth power might overflow
    share = square / (spread or 1.0)
    moments = {
        "mean_r": reward[0] + mean,
        "m2": spread,
        "m3_over_m2": share @ gap,
        "m4_over_m2": share @ gap**2,
    }
    _count(arm.head, len(x), {"sum_w": sum_w, **moments})
    renew(numbers, settings)


def _blocks(arm: Arm, x: Array, reward: Array, weight: Array) -> Iterator[Array]:
    """Give the rows A = √w (x − origin, 1, r − shift) of an arm, block after block."""
    D = len(arm.d)
    d = x.shape[1]
    size = max(1, MAX_NUMBERS // (D + 1))
    for part in (slice(i, i + size) for i in range(0, len(x), size)):
        z = np.ones((len(x[part]), D + 1))
        z[:, :d] = x[part] - arm.origin[:d]
        z[:, D] = reward[part] - arm.head.shift
        z *= np.sqrt(weight[part])[:, None]
        yield z


def merge(mine: Array, its: Array, settings: Array) -> None:
    """Add the rounds of another arm to those of an arm, as if they had come next, and its prior to
    none: it is in both."""
    D, _ = _sizes(settings)
    a = view(mine, D)
    b = view(its, D)
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
            move = np.eye(len(step) + 1)  # of rows about the other's origin, those about this one
            move[-2] += np.append(step, shift)
            products = move.T @ products @ move
        _add_products(a, settings, n, products)
    else:
        prior = np.empty_like(mine)
        interpreted(linear.initialise)(prior, settings)
        p = view(prior, D)
        rows = np.sqrt(b.d)[:, None] * np.column_stack([b.U, b.t])
        if moved:  # c of rewards less b's shift about b's origin, by c of a's
            rows += np.outer(rows[:, -2], np.append(step, shift))
            rows = np.linalg.qr(rows, mode="r")
        # precisions add up, less that of the prior, which is in both and counts once
        _add_root(mine, settings, rows)
        _add_root(mine, settings, np.column_stack([p.U, p.t]), p.d, -1.0)
        a.head.loss = max(a.head.loss + b.head.loss, 0.0)
    a.head.n_left += b.head.n_left
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
    D, _ = _sizes(settings)
    U = np.zeros((min(len(rows), D), interpreted(stride)(D)))
    U[:, :D] = rows[:D, :D]
    t = np.ascontiguousarray(rows[:D, D])
    add_root = without(bulk.add_root, *linear.unreached(settings))
    add_root(arm, settings, np.ones(len(U)) if d is None else d, t, U.ravel(), weight)
    if len(rows) > D:
        view(arm, D).head.loss += rows[D, D] ** 2


def _count(head: Any, n: float, new: Any) -> None:
    """Count n rows, and add Σw and the moments of rewards in another head."""
    moments = new["mean_r"], new["m2"], new["m3_over_m2"], new["m4_over_m2"]
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


def _sizes(settings: Array) -> tuple[int, int]:
    """Return D, the columns of the design, and the number of folds."""
    setting = named(settings)
    return int(setting.columns), int(setting.folds)


def _keeps_sums(settings: Array) -> bool:
    return bool(interpreted(keeps_sums)(named(settings)))
