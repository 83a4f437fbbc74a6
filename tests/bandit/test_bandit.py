"""A bandit at play: what it decides, with which propensity, and what it learns from a reward."""

import numpy as np
import pytest

import bayesbandit as bb
from tests import oracle
from tests.cases import few
from tests.players import play, world

POLICIES = [bb.Thompson(0.6), bb.UCB(0.6), bb.Greedy(), bb.EpsilonGreedy(0.2)]
VARIANCES = ["empirical_bayes", "rss/n", "rss", "nig", 0.2]


def bandit_of(policy, variance="rss/n", balance=None, arms=3, **settings):
    model = bb.Ridge(variance=variance)
    return bb.Bandit(arms, model, policy, balance, n_features=3, **settings)


def trained(*args, T=40, **settings):
    x, reward = world(np.random.default_rng(7), T)
    bandit = bandit_of(*args, **settings)
    bandit.update(x, np.arange(T) % 3, reward[np.arange(T), np.arange(T) % 3], np.full(T, 0.5))
    return bandit


@few("[UCB(alpha=0.6)-nig]")
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_decision_carries_what_it_was_made_from(policy, variance, rng):
    """Means and sds by scikit-learn, probabilities by quadrature."""
    x, reward = world(rng, 40)
    arm = np.arange(40) % 3
    bandit = bandit_of(policy, variance)
    bandit.update(x, arm, reward[np.arange(40), arm])
    probe = rng.normal(size=(4, 3))
    decision = bandit.choose(probe)
    mean, scale, df = np.empty((4, 3)), np.empty((4, 3)), np.empty(3)
    rows = [(x[arm == k], reward[arm == k, k], np.ones((arm == k).sum()), 1.0) for k in range(3)]
    for k in range(3):
        mine, one = arm == k, np.ones((arm == k).sum())
        theta = oracle.sklearn_ridge(x[mine], reward[mine, k], one, 1.0)
        sigma2, df[k] = oracle.noise(x[mine], reward[mine, k], one, 1.0, variance)
        if variance == "empirical_bayes":
            sigma2 = oracle.pooled_noise(rows, 2.0)[k]
        covariance = sigma2 * np.linalg.inv(oracle.precision(x[mine], one, 1.0))
        mean[:, k], scale[:, k] = oracle.moments(oracle.design(probe), theta, covariance)
    np.testing.assert_allclose(decision.mean, mean, atol=1e-8)
    variance_of_t = df / (df - 2) if variance == "nig" else 1.0
    np.testing.assert_allclose(decision.sd, scale * np.sqrt(variance_of_t), atol=1e-8)
    for i in range(4):
        p = oracle.policy_probabilities(
            type(policy).__name__, policy.param(1), mean[i], scale[i], df
        )
        np.testing.assert_allclose(decision.probabilities[i], p, atol=1e-6)
        np.testing.assert_allclose(decision.propensity[i], p[decision.arm[i]], atol=1e-6)
        assert decision[i].propensity == decision.propensity[i]
    np.testing.assert_array_equal(decision.x, probe)


def test_a_minimum_leaves_room_for_all_arms():
    with pytest.raises(ValueError, match=r"min_probability must be ≤ 1/3 for 3 arms; got 0\.4"):
        bandit_of(bb.Thompson(min_probability=0.4))
    bandit = bandit_of(bb.Thompson(min_probability=0.3))
    before = bandit.arms
    with pytest.raises(ValueError, match="must be ≤ 1/4 for 4 arms"):
        bandit.add_arm("more")
    assert bandit.arms == before
    with pytest.raises(ValueError, match="min_probability must be a finite number ≥ 0"):
        bb.UCB(min_probability=-0.1)
    assert repr(bb.Greedy()) == "Greedy()"
    assert repr(bb.UCB(2.0, min_probability=0.1)) == "UCB(alpha=2.0, min_probability=0.1)"


