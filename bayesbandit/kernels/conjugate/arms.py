"""One arm that is a probability or a rate, whatever the context, kept in one row of numbers."""

import numpy as np

from bayesbandit.kernels.arm import record_type, record_view
from bayesbandit.kernels.conjugate.families import beta_moments, gamma_moments
from bayesbandit.kernels.row_layout import DRAWN, GAMMA
from bayesbandit.runtime.compiling import njit

# An arm: rounds, Σ w r, and Σ w (1 − r) or Σ w; what follows from them: the mean and standard
# deviation, a and b; the tick to which the sums have faded.
NAMES = "n", "hits", "rest", "mean", "sd", "a", "b", "clock"
HEAD = record_type(*NAMES)
WIDTH = len(NAMES)
N, HITS, REST, MEAN, SPREAD, FIRST, SECOND, CLOCK = range(WIDTH)  # for slices of many arms

# The settings shared by all arms: columns of the design, family, the prior's a and b, whether an
# arm's weights are scaled to mean 1, whether rewards are 0 and 1, and whether they are whole.
SETTINGS = record_type("columns", "family", "prior_a", "prior_b", "normalize", "binary", "whole")

head_of = record_view(HEAD)  # of one arm's numbers
named = record_view(SETTINGS)


@njit(cache=True)
def weight_left(head, family):
    """Return the sum of the weights of an arm's rounds."""
    return head.rest if family == GAMMA else head.hits + head.rest


@njit(cache=True)
def parameters(arm, settings):
    """Return the a and b of an arm's posterior."""
    # weights of mean 1: the sums count as many rounds as there were
    w_bar = 1.0
    head = head_of(arm)
    setting = named(settings)
    if setting.normalize > 0.0 and head.n > 0.0:
        w_bar = weight_left(head, int(setting.family)) / head.n
    # Beta(a + Σ w r, b + Σ w (1 − r)), or Gamma(a + Σ w r, b + Σ w): powers w of the likelihood
    return setting.prior_a + head.hits / w_bar, setting.prior_b + head.rest / w_bar


@njit(cache=True)
def renew(arm, settings):
    """Compute the numbers that follow from an arm's sums."""
    head = head_of(arm)
    a, b = parameters(arm, settings)
    is_rate = int(named(settings).family) == GAMMA
    head.a = a
    head.b = b
    head.mean, head.sd = gamma_moments(a, b) if is_rate else beta_moments(a, b)


@njit(cache=True)
def renew_all(arms, settings):
    """Compute the numbers that follow from the sums of all arms."""
    for k in range(arms.shape[0]):
        renew(arms[k], settings)


@njit(cache=True)
def add(arm, reward, weight, settings):
    """Add a reward to an arm's sums."""
    head = head_of(arm)
    head.n += 1.0
    head.hits += weight * reward
    # a likelihood v^{wr} (1 − v)^{w(1 − r)}, or v^{wr} e^{−wv}
    head.rest += weight if int(named(settings).family) == GAMMA else weight * (1.0 - reward)


@njit(cache=True)
def moments_or_shape(arm, kind):
    """Return the mean and sd of an arm's mean reward, and ∞. If a rule of this kind draws from a
    and b, return the mean, b and a."""
    head = head_of(arm)
    if kind in DRAWN:
        # who draws a beta or gamma number needs its parameters and no spread
        return head.mean, head.b, head.a
    return head.mean, head.sd, np.inf
