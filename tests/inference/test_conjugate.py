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
from tests.cases import few, in_gate, slow_but

P, RATE = bb.Prior("Beta", alpha=2.0, beta=3.0), bb.Prior("Gamma", alpha=2.0, beta=3.0)
REWARD = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
COUNTS = np.array([0.0, 3.0, 1.0, 7.0, 2.0, 2.0])
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 0.25, 3.0])
X = np.ones((6, 1))


def declared(observe, prior=P, mean=lambda p, x: p):
    """A declaration of one variable p: `observe(p, reward, x)`, and the mean reward."""

    def one(x, reward, p):
        observe(p, reward, x)
        return mean(p, x)

    return RewardModel(one, {"p": prior})


def weighted(observe, prior):
    """A declaration of one variable p: `observe(p, reward, weight)`, and p as mean reward."""

    def one(x, reward, weight, p):
        observe(p, reward, weight)
        return p

    return RewardModel(one, {"p": prior})


def of(family, f=lambda p: p):
    """Rewards of a family whose parameter is `f(p)`."""
    return lambda p, r, *_: family("reward", f(p), observed=r)


def powered(family):
    """Rewards whose likelihoods are raised to their weights."""

    def log_likelihood(value, p, weight):
        return weight * pm.logp(family(p), value)

    return lambda p, r, w: pm.CustomDist(
        "reward", p, w, logp=log_likelihood, observed=r, dims="row"
    )


def penalised(family):
    """Weighted log likelihoods as a potential."""
    return lambda p, r, w: pm.Potential("likelihood", (w * pm.logp(family(p), r)).sum())


def custom(log_likelihood):
    return lambda p, r, *_: pm.CustomDist("reward", p, logp=log_likelihood, observed=r)


def with_a_potential(p, r, x):
    """A potential of the variable is a part of its prior."""
    pm.Potential("more", pt.log(p))
    pm.Bernoulli("reward", p, observed=r)


def uniform(lower, upper):
    return bb.Prior("Uniform", lower=lower, upper=upper)


