"""Arms that are a probability or a rate, whose rounds fade: by a rate ρ, e^(−ρ age) is left of a
round."""

import math

from bayesbandit.kernels.conjugate.arms import CLOCK, add, head_of, named, renew, weight_left
from bayesbandit.kernels.fading import MIN_ROWS_LEFT
from bayesbandit.kernels.row_layout import GAMMA
from bayesbandit.runtime.compiling import njit


@njit(cache=True)
def pass_time(arm, tick, rate, settings):
    """Bring one arm to this tick; a tick of the past changes nothing."""
    head = head_of(arm)
    passed = tick - head.clock
    if not passed > 0.0:
        return
    head.clock = tick
    if rate > 0.0:
        # the rounds fade, and the prior's a and b stay
        share = math.exp(-rate * passed)
        head.hits *= share
        head.rest *= share
        if weight_left(head, int(named(settings).family)) < MIN_ROWS_LEFT:
            head.n = head.hits = head.rest = 0.0
        renew(arm, settings)


@njit(cache=True)
def advance(arms, tick, rate, settings):
    """Bring all arms to this tick."""
    for k in range(arms.shape[0]):
        pass_time(arms[k], tick, rate, settings)


@njit(cache=True)
def log_density(arm, reward, settings):
    """Return the log density of a reward, but for a term that is the same for every posterior.

    Rewards of a probability are 0 or 1, and those of a rate negative binomial.
    """
    a = head_of(arm).a
    b = head_of(arm).b
    if int(named(settings).family) == GAMMA:
        # Γ(a + r)/Γ(a) (b/(1 + b))ᵃ (1 + b)^−r; r! is left out
        log = math.lgamma(a + reward) - math.lgamma(a)
        return log - a * math.log1p(1.0 / b) - reward * math.log1p(b)
    # E v = a/(a + b)
    return math.log(a if reward == 1.0 else b) - math.log(a + b)


@njit(cache=True)
def learn_scored(arms, rate, tick, arm, reward, weight, settings, gone, out):
    """Learn rows (n,) in order, into the arms (K, WIDTH) of one half-life; fill out (n,) with the
    log densities that they had before.

    A row that has faded below the share `gone` is skipped.
    """
    now = arms[:, CLOCK].max()
    for i in range(reward.size):
        now = max(now, tick[i])
        one = arms[arm[i]]
        pass_time(one, now, rate, settings)
        # the half-life is judged by what it foretold, before it learns the row
        out[i] = log_density(one, reward[i], settings)
        # a late row counts as if it had come in time, and faded since
        share = math.exp(rate * (tick[i] - now))
        if share >= gone:
            add(one, reward[i], share * weight[i], settings)
            renew(one, settings)
    advance(arms, now, rate, settings)
