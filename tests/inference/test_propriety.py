"""Rewards that some means fit exactly, under noise that may vanish: no posterior, and said so.

With n rewards that means of rank d fit exactly, σ has the density σ^−n σ^d times its prior's: near
0 this has no integral where the prior vanishes slower than σ^(n − d − 1).
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.base import Improper
from bayesbandit.inference.gibbs.sampler import Gibbs, match
from bayesbandit.model import reward_model
from tests.cases import few, slow_but

D = 3
THETA = Prior("Normal", mu=0, sigma=1, dims="feature")
PRIORS = {
    "half-normal": Prior("HalfNormal", sigma=1),
    "half-Cauchy": Prior("HalfCauchy", beta=1),
    "half-t": Prior("HalfStudentT", nu=3, sigma=1),
    "exponential": Prior("Exponential", lam=1),
    "uniform": Prior("Uniform", lower=0, upper=10),
    "inverse gamma": Prior("InverseGamma", alpha=2, beta=1),
    "log-normal": Prior("LogNormal", mu=0, sigma=1),
    "bounded": Prior("Uniform", lower=0.01, upper=10),
    "gamma of 40": Prior("Gamma", alpha=40, beta=1),
}
VANISHING = {"inverse gamma", "log-normal", "bounded", "gamma of 40"}


def linear(s, noise=lambda mu, s: pm.Normal.dist(mu, s), theta=THETA):
    """Rewards about x'θ under noise of scale s."""

    @reward_model(theta=theta, s=s)
    def model(x, reward, theta, s):
        mu = x @ theta
        pm.Potential("r", pm.logp(noise(mu, s), reward))
        return mu

    return model


@reward_model(theta=THETA, s=PRIORS["half-Cauchy"])
def student(x, reward, theta, s):
    mu = x @ theta
    pm.StudentT("r", nu=4, mu=mu, sigma=s, observed=reward)
    return mu


@reward_model(theta=THETA, s=PRIORS["half-normal"])
def laplace(x, reward, theta, s):
    mu = x @ theta
    pm.Laplace("r", mu, s, observed=reward)
    return mu


@reward_model(s=PRIORS["half-normal"])
def scaled(x, reward, s):
    theta = pm.Normal("theta", 0, s, dims="feature")
    mu = x @ theta
    pm.Normal("r", mu, s, observed=reward)
    return mu


@reward_model(theta=THETA, s=Prior("HalfNormal", sigma=1, dims="arm"))
def by_arm(x, reward, arm, theta, s):
    mu = x @ theta
    pm.Normal("r", mu, s[arm], observed=reward)
    return mu


@reward_model(tau=PRIORS["half-normal"], s=PRIORS["half-normal"])
def hierarchy(x, reward, tau, s):
    theta = pm.Normal("theta", 0, tau, dims="feature")
    mu = x @ theta
    pm.Normal("r", mu, s, observed=reward)
    return mu