@pytest.mark.parametrize("clip", [0.05, 0.5])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_replay_of_forced_actions_has_decision_time_weights(policy, given, clip, rng):
    """A fixed sequence of arms through `update`: today's belief, or the log, gives each propensity,
    and the estimate is scikit-learn's with weights 1 / max(γ, p)."""
    T = 60
    x, reward = world(rng, T)
    arm, logged = rng.integers(0, 3, T), rng.uniform(0.01, 1.0, T)
    bandit = bandit_of(policy, balance=bb.InversePropensity(clip))
    weight = np.empty(T)
    for t in range(T):
        p = bandit.copy().choose(x[t]).probabilities[arm[t]]
        bandit.update(x[t], arm[t], reward[t, arm[t]], logged[t] if given else None)
        weight[t] = 1 / max(clip, logged[t] if given else p)
    np.testing.assert_array_equal(bandit.history.weight, weight)
    for k in range(3):
        mine = arm == k
        args = x[mine], reward[mine, k], weight[mine], 1.0
        np.testing.assert_allclose(
            bandit.posterior(k).location, oracle.sklearn_ridge(*args), atol=1e-8
        )
        expected = oracle.noise(*args, "rss/n")[0] * np.linalg.inv(
            oracle.precision(x[mine], weight[mine], 1.0)
        )
        np.testing.assert_allclose(bandit.posterior(k).spread, expected, atol=1e-8)
    if given:
        np.testing.assert_array_equal(bandit.history.propensity, logged)


def test_decisions_can_be_indexed(rng):
    bandit = trained(bb.Thompson())
    x = rng.normal(size=(9, 3))
    batch = bandit.choose(x)
    assert len(batch) == 9
    for part in (slice(2, 7, 2), np.array([5, 0]), np.arange(9) % 2 == 0):
        np.testing.assert_array_equal(batch[part].x, x[part])
        np.testing.assert_array_equal(batch[part].propensity, batch.propensity[part])
    assert [one.arm for one in batch] == batch.arm.tolist()
    assert batch[-1].x.tolist() == x[-1].tolist()
    assert batch[2].probabilities.tolist() == batch.probabilities[2].tolist()
    assert batch[3].arms == batch.arms == (0, 1, 2)
    other = bandit.copy()
    bandit.observe(batch[1:4], [1.0, 2.0, 3.0])
    for i in (1, 2, 3):
        other.observe(batch[i], float(i))
    np.testing.assert_array_equal(bandit.belief.arms, other.belief.arms)
    with pytest.raises(TypeError, match="no length"):
        len(batch[0])
    with pytest.raises(TypeError, match="cannot be indexed"):
        batch[0][0]
    assert repr(batch[0]).startswith("Decision(arm=")
    assert repr(batch) == "Decision(9 contexts, arms=[0, 1, 2])"


def test_alpha_follows_the_round(rng):
    """The α that acts is the α of the propensity: round t = 1, 2, … over contexts decided."""
    x, reward = world(rng, 30)
    bandit = bandit_of(bb.Thompson(lambda t: 3.0 / t))
    play(bandit, x, reward)
    bandit.update(x, np.arange(30) % 3, reward[:, 0])  # logged elsewhere: decides nothing
    batch = bandit.choose(np.tile(x[:1], (3, 1)))
    for i, t in enumerate((31, 32, 33)):
        expected = oracle.best_arm(batch.mean[i], 3.0 / t * batch.sd[i])
        np.testing.assert_allclose(batch.probabilities[i], expected, atol=1e-6)
    assert bandit.t == 33


@few("LinTS", "BLTS")
@pytest.mark.parametrize("name", ["LinTS", "BLTS", "ILTCB", "ForestTS", "PolicyTreeTS"])
def test_without_features_no_context_is_needed(name):
    bandit = getattr(bb, name)(["a", "b"], 0)
    for _ in range(60):
        decision = bandit.choose()
        bandit.observe(decision, float(decision.arm == "b"))
    assert bandit.choose().probabilities[1] > 0.9
    assert bandit.choose(arms=["a"]).arm == "a"
    with pytest.raises(ValueError, match="contexts must have 3 features; got none"):
        bb.LinTS(2, 3).choose()


@pytest.mark.parametrize("kind", [int, bool, np.int64, np.int8, np.bool_, np.float64, np.float32])
def test_a_reward_is_its_number_whatever_its_type(kind):
    bandits = [trained(bb.Thompson(), seed=0) for _ in range(2)]
    for i, x in enumerate(np.random.default_rng(0).normal(size=(20, 3))):
        for bandit, reward in zip(bandits, (float(i % 2), kind(i % 2)), strict=True):
            bandit.observe(bandit.choose(x), reward)
    a, b = bandits
    np.testing.assert_array_equal(a.history.reward, b.history.reward)
    np.testing.assert_array_equal(a.probabilities(x), b.probabilities(x))
