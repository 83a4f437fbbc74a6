"""Approximate residual balancing (Athey, Imbens and Wager 2018; paper, section 2.3).

The weighted mean context of an arm's n rows should be the mean context x̄ of all rounds, (7) of
mathematics.md:

    min_w (1 − ζ) ‖w‖² + ζ ‖x̄ − X'w‖∞²   subject to Σ w = 1, 0 ≤ w_i ≤ n^(−2/3).

With W = n w, which averages 1, n times this is (1 − ζ) mean(W²) + ζ n ‖x̄ − mean(W x)‖∞². Its dual
has only 2d + 1 variables. Given multipliers θ of the d means and μ of the sum,

    W_i = clip((x_i'θ + μ) / (2 (1 − ζ)), 0, n^(1/3)),

and the dual is a smooth concave function of (a, b, μ), with θ = a − b and a, b ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesbandit.checks import Array, finite, number
from bayesbandit.history import History
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.runtime.savable import savable
from bayesbandit.runtime.shown import settings_repr
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.by_arm import ByArm, standardised

MAX_NEWTON_STEPS = 100  # most steps to the multiplier μ at which the weights average 1


@savable
@dataclass(frozen=True)
class ResidualBalance(ByArm):
    """Approximate residual balancing: nearly even weights that move an arm's mean context to the
    mean over all rounds.

    zeta: ζ in (0, 1), how much the largest imbalance counts against the sum of squared weights.
    least: the smallest weight, in (0, 1]. The paper has 0, but a weight is a precision here.
    scale: divide each feature by its sd over all rounds, so that units do not matter. The paper
        does not.
    refit_every: when an arm's rounds are reweighted: each time they have grown by a share (a float,
        0.25 = 25 %), or every m of its rounds (an int). New rounds have weight 1 until then.

    An arm's weights average 1. So they do not weaken a penalty, as inverse propensities do.
    """

    __repr__ = settings_repr

    zeta: float = 0.5
    least: float = 1e-3
    scale: bool = True
    refit_every: float | int = 0.25

    def __post_init__(self) -> None:
        number(self.zeta, "zeta", above=0, below=1)
        number(self.least, "least", above=0, most=1)
        Schedule(self.refit_every)

    def of_arm(self, mine: Array, history: History) -> Array:
        x = history.x
        z = standardised(x) if self.scale else x
        with one_thread():
            return residual_weights(z[mine], z.mean(axis=0), self.zeta, self.least)


def residual_weights(x: Array, target: Array, zeta: float = 0.5, least: float = 0.0) -> Array:
    """Return weights (n,) that average 1 and move the mean of rows x (n, d) near `target` (d,).

    zeta: ζ in (0, 1), how much the largest difference counts. least: the smallest weight.
    """
    from scipy.optimize import minimize

    n, d = x.shape
    finite(x, "rows"), finite(target, "target")
    most = n ** (1 / 3)
    cost = 2.0 * (1.0 - zeta)
    x = x - target  # precise differences, and θ'x̄ = 0
    # multipliers of columns in units of their own: alike curvatures, whatever the scales
    size = np.sqrt((x**2).mean(axis=0))
    per_unit = np.divide(1.0, size, out=np.ones(d), where=size > 0.0)
    x = x * per_unit
    cost_of = np.tile(per_unit, 2)  # in Σ|θ|

    def dual(v: Array) -> tuple[float, Array]:  # v = (a, b, μ); returns minus the dual
        theta = v[:d] - v[d:-1]
        total = cost_of @ v[:-1]
        mu = v[-1]
        index = x @ theta + mu
        W = np.clip(index / cost, least, most)
        value = (0.5 * cost * W - index) @ W / n + mu - total**2 / (4.0 * zeta * n)
        imbalance = x.T @ W / n
        slope = total / (2.0 * zeta * n) * per_unit
        return -value, np.concatenate([imbalance + slope, slope - imbalance, [W.mean() - 1.0]])

    bounds = [(0.0, None)] * (2 * d) + [(None, None)]
    best = minimize(
        dual, np.append(np.zeros(2 * d), cost), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 2000, "maxfun": 4000, "maxcor": 10, "ftol": 0.0, "gtol": 1e-9},
    )  # fmt: skip
    index = x @ (best.x[:d] - best.x[d:-1])
    mu = best.x[-1]
    for _ in range(MAX_NEWTON_STEPS):  # the mean is piecewise linear in μ: a few steps make it 1
        W = np.clip((index + mu) / cost, least, most)
        inside = np.count_nonzero((W - least) * (most - W))
        if abs(W.mean() - 1.0) <= 1e-14 or inside == 0:
            break
        mu += cost * n * (1.0 - W.mean()) / inside
    return np.asarray(W / W.mean())
