"""Bandits of probabilities and rates: laws of the belief, with and without contexts."""

import numpy as np
import pymc as pm
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.counts import SUM_COLUMNS, Counts
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.inference.plan import plan
from bayesbandit.kernels.row_layout import BETA, GAMMA
from tests.cases import moments_of, slow_but

NAMES = ("beta_bernoulli", "gamma_poisson")
ARMS = ("a", "b", "c")
TRUTH = np.array([0.3, 0.5, 0.6])
models = pytest.mark.parametrize("name", NAMES)


def bandit(name="beta_bernoulli", balance=None, d=0):
    made = bb.Bandit(ARMS, bb.load_model(name), bb.Thompson(), balance, n_features=d, seed=4)
    assert isinstance(made.belief, Counts)
    return made


def rewards(n, seed=0):
    return np.random.default_rng(seed).binomial(1, TRUTH, (n, 3)).astype(float)


def played(made, n=40, seed=0):
    x = np.random.default_rng(1).normal(size=(n, made.n_features))
    for context, reward in zip(x, rewards(n, seed), strict=True):
        decision = made.choose(context) if made.n_features else made.choose()
        made.observe(decision, float(reward[made.arms.index(decision.arm)]))
    return made


@pytest.mark.slow
@models
def test_an_arm_whose_rounds_are_all_gone_is_as_before_any(name):
    made = played(bandit(name, d=1), 60)
    belief, fresh = made.belief, bandit(name, d=1).belief
    made.choose([1.0])  # whose probabilities are not to stay
    x, arm = np.ones((12, 1)), np.arange(12) % 3
    reward, weight = rewards(12)[:, 0], np.full(12, 0.5)
    belief.reweigh([0, 2, 1], x, np.where(arm == 1, -1, arm), reward, weight)  # that arm last
    fresh.update(x[arm != 1], arm[arm != 1], reward[arm != 1], weight[arm != 1])
    assert belief.n.tolist() == [4, 0, 4]
    for one, other in zip(moments_of(belief, x), moments_of(fresh, x), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(belief.predict(x).best(), fresh.predict(x).best())
    assert made.choose([1.0]).probabilities[1] == 1 / 3


def test_arms_of_one_hierarchy_need_no_features():
    @bb.reward_model()
    def hierarchy(x, reward, arm):
        level = pm.Normal("level", pm.Normal("mu", 0, 1), 1, dims="arm")
        pm.Normal("reward", level[arm], 0.5, observed=reward)
        return level[arm]

    made = bb.Bandit(2, hierarchy, bb.Thompson(), n_features=0, seed=0)
    made.observe(made.choose(arms=[0]), 3.0)
    # (level₀, level₁, r) are normal: variances 2, covariance 1, and r has the noise's .25 more
    mean = made.predict().mean[0]
    np.testing.assert_allclose(mean, [3.0 * 2 / 2.25, 3.0 * 1 / 2.25], rtol=1e-12)


def test_without_features_a_model_of_features_is_refused():
    with pytest.raises(ValueError, match="'theta' for each feature"):
        bb.Bandit(2, bb.load_model("ridge"), bb.Thompson(), n_features=0)
    with pytest.raises(ValueError, match="'theta' for each feature"):
        bb.fit(bb.load_model("ridge"), None, [1.0, 2.0])
    with pytest.raises(ValueError, match="must have 2 features; got none"):
        bandit(d=2).choose()


@pytest.mark.slow
def test_shares_of_successes_are_left_to_draws():
    """A likelihood that makes sense of .5 is played by its closed form's draws."""

    def log_likelihood(reward, p):
        return reward * pm.math.log(p) + (1 - reward) * pm.math.log1p(-p)

    @bb.reward_model(p=bb.Prior("Beta", alpha=1.0, beta=1.0))
    def shares(x, reward, p):
        pm.CustomDist("reward", p, logp=log_likelihood, observed=reward)
        return p

    made = bb.Bandit(2, bb.Sampled(shares, draws=50), bb.Thompson(), n_features=0)
    assert isinstance(made.belief, SampledBelief)
    made.observe(made.choose(), 0.5)
    found = bb.fit(shares, None, [0.5, 0.5, 1.0])
    assert (found.known.a, found.known.b) == (3.0, 2.0)


@pytest.mark.parametrize("reward", [1e15, 1e27, 1e50])
def test_a_reward_of_any_size_is_answered(reward):
    made = played(bandit("gamma_poisson"))
    before = made.belief.arms[0, SUM_COLUMNS].copy()
    made.update(np.empty((1, 0)), ["a"], [reward], [0.5])
    np.testing.assert_allclose(made.choose().probabilities, [1, 0, 0], rtol=0, atol=1e-9)
    known, n = made.belief.known(0), 2 + before[2]
    np.testing.assert_allclose([known.a, known.b], [1 + before[1] + reward, n], rtol=1e-15)
    np.testing.assert_allclose(known.sd, moments_of(made.belief, np.empty((1, 0)))[1][0, 0])


def guarded(guard):
    """Counts that have a likelihood where `guard(reward, x)` holds."""

    def log_likelihood(reward, rate, x):
        return pm.math.switch(guard(reward, x), reward * pm.math.log(rate) - rate, -np.inf)

    @bb.reward_model(rate=bb.Prior("Gamma", alpha=1.0, beta=1.0))
    def counts(x, reward, rate):
        pm.CustomDist("reward", rate, x[:, 0], logp=log_likelihood, observed=reward)
        return rate

    return plan(counts, 1).method


def whole(reward):
    return pm.math.eq(reward, pm.math.floor(reward)) & pm.math.ge(reward, 0)


GUARDS = {
    "whole": (lambda r, x: whole(r), True),
    "≥ 0": (lambda r, x: pm.math.ge(r, 0), True),
    "at most 10": (lambda r, x: whole(r) & (r <= 10), False),
    "not 7": (lambda r, x: whole(r) & ~pm.math.eq(r, 7), False),
    "whole or 1/3": (lambda r, x: whole(r) | pm.math.eq(r, 1 / 3), False),
    "quarters": (lambda r, x: whole(4 * r), False),
    "of positive contexts": (lambda r, x: whole(r) & (x > 0), False),
}


@pytest.mark.parametrize("name", slow_but(("at most 10",), GUARDS))
def test_rewards_stream_where_it_is_known_which_have_a_likelihood(name):
    guard, streams = GUARDS[name]
    assert guarded(guard).streams == streams


KINDS = {"beta_bernoulli": BETA, "gamma_poisson": GAMMA}
EMPTY = np.empty((1, 0))


@models
def test_a_round_keeps_a_and_b_to_the_last_bit(name):
    made = played(bandit(name, balance=bb.InversePropensity(normalize=True)))
    made.update(EMPTY, ["c"], [1.0], [1e-3])  # next to 1, of a probability
    decision, known = made.choose(), [made.belief.known(k) for k in range(3)]
    assert decision.records["rule"] == KINDS[name]
    assert decision.records["last"].tolist() == [k.a for k in known]
    assert decision.records["scale"].tolist() == [k.b for k in known]
    for at, moment in zip(
        (decision.mean, decision.sd), moments_of(made.belief, EMPTY), strict=True
    ):
        np.testing.assert_array_equal(at, moment[0])
