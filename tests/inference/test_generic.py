"""The compiled generic sweep samples what is declared, on the rows at hand, or is refused.

Rows are unlike any template: integers, repeated ones, weights over orders of magnitude.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayesbandit as bb
from bayesbandit.declaring.priors import Prior
from bayesbandit.inference.base import NotThisEngine, Refusal
from bayesbandit.inference.gibbs.problem import lay_out
from bayesbandit.inference.gibbs.sampler import Gibbs, match
from bayesbandit.model import reward_model
from tests.cases import in_gate
from tests.declarations import EACH, HALF, normal_rewards
from tests.inference.declared import log_densities
from tests.inference.test_gibbs import BLOCKS, plain, student

IG = Prior("InverseGamma", alpha=2, beta=2)
FINITE = pm.distributions.transforms.Interval(lower=0.2, upper=5.0)


def declared(sd, theta=EACH, s=HALF, observed=None):
    """Rewards N(x'θ, sd(s, x, weight, n)), of which `observed` is seen."""

    @reward_model(theta=theta, s=s)
    def model(x, reward, weight, theta, s):
        mu = x @ theta
        seen = reward if observed is None else observed(reward)
        n = reward.shape[0].astype("float64")
        pm.Normal("r", mu, sd(s, x, weight, n), observed=seen)
        return mu

    return model


def potential(f, s=IG):
    """A potential f(s, r − μ) beside N(μ, s)."""

    @reward_model(theta=EACH, s=s)
    def model(x, reward, weight, theta, s):
        mu = x @ theta
        pm.Normal("r", mu, pt.sqrt(s), observed=reward)
        pm.Potential("p", f(s, reward - mu))
        return mu

    return model


@reward_model(theta=EACH, s=Prior("HalfNormal", sigma=1, dims="arm"))
def by_arm(x, reward, arm, theta, s):
    return normal_rewards(x @ theta, s[arm], reward, "r")


@reward_model(mu0=EACH, tau=HALF, sigma=HALF)
def hierarchy(x, reward, arm, mu0, tau, sigma):
    theta = pm.Normal("theta", mu0, tau, dims=("arm", "feature"))
    return normal_rewards((x * theta[arm]).sum(axis=-1), sigma, reward, "r")


@reward_model(theta=EACH, tau=HALF, sigma=HALF)
def users(x, reward, theta, tau, sigma):
    u = pm.Normal("u", 0, tau, shape=4)
    return normal_rewards(x @ theta + u[pt.abs(x[:, 0]).astype("int64") % 4], sigma, reward, "r")


@reward_model(theta=EACH, a=HALF, b=Prior("LogNormal", mu=0, sigma=0.5))
def product(x, reward, theta, a, b):
    return normal_rewards(x @ theta, a * b, reward, "r")


@reward_model(sigma=HALF)
def correlated(x, reward, sigma):
    C = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 2.0]])
    theta = pm.MvNormal("theta", np.ones(3), chol=pt.constant(np.linalg.cholesky(C)), shape=3)
    return normal_rewards(x @ theta, sigma, reward, "r")


@reward_model(theta=EACH)
def truncated(x, reward, theta):
    s = pm.Normal("s", 1, 1, transform=FINITE)
    return normal_rewards(x @ theta, s, reward, "r")


@reward_model(theta=EACH, q=Prior("Gamma", alpha=2, beta=2, dims="row"), s=HALF)
def by_row_before_others(x, reward, theta, q, s):
    return normal_rewards(x @ theta, s / pt.sqrt(q), reward, "r")