def rows(n=30, exact=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    return {"x": x, "reward": x @ rng.normal(size=D) + (0.0 if exact else rng.normal(size=n))}


def proper(model, data, n_arms=None):
    """Whether the sampler of these rows takes them."""
    built = model.build(data["x"], data["reward"], None, data.get("arm"), n_arms)
    found = match(built)
    assert isinstance(found, Gibbs), found
    try:
        found.check_proper(data)
    except Improper:
        return False
    return True


@pytest.mark.parametrize("name", slow_but(("half-Cauchy", "uniform", "inverse gamma"), PRIORS))
@few("uniform")
def test_noise_may_not_vanish_where_means_fit_exactly(name):
    model = linear(PRIORS[name])
    assert proper(model, rows()) == (name in VANISHING)
    assert proper(model, rows() | {"reward": np.zeros(30)}) == (name in VANISHING)
    assert proper(model, rows(exact=False))


@reward_model(s=PRIORS["log-normal"])
def hierarchical(x, reward, s):
    tau = pm.HalfNormal("tau", 1)
    mu = x @ pm.Normal("theta", 0, tau, dims="feature")
    pm.Normal("r", mu, s, observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize(("n", "model"), [(40, linear(PRIORS["log-normal"])), (500, hierarchical)])
def test_noise_below_the_rounding_of_means_is_refused(n, model):
    """Under a log-normal prior σ is about e^−(n − D) where means fit exactly: a distribution, and
    none whose means float64 can hold, or whose squares."""
    x = rows(n)["x"].round(1)
    exact = x @ [0.5, 2.0, -1.0] if n == 40 else np.zeros(n)
    with pytest.raises(Improper, match="means fit rewards to all their digits"):
        bb.fit(model, x, exact, draws=100, chains=1, seed=0)
    apart = exact + 0.1 * (np.arange(n) > n - 9)
    fitted = bb.fit(model, x, apart, draws=100, chains=1, seed=0)
    assert fitted.engine == "gibbs"
    assert fitted.draws["s"].min() > 1e-3


@pytest.mark.parametrize("of", ["sd", "variance"])
@pytest.mark.slow
def test_as_many_rewards_as_means_and_one_more(of):
    """Under a flat density of σ at 0, σ^−n σ^D is integrable for n ≤ D alone; of σ², σ^−n+D+1."""
    noise = {"sd": pm.Normal.dist, "variance": lambda mu, s: pm.Normal.dist(mu, pt.sqrt(s))}[of]
    model, most = linear(PRIORS["half-normal"], noise), D + (of == "variance")
    for n in (D, D + 1, D + 2):
        assert proper(model, rows(n)) == (n <= most)


@pytest.mark.slow
def test_as_many_rewards_as_the_rank():
    sd, same = linear(PRIORS["half-normal"]), rows(D + 2)
    same["x"] = np.repeat(same["x"][:1], D + 2, axis=0)  # of rank 1
    same["reward"] = np.ones(D + 2)
    assert not proper(sd, {k: v[:2] for k, v in same.items()})
    assert not proper(sd, same)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [student, laplace, hierarchy],
    ids=["t", "laplace", "hierarchy"],
)
def test_mixtures_and_hierarchies(model):
    assert not proper(model, rows())
    assert proper(model, rows(D))
    assert proper(model, rows(exact=False))


@reward_model(theta=THETA)
def expanded(x, reward, theta):
    """√v is half-Cauchy."""
    a = pm.InverseGamma("a", 0.5, 1.0)
    v = pm.InverseGamma("v", 0.5, 1 / a)
    mu = x @ theta
    pm.Normal("r", mu, pt.sqrt(v), observed=reward)
    return mu


@reward_model(theta=THETA, tau=PRIORS["half-Cauchy"])
def precise(x, reward, theta, tau):
    mu = x @ theta
    pm.Normal("r", mu, 1 / pt.sqrt(tau), observed=reward)
    return mu


@reward_model(s=PRIORS["half-normal"])
def horseshoe(x, reward, s):
    local = pm.HalfCauchy("local", 1, dims="feature")
    theta = pm.Normal("theta", 0, s * local, dims="feature")
    mu = x @ theta
    pm.Normal("r", mu, s, observed=reward)
    return mu


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "most"),
    [(expanded, D), (precise, D + 1), pytest.param(horseshoe, 2 * D, marks=pytest.mark.slow)],
    ids=["half-Cauchy sd", "half-Cauchy precision", "horseshoe"],
)
def test_scales_that_are_mixed_may_vanish_too(model, most):
    """σ^−n σ^D, times 1 of a half-Cauchy σ, σ of a half-Cauchy 1/σ², and, of coefficients that are
    scaled by σ, σ for each local scale that keeps its coefficient where it is."""
    assert proper(model, rows(most))
    assert not proper(model, rows(most + 1))
    assert proper(model, rows(exact=False))


@pytest.mark.slow
def test_two_scales_may_vanish_together():
    """Of rewards that are all 0: σ^−n τ^−D, of which a volume of σ^D is left, and σ τ of what is
    flat in both."""
    data = rows()
    zeros = {n: {"x": data["x"][:n], "reward": np.zeros(n)} for n in (1, 2, D)}
    assert proper(hierarchy, zeros[1])
    assert not proper(hierarchy, zeros[2])
    assert not proper(hierarchy, zeros[D])
    assert proper(hierarchy, rows(D))


