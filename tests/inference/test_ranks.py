"""Simulation-based calibration of Gibbs sampling, each of its kinds of step: parameters and data
from the joint distribution; the truth's rank among the posterior draws is uniform (Talts and others
2018). The full size runs by `pytest -m slow tests/inference/test_ranks.py`.
"""

import zlib
from copy import copy

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.inference.base import Improper
from bayesbandit.inference.plan import plan
from bayesbandit.model import reward_model
from tests.cases import in_gate
from tests.declarations import EACH, HALF, normal_rewards
from tests.inference.test_generic import by_arm, hierarchy
from tests.inference.test_rewrite_products import REWRITTEN

DRAWS, BINS, N, D, K = 31, 8, 12, 2, 3
IG = bb.Prior("InverseGamma", alpha=3, beta=2)


@reward_model(sigma2=IG)
def scaled(x, reward, sigma2):
    """A noise that scales the prior, too; other noise by row."""
    theta = pm.Normal("theta", 0, pm.math.sqrt(sigma2), dims="feature")
    mu = x @ theta
    sd = pm.math.sqrt(sigma2) * pm.math.exp(x[:, 0] / 2)
    pm.Normal("r", mu, sd, observed=reward)
    return mu


@reward_model(tau=bb.Prior("HalfCauchy", beta=1), sigma=HALF)
def half_cauchy(x, reward, tau, sigma):
    """Local and common half-Cauchy scales, and those that mix them."""
    local = pm.HalfCauchy("local", 1, dims="feature")
    theta = pm.Normal("theta", 0, tau * local, dims="feature")
    return normal_rewards(x @ theta, sigma, reward, "r")


MODELS = {
    **{model.name: model for model in (scaled, half_cauchy)},
    # a stretch about the common mean, and three powers of σ
    "hierarchy": hierarchy.with_priors(sigma=bb.Prior("Gamma", alpha=3, beta=3)),
    # walls
    "by_arm": by_arm.with_priors(s=bb.Prior("Uniform", lower=0.5, upper=1.5, dims="arm")),
    # σ² with all precisions of rows
    "student": bb.load_model("student_t").with_priors(theta=EACH, sigma2=IG, intercept=0),
    # b with the mixing variances, with and without the coefficients; a square of log σ
    "laplace": bb.load_model("laplace").with_priors(
        theta=bb.Prior("Laplace", mu=0, b=HALF, dims="feature"),
        sigma2=bb.Prior("LogNormal", mu=0, sigma=1),
        intercept=0,
    ),
    # inverse Gaussian scales, and σ² with them and with the coefficients
    "park casella": bb.load_model("bayesian_lasso").with_priors(
        lambda2=bb.Prior("Gamma", alpha=2, beta=1), sigma2=IG, intercept=0
    ),
    "logistic": bb.load_model("hierarchical_logistic"),
    "product": REWRITTEN["hierarchy"],
}


def ranks(model, datasets, thin, sampler=None, told=None, seed=0):
    """The ranks (datasets, m) of the numbers of each variable, by name.

    told: the model whose posterior is sampled, if it is another one.
    """
    rng = np.random.default_rng([zlib.crc32(model.name.encode()), datasets, seed])
    rows = {"x": rng.normal(size=(N, D)), "arm": np.arange(N) % K}
    arms = K if model.takes_arm else None
    over = {"arm": rows["arm"], "n_arms": K} if arms else {}
    built = model.build(rows["x"], np.zeros(N), **over)
    free, [observed] = list(built.free_RVs), built.observed_RVs
    *truth, rewards = pm.draw([*free, observed], draws=datasets, random_seed=rng)
    sampler = sampler or plan(told or model, D, arms, "gibbs").method
    found = {v.name: [] for v in free}
    refused = 0  # rewards that are beyond all digits beside their prior
    for i, reward in enumerate(rewards):
        try:
            drawn = sampler.sample(rows | {"reward": reward}, thin * DRAWS, 1, 200, seed=i).values
        except Improper:
            refused += 1
            continue
        for variable, values in zip(free, truth, strict=True):
            below = (drawn[variable.name][0, ::thin] < values[i]).sum(axis=0)
            found[variable.name].append(np.ravel(below))
    assert refused <= datasets / 1000
    return {name: np.array(each) for name, each in found.items()}


def p_values(ranks):
    counts = [np.bincount(r * BINS // (DRAWS + 1), minlength=BINS) for r in ranks.T]
    return [stats.chisquare(c).pvalue for c in counts]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("datasets", "thin"), [(64, 20), pytest.param(2000, 40, marks=pytest.mark.long)]
)
@in_gate(7)
def test_ranks_are_uniform(name, datasets, thin):
    for variable, found in ranks(MODELS[name], datasets, thin).items():
        assert min(p_values(found)) > 1e-4, variable


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "product"])
def test_scales_from_another_prior_are_found_out(name):
    wide = MODELS[name].with_priors(tau=bb.Prior("HalfNormal", sigma=6))
    found = ranks(wide, 32, 12, told=MODELS[name])
    assert p_values(found["tau"])[0] < 1e-4


@pytest.mark.slow
def test_draws_of_a_product_are_no_draws_of_its_factor():
    """Draws of τ z in the place of those of z are found out."""
    whole = copy(plan(MODELS["product"], D, K).method)
    whole.divided = None
    found = ranks(MODELS["product"], 128, 12, sampler=whole)
    assert min(p_values(found["z"])) < 1e-4