SWEPT = {
    "a variable by row before others": by_row_before_others,
    "switch on x": declared(lambda s, x, w, n: pt.switch(x[:, 2] > 100, 16 * s, s)),
    "weights with a power": declared(lambda s, x, w, n: s / w**1.5),
    "scale by row number": declared(lambda s, x, w, n: s * pt.sqrt(1 + pt.arange(x.shape[0]))),
    "scale by n": declared(lambda s, x, w, n: s * pt.sqrt(n / 10)),
    "tempering": declared(lambda s, x, w, n: s * pt.sqrt(pt.maximum(1, n / 20))),
    "scale by x": declared(lambda s, x, w, n: s * pt.exp(0.1 * x[:, 1])),
    "mean weight": declared(lambda s, x, w, n: s * pt.sqrt(w.mean() / w)),
    "scale by group of x": declared(
        lambda s, x, w, n: s[pt.argmax(x, axis=1)],
        s=Prior("HalfNormal", sigma=1, dims="feature"),
    ),
    "clipped": declared(lambda s, x, w, n: s, observed=lambda r: pt.clip(r, -5, 5)),
    "bounded far from 1": declared(lambda s, x, w, n: s, s=Prior("Uniform", lower=30, upper=50)),
    "lag": potential(lambda s, e: -0.2 * ((e[7:] - e[:-7]) ** 2).sum() / s),
    "powers": potential(lambda s, e: -(s**3) - 1 / s**1.5 + pt.log(s) - pt.log(s) ** 2),
    "sum of all": potential(lambda s, e: -(e.sum() ** 2) / s),
    "a constant beside squares": potential(lambda s, e: -0.5 / s),
    "by arm": by_arm,
    "hierarchy": hierarchy,
    "users": users,
    "product of scales": product,
    "correlated prior": correlated,
    "truncated by its transform": truncated,
}
REFUSED = {
    "sum of variances": (
        declared(lambda s, x, w, n: pt.sqrt(s**2 + 1)), "'r' ~ Normal: its precision is no mono",
    ),
    "a wall": (potential(lambda s, e: pt.switch(s < 5, 0.0, -np.inf)), "function lt of 's'"),
    "kink": (potential(lambda s, e: pt.switch(s > 2, -s, 0.0)), "potential 'p': "),
    "scale of a residual": (potential(lambda s, e: -abs(e).sum() / s), "abs"),
    "quartic": (potential(lambda s, e: -(e**4).sum()), "power 4"),
    "product of logarithms": (
        potential(lambda s, e: pt.log(s) * s), "no sum of logarithms and powers of 's'",
    ),
    "degrees of freedom": (
        student.with_priors(nu=Prior("Gamma", alpha=2, beta=0.1)),
        "'reward' ~ StudentT, as a mixture: ",
    ),
    "negative": (
        plain.with_priors(sigma2=Prior("Uniform", lower=-1, upper=2)), "~ Uniform: interval",
    ),
    "no block": (plain.with_priors(theta=1.0), "no real variable"),
}  # fmt: skip


