"""Rows learned in order with the density that each had before, and half-lives chosen by it.

Arms of several half-lives stand in one array (M, K, …), with settings (M, …); the log probabilities
of the half-lives (M,) say which of them decides.
"""

import math

import numpy as np

from bayesbandit.kernels.arm import columns_of, head_of, is_moving
from bayesbandit.kernels.fading import advance
from bayesbandit.kernels.glm.families import beyond, log_normal_cdf
from bayesbandit.kernels.glm.newton import MIN_CURVATURE
from bayesbandit.kernels.linear import scratch
from bayesbandit.kernels.moments import moments
from bayesbandit.kernels.rounds import learn
from bayesbandit.kernels.student import log_fall, peak
from bayesbandit.runtime.compiling import njit

FIRST_PRIOR = 0.5  # the prior probability of the first half-life; the others share the rest
P_SWITCH = 1e-4  # the probability that another half-life is right from the next reward on


@njit(cache=True)
def log_density(arm, z, r, D, work):
    """Return the log density of a reward; NaN if nothing is known of the arm, or it is certain."""
    mean, scale = moments(arm, z, D, work)
    # a new reward is N(m, σ² + s²), or Student-t with the arm's degrees of freedom
    s2 = head_of(arm).sigma2 + scale * scale
    df = head_of(arm).df
    if not 0.0 < s2 < np.inf:
        return np.nan
    sd = math.sqrt(s2)
    return math.log(peak(df) / sd) + log_fall((r - mean) / sd, df)


@njit(cache=True)
def learn_scored(arms, settings, tick, z, arm, reward, weight, out):
    """Learn rows z (n, D), arm numbers, rewards, weights and ticks (n,), one after the other; fill
    out (n,) with their log densities."""
    work = np.empty(scratch(settings))
    for i in range(reward.size):
        k = arm[i]
        if is_moving(settings):
            advance(arms, tick[i], settings)
        # before the row is learned: Σ of these is the log evidence, by the chain rule
        out[i] = log_density(arms[k], z[i], reward[i], z[i].size, work)
        learn(arms, settings, tick[i], z[i], k, reward[i], weight[i], work)


@njit(cache=True)
def learn_chances(arms, settings, tick, z, arm, offset, happened, out):
    """Learn rows of a probit regression beside an offset, one after the other: z (n, D), arm
    numbers, offsets o, and 1 or 0 (n,), whether it happened; fill out (n,) with the log probability
    of each before. σ² is 1. With z'θ ~ N(m, s²) it happens with probability Φ(o + m/√(1 + s²)):
    that is Φ(o) where m is 0, however little is known of θ.

    After each row θ is normal with the mean and the covariance that it has then (assumed density
    filtering: Graepel et al. 2010, Web-scale Bayesian click-through rate prediction, ICML). This is
    what a row of reward y with weight w makes of it.
    """
    D = columns_of(settings)
    work = np.empty(scratch(settings))
    for i in range(happened.size):
        own = arms[arm[i] : arm[i] + 1]
        up = 2.0 * happened[i] - 1.0
        if is_moving(settings):
            advance(own, tick[i], settings)
        mean, scale = moments(own[0], z[i], D, work)
        s2 = scale * scale
        sd = math.sqrt(1.0 + scale * scale)
        t = up * (offset[i] + mean / sd)
        out[i] = log_normal_cdf(t)
        more = beyond(-t)  # φ(t)/Φ(t) + t
        slope = more - t  # φ(t)/Φ(t)
        # With η ~ N(m, s²) and P(1) = Φ(t), t = ±(o + m/√(1 + s²)), log Φ(t) has in m the gradient
        # g = ±slope/sd and the curvature −c, c = slope (slope + t)/sd². So the moments of η become
        # m + s²g and s² − s⁴c. A row (y, w) makes them m + s²w (y − m)/(1 + ws²) and s²/(1 + ws²):
        # w = c/(1 − s²c), and y = m + g (1/w + s²)
        w = max(slope * more / (1.0 + s2 * (1.0 - slope * more)), MIN_CURVATURE)
        y = mean + up * slope / sd * (1.0 / w + s2)
        learn(own, settings, tick[i], z[i], 0, y, w, work)


@njit(cache=True)
def switch(log_weight, score):
    """Update the half-lives' log probabilities by a reward with these log densities (M,). One that
    is NaN changes nothing, nor do densities that are all 0.

    Herbster & Warmuth (1998), Machine Learning 32, 151–178: the fixed share. A half-life that was
    wrong for long is back within the few rewards that refute the others.
    """
    M = log_weight.size
    best = -np.inf
    largest = -np.inf
    total = 0.0
    for m in range(M):
        if np.isnan(score[m]):
            return
        best = max(best, score[m])
    if best == -np.inf:
        return
    for m in range(M):
        # π_m ← π_m f_m(r) up to a factor
        log_weight[m] += score[m] - best  # a weight beside a score of 1e16 would lose its digits
        largest = max(largest, log_weight[m])
    for m in range(M):
        # less the largest: no exponential overflows, and one is 1
        log_weight[m] = math.exp(log_weight[m] - largest)
        total += log_weight[m]
    for m in range(M):
        # the fixed share: π ← (1 − p) π + p π₀, normalised
        prior = FIRST_PRIOR if m == 0 else (1.0 - FIRST_PRIOR) / (M - 1)
        log_weight[m] = math.log((1.0 - P_SWITCH) * log_weight[m] / total + P_SWITCH * prior)


@njit(cache=True)
def advance_all(blocks, settings, tick):
    """Bring all arms of all half-lives to this tick."""
    for m in range(blocks.shape[0]):
        if is_moving(settings[m]):
            advance(blocks[m], tick, settings[m])


@njit(cache=True)
def evidence(scores, log_weight, out):
    """Fill out (n,) with the log ratio of the densities of all rewards so far: that of the mixture
    of half-lives, over that of the first one.

    scores (n, M): log densities of each reward. log_weight (M,) is updated by the rewards.
    """
    total = 0.0
    for i in range(out.size):
        best = -np.inf
        mixed = 0.0
        for m in range(log_weight.size):
            best = max(best, scores[i, m])
        for m in range(log_weight.size):
            # the mixture's density of the reward, over that of its best member
            mixed += math.exp(log_weight[m] + (scores[i, m] - best))
        if not np.isnan(mixed):
            # Σ_i log (Σ_m π_m f_m(r_i) / f_0(r_i)): an e-process if the first half-life is right
            total += best - scores[i, 0] + math.log(mixed)
        switch(log_weight, scores[i])
        out[i] = total
