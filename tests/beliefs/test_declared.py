"""Declared models that are ridge regressions play as such, to the last digits of the preset."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.kernels.arm import HEAD_FIELDS
from tests.cases import few

LAM = HEAD_FIELDS.index("lam")


def played(model, rng, K=3, d=4, T=200):
    bandit = bb.Bandit(K, model, bb.Thompson(0.7), bb.InversePropensity(), n_features=d, seed=1)
    x, reward = rng.normal(size=(T, d)), rng.normal(size=(T, K))
    arms, _ = bandit.play(x, reward)
    return bandit, arms


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "preset"),
    [
        (
            bb.load_model("ridge_known_noise").with_priors(
                theta=bb.Prior("Normal", mu=0, sigma=2.0), sigma=0.5, intercept=0
            ),
            bb.Ridge(ridge=0.25 / 4, variance=0.25, intercept=False),
        ),
        (
            bb.load_model("ridge").with_priors(lam=3.0, lam0=3.0),
            bb.Ridge(ridge=3.0, variance="nig"),
        ),
    ],
)
@few("declared0")
def test_the_derived_belief_is_the_presets(declared, preset):
    """With λ₀ = λ, the constant is one more column that is penalised like the rest."""
    derived, arms = played(declared, np.random.default_rng(0))
    written, same = played(preset, np.random.default_rng(0))
    np.testing.assert_array_equal(arms, same)
    ours, theirs = derived.belief.arms, written.belief.arms
    ours[:, LAM] = theirs[:, LAM]  # λ alone differs: a declared prior is kept as its root
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