@pytest.mark.slow
@pytest.mark.parametrize("others", [1, 9, 10, 20])
def test_tails_of_a_power_do_not_hold_noise_up(others):
    """m rewards that are not fitted cost σ^4m, of Student-t noise with 4 degrees of freedom, which
    the others outweigh from n − m − D − 4m ≥ 1 on; those of Laplace noise cost more than that."""
    n = 50
    data = rows(n)
    data["reward"][:: n // others][:others] += np.random.default_rng(1).normal(size=others)
    fitted = n - others
    assert proper(student, data) == (fitted - D - 4 * others < 1)
    assert proper(laplace, data)
    zeros = data | {"reward": np.where(np.arange(n) < others, data["reward"], 0.0)}
    assert proper(student, zeros) == (fitted - D - 4 * others < 1)


@pytest.mark.slow
def test_a_prior_scaled_with_the_noise_is_fitted_too():
    """θ/σ is standard normal: only rewards of 0 are fitted without noise."""
    assert proper(scaled, rows())
    assert not proper(scaled, rows(2) | {"reward": np.zeros(2)})


@pytest.mark.slow
def test_the_noise_of_one_arm_alone():
    data = rows(exact=False) | {"arm": np.arange(30) % 3}
    assert proper(by_arm, data, 3)
    quiet = data | {"reward": np.where(data["arm"] == 1, 0.0, data["reward"])}
    assert not proper(by_arm, quiet, 3)


@pytest.mark.slow
def test_a_residual_is_none_only_to_rounding():
    data = rows()
    for size, is_proper in ((1e-15, False), (1e-11, True)):
        noise = size * np.random.default_rng(1).normal(size=30)
        assert proper(hierarchy, data | {"reward": data["reward"] + noise}) == is_proper


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "gibbs", "nuts"])
def test_a_fit_says_so_by_every_engine(engine):
    with pytest.raises(Improper, match=r"'s' ~ HalfNormal: no proper posterior"):
        bb.fit(hierarchy, **rows(), engine=engine)


@pytest.mark.slow
def test_flat_means_of_too_few_rows_have_no_posterior_by_any_engine():
    """The next engine, the no-U-turn sampler, drew on."""

    @reward_model(theta=Prior("Flat", dims="feature"))
    def flat(x, reward, theta):
        mu = x @ theta
        pm.Normal("r", mu, 1.0, observed=reward)
        return mu

    with pytest.raises(Improper, match="'theta' ~ Flat: improper"):
        bb.fit(flat, **rows(D - 1))


@pytest.mark.slow
def test_an_improper_variance_and_a_perfect_fit_under_a_fixed_prior():
    """σ² ~ 1/σ², of the kernel, which saw no perfect fit of more rows than coefficients."""

    @reward_model(theta=Prior("Laplace", mu=0, b=1, dims="feature"), s2=PRIORS["inverse gamma"])
    def jeffreys(x, reward, theta, s2):
        mu = x @ theta
        pm.Normal("r", mu, pt.sqrt(s2), observed=reward)
        pm.Potential("flat", 2.0 * pt.log(s2) + 1.0 / s2)
        return mu

    assert bb.fit(jeffreys, **rows(exact=False), seed=0, draws=50, chains=1).engine == "gibbs"
    with pytest.raises(Improper):
        bb.fit(jeffreys, **rows())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", pytest.param("nuts", marks=pytest.mark.slow)])
def test_a_bandit_waits_for_rewards_that_differ(engine):
    data = rows(exact=False)
    bandit = bb.Bandit(
        2,
        bb.Sampled(hierarchy, refit_every=1, draws=20, engine=engine),
        bb.Thompson(),
        n_features=D,
        seed=0,
    )
    first = slice(0, 10)
    bandit.update(data["x"][first], np.zeros(10, int), np.zeros(10), np.ones(10))
    assert bandit.belief.new.tolist() == [True, True]
    bandit.update(data["x"], np.zeros(30, int), data["reward"], np.ones(30))
    assert bandit.belief.new.tolist() == [False, True]
