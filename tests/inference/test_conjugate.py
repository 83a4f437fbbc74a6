"""Probabilities and rates in closed form: what is recognised, what is refused, what is answered."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.integrate import quad

import bayesbandit as bb
from bayesbandit.inference.base import NotThisEngine
from bayesbandit.inference.plan import plan
from bayesbandit.model import RewardModel
from tests.cases import few, slow_but

P, RATE = bb.Prior("Beta", alpha=2.0, beta=3.0), bb.Prior("Gamma", alpha=2.0, beta=3.0)
REWARD = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
COUNTS = np.array([0.0, 3.0, 1.0, 7.0, 2.0, 2.0])
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 0.25, 3.0])
X = np.ones((6, 1))


def powered(of, p, reward, weight):
    """Rewards whose likelihoods are raised to their weights."""

    def log_likelihood(value, p, weight):
        return weight * pm.logp(of(p), value)

    pm.CustomDist("reward", p, weight, logp=log_likelihood, observed=reward, dims="row")


@bb.reward_model(p=P)
def bernoulli(x, reward, p):
    pm.Bernoulli("reward", p, observed=reward)
    return p


@bb.reward_model(p=P)
def binomial(x, reward, p):
    pm.Binomial("reward", 1, p, observed=reward)
    return p + 0 * p


@bb.reward_model(p=P)
def weighted_bernoulli(x, reward, weight, p):
    powered(pm.Bernoulli.dist, p, reward, weight)
    return p


@bb.reward_model(p=P)
def by_row(x, reward, p):
    each = p * pt.ones_like(reward)
    pm.Bernoulli("reward", p, observed=reward)
    return each


@bb.reward_model(rate=RATE)
def poisson(x, reward, rate):
    pm.Poisson("reward", rate, observed=reward)
    return rate


@bb.reward_model(rate=RATE)
def weighted_poisson(x, reward, weight, rate):
    powered(pm.Poisson.dist, rate, reward, weight)
    return rate


@bb.reward_model(rate=RATE)
def exponential_rewards_of_counts(x, reward, rate):
    pm.CustomDist(
        "reward", rate, logp=lambda value, rate: value * pt.log(rate) - rate, observed=reward
    )
    return rate


@bb.reward_model(p=P)
def bernoulli_by_potential(x, reward, weight, p):
    pm.Potential("likelihood", weight * pm.logp(pm.Bernoulli.dist(p), reward))
    return p


@bb.reward_model(p=P)
def more_of_it(x, reward, p):
    """A potential of the variable is a part of its prior."""
    pm.Potential("more", pt.log(p))
    pm.Bernoulli("reward", p, observed=reward)
    return p


@bb.reward_model(rate=RATE)
def poisson_by_potential(x, reward, weight, rate):
    pm.Potential("likelihood", (weight * pm.logp(pm.Poisson.dist(rate), reward)).sum())
    return rate


BETAS = {
    "Beta": (bernoulli, 2.0, 3.0),
    "of whole numbers": (bernoulli.with_priors(p=bb.Prior("Beta", alpha=2, beta=3)), 2.0, 3.0),
    "Uniform": (bernoulli.with_priors(p=bb.Prior("Uniform", lower=0, upper=1)), 1.0, 1.0),
    "Binomial of one": (binomial, 2.0, 3.0),
    "a mean for each row": (by_row, 2.0, 3.0),
    "weighted": (weighted_bernoulli, 2.0, 3.0),
    "by a potential": (bernoulli_by_potential, 2.0, 3.0),
    "with a potential": (more_of_it, 3.0, 3.0),
    "gallery": (bb.load_model("beta_bernoulli"), 1.0, 1.0),
}
GAMMAS = {
    "Gamma": (poisson, 2.0, 3.0),
    "Exponential": (poisson.with_priors(rate=bb.Prior("Exponential", lam=0.5)), 1.0, 0.5),
    "by mean and sd": (poisson.with_priors(rate=bb.Prior("Gamma", mu=2.0, sigma=0.5)), 16.0, 8.0),
    "weighted": (weighted_poisson, 2.0, 3.0),
    "by a potential": (poisson_by_potential, 2.0, 3.0),
    "gallery": (bb.load_model("gamma_poisson"), 1.0, 1.0),
    "a density of its own": (exponential_rewards_of_counts, 2.0, 3.0),
}


CASES = {k: (*case, REWARD) for k, case in BETAS.items()}
CASES |= {f"rate, {k}": (*case, COUNTS) for k, case in GAMMAS.items()}


def exactly(name):
    """A declaration, its rewards and weights, its prior and its posterior."""
    model, a, b, reward = CASES[name]
    w = WEIGHT if model.takes_weight else np.ones(6)
    if reward is REWARD:
        return model, reward, w, stats.beta(a, b), stats.beta(a + w @ reward, b + w @ (1 - reward))
    prior, after = stats.gamma(a, scale=1 / b), stats.gamma(a + w @ reward, scale=1 / (b + w.sum()))
    return model, reward, w, prior, after


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_probability_is_beta_and_a_rate_is_gamma(name):
    model, reward, w, _, expected = exactly(name)
    found = bb.fit(model, X, reward, w if model.takes_weight else None)
    assert found.engine == "conjugate"
    digits = 1e-12 if reward is REWARD else 1e-7  # PyMC's 1/3 is short
    np.testing.assert_allclose(found.mean(X), expected.mean(), rtol=digits)
    np.testing.assert_allclose(found.sd(X), expected.std(), rtol=digits)
    draws = found.draw(X, 4000, np.random.default_rng(0))
    assert (draws == draws[:, :1]).all()
    assert stats.kstest(draws[:, 0], expected.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Beta", "weighted", "rate, Gamma", "rate, weighted"])
def test_the_evidence_is_an_integral(name):
    model, reward, w, prior, _ = exactly(name)
    found = bb.fit(model, X, reward, w if model.takes_weight else None)
    of, top = (stats.bernoulli, 1) if reward is REWARD else (stats.poisson, 30)

    def density(v):
        return prior.pdf(v) * np.prod(of(v).pmf(reward) ** w)

    evidence = quad(density, 0, top, points=[0.5, 1, 2, 4][: 2 * top], epsabs=0)[0]
    assert np.isclose(found.log_evidence, np.log(evidence), rtol=1e-7)


# ---- a mean reward that is computed of the variable ---------------------------------------------


@bb.reward_model(rate=RATE)
def exposed(x, reward, rate):
    mu = rate * x[:, 0]
    pm.Poisson("reward", mu, observed=reward)
    return mu


@bb.reward_model(rate=RATE)
def of_one(x, reward, rate):
    """What an exposure of 1 would give."""
    pm.Poisson("reward", rate * x[:, 0], observed=reward)
    return rate


@bb.reward_model(rate=RATE)
def times(x, reward, rate):
    pm.Exponential("reward", rate, observed=reward)
    return 1 / rate


@bb.reward_model(rate=RATE)
def scaled_times(x, reward, rate):
    mean = x[:, 0] / rate
    pm.Exponential("reward", scale=mean, observed=reward)
    return mean


@bb.reward_model(p=P)
def trials(x, reward, p):
    pm.Binomial("reward", n=10, p=p, observed=reward)
    return 10 * p


@bb.reward_model(p=P)
def tries(x, reward, p):
    pm.Geometric("reward", p, observed=reward)
    return 1 / p


@bb.reward_model(p=P)
def losses(x, reward, p):
    pm.Bernoulli("loss", p, observed=1 - reward)
    return 1 - p


@bb.reward_model(p=P)
def complement(x, reward, p):
    pm.Bernoulli("reward", 1 - p, observed=reward)
    return 1 - p


@bb.reward_model(rate=RATE)
def amounts(x, reward, rate):
    pm.Gamma("reward", alpha=2.5, beta=rate, observed=reward)
    return 2.5 / rate


COMPUTED = {  # a and b after rows x and rewards, and the mean reward at x of the variable v
    "exposed": (exposed, lambda x, r: (2 + r.sum(), 3 + x.sum()), lambda v, x: v * x),
    "of one": (of_one, lambda x, r: (2 + r.sum(), 3 + x.sum()), lambda v, x: v),
    "times": (times, lambda x, r: (2 + len(r), 3 + r.sum()), lambda v, x: 1 / v),
    "scaled times": (
        scaled_times,
        lambda x, r: (2 + len(r), 3 + (r / x).sum()),
        lambda v, x: x / v,
    ),
    "trials": (trials, lambda x, r: (2 + r.sum(), 3 + (10 - r).sum()), lambda v, x: 10 * v),
    "tries": (tries, lambda x, r: (2 + len(r), 3 + (r - 1).sum()), lambda v, x: 1 / v),
    "losses": (losses, lambda x, r: (2 + (1 - r).sum(), 3 + r.sum()), lambda v, x: 1 - v),
    "complement": (complement, lambda x, r: (2 + (1 - r).sum(), 3 + r.sum()), lambda v, x: 1 - v),
    "amounts": (amounts, lambda x, r: (2 + 2.5 * len(r), 3 + r.sum()), lambda v, x: 2.5 / v),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
def test_a_mean_reward_may_be_computed_of_the_variable(name, rng):
    """Its posterior is in closed form, and a bandit's draws know each reward at once."""
    model, after, mean = COMPUTED[name]
    x, reward = rng.uniform(0.5, 2.0, (20, 1)), rng.integers(1, 5, 20).astype(float)
    reward = reward % 2 if name in ("losses", "complement") else reward
    found, (a, b) = bb.fit(model, x, reward), after(x[:, 0], reward)
    beta = model in (trials, tries, losses, complement)
    exact = stats.beta(a, b) if beta else stats.gamma(a, scale=1 / b)
    assert found.engine == "conjugate"
    draws = found.draw(x[:2], 4000, np.random.default_rng(0))
    for j in (0, 1):
        v = exact.rvs(40_000, random_state=j)
        assert stats.ks_2samp(draws[:, j], mean(v, x[j, 0])).pvalue > 1e-3
    made = bb.Bandit(2, model, bb.Thompson(), n_features=1, seed=0)
    made.update(x, [0] * 20, reward, np.ones(20))
    predicted = made.belief.predict(x[:3])
    sd = mean(exact.rvs(40_000, random_state=2)[:, None], x[:3, 0]).std(axis=0)
    assert (abs(predicted.mean[:, 0] - found.mean(x[:3])) < 5 * sd / np.sqrt(400)).all()


