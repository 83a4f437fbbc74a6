"""ILOVETOCONBANDITS: its optimisation problem by enumeration of policies, and its probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge as RidgeRegression

import bayesbandit as bb
from bayesbandit.systems.iltcb.belief import PolicyMixture, estimated_gains
from bayesbandit.systems.iltcb.optimisation import solve
from bayesbandit.systems.iltcb.oracle import least_squares, scores
from tests.cases import slow_but


def enumerated(policies, x):
    """The best of a list of policies, for any gains: an oracle without error."""
    choices = scores(x, policies).argmax(axis=2)

    def find(gains):
        return policies[gains[np.arange(len(x)), choices].sum(axis=1).argmax()]

    return find


def history(n=200, d=3, K=3, seed=0):
    """Contexts, gains of a uniform log, and a few hundred policies."""
    rng = np.random.default_rng(seed)
    x, arm = rng.normal(size=(n, d)), rng.integers(K, size=n)
    reward = (rng.random((n, K)) < 1 / (1 + np.exp(-x @ rng.normal(size=(d, K))))).astype(float)
    gains = np.zeros((n, K))
    gains[np.arange(n), arm] = K * reward[np.arange(n), arm]
    return x, gains, np.stack([rng.normal(size=(d + 1, K)) for _ in range(300)])


@pytest.mark.parametrize("psi", [1.0, 100.0])
@pytest.mark.parametrize("mu", [0.003, 0.05, 1 / 6])
def test_both_constraints_hold_for_every_policy(mu, psi):
    x, gains, policies = history()
    n, K = gains.shape
    found = solve(x, gains, mu, enumerated(policies, x), psi)
    choices = scores(x, policies).argmax(axis=2)
    index = [int((policies == one).all(axis=(1, 2)).argmax()) for one in found.coef]
    mean = gains[np.arange(n), choices].mean(axis=1)
    b = (mean.max() - mean) / (psi * mu)
    weight = np.zeros(len(policies))
    for i, w in zip(index, found.weights, strict=False):
        weight[i] += w
    assert (found.weights >= 0).all()
    assert weight.sum() <= 1 + 1e-9
    assert weight @ b <= 2 * K + 1e-6
    Q = np.stack([weight @ (choices == a) for a in range(K)], axis=1)
    smoothed = (1 - K * mu) * Q + mu
    exploration = (1 / smoothed[np.arange(n), choices]).mean(axis=1)
    assert (exploration <= 2 * K + b + 1e-6).all()
    assert len(index) == len(found.weights) + 1
    assert index[-1] == mean.argmax()


def test_gains_are_unbiased_and_doubly_robust_ones_vary_less():
    """Over logs with known propensities, of rewards that contexts explain."""
    rng, K = np.random.default_rng(1), 2
    x = rng.normal(size=(150, 2))
    mean = 0.5 + 0.2 * np.tanh(x)
    p = 0.2 + 0.6 * (x[:, 0] > 0)
    sums = {how: [] for how in ("ips", "dr")}
    for _ in range(300):
        arm = (rng.random(150) < p).astype(int)
        reward = (mean + 0.05 * rng.normal(size=mean.shape))[np.arange(150), arm]
        weight = 1 / np.where(arm == 1, p, 1 - p)
        for how, found in sums.items():
            found.append(estimated_gains(x, arm, reward, weight, K, how).mean(axis=0))
    spread = {}
    for how, found in sums.items():
        spread[how] = np.std(found, axis=0)
        off = np.mean(found, axis=0) - mean.mean(axis=0)
        assert (np.abs(off) < 5 * spread[how] / np.sqrt(300) + 0.002).all()
    assert (spread["dr"] < 0.3 * spread["ips"]).all()


def played(T=300, **settings):
    rng = np.random.default_rng(3)
    bandit = bb.ILTCB(["a", "b", "c"], 2, seed=5, **settings)
    x = rng.normal(size=(T, 2))
    best = np.stack([x[:, 0], x[:, 1], -x.sum(axis=1)], axis=1).argmax(axis=1)
    earned = 0.0
    for t in range(T):
        decision = bandit.choose(x[t])
        reward = float("abc".index(decision.arm) == best[t])
        bandit.observe(decision, reward)
        earned += reward
    return bandit, earned / T


@pytest.mark.parametrize("settings", slow_but([{}], [{}, {"psi": 100.0, "gains": "ips"},
                                              {"refit_every": 1.0}]), ids=str)  # fmt: skip
def test_it_learns_and_its_probabilities_are_those_of_the_mixture(settings):
    bandit, earned = played(**settings)
    assert earned > (0.55 if not settings else 0.34)
    belief, x = bandit.belief, np.random.default_rng(0).normal(size=(50, 2))
    p, mu = bandit.choose(x).probabilities, belief.mu
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.min() >= mu * (1 - 1e-9)
    mixture = belief.mixture
    votes = np.zeros((50, 3))
    shares = [*mixture.weights, 1 - mixture.weights.sum()]
    for policy, share in zip(mixture.coef, shares, strict=True):
        votes[np.arange(50), scores(x, policy).argmax(axis=1)] += share
    np.testing.assert_allclose(p, (1 - 3 * mu) * votes + mu)
    assert bandit.greedy(x).tolist() == bandit.layout.names[
        scores(x, mixture.coef[-1]).argmax(axis=1)
    ].tolist()  # fmt: skip
    rounds, history = belief.rounds.of(), bandit.history
    np.testing.assert_allclose(rounds["weight"], 1 / history.propensity)


def test_epochs_double():
    bandit, _ = played(80, refit_every=1.0)
    assert bandit.belief.fitted == 64


def test_rewards_of_another_range():
    bandit = bb.ILTCB(2, 1)
    with pytest.raises(ValueError, match=r"rewards must be from 0 to 1; got 5"):
        bandit.observe(bandit.choose(np.ones(1)), 5.0)
    assert bandit.history.total == 0
    wide = bb.ILTCB(2, 1, rewards=(-10.0, 10.0))
    for _ in range(40):
        decision = wide.choose(np.ones(1))
        wide.observe(decision, 5.0 if decision.arm == 1 else -5.0)
    assert wide.greedy(np.ones((1, 1))).tolist() == [1]
    assert wide.belief.predict(np.ones((1, 1))).mean[0] == pytest.approx([-5.0, 5.0], abs=1.5)


def test_the_least_probability_is_the_papers():
    spec = PolicyMixture(exploration=1.0, delta=0.1, log_policies=5.0)
    for n, K in ((1, 3), (1000, 3), (10**6, 10)):
        expected = min(0.5 / K, np.sqrt((np.log(16 * n**2 / 0.1) + 5.0) / (K * n)))
        assert spec.least_probability(n, K, 4) == pytest.approx(expected)


@pytest.mark.parametrize("size", [1e-50, 1e50])
@pytest.mark.parametrize("kind", ["equal", "constant", "nearly equal", "a multiple"])
def test_no_finite_contexts_are_too_much(kind, size, rng):
    one = rng.normal(size=(60, 1))
    other = {"equal": one, "constant": 0 * one + 1.7, "nearly equal": one * (1 + 1e-15),
             "a multiple": -1e3 * one}[kind]  # fmt: skip
    x, bandit = size * np.hstack([one, other, one]) / 2e3, bb.ILTCB(3, 3)
    for row in x:
        bandit.observe(bandit.choose(row), float(row[0] > 0))
    assert (bandit.choose(x).probabilities > 0).all()


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_the_oracle_is_ridge_regression(size, rng):
    x, gains = size * rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    fit = RidgeRegression(alpha=0.7, fit_intercept=False, solver="svd")
    fit.fit(np.column_stack([x, np.ones(30)]), gains)
    wanted = np.column_stack([x, np.ones(30)]) @ fit.coef_.T
    np.testing.assert_allclose(scores(x, least_squares(x, 0.7)(gains)), wanted, atol=1e-8)


def test_scores_of_a_saved_mixture_are_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    bandit = bb.ILTCB(["a", "b", "c"], 3, seed=0)
    for x in rng.normal(size=(60, 3)):
        bandit.observe(bandit.choose(x), float(rng.random() < 0.5))
    bandit.save(tmp_path / "mixture")
    loaded = bb.Bandit.load(tmp_path / "mixture")
    for x in rng.normal(size=(300, 1, 3)):
        np.testing.assert_array_equal(loaded.predict(x).mean, bandit.predict(x).mean)
