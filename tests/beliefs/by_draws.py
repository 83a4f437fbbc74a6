"""Declared models whose beliefs are draws, and their moments to Monte-Carlo error."""

from functools import cache

import numpy as np

import bayesbandit as bb
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.model import RewardModel
from tests.bandit import kinds
from tests.inference import linear, unknown_noise

D, K = 3, 3
LOGISTIC = bb.load_model("logistic").with_priors(  # of mixtures of normals there are Gibbs draws
    theta=bb.Prior("Logistic", mu=0, s=0.55, dims="feature")
)
UNKNOWN = bb.Prior("InverseGamma", alpha=2, beta=1)
GIBBS = bb.load_model("hierarchical_ridge").with_priors(tau2=UNKNOWN, sigma2=UNKNOWN)
HETEROSCEDASTIC, SHARED = kinds.noise_by_context, kinds.shared_noise_by_context
IMPROPER = RewardModel(unknown_noise.flat, {})  # with σ² ~ InverseGamma: proper from D rows on
EXACT = {
    "noise by context": HETEROSCEDASTIC,
    "noise that rows share": RewardModel(linear.joint_noise, {}),
    "powers of the likelihood": RewardModel(unknown_noise.powers, {}),
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