# ---- what is not conjugate ----------------------------------------------------------------------


def declared(function, **priors):
    """A declaration of `function(p, reward)` that returns the mean reward."""

    def one(x, reward, p):
        return function(p, reward)

    return RewardModel(one, priors or {"p": P})


def rewards(p, reward, of=pm.Bernoulli):
    of("reward", p, observed=reward)


def observes(f):
    def declare(p, reward):
        rewards(f(p), reward)
        return p

    return declare


def two_variables(p, reward):
    rewards(p * pm.Beta("q", 1, 1), reward)
    return p


def by_position(p, reward):
    pm.Bernoulli("reward", pt.switch(pt.arange(reward.shape[0]) > 2, p, p / 2), observed=reward)
    return p


def below_one(rate, reward):
    """Rewards that have a likelihood where the rate is < 1."""
    pm.CustomDist(
        "reward", rate, observed=reward,
        logp=lambda v, rate: pt.switch(pt.le(pt.log1p(-rate), 0), v * pt.log(rate), -np.inf),
    )  # fmt: skip
    return rate


def of_the_mean_weight(p, reward):
    mean = reward.mean()
    pm.CustomDist(
        "reward", p, logp=lambda v, p: v * pt.log(p) / mean + (1 - v) * pt.log1p(-p),
        observed=reward,
    )  # fmt: skip
    return p


