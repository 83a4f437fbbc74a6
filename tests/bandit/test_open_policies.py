"""Anybody's policy plays: probabilities are enough, on every kind of belief."""

import numpy as np
import pytest

import bayesbandit as bb


class Cautious:
    """The best arm with probability 1 − 1/(1 + √t), else one of the others."""

    def probabilities(self, prediction, t):
        mean = prediction.mean
        K, share = mean.shape[1], 1 / (1 + np.sqrt(t)[:, None])
        best = mean == mean.max(axis=1, keepdims=True)
        return np.where(best, 1 - share, share / (K - 1)) if K > 1 else np.ones((len(mean), 1))


class Reversed(bb.Greedy):
    """The worst arm."""

    def probabilities(self, prediction, t=1):
        mean = prediction.mean
        return (mean == mean.min(axis=1, keepdims=True)).astype(float)


class Slower(bb.Thompson):
    """A rule that is compiled, with a number of its own."""

    def param(self, t):
        return 0.5 * super().param(t)


def grown(policy=None, balance=None, n=60, seed=3):
    """A bandit of three arms that has seen n rounds."""
    policy, arms = policy or Cautious(), np.array(["a", "b", 3], dtype=object)
    bandit = bb.Bandit(list(arms), bb.Ridge(), policy, balance, n_features=3, seed=seed)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    bandit.update(x, arms[np.arange(n) % 3], rng.normal(size=n), np.full(n, 1 / 3))
    return bandit


def contexts(n=40):
    return np.random.default_rng(8).normal(size=(n, 3))


def test_it_is_balanced_by_its_own_propensities():
    bandit = grown(balance=bb.InversePropensity(clip=0.05))
    for x in contexts(20):
        decision = bandit.choose(x)
        bandit.observe(decision, 1.0)
        assert bandit.history.weight[-1] == 1 / max(0.05, decision.propensity)
    x = contexts(5)
    before = bandit.copy()
    bandit.update(x, ["a"] * 5, np.zeros(5))
    expected = Cautious().probabilities(before.belief.predict(x), np.full(5, before.t + 1))[:, 0]
    np.testing.assert_allclose(bandit.history.weight[-5:], 1 / np.maximum(0.05, expected))
    with pytest.raises(ValueError, match="pooled propensities ask past policies again"):
        grown(balance=bb.InversePropensity(propensity="pooled"))
    estimated = grown(balance=bb.InversePropensity(propensity="estimated"))
    estimated.observe(estimated.choose(contexts(1)[0]), 1.0)


def test_a_subclass_is_obeyed():
    bandit, x = grown(policy=Reversed()), contexts()
    worst = bandit.belief.predict(x).mean.argmin(axis=1)
    assert [bandit.arms[k] for k in worst] == list(bandit.choose(x).arm)
    slower, half = grown(policy=Slower(1.0)), grown(policy=bb.Thompson(0.5))
    assert slower.rule is not None
    np.testing.assert_array_equal(slower.choose(x).probabilities, half.choose(x).probabilities)


class Falling(Cautious):
    """A least probability that is a method."""

    def min_probability(self, t):
        return 0.3 / t


class Moved(Cautious):
    """A least probability that is moved from outside."""

    share = 0.3

    @property
    def min_probability(self):
        return self.share


@pytest.mark.parametrize("policy", [Falling(), Moved()], ids=["a method", "a property"])
def test_a_least_probability_of_ones_own_is_asked_for_in_every_round(policy):
    bandit, x = grown(policy=policy), contexts(2)
    assert bandit.choose(x[0]).probabilities.min() >= 0.3
    policy.share = 0.15
    for asked in (x[1], x[1:]):
        decision = bandit.choose(asked)
        least = 0.3 / bandit.t if isinstance(policy, Falling) else 0.15
        p = policy.probabilities(bandit.belief.predict(x[1:]), np.array([bandit.t]))[0]
        wanted = least + (1 - 3 * least) * p
        np.testing.assert_allclose(np.ravel(decision.probabilities), wanted, rtol=1e-12)


@pytest.mark.parametrize("number", [np.nan, -1.0, 2.0])
def test_a_rules_own_number_is_checked(number):
    class Odd(bb.EpsilonGreedy):
        def param(self, t):
            return number

    with pytest.raises(ValueError, match=r"param\(1\) must be a finite number ≥ 0 and ≤ 1; got"):
        grown(policy=Odd())


@pytest.mark.parametrize("kind", ["softmax", 0, 3])
def test_a_kind_of_ones_own_is_no_rule(kind):
    class Kind(Cautious):
        def probabilities(self, prediction, t):
            return super().probabilities(prediction, t)

    Kind.kind = kind
    x = contexts()
    same = grown(policy=Cautious()).choose(x), grown(policy=Kind()).choose(x)
    np.testing.assert_array_equal(*(decision.probabilities for decision in same))


def test_a_least_probability_too_large_at_first_for_the_arms_of_now(tmp_path):
    policy = bb.Thompson(min_probability=lambda t: 1 / (2 + t))
    bandit, x = grown(policy=policy), contexts()
    bandit.choose(x)
    bandit.add_arm("late")
    bandit.save(tmp_path / "bandit.npz")
    twins = bandit.copy(), bb.Bandit.load(tmp_path / "bandit.npz", policy=policy)
    wanted = bandit.choose(x)
    for twin in twins:
        np.testing.assert_array_equal(twin.choose(x).rows, wanted.rows)
    with pytest.raises(TypeError, match="policy must be"):
        bb.Bandit.load(tmp_path / "bandit.npz", policy="thompson")
