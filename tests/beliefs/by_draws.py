"""Declared models whose beliefs are draws, and their moments to Monte-Carlo error."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import bayesbandit as bb
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.model import RewardModel
from tests.inference import linear, unknown_noise


def together(mu, variance, reward):
    """Rewards of these means and variances, as one observation: rows are not told apart."""
    pm.MvNormal("reward", mu, cov=pt.diag(variance), observed=reward)
    return mu


def noise_by_context(x, reward, weight):
    """Exact, but not streamed: the noise depends on x, and all rewards are one observation."""
    mu = x @ pm.Normal("theta", 0, 1, dims="feature")
    return together(mu, pt.exp(x[:, 0]) / weight, reward)


def context_noise(x, reward, weight, arm):
    """A hierarchy of arms, likewise."""
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.7, dims=("arm", "feature"))
    mu = (x * theta[arm]).sum(axis=-1)
    return together(mu, pt.exp(0.6 * x[:, 0]) / weight, reward)


D, K = 3, 3
LOGISTIC = bb.load_model("logistic").with_priors(  # of mixtures of normals there are Gibbs draws
    theta=bb.Prior("Logistic", mu=0, s=0.55, dims="feature")
)
UNKNOWN = bb.Prior("InverseGamma", alpha=2, beta=1)
GIBBS = bb.load_model("hierarchical_ridge").with_priors(tau2=UNKNOWN, sigma2=UNKNOWN)
SHARED = RewardModel(context_noise, {})
HETEROSCEDASTIC = RewardModel(noise_by_context, {})
JOINT_NOISE = RewardModel(linear.joint_noise, {})
POWERS = RewardModel(unknown_noise.powers, {})
IMPROPER = RewardModel(unknown_noise.flat, {})  # with σ² ~ InverseGamma: proper from D rows on
EXACT = {
    "noise by context": HETEROSCEDASTIC,
    "noise that rows share": JOINT_NOISE,
    "powers of the likelihood": POWERS,
}


def believed(model, n_arms=K, n_features=D, normalize=False, seed=0, **settings):
    belief = bb.Sampled(model, **settings).belief(
        n_arms, n_features, normalize, np.random.SeedSequence(seed)
    )
    assert type(belief) is SampledBelief
    return belief


@cache
def probe():
    return np.random.default_rng(99).normal(size=(4, D))


def binary(rows):
    return rows | {"reward": (rows["reward"] > 1.0).astype(float)}


def of(rows, k):
    return {role: rows[role][rows["arm"] == k] for role in ("x", "reward", "weight")}


def runs(belief):
    return [chain.runs for chain in belief.clouds]


def state_of(belief):
    """All that is known, as bytes."""
    return {k: v.tobytes() if isinstance(v, np.ndarray) else repr(v)
            for k, v in belief.state().items()}  # fmt: skip


def near(ours, theirs, draws, sd, thin=1.0):
    """Means (…) of `draws` draws, worth one in `thin`, within 4.5 standard errors."""
    assert (np.abs(ours - theirs) <= 4.5 * sd * np.sqrt(thin / draws)).all()
