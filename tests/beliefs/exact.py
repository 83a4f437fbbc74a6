"""Declared models with exact beliefs, and `bb.fit` of the same rows."""

from functools import cache

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.model import RewardModel
from tests.beliefs.closed_form import MODELS
from tests.cases import long_but, moments_of
from tests.inference import linear, unknown_noise

D, K = 3, 3
SEED = np.random.SeedSequence(0)
QUICK = {
    "an intercept": linear.intercept,
    "another centre": linear.centred_elsewhere,
    "squares of features": linear.squares_of_features,
    "a fixed offset": linear.offset,
    "correlated coefficients": linear.mv_cov,
    "a random walk": linear.random_walk,
    "non-centred": linear.non_centred,
    "two likelihoods": linear.two_likelihoods,
    "unknown noise, off centre": unknown_noise.off_centre,
    "unknown noise, correlated": unknown_noise.correlated,
    "unknown noise, non-centred": unknown_noise.non_centred,
    "arms that share a mean": linear.arms_share_a_mean,
    "arms, unknown noise": unknown_noise.arms,
    "noise by context": linear.noise_by_context,
    "logarithms of rewards": linear.log_rewards,
    "clipped rewards": linear.clipped,
    "unknown noise, by context": unknown_noise.by_context,
    "noise by arm": linear.noise_by_arm,
}
DOES_NOT_STREAM = (
    "no_weights",
    "custom_by_draws",  # which take weights, but have no use for them: no balance
    "improper",
    "logarithms",
    "jeffreys",
    "flat",
    "powers",
)
SLOW = [
    f
    for f in (*linear.STREAMED, *unknown_noise.STREAMED)
    if f not in QUICK.values() and f.__name__ not in DOES_NOT_STREAM
]
UNLIKE = (  # of these; the others are as one of them, or of the quick ones, in other words
    *(linear.autoregression, linear.gaussian_process, linear.hierarchical_mean, linear.einsum),
    *(linear.weights_by_potential, linear.arms_off_centre),
    *(unknown_noise.precision, unknown_noise.double_noise),
)
DECLARED = {name: RewardModel(f, {}) for name, f in QUICK.items()} | MODELS
FIRST = (  # the others are slow
    "noise by context",
    "unknown noise, off centre",
    "hierarchical",
    "effects, unknown noise",
)

OTHERS = (  # which with the first are one of each kind
    "unknown noise, correlated",
    "arms that share a mean",
    "logarithms of rewards",
    "unknown noise, by context",
    "noise by arm",
)


def of(names, quick=FIRST):
    marked = [pytest.param(n, marks=[pytest.mark.slow] if n not in quick else []) for n in names]
    return pytest.mark.parametrize("name", marked)


every, shared = of(DECLARED), of(MODELS)
unlike = pytest.mark.parametrize("name", long_but((*FIRST, *OTHERS), DECLARED))


def believed(model, n_arms=K, normalize=False):
    belief = bb.Declared(model).belief(n_arms, D, normalize, SEED)
    assert isinstance(belief, Regressions)
    assert belief.joint == model.takes_arm
    return belief


@cache
def probe():
    return np.random.default_rng(99).normal(size=(5, D))


def fitted(model, rows, n_arms):
    """`bb.fit` of each arm's rows, or of all arms' together."""
    if model.takes_arm:
        whole = bb.fit(model, rows["x"], rows["reward"], rows["weight"],
                       arm=rows["arm"], n_arms=n_arms)  # fmt: skip
        return [whole] * n_arms
    found = []
    for k in range(n_arms):
        mine = rows["arm"] == k
        found.append(bb.fit(model, *(rows[role][mine] for role in ("x", "reward", "weight"))))
    return found


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def agree(belief, model, rows, n_arms=K):
    """A belief is what `bb.fit` says: all variables, and the mean rewards of every arm."""
    whole = fitted(model, rows, n_arms)
    mean, sd = moments_of(belief, probe())
    for k, fit in enumerate(whole):
        ours = belief.posterior(k, {role: rows[role][:0] for role in ("x", "reward", "weight")})
        assert ours.engine == fit.engine
        assert ours.coefficients.keys() == fit.coefficients.keys()
        for name, (centre, spread) in fit.coefficients.items():
            close(ours.coefficients[name][0], centre)
            close(ours.coefficients[name][1], spread)
        at = (slice(None), k) if model.takes_arm else slice(None)
        for a, b in ((mean[:, k], fit.mean(probe())[at]), (sd[:, k], fit.sd(probe())[at])):
            close(a, b)
        close(ours.sd(probe()), fit.sd(probe()))
    close(belief.predict(probe()).mean, mean)
    np.testing.assert_array_equal(belief.n, np.bincount(rows["arm"], minlength=n_arms))