def rows(model, seed=0, n=40, scale=1.0):
    """Integer contexts, many of them twice, and weights from .01 to 100."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, size=(n // 2, 3)).astype(float)
    x = np.concatenate([x, x])
    x[::7, 2] = 101.0
    data = {"x": x, "reward": scale * (x[:, 0] - x[:, 1] + 8 * rng.normal(size=len(x)))}
    if model.takes_weight:
        data["weight"] = 10.0 ** rng.uniform(-2, 2, len(x))
    return data | ({"arm": rng.integers(0, 3, len(x))} if model.takes_arm else {})


def matched(model, data) -> Gibbs:
    found = match(model.build(**data))
    assert isinstance(found, Gibbs), found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEPT | BLOCKS)
@in_gate(20)
def test_the_sweep_has_the_log_density_of_the_declaration(name):
    """PyMC's own less ours is constant, on rows that the engine was not made with, however they
    are laid out; where it is −∞ the sweep does not go. Given the scales, coefficients have the
    precision of the density."""
    model = (SWEPT | BLOCKS)[name]
    found, data = matched(model, rows(model)), rows(model, seed=1, n=26)
    assert not set(found.auxiliary) & set(found.names)
    own = found.data(**data)
    whole, by_form, rng = lay_out(found, own), found.target(own)[0], np.random.default_rng(2)
    np.testing.assert_array_equal(by_form.moves.speed, whole.moves.speed)
    ours, others, points = [], [], []
    for _ in range(6):
        theta, u = 3 * rng.normal(size=whole.layout.dim), rng.normal(size=whole.size)
        u = whole.inside(u)
        points.append(whole.named(theta, u))
        ours.append(whole.layout.log_density(theta, u))
        others.append(by_form.layout.log_density(theta, u))
        given = [points[-1][v.name] for v in found.given]
        prior, likelihood = (found.natural(part, given) for part in (None, own))
        precision, shift = whole.natural(u)
        shift = shift + precision @ whole.layout.centre
        for mine, terms in ((precision, 0), (shift, 1)):
            total = prior[terms] + likelihood[terms]
            np.testing.assert_allclose(mine, total, rtol=1e-9, atol=1e-9 * np.abs(total).max())
    assert np.ptp(np.subtract(others, ours)) < 1e-8 * max(1.0, np.abs(ours).max())
    draws = found.sample(data, 50, 1, seed=3).values
    if found.auxiliary:  # which PyMC's density has integrated out
        return
    built = pm.model.transform.conditioning.remove_value_transforms(model.build(**data))
    points += [{k: v[0, i] for k, v in draws.items()} for i in range(0, 50, 10)]
    said = log_densities(built, points)
    assert np.isfinite(said).all()
    assert np.ptp(said[:6] - ours) < 1e-9 * max(1.0, np.abs(said[:6]).max())


@pytest.mark.parametrize("name", REFUSED)
def test_a_term_of_another_form_is_refused(name):
    model, words = REFUSED[name]
    refusal = match(model.build(**rows(model)))
    assert isinstance(refusal, Refusal)
    assert refusal.engine == "gibbs"
    assert words in refusal.reason


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_of_features_next_to_nothing_the_prior_is_known(size):
    """Least squares would fit such rewards by coefficients of 1e12 and more."""
    rng = np.random.default_rng(0)
    x, reward = 1e-12 * rng.normal(size=(60, 2)), size * (1.0 + rng.normal(size=60))
    by_rows = declared(lambda s, x, w, n: s * (1.0 + 0.1 * pt.arange(x.shape[0])) / pt.sqrt(w))
    data = {"x": x, "reward": reward, "weight": rng.uniform(0.1, 10.0, 60)}
    theta = matched(by_rows, data).sample(data, 4000, 1, seed=0).values["theta"][0]
    assert (np.abs(theta.mean(axis=0)) < 4.0 / np.sqrt(4000)).all()
    np.testing.assert_allclose(theta.std(axis=0), 1.0, rtol=4.0 / np.sqrt(8000))


@pytest.mark.slow
def test_means_that_are_far_from_rewards_of_known_noise_keep_their_digits():
    """By 10¹¹ sds: a common stretch of coefficients and their scale saw rounding alone."""

    @reward_model(tau=HALF)
    def far(x, reward, tau):
        theta = pm.Normal("theta", 0, tau, dims="feature")
        return normal_rewards(x[:, :1] @ theta[:1] - 0.5 * x[:, 0] ** 2, 1.0, reward, "r")

    x = 1e6 * np.random.default_rng(0).normal(size=(40, 2))
    posterior = bb.fit(far, x, np.zeros(40), seed=0)
    assert posterior.engine == "gibbs"
    mean, covariance = posterior.coefficients["theta"]
    a, b = x[:, 0] @ x[:, 0], x[:, 0] @ (0.5 * x[:, 0] ** 2)
    assert abs(mean[0] - b / a) < 0.1 / np.sqrt(a)
    assert abs(covariance[0, 0] * a - 1) < 0.2


@pytest.mark.slow
def test_the_identity_is_tested_on_the_rows():
    """A layout that says something else is found out."""
    model = SWEPT["by arm"]
    data = rows(model)
    found = matched(model, data)
    whole = lay_out(found, found.data(**data))
    state = found.start(len(data["x"]), np.random.default_rng(0))
    whole.check(state, np.random.default_rng(1))
    whole.layout.terms.linear[0] += 1e-3
    with pytest.raises(NotThisEngine, match="differs from the sampler's on these rows"):
        whole.check(state, np.random.default_rng(1))


@pytest.mark.parametrize("before", [0, 1])
def test_a_chain_begins_where_the_density_is(before):
    """Rewards ask for θ of 10³ prior sds; under heavy tails they are outliers, however few they
    are. Also where a chain goes on with rows that are new."""

    @reward_model(theta=EACH)
    def narrow(x, reward, theta):
        mu = x @ theta
        pm.StudentT("r", nu=4, mu=mu, sigma=1.0, observed=reward)
        return mu

    rng = np.random.default_rng(0)
    x = 1e3 * rng.normal(size=(7, 2))
    data = {"x": x, "reward": x @ [1e3, -1e3], "weight": np.ones(7)}
    method, start = matched(narrow, data), None
    if before:
        start = method.sample({k: v[:before] for k, v in data.items()}, 50, 1, seed=1).state
    draws = method.sample(data, 400, 1, seed=2, start=start).values["theta"]
    assert np.abs(draws).max() < 6
