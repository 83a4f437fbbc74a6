"""Generalised linear models: which declarations are, and what is drawn from their posteriors."""

import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize
from scipy.special import expit, ndtr

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.glm.augmented import Augmented, match
from bayesbandit.inference.glm.regression import mode, regression
from bayesbandit.inference.plan import plan
from bayesbandit.inference.pymc_model.template import template
from bayesbandit.kernels.glm.families import BINOMIAL, NEGATIVE_BINOMIAL, POISSON, PROBIT
from tests.cases import few, in_gate, slow_but

EACH = bb.Prior("Normal", mu=0, sigma=1, dims="feature")
QUICK = {"mode": "FAST_COMPILE"}
BY_ARM = bb.Prior("Normal", mu=0, sigma=1, dims=("arm", "feature"))


def declared(function, **priors):
    return bb.reward_model(**({"theta": EACH} | priors))(function)


def bernoulli(eta, reward):
    p = pm.math.sigmoid(eta)
    pm.Bernoulli("r", p, observed=reward)
    return p


def by_log_odds(eta, reward):
    pm.Bernoulli("r", logit_p=eta, observed=reward)
    return pm.math.sigmoid(eta)


def by_hand(eta, reward):
    p = 1 / (1 + pm.math.exp(-eta))
    pm.Potential("r", (reward * pm.math.log(p) + (1 - reward) * pm.math.log(1 - p)).sum())
    return p


def probit(eta, reward):
    p = pm.math.invprobit(eta)
    pm.Bernoulli("r", p, observed=reward)
    return p


def binomial(eta, reward):
    p = pm.math.sigmoid(eta)
    pm.Binomial("r", n=7, p=p, observed=reward)
    return 7 * p


def poisson(eta, reward):
    mu = pm.math.exp(eta)
    pm.Poisson("r", mu, observed=reward)
    return mu


def negative_binomial(eta, reward, times=1):
    mu = times * pm.math.exp(eta)
    pm.NegativeBinomial("r", mu=mu, alpha=2.5, observed=reward)
    return mu


def three_times(eta, reward):
    return negative_binomial(eta, reward, 3)


KINDS = {
    bernoulli: BINOMIAL, by_log_odds: BINOMIAL, by_hand: BINOMIAL, binomial: BINOMIAL,
    probit: PROBIT, poisson: POISSON, negative_binomial: NEGATIVE_BINOMIAL,
    three_times: NEGATIVE_BINOMIAL,
}  # fmt: skip
PREDICTORS = {  # of x and θ; how often x @ θ counts, and what is added to it
    "x @ θ": (lambda x, t: x @ t, 1, lambda x: 0.0),
    "a constant": (lambda x, t: 0.5 + x @ t, 1, lambda x: 0.5),
    "less a column": (lambda x, t: x @ t - 0.5 * x[:, 0], 1, lambda x: -0.5 * x[:, 0]),
    "within": (lambda x, t: 0.3 + x @ (0.2 + 2 * t), 2, lambda x: 0.3 + 0.2 * x.sum(axis=1)),
    "taken from": (lambda x, t: 1 - x @ t, -1, lambda x: 1.0),
    "a sine": (lambda x, t: x @ t + pm.math.sin(x[:, 0]), 1, lambda x: np.sin(x[:, 0])),
    "an exposure": (
        lambda x, t: x @ t + pm.math.log(1 + pm.math.abs(x[:, 0])), 1,
        lambda x: np.log(1 + abs(x[:, 0])),
    ),
}  # fmt: skip


def of(likelihood, predictor="x @ θ"):
    def model(x, reward, theta):
        return likelihood(PREDICTORS[predictor][0](x, theta), reward)

    return declared(model)


WRITTEN = [(likelihood, "x @ θ") for likelihood in KINDS] + [
    (by_log_odds, "a constant"), (probit, "a constant"), (bernoulli, "less a column"),
    (negative_binomial, "within"), (by_log_odds, "a sine"), (binomial, "taken from"),
    (poisson, "an exposure"), (three_times, "a constant"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "predictor"), WRITTEN)