def truncated():
    return pm.Truncated("p", pm.Beta.dist(2, 3), lower=0.2)


def own_prior(make):
    """A declaration that makes its variable itself."""

    def one(x, reward):
        p = make()
        rewards(p, reward)
        return p

    return RewardModel(one, {})


NOT_AFFINE = r"'reward' ~ \w+: not affine in log p and log\(1 − p\)"
REFUSED = {
    "half of it": (declared(observes(lambda p: p / 2)), NOT_AFFINE),
    "a power of it": (declared(observes(lambda p: p**2)), NOT_AFFINE),
    "used twice": (
        declared(observes(lambda p: p * (1 - p))), NOT_AFFINE
    ),
    "clipped": (declared(observes(lambda p: pt.clip(p, 0.1, 0.9))), "clip"),
    "a switch": (declared(observes(lambda p: pt.switch(p > 0.5, p, 0.5))), "function gt of 'p'"),
    "a band that is hidden": (
        declared(observes(lambda p: p - 0.1 * ((p - 0.6) ** 2 < 1e-6))), "lt of"
    ),
    "rounded": (declared(observes(lambda p: pt.floor(10 * p) / 10)), "floor"),
    "a step that is hidden": (declared(observes(lambda p: p - 0.1 * (p > 0.99))), "gt of"),
    "two variables": (declared(two_variables), "more than one variable"),
    "by the row's number": (declared(by_position), "rows together"),
    "by all rewards": (declared(of_the_mean_weight), "rows together"),
    "Kumaraswamy": (
        declared(observes(lambda p: p), p=bb.Prior("Kumaraswamy", a=2, b=2)), "'p' ~ K.*not affine"
    ),
    "Triangular": (
        declared(observes(lambda p: p), p=bb.Prior("Triangular", lower=0, upper=1, c=0.5)),
        "'p' ~ Triangular: function log of what may be 0, of 'p'",
    ),
    "a part of (0, 1)": (
        declared(observes(lambda p: p), p=bb.Prior("Uniform", lower=0.2, upper=0.8)), "support"
    ),
    "logit-normal": (
        declared(observes(lambda p: p), p=bb.Prior("LogitNormal", mu=0, sigma=1)), "support"
    ),
    "truncated": (own_prior(truncated), "support"),
    "a vector": (
        own_prior(lambda: pm.Beta("p", 1, 1, shape=2)[0]), "not a scalar"
    ),
    "a normal variable": (
        declared(lambda p, r: (pm.Normal("reward", p, 1, observed=r), p)[1]),
        NOT_AFFINE,
    ),
    "half-normal rate": (
        declared(lambda p, r: (rewards(p, r, pm.Poisson), p)[1], p=bb.Prior("HalfNormal", sigma=1)),
        "'p' ~ HalfNormal: not affine in log p and p",
    ),
    "a log-normal rate": (
        declared(
            lambda p, r: (rewards(p, r, pm.Poisson), p)[1], p=bb.Prior("LogNormal", mu=0, sigma=1)
        ),
        "'p' ~ LogNormal: not affine in log p and p",
    ),
    "a bounded rate": (
        declared(
            lambda p, r: (rewards(p, r, pm.Poisson), p)[1], p=bb.Prior("Uniform", lower=0, upper=9)
        ),
        "support",
    ),
    "a rate of a beta": (declared(lambda p, r: (rewards(p, r, pm.Poisson), p)[1]), NOT_AFFINE),
    "a squared rate": (
        declared(lambda p, r: (rewards(p**2, r, pm.Poisson), p)[1], p=RATE), "not affine in log p"
    ),
    "a rate that log(1 − rate) bounds": (declared(below_one, p=RATE), "function le of 'p'"),
    "a geometric probability of its mean": (
        declared(lambda p, r: (rewards(1 / (1 + p), r + 1, pm.Geometric), p)[1], p=RATE), "eq of"
    ),
}  # fmt: skip


