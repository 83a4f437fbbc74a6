"""Normal observations in the place of rewards, by Newton's method, row by row.

Coordinates φ (D,) are those in which the prior is N(0, I); η = z'φ + offset.
"""

import numpy as np

from bayesbandit.kernels import linear
from bayesbandit.kernels.algebra.dense import dot
from bayesbandit.kernels.arm import arm_of, stride
from bayesbandit.kernels.glm.families import compiled, slope_and_curvature
from bayesbandit.kernels.root import mean_and_variance

MIN_CURVATURE = 1e-100  # the least curvature of a row
MAX_HALVINGS = 2000  # of the interval or of the excess: float64 has some 1,000 of either


@compiled
def predict(z, offset, phi, eta):
    """Fill eta with z φ + offset (n,)."""
    for i in range(eta.size):
        eta[i] = dot(z[i], phi) + offset[i]


@compiled
def settled(eta, variance, kind, number, r, w):
    """Return the mode of N(η' | eta, variance) p(r | η')^w.

    Newton's method finds (eta − η')/variance + w ℓ'(η') = 0 between two points where this has
    different signs. Where the last step did not halve this, the middle of the two points is next.
    """
    slope, _ = slope_and_curvature(kind, number, eta, r)
    # no prior variance, or no slope there: the prior's mean is the mode
    if variance <= 0.0 or slope == 0.0:
        return eta
    # ℓ' falls: it ends before
    # the root is η' = eta + variance w ℓ'(η'), and ℓ'(η') is between 0 and ℓ'(eta)
    low = eta
    high = eta + variance * w * slope
    if high < low:
        low, high = high, low
    x = eta
    before = np.inf
    for _ in range(MAX_HALVINGS):
        slope, curvature = slope_and_curvature(kind, number, x, r)
        # times the variance; it falls in x, so that its sign tells on which side the root is
        excess = eta - x + variance * w * slope
        if excess > 0.0:
            low = x
        else:
            high = x
        # the derivative of `excess` is −(1 + variance w (−ℓ''))
        new = x + excess / (1.0 + variance * w * curvature)
        if not low <= new <= high or abs(excess) > 0.5 * before:
            new = 0.5 * (low + high)
        before = abs(excess)
        if abs(new - x) <= 1e-14 * (1.0 + abs(new)):
            return new
        x = new
    return x


@compiled
def observe(
    arms, settings, z, offset, group, reward, weight, kind, number, normalize, total, due, first
):
    """Learn rows from the first on, one by one, until a group is due; how many are learned in all.

    Each row is to its group's N(φ, P) as an observation of η with the curvature that its likelihood
    has at the mode of the two: that is the mode of all rows if those before are quadratic in φ.
    total (G, 2): weights and rows of each group. due (G,): the number of rows at which to stop.
    """
    D = z.shape[1]
    work = np.empty(linear.scratch(settings))
    for i in range(first, reward.size):
        g = group[i]
        arm = arms[g]
        w = weight[i]
        total[g, 0] += w
        total[g, 1] += 1.0
        if normalize:
            # weights over their average so far: total weight over total rows
            w *= total[g, 1] / total[g, 0]
        # what all rows before say of this row's η
        # σ² is 1: the variance of z'φ is z'B⁻¹z
        mean, variance = mean_and_variance(arm_of(arm, D), z[i], work[: stride(D)])
        x = settled(mean + offset[i], variance, kind, number, reward[i], w)
        # with its slope and curvature at the mode, the row is a normal observation of η
        y, v = pseudo(x, kind, number, reward[i], w)
        # η = z'φ + offset, so that y − offset observes z'φ
        linear.update(arm, z[i], y - offset[i], v, settings, work)
        if total[g, 1] >= due[g]:
            return i + 1
    return reward.size


@compiled
def pseudo(eta, kind, number, r, w):
    """Return y and v: an observation y of η with precision v, whose log density has the slope and
    the curvature that w ℓ has at η."""
    slope, curvature = slope_and_curvature(kind, number, eta, r)
    v = max(w * curvature, MIN_CURVATURE)
    # −v (η − y)²/2 has the curvature v, and the slope v (y − η) = w ℓ'
    return eta + w * slope / v, v


@compiled
def pseudo_rows(eta, kind, number, reward, weight, y, v):
    """Fill in the observations of rows at their η (n,)."""
    for i in range(eta.size):
        y[i], v[i] = pseudo(eta[i], kind, number, reward[i], weight[i])
