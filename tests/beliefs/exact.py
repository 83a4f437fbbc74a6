"""Declared models with exact beliefs, and `bb.fit` of the same rows."""

from functools import cache

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.regressions import Regressions
from bayesbandit.model import RewardModel
from tests.beliefs.closed_form import MODELS
from tests.cases import moments_of
from tests.inference import linear, unknown_noise

D, K = 3, 3
SEED = np.random.SeedSequence(0)
DOES_NOT_STREAM = (
    *(linear.improper, linear.logarithms),
    *(unknown_noise.jeffreys, unknown_noise.flat, unknown_noise.powers),
)
MORE = linear.log_rewards, linear.clipped, linear.noise_by_arm, unknown_noise.by_context
DECLARED = MODELS | {
    f"{f.__module__.rpartition('.')[2]}, {f.__name__}": RewardModel(f, {})
    for f in (*linear.STREAMED, *unknown_noise.STREAMED, *MORE)
    if f not in DOES_NOT_STREAM
}
shared = pytest.mark.parametrize("name", MODELS)


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