@in_gate(9)
def test_declarations_are_recognised_however_they_are_written(likelihood, predictor, rng):
    """The predictor is what was declared, and the mode where the density has it: found by another
    optimiser."""
    model, kind, (_, times, offset) = (
        of(likelihood, predictor),
        KINDS[likelihood],
        PREDICTORS[predictor],
    )
    glm = regression(template(model, 2, None), "gibbs")
    assert (glm.family.kind, glm.weighted, glm.block.noise) == (kind, False, 1.0)
    assert glm.block.streams
    assert (glm.block.features is not None) == (predictor not in ("a sine", "an exposure"))
    x, reward = world(kind, 30, 2, rng)
    A, b = glm.block.linear_map(x)
    np.testing.assert_allclose(A, times * x, atol=1e-12)
    added = np.log(3) if likelihood is three_times else 0.0
    np.testing.assert_allclose(b, np.broadcast_to(offset(x) + added, 30), atol=1e-12)
    ours = glm.laplace(A, b, glm.block.data(x, reward)).mean
    built = model.build(x, reward)
    logp, dlogp = built.compile_logp(**QUICK), built.compile_dlogp(**QUICK)  # PyMC's own
    theirs = minimize(
        lambda t: -float(logp({"theta": t})), np.zeros(2), jac=lambda t: -dlogp({"theta": t}),
        method="BFGS", options={"gtol": 1e-9},
    )  # fmt: skip
    np.testing.assert_allclose(ours, theirs.x, atol=1e-5)


def with_intercept(x, reward, alpha, theta):
    return negative_binomial(alpha + x @ theta, reward)


def over_arms(x, reward, arm, theta):
    return bernoulli((x * theta[arm]).sum(axis=-1), reward)


def hierarchy(x, reward, arm):
    centre = pm.Normal("centre", 0, 1, dims="feature")
    theta = pm.Normal("theta", centre, 0.5, dims=("arm", "feature"))
    return pm.Deterministic("p", bernoulli((x * theta[arm]).sum(axis=-1), reward))


