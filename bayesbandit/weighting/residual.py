"""Approximate residual balancing (Athey, Imbens and Wager 2018; paper, section 2.3).

An arm's n rows, weighed, should have the mean context x̄ of all rounds:

    min_w (1 − ζ) ‖w‖² + ζ ‖x̄ − X'w‖∞²   subject to Σ w = 1, 0 ≤ w_i ≤ n^(−2/3).

With W = n w, of mean 1, this is n times smaller than (1 − ζ) mean(W²) + ζ n ‖x̄ − mean(W x)‖∞². Its
dual has but 2d + 1 variables: given prices θ of the d means and μ of the sum,

    W_i = clip((x_i'θ + μ) / (2 (1 − ζ)), 0, n^(1/3)),

and what is left is a smooth concave function of (a, b, μ), θ = a − b, a, b ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesbandit.checks import finite, number
from bayesbandit.history import History
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.runtime.savable import savable
from bayesbandit.schedule import Schedule
from bayesbandit.weighting.by_arm import ByArm, standardised

Array = np.ndarray
NEWTON = 100  # steps at most, to the price at which the weights have mean 1


@savable
@dataclass(frozen=True)
class ResidualBalance(ByArm):
    """Weights by which each arm's contexts have the mean of all contexts, nearly, and are not far
    from even: approximate residual balancing.

    zeta: ζ in (0, 1), how much the largest imbalance counts against the sum of squared weights.
    least: the smallest weight, of 1 on the average: > 0, since a weight is a precision, where the
        paper has 0.
    scale: measure each feature in its standard deviation over all rounds, so that units do not
        matter; the paper's listing takes features as they are.
    refit_every: when an arm's weights are settled anew: each time its rounds have grown by a share
        (a float, .25 = 25 %), or every m of its rounds (an int). New rounds weigh 1 till then.

    An arm's weights have mean 1: they do not weaken a penalty as inverse propensities do.
    """

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
    """Weights of rows x (n, d), of mean 1, whose weighed mean is near `target` (d,): (n,).

    zeta in (0, 1): how much the largest difference of the two counts; least: the smallest weight.
    """
    from scipy.optimize import minimize

    n, d = x.shape
    finite(x, "rows"), finite(target, "target")
    most, cost = n ** (1 / 3), 2.0 * (1.0 - zeta)
    x = x - target  # differences of small numbers, and θ'x̄ = 0

    def dual(at: Array) -> tuple[float, Array]:
        theta, prices, mu = at[:d] - at[d:-1], at[:-1].sum(), at[-1]
        index = x @ theta + mu
        W = np.clip(index / cost, least, most)
        value = (0.5 * cost * W - index) @ W / n + mu - prices**2 / (4.0 * zeta * n)
        slope, steep = x.T @ W / n, prices / (2.0 * zeta * n)
        return -value, np.concatenate([slope + steep, steep - slope, [W.mean() - 1.0]])

    bounds = [(0.0, None)] * (2 * d) + [(None, None)]
    found = minimize(
        dual, np.append(np.zeros(2 * d), cost), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 2000, "maxfun": 4000, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    index, mu = x @ (found.x[:d] - found.x[d:-1]), found.x[-1]
    for _ in range(NEWTON):  # piecewise linear in μ: the mean is exactly 1 after a few
        W = np.clip((index + mu) / cost, least, most)
        inside = np.count_nonzero((W - least) * (most - W))
        if abs(W.mean() - 1.0) <= 1e-14 or inside == 0:
            break
        mu += cost * n * (1.0 - W.mean()) / inside
    return np.asarray(W / W.mean())