# ---- what is not learned row by row --------------------------------------------------------------


def counted(function):
    """A declaration of a rate whose rewards are Poisson of `function(reward, x)` beside it."""

    @bb.reward_model(rate=RATE)
    def declare(x, reward, weight, rate):
        pm.Potential("fit", function(pm.logp(pm.Poisson.dist(rate), reward), x, reward, weight))
        return rate

    return declare


NOT_BY_ROW = {
    "a switch on a context": lambda p, x, r, w: w * pt.switch(x[:, 0] > 100, 2 * p, p),
    "a switch on a reward": lambda p, x, r, w: w * pt.switch(r > 5000, 2 * p, p),
    "a switch on a weight": lambda p, x, r, w: pt.switch(w > 100, 2 * w * p, w * p),
    "a root of the weight": lambda p, x, r, w: pt.sqrt(w) * p,
    "a power of the context": lambda p, x, r, w: w * p * pt.exp(1e-3 * x[:, 0]),
    "no reward above 9": lambda p, x, r, w: w * pt.switch(r > 9, -np.inf, p),
}


@few("[a switch on a reward]", "[a root of the weight]")
@pytest.mark.parametrize("name", NOT_BY_ROW)
def test_rows_that_do_not_add_their_rewards_are_not_learned_one_by_one(name):
    found = plan(counted(NOT_BY_ROW[name]), 1)
    assert found.engine == "conjugate"
    assert not found.streams()


@pytest.mark.slow
def test_rows_that_add_their_rewards_are_learned_one_by_one():
    assert plan(counted(lambda p, x, r, w: w * p), 1).streams()
    assert plan(counted(lambda p, x, r, w: w * (p + 0.3 * x[:, 0] * r)), 1).streams()


LEAST = (
    *("half of it", "clipped", "a switch", "by the row's number", "two variables"),
    *("truncated", "half-normal rate"),
)


@few("[two variables]")
@pytest.mark.parametrize("name", slow_but(LEAST, REFUSED))
def test_what_is_not_conjugate_is_refused_with_the_reason(name):
    model, reason = REFUSED[name]
    with pytest.raises(NotThisEngine, match=reason) as caught:
        bb.fit(model, X, REWARD, engine="conjugate")
    assert caught.value.refusal.engine == "conjugate"