OTHERS = {
    "logistic": (bb.load_model("logistic"), BINOMIAL, True),
    "probit": (bb.load_model("probit"), PROBIT, True),
    "poisson": (bb.load_model("poisson"), POISSON, True),
    "with intercept": (
        declared(with_intercept, alpha=bb.Prior("Normal", mu=-1, sigma=2)), NEGATIVE_BINOMIAL,
        False,
    ),
    "over arms": (declared(over_arms, theta=BY_ARM), BINOMIAL, False),
    "hierarchy": (bb.reward_model()(hierarchy), BINOMIAL, False),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
@few("logistic")
def test_weights_intercepts_and_arms_are_recognised(name):
    model, kind, weighted = OTHERS[name]
    glm = regression(template(model, 3, 2 if model.takes_arm else None), "gibbs")
    assert (glm.family.kind, glm.weighted, glm.block.noise) == (kind, weighted, 1.0)
    assert glm.block.streams


def refused(mean=lambda p, eta, x: p, likelihood=None, more=None, **priors):
    def other(x, reward, weight, theta):
        eta = x @ theta
        p = pm.math.sigmoid(eta)
        if likelihood is None:
            pm.Bernoulli("r", p, observed=reward)
        else:
            likelihood(p, eta, x, reward, weight)
        if more is not None:
            more(p, eta, x, reward, weight, theta)
        return mean(p, eta, x)

    return declared(other, **priors)


def observed(p_of):
    return lambda p, eta, x, reward, weight: pm.Bernoulli("r", p_of(p, eta, x), observed=reward)


def potential(term):
    return lambda *given: pm.Potential("more", term(*given))


def with_epsilon(size):
    def likelihood(p, eta, x, reward, weight):
        won, lost = pm.math.log(p + size), pm.math.log(1 - p + size)
        pm.Potential("r", (reward * won + (1 - reward) * lost).sum())

    return likelihood


def capped(p, eta, x, reward, weight):
    pm.Potential("r", math_.minimum(weight, 5.0) * pm.logp(pm.Bernoulli.dist(p), reward))


math_ = pm.math
UNLIKE = {
    "an epsilon beside p": refused(likelihood=with_epsilon(1e-8)),
    "weights up to 5": refused(likelihood=capped),
    "a mean of the same at 0 and 1": refused(mean=lambda p, eta, x: math_.sigmoid(eta**3)),
    "clipped": refused(likelihood=observed(lambda p, eta, x: math_.clip(p, 0.01, 0.99))),
    "mixed with chance": refused(likelihood=observed(lambda p, eta, x: 0.05 + 0.9 * p)),
    "tempered": refused(likelihood=observed(lambda p, eta, x: math_.sigmoid(0.5 * eta))),
    "flipped": refused(likelihood=observed(lambda p, eta, x: 1 - p)),
    "another predictor": refused(
        likelihood=observed(lambda p, eta, x: math_.sigmoid(eta + 0.1 * x[:, 0] * eta))
    ),
    "switched": refused(likelihood=observed(lambda p, eta, x: math_.switch(eta > 4, 0.99, p))),
    "rows in pairs": refused(
        likelihood=observed(lambda p, eta, x: math_.sigmoid(math_.concatenate([eta[1:], eta[:1]])))
    ),
    "a potential of p": refused(more=potential(lambda p, *_: math_.log(p).sum())),
    "a wall": refused(
        more=potential(lambda p, eta, x, r, w, theta: math_.switch(theta[0] > 0, 0.0, -np.inf))
    ),
    "weights squared": refused(
        likelihood=lambda p, eta, x, reward, weight: pm.Potential(
            "l", weight**2 * pm.logp(pm.Bernoulli.dist(p), reward)
        )
    ),
    "flat prior": refused(theta=bb.Prior("Flat", dims="feature")),
    "truncated prior": refused(
        theta=bb.Prior("TruncatedNormal", mu=0, sigma=1, lower=-1, upper=1, dims="feature")
    ),
    "a mean of the other chance": refused(mean=lambda p, eta, x: 1 - p),
}


LEAST = (
    *("an epsilon beside p", "weights up to 5", "a mean of the same at 0 and 1", "clipped"),
    *("mixed with chance", "flipped", "rows in pairs", "a wall"),
)


@few("[weights up to 5]")
@pytest.mark.parametrize("name", slow_but(LEAST, UNLIKE))
def test_declarations_unlike_them_are_refused_or_are_the_same(name, rng):
    """What is sampled has the model's own log density, or it is not sampled."""
    model = UNLIKE[name]
    found = match(template(model, 3, None))
    if not isinstance(found, Augmented):
        assert found.reason
        return
    x, reward = rng.normal(size=(40, 3)), rng.integers(0, 2, 40).astype(float)
    data = {"x": x, "reward": reward, "weight": rng.uniform(0.5, 2, 40)}
    with pytest.raises(NotThisEngine):
        found.sample(data, draws=10, chains=1)


def test_a_heavy_prior_is_no_normal_one():
    """`Regression` has normal priors alone; the sampler takes mixtures of normals as well."""
    model = refused(theta=bb.Prior("StudentT", nu=3, mu=0, sigma=1, dims="feature"))
    with pytest.raises(NotThisEngine, match="'theta' ~ StudentT"):
        regression(template(model, 3, None), "laplace")


@pytest.mark.slow
def test_counts_that_are_censored_are_found_at_the_first_of_them(rng):
    """In a stream: at a reward that was not there before."""

    def censored(x, reward, theta):
        mu = pm.math.exp(x @ theta)
        pm.Poisson("r", mu, observed=pm.math.minimum(reward, 1000))
        return mu

    made = bb.Bandit(1, bb.Laplace(declared(censored)), bb.Thompson(), n_features=2)
    made.update(rng.normal(size=(9, 2)), [0] * 9, np.arange(9.0), np.ones(9))
    with pytest.raises(ValueError, match="not Poisson"):
        made.update(np.ones((1, 2)), [0], [1001.0], [1.0])
    assert made.belief.n.sum() == 9


def world(kind, n, d, rng):
    x = rng.normal(size=(n, d))
    eta = x @ rng.normal(size=d)
    reward = {
        BINOMIAL: lambda: rng.random(n) < expit(eta),
        PROBIT: lambda: rng.random(n) < ndtr(eta),
        POISSON: lambda: rng.poisson(np.exp(0.4 * eta)),
        NEGATIVE_BINOMIAL: lambda: rng.negative_binomial(2.5, 2.5 / (2.5 + np.exp(0.4 * eta))),
    }[kind]().astype(float)
    return x, reward


@pytest.mark.slow
def test_a_mode_that_is_not_found_is_no_mode():
    glm = regression(template(bb.load_model("logistic"), 2, None), "gibbs")
    with pytest.raises(RuntimeError, match="Bernoulli: the posterior's mode was not found"):
        mode(glm.family, np.full((3, 2), np.nan), np.zeros(3), np.ones(3), np.ones(3))


def sampled(model, data, draws=20_000, **settings):
    n_arms = 3 if model.takes_arm else None
    found = plan(model, data["x"].shape[1], n_arms, "gibbs").method
    return found.sample(data, draws=draws, **settings)


def near(drawn, mean, sd):
    """Whether draws of one coefficient have these moments, to within 4.5 standard errors."""
    values, root = drawn.values["theta"], np.sqrt(drawn.diagnostics.ess["theta"])
    close = abs(values.mean() - mean) < 4.5 * sd / root
    return close and abs(values.std() / sd - 1) < 4.5 * np.sqrt(0.5) / root * 2


def by_quadrature(log_density):
    """Mean and sd of one coefficient."""
    theta = np.linspace(-12, 12, 48_001)
    log_p = np.array([log_density(t) for t in theta])
    p = np.exp(log_p - log_p.max())
    mean = theta @ p / p.sum()
    return mean, np.sqrt(((theta - mean) ** 2) @ p / p.sum())


LOGISTIC, PROBIT_MODEL = (bb.load_model(k).with_priors(intercept=0) for k in ("logistic", "probit"))
ONE = {  # a model, what is added to x θ, rewards and weights
    "logistic, weighted": (LOGISTIC, 0.0, [1.0, 0.0, 1.0, 1.0], [0.3, 2.5, 7.0, 1.0]),
    "probit, weighted": (PROBIT_MODEL, 0.0, [1.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 1.0]),
    "negative binomial": (of(negative_binomial), 0.0, [4.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
    "binomial": (of(binomial), 0.0, [7.0, 3.0], [1.0, 1.0]),
    "logistic, no rows": (LOGISTIC, 0.0, [], []),
    "probit, no rows": (of(probit), 0.0, [], []),
    "probit, a constant": (of(probit, "a constant"), 0.5, [1.0, 0.0], [1.0, 1.0]),
    "three times": (of(three_times), np.log(3), [4.0, 0.0], [1.0, 1.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE)
@few("logistic, weighted")
@in_gate(5)
def test_one_coefficient_against_quadrature(name, rng):
    """By any weights of a logistic likelihood, and whole ones of a probit one."""
    model, offset, reward, weight = ONE[name]
    x, reward, weight = rng.normal(size=(len(reward), 1)) * 1.5, np.array(reward), np.array(weight)
    drawn = sampled(model, {"x": x, "reward": reward, "weight": weight}, draws=10_000)
    family = regression(template(model, 1, None), "gibbs").family
    exact = by_quadrature(
        lambda t: family.total(offset + x[:, 0] * t, reward, weight) - 0.5 * t * t
    )
    assert near(drawn, *exact)


@pytest.mark.parametrize("mean", [pm.math.sigmoid, pm.math.invprobit, pm.math.exp])
def test_a_predictor_that_is_the_same_for_all_rows_is_left_to_nuts(mean):
    """Its mean reward has no rows but by the rewards' shape, which no graph of it alone knows."""

    @bb.reward_model(a=bb.Prior("Normal", mu=0, sigma=1.5))
    def constant(x, reward, a):
        likelihood = pm.Poisson if mean is pm.math.exp else pm.Bernoulli
        likelihood("r", mean(a), observed=reward)
        return mean(a)

    text = constant.explain(1)
    assert text.startswith("constant: nuts")
    assert "its linear predictor is not one number a row" in text


@pytest.mark.slow
def test_a_probit_reward_of_part_of_a_weight_is_left_to_nuts(rng):
    x, reward = world(PROBIT, 10, 2, rng)
    data = {"x": x, "reward": reward, "weight": np.full(10, 1.5)}
    with pytest.raises(NotThisEngine, match=r"whole number, at most 1000; got 1\.5") as refusal:
        sampled(bb.load_model("probit"), data)
    assert refusal.value.refusal.of_rows


@pytest.mark.slow
def test_weights_of_next_to_nothing_add_up(rng):
    """2,000 rows of weight 1/2,000 are one row: where each variable ω is 0 to rounding."""
    n = 2_000
    data = {"x": np.ones((n, 1)), "reward": np.ones(n), "weight": np.full(n, 1.0 / n)}
    drawn = sampled(
        bb.load_model("logistic").with_priors(intercept=0), data, draws=1000, chains=2, tune=50
    )
    assert near(drawn, *by_quadrature(lambda t: np.log(expit(t)) - 0.5 * t * t))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e6, 1e8, 1e10])
@few("[1000000.0")
def test_probit_rewards_of_large_contexts(scale):
    """All of one side: θ is half-normal."""
    data = {"x": np.full((2, 1), scale), "reward": np.ones(2), "weight": np.ones(2)}
    drawn = sampled(bb.load_model("probit").with_priors(intercept=0), data, draws=4000)
    assert near(drawn, np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi))


@pytest.mark.slow
@pytest.mark.parametrize("reward", [np.zeros(30), np.ones(30)])
@pytest.mark.parametrize("scale", slow_but([1e3], [1e-6, 1.0, 1e3]))
@pytest.mark.parametrize("name", ["logistic", "probit"])
@few("logistic-1000.0-reward1")
@in_gate(5)
def test_separated_rewards_of_contexts_of_any_scale(name, reward, scale, rng):
    """The prior holds θ where the likelihood does not."""
    x = scale * rng.normal(size=(30, 2))
    drawn = sampled(bb.load_model(name), {"x": x, "reward": reward, "weight": np.ones(30)}, 500)
    values = drawn.values["theta"]
    assert np.isfinite(values).all()
    assert (0.9 if scale < 1.0 else 0.0) < values.std() < 1.3
