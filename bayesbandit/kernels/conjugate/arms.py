"""One arm that is a probability or a rate, whatever the context, kept in one row of numbers."""

import math

import numpy as np

from bayesbandit.kernels.conjugate.families import beta_moments, gamma_moments
from bayesbandit.kernels.prob_best.walk import SHAPE, reshape
from bayesbandit.kernels.row_layout import DRAWN, GAMMA
from bayesbandit.runtime.compiling import njit

# A row of an arm: its shape (`prob_best/walk.py`), then rounds, Σ w r, and Σ w (1 − r) or Σ w;
# the mean and standard deviation; a and b, which of a shape may have been blunted.
N, HITS, REST, MEAN, SPREAD, FIRST, SECOND = range(SHAPE, SHAPE + 7)
WIDTH = 16

# The settings shared by all arms: columns of the design, family, the prior's a and b, whether an
# arm's weights are scaled to mean 1, whether rewards are 0 and 1, and whether they are whole.
D_, FAMILY, A0, B0, NORMALIZE, BINARY, WHOLE = range(7)


@njit(cache=True)
def is_possible(reward, settings):
    """Return whether a reward has a likelihood."""
    if settings[BINARY] > 0.0:
        return reward == 0.0 or reward == 1.0
    return reward >= 0.0 and (settings[WHOLE] == 0.0 or reward == math.floor(reward))


@njit(cache=True)
def parameters(arm, settings):
    """Return the a and b of an arm's posterior."""
    w_bar = 1.0
    if settings[NORMALIZE] > 0.0 and arm[N] > 0.0:
        gamma = int(settings[FAMILY]) == GAMMA
        w_bar = (arm[REST] if gamma else arm[HITS] + arm[REST]) / arm[N]
    return settings[A0] + arm[HITS] / w_bar, settings[B0] + arm[REST] / w_bar


@njit(cache=True)
def renew(arm, settings):
    """Compute the numbers that follow from an arm's sums."""
    family, (a, b) = int(settings[FAMILY]), parameters(arm, settings)
    reshape(arm, a, b, family)
    arm[FIRST], arm[SECOND] = a, b
    arm[MEAN], arm[SPREAD] = gamma_moments(a, b) if family == GAMMA else beta_moments(a, b)


@njit(cache=True)
def add(arm, reward, weight, settings):
    """Add a reward to an arm's sums."""
    arm[N] += 1.0
    arm[HITS] += weight * reward
    arm[REST] += weight if int(settings[FAMILY]) == GAMMA else weight * (1.0 - reward)


@njit(cache=True)
def renew_all(arms, settings):
    """Compute the numbers that follow from the sums of all arms."""
    for k in range(arms.shape[0]):
        renew(arms[k], settings)


@njit(cache=True)
def moments_or_shape(arm, kind):
    """Return the mean and sd of an arm's mean reward, and ∞. If a rule of this kind draws from a
    and b, return the mean, b and a."""
    if kind in DRAWN:
        return arm[MEAN], arm[SECOND], arm[FIRST]
    return arm[MEAN], arm[SPREAD], np.inf