CHANCE, COUNT = of(pm.Bernoulli), of(pm.Poisson)
BINOMIAL = of(lambda name, p, observed: pm.Binomial(name, 1, p, observed=observed))
BETAS = {  # a declaration, and a and b of the prior
    "Beta": (declared(CHANCE), 2.0, 3.0),
    "of whole numbers": (declared(CHANCE, bb.Prior("Beta", alpha=2, beta=3)), 2.0, 3.0),
    "Uniform": (declared(CHANCE, uniform(0, 1)), 1.0, 1.0),
    "Binomial of one": (declared(BINOMIAL, mean=lambda p, x: p + 0 * p), 2.0, 3.0),
    "a mean by row": (declared(CHANCE, mean=lambda p, x: p * pt.ones_like(x[:, 0])), 2.0, 3.0),
    "weighted": (weighted(powered(pm.Bernoulli.dist), P), 2.0, 3.0),
    "by a potential": (weighted(penalised(pm.Bernoulli.dist), P), 2.0, 3.0),
    "with a potential": (declared(with_a_potential), 3.0, 3.0),
    "gallery": (bb.load_model("beta_bernoulli"), 1.0, 1.0),
}
GAMMAS = {
    "Gamma": (declared(COUNT, RATE), 2.0, 3.0),
    "Exponential": (declared(COUNT, bb.Prior("Exponential", lam=0.5)), 1.0, 0.5),
    "by mean and sd": (declared(COUNT, bb.Prior("Gamma", mu=2.0, sigma=0.5)), 16.0, 8.0),
    "weighted": (weighted(powered(pm.Poisson.dist), RATE), 2.0, 3.0),
    "by a potential": (weighted(penalised(pm.Poisson.dist), RATE), 2.0, 3.0),
    "gallery": (bb.load_model("gamma_poisson"), 1.0, 1.0),
    "a density of its own": (declared(custom(lambda r, p: r * pt.log(p) - p), RATE), 2.0, 3.0),
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


COMPUTED = {  # a prior, what is observed, the mean reward at x, and a and b after x and rewards
    "exposed": (
        *(RATE, lambda v, r, x: pm.Poisson("reward", v * x[:, 0], observed=r)),
        *(lambda v, x: v * x[:, 0], lambda x, r: (2 + r.sum(), 3 + x.sum())),
    ),
    "of one": (  # what an exposure of 1 would give
        *(RATE, lambda v, r, x: pm.Poisson("reward", v * x[:, 0], observed=r)),
        *(lambda v, x: v, lambda x, r: (2 + r.sum(), 3 + x.sum())),
    ),
    "scaled times": (
        *(RATE, lambda v, r, x: pm.Exponential("reward", scale=x[:, 0] / v, observed=r)),
        *(lambda v, x: x[:, 0] / v, lambda x, r: (2 + len(r), 3 + (r / x).sum())),
    ),
    "trials": (
        *(P, lambda v, r, x: pm.Binomial("reward", n=10, p=v, observed=r)),
        *(lambda v, x: 10 * v, lambda x, r: (2 + r.sum(), 3 + (10 - r).sum())),
    ),
    "tries": (
        *(P, of(pm.Geometric)),
        *(lambda v, x: 1 / v, lambda x, r: (2 + len(r), 3 + (r - 1).sum())),
    ),
    "losses": (
        *(P, lambda v, r, x: pm.Bernoulli("loss", v, observed=1 - r)),
        *(lambda v, x: 1 - v, lambda x, r: (2 + (1 - r).sum(), 3 + r.sum())),
    ),
    "complement": (
        *(P, of(pm.Bernoulli, lambda p: 1 - p)),
        *(lambda v, x: 1 - v, lambda x, r: (2 + (1 - r).sum(), 3 + r.sum())),
    ),
    "amounts": (
        *(RATE, lambda v, r, x: pm.Gamma("reward", alpha=2.5, beta=v, observed=r)),
        *(lambda v, x: 2.5 / v, lambda x, r: (2 + 2.5 * len(r), 3 + r.sum())),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
def test_a_mean_reward_may_be_computed_of_the_variable(name, rng):
    """Its posterior is in closed form, and a bandit's draws know each reward at once."""
    prior, observe, mean, after = COMPUTED[name]
    model = declared(observe, prior, mean)
    x, reward = rng.uniform(0.5, 2.0, (20, 1)), rng.integers(1, 5, 20).astype(float)
    reward = reward % 2 if name in ("losses", "complement") else reward
    found, (a, b) = bb.fit(model, x, reward), after(x[:, 0], reward)
    exact = stats.beta(a, b) if prior is P else stats.gamma(a, scale=1 / b)
    assert found.engine == "conjugate"
    draws = found.draw(x[:2], 4000, np.random.default_rng(0))
    for j in (0, 1):
        v = exact.rvs(40_000, random_state=j)
        assert stats.ks_2samp(draws[:, j], mean(v, x[[j]])).pvalue > 1e-3
    made = bb.Bandit(2, model, bb.Thompson(), n_features=1, seed=0)
    made.update(x, [0] * 20, reward, np.ones(20))
    predicted = made.belief.predict(x[:3])
    sd = mean(exact.rvs(40_000, random_state=2)[:, None], x[:3]).std(axis=0)
    assert (abs(predicted.mean[:, 0] - found.mean(x[:3])) < 5 * sd / np.sqrt(400)).all()


def two_variables(p, r, x):
    pm.Bernoulli("reward", p * pm.Beta("q", 1, 1), observed=r)


def by_position(p, r, x):
    pm.Bernoulli("reward", pt.switch(pt.arange(r.shape[0]) > 2, p, p / 2), observed=r)


def of_the_mean_weight(p, r, x):
    mean = r.mean()
    custom(lambda v, p: v * pt.log(p) / mean + (1 - v) * pt.log1p(-p))(p, r)


def below_one(v, p):
    """Rewards that have a likelihood where the rate is < 1."""
    return pt.switch(pt.le(pt.log1p(-p), 0), v * pt.log(p), -np.inf)


def own_prior(make):
    """A declaration that makes its variable itself."""

    def one(x, reward):
        p = make()
        pm.Bernoulli("reward", p, observed=reward)
        return p

    return RewardModel(one, {})


def chance(f):
    return declared(of(pm.Bernoulli, f))


NOT_AFFINE = r"'reward' ~ \w+: not affine in log p and log\(1 − p\)"
REFUSED = {
    "half of it": (chance(lambda p: p / 2), NOT_AFFINE),
    "a band that is hidden": (chance(lambda p: p - 0.1 * ((p - 0.6) ** 2 < 1e-6)), "lt of"),
    "two variables": (declared(two_variables), "more than one variable"),
    "by the row's number": (declared(by_position), "rows together"),
    "by all rewards": (declared(of_the_mean_weight), "rows together"),
    "Kumaraswamy": (declared(CHANCE, bb.Prior("Kumaraswamy", a=2, b=2)), "'p' ~ K.*not affine"),
    "Triangular": (
        declared(CHANCE, bb.Prior("Triangular", lower=0, upper=1, c=0.5)),
        "'p' ~ Triangular: function log of what may be 0, of 'p'",
    ),
    "a part of (0, 1)": (declared(CHANCE, uniform(0.2, 0.8)), "support"),
    "truncated": (own_prior(lambda: pm.Truncated("p", pm.Beta.dist(2, 3), lower=0.2)), "support"),
    "a vector": (own_prior(lambda: pm.Beta("p", 1, 1, shape=2)[0]), "not a scalar"),
    "half-normal rate": (
        declared(COUNT, bb.Prior("HalfNormal", sigma=1)),
        "'p' ~ HalfNormal: not affine in log p and p",
    ),
    "a rate that log(1 − rate) bounds": (declared(custom(below_one), RATE), "function le of 'p'"),
    "a geometric probability of its mean": (
        declared(lambda p, r, x: pm.Geometric("reward", 1 / (1 + p), observed=r + 1), RATE),
        "eq of",
    ),
}


def counted(function):
    """A declaration of a rate whose rewards are Poisson of `function(reward, x)` beside it."""

    @bb.reward_model(rate=RATE)
    def declare(x, reward, weight, rate):
        pm.Potential("fit", function(pm.logp(pm.Poisson.dist(rate), reward), x, reward, weight))
        return rate

    return declare


BY_ROW = {  # whether rows add their rewards one by one
    "a switch on a context": (lambda p, x, r, w: w * pt.switch(x[:, 0] > 100, 2 * p, p), False),
    "a switch on a reward": (lambda p, x, r, w: w * pt.switch(r > 5000, 2 * p, p), False),
    "a switch on a weight": (lambda p, x, r, w: pt.switch(w > 100, 2 * w * p, w * p), False),
    "a root of the weight": (lambda p, x, r, w: pt.sqrt(w) * p, False),
    "a power of the context": (lambda p, x, r, w: w * p * pt.exp(1e-3 * x[:, 0]), False),
    "a step far away": (lambda p, x, r, w: w * p * (1 + pt.sigmoid(x[:, 0] - 60)), False),
    "no reward above 9": (lambda p, x, r, w: w * pt.switch(r > 9, -np.inf, p), False),
    "a power": (lambda p, x, r, w: w * p, True),
    "more of a row": (lambda p, x, r, w: w * (p + 0.3 * x[:, 0] * r), True),
}


def test_a_mean_reward_that_differs_far_from_the_rows_is_not_the_variable():
    model = declared(COUNT, RATE, mean=lambda p, x: p * (1 + pt.sigmoid(x[:, 0] - 60)))
    found = bb.fit(model, X, COUNTS)
    assert found.engine == "conjugate"
    near, far = found.mean(np.array([0.0, 120.0])[:, None] * np.ones(X.shape[1]))
    assert np.isclose(far, 2 * near)


@few("[a switch on a reward]", "[a root of the weight]", "[a step far away]")
@pytest.mark.parametrize("name", BY_ROW)
@in_gate(5)
def test_only_rows_that_add_their_rewards_are_learned_one_by_one(name):
    function, streams = BY_ROW[name]
    found = plan(counted(function), 1)
    assert found.engine == "conjugate"
    assert found.streams() == streams


LEAST = "half of it", "by the row's number", "two variables", "truncated", "half-normal rate"


@few("[two variables]")
@pytest.mark.parametrize("name", slow_but(LEAST, REFUSED))
def test_what_is_not_conjugate_is_refused_with_the_reason(name):
    model, reason = REFUSED[name]
    with pytest.raises(NotThisEngine, match=reason) as caught:
        bb.fit(model, X, REWARD, engine="conjugate")
    assert caught.value.refusal.engine == "conjugate"
