"""The laws of a policy, for every one: the toolkit's, and a stranger's."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.runtime.savable import KINDS
from tests.cases import few
from tests.nouns import RECIPE
from tests.nouns.stage import ARMS, bandit, played, world

FOUND = {name: kind for name, kind in KINDS.items() if hasattr(kind, "probabilities")}
POLICIES = {name: kind() for name, kind in FOUND.items()} | {
    "a floor": bb.Thompson(0.5, min_probability=0.1),
    "a floor of t": bb.UCB(min_probability=lambda t: 0.3 / t),
    "ε of t": bb.EpsilonGreedy(lambda t: t**-0.5),
}
ANNEALED = RECIPE["policy"].Annealed()
TREES = RECIPE["belief"].Trees(draws=4)
every = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@few("[Ridge-Greedy]")
@every
@pytest.mark.parametrize("model", [bb.Ridge(), TREES], ids=["Ridge", "Trees"])
def test_probabilities(policy, model):
    """They are those of each context by itself, of its round, and sum to 1."""
    belief = played(bandit(model, policy), 15).belief
    x, t = world(5, 1)[0], np.arange(3, 8)
    two = np.array([True, False, True])
    p = policy.probabilities(belief.predict(x).among(two), t)
    assert p.shape == (5, 2)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    for i in range(5):
        np.testing.assert_allclose(
            policy.probabilities(belief.predict(x[i : i + 1]).among(two), t[i])[0], p[i], atol=1e-12
        )


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, prediction, t):
        return self.answer(prediction, np.full(prediction.mean.shape, 1 / 3))


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (lambda known, p: None, ValueError, r"^Odd must give .* \(4, 3\); got"),
        (lambda known, p: p * np.nan, ValueError, "^Odd must give .* sum to 1"),
        (lambda known, p: p + 0j, ValueError, "must be numbers"),
        (lambda known, p: np.ma.masked_array(p, p > 0), ValueError, "without a mask"),
        (lambda known, p: p + known.n, AttributeError, "object has no attribute 'n'"),
    ],
)
def test_what_are_no_probabilities(answer, error, match):
    made = bandit(policy=Odd(answer))
    made.update(*(v[:3] for v in (world(3)[0], np.array(ARMS), world(3)[1][:, 0])))
    before = made.stream.copy()
    with pytest.raises(error, match=match):
        made.choose(world(4)[0])
    np.testing.assert_array_equal(made.stream, before)


def test_an_error_of_the_belief_is_its_own():
    """Also an `AttributeError`, of which Python would ask for the attribute another way."""
    made = bandit(RECIPE["belief"].Trees(), Odd(lambda known, p: p))
    made.update(world(3)[0], list(ARMS), [1.0, 2.0, 3.0])
    made.belief.values = lambda x: x.no_such_thing
    with pytest.raises(AttributeError, match="no_such_thing"):
        made.choose(world(1)[0])


class Reversed(bb.Greedy):
    """The worst arm."""

    def probabilities(self, prediction, t=1):
        mean = prediction.mean
        return (mean == mean.min(axis=1, keepdims=True)).astype(float)


class Slower(bb.Thompson):
    """A rule that is compiled, with a number of its own."""

    def param(self, t):
        return 0.5 * super().param(t)


def grown(policy=ANNEALED, balance=None):
    """A bandit that has learned a log of all arms."""
    made, (x, reward) = bandit(policy=policy, balance=balance), world(60)
    made.update(x, np.array(ARMS)[np.arange(60) % 3], reward[:, 0], np.full(60, 1 / 3))
    return made


def test_it_is_balanced_by_its_own_propensities():
    made = grown(balance=bb.InversePropensity(clip=0.05))
    for x in world(20, 8)[0]:
        decision = made.choose(x)
        made.observe(decision, 1.0)
        assert made.history.weight[-1] == 1 / max(0.05, decision.propensity)
    x = world(5, 8)[0]
    before = made.copy()
    made.update(x, ["a"] * 5, np.zeros(5))
    expected = ANNEALED.probabilities(before.belief.predict(x), np.full(5, before.t + 1))[:, 0]
    np.testing.assert_allclose(made.history.weight[-5:], 1 / np.maximum(0.05, expected))
    with pytest.raises(ValueError, match="pooled propensities ask past policies again"):
        grown(balance=bb.InversePropensity(propensity="pooled"))
    estimated = grown(balance=bb.InversePropensity(propensity="estimated"))
    estimated.observe(estimated.choose(world(1, 8)[0][0]), 1.0)


def test_a_subclass_is_obeyed():
    made, x = grown(Reversed()), world(40, 8)[0]
    worst = made.belief.predict(x).mean.argmin(axis=1)
    assert [made.arms[k] for k in worst] == list(made.choose(x).arm)
    slower, half = grown(Slower(1.0)), grown(bb.Thompson(0.5))
    assert slower.rule is not None
    np.testing.assert_array_equal(slower.choose(x).probabilities, half.choose(x).probabilities)


class Falling(RECIPE["policy"].Annealed):
    """A least probability that is a method."""

    def min_probability(self, t):
        return 0.3 / t


class Moved(RECIPE["policy"].Annealed):
    """A least probability that is moved from outside."""

    share = 0.3

    @property
    def min_probability(self):
        return self.share


@pytest.mark.parametrize("policy", [Falling(), Moved()], ids=["a method", "a property"])
def test_a_least_probability_of_ones_own_is_asked_for_in_every_round(policy):
    made, x = grown(policy=policy), world(2, 8)[0]
    assert made.choose(x[0]).probabilities.min() >= 0.3
    policy.share = 0.15
    for asked in (x[1], x[1:]):
        decision = made.choose(asked)
        least = 0.3 / made.t if isinstance(policy, Falling) else 0.15
        p = policy.probabilities(made.belief.predict(x[1:]), np.array([made.t]))[0]
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
    own = type("Kind", (RECIPE["policy"].Annealed,), {"kind": kind})()
    x = world(40, 8)[0]
    same = grown().choose(x), grown(own).choose(x)
    np.testing.assert_array_equal(*(decision.probabilities for decision in same))


def test_a_least_probability_too_large_at_first_for_the_arms_of_now(tmp_path):
    policy = bb.Thompson(min_probability=lambda t: 1 / (2 + t))
    made, x = grown(policy=policy), world(40, 8)[0]
    made.choose(x)
    made.add_arm("late")
    made.save(tmp_path / "bandit.npz")
    twins = made.copy(), bb.Bandit.load(tmp_path / "bandit.npz", policy=policy)
    wanted = made.choose(x)
    for twin in twins:
        np.testing.assert_array_equal(twin.choose(x).rows, wanted.rows)
    with pytest.raises(TypeError, match="policy must be"):
        bb.Bandit.load(tmp_path / "bandit.npz", policy="thompson")
