"""The laws of a policy, for every one: the toolkit's, and a stranger's."""

import numpy as np
import pytest
from scipy import stats

import bayesbandit as bb
from bayesbandit.runtime.savable import KINDS
from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.super_ucb.belief import SuperUCB
from tests.cases import few
from tests.nouns import RECIPE
from tests.nouns.stage import ARMS, bandit, decisions, moments, played, same, world

FOUND = {name: kind for name, kind in KINDS.items() if hasattr(kind, "probabilities")}
POLICIES = {name: kind() for name, kind in FOUND.items()} | {
    "a floor": bb.Thompson(0.5, min_probability=0.1),
    "a floor of t": bb.UCB(min_probability=lambda t: 0.3 / t),
    "ε of t": bb.EpsilonGreedy(lambda t: t**-0.5),
}
TREES = RECIPE["belief"].Trees(draws=4)
every = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def test_a_strangers_is_among_them():
    assert any(isinstance(policy, RECIPE["policy"].Annealed) for policy in POLICIES.values())


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


MODELS = {
    "Ridge": bb.Ridge(),
    "Trees": TREES,
    "Bootstrap": Bootstrap(lam=0.1, replicates=8),
    "SuperUCB": SuperUCB(),
}


@few("[Ridge-15-EpsilonGreedy]")
@every
@pytest.mark.parametrize("rounds", [0, 2, 15])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_probabilities_can_be_asked_for(policy, model, rounds):
    """They are those that a decision about each context alone would carry, and asking for them
    changes nothing."""
    made, x = played(bandit(model, policy), rounds), world(5, 1)[0]
    before, p = made.copy(), made.probabilities(x)
    wanted = [before.copy().choose(row).probabilities for row in x]
    np.testing.assert_allclose(p, wanted, atol=1e-12)
    np.testing.assert_allclose(made.probabilities(x[0]), p[:1], atol=1e-12)
    same(made, before)


@every
def test_decisions_are_drawn_with_the_probabilities_that_they_carry(policy):
    """One context 4,000 times: counts by arm and, by χ², by the sums of the probabilities."""
    made = played(bandit(policy=policy), 12)
    decision = made.choose(np.tile([0.3, 0.2, -0.1], (4000, 1)))
    expected = decision.probabilities.sum(axis=0)
    counts = np.array([(decision.arm == arm).sum() for arm in ARMS])
    assert (counts[expected == 0] == 0).all()
    likely = expected > 0
    if likely.sum() > 1:
        assert stats.chisquare(counts[likely], expected[likely]).pvalue > 1e-4
    index = [ARMS.index(arm) for arm in decision.arm]
    np.testing.assert_allclose(decision.propensity, decision.probabilities[range(4000), index])


@every
def test_arms_that_may_not_be_chosen(policy):
    made = played(bandit(policy=policy), 12)
    decision = made.choose(world(200, 2)[0], arms=["a", "c"])
    assert set(decision.arm) <= {"a", "c"}
    np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1.0)
    assert (decision.probabilities[:, 1] == 0).all()


@every
def test_one_by_one_and_at_once(policy):
    x = world(10, 3)[0]
    one, other = (played(bandit(policy=policy), 12) for _ in range(2))
    single = [one.choose(context) for context in x]
    batch = other.choose(x)
    assert [d.arm for d in single] == batch.arm.tolist()
    np.testing.assert_allclose([d.probabilities for d in single], batch.probabilities, atol=1e-12)


@every
def test_copies_and_files(policy, tmp_path):
    made = played(bandit(policy=policy), 12)
    made.save(tmp_path / "bandit")
    loaded = bb.Bandit.load(tmp_path / "bandit", policy=policy)
    same(made.copy(), loaded)


@every
def test_bad_input_leaves_no_trace(policy):
    made, twin = (played(bandit(policy=policy), 12) for _ in range(2))
    decision = made.choose(world(1)[0])
    twin.choose(world(1)[0])
    for bad in ([np.nan, 0, 0], [1, 2], "abc"):
        with pytest.raises((ValueError, TypeError)):
            made.choose(bad)
    for bad in (np.inf, [1.0, 2.0]):
        with pytest.raises((ValueError, TypeError)):
            made.observe(decision, bad)
    np.testing.assert_array_equal(moments(made), moments(twin))
    assert decisions(made)[0] == decisions(twin)[0]


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, prediction, t):
        return self.answer(prediction, np.full(prediction.mean.shape, 1 / 3))


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        (
            lambda known, p: None,
            ValueError,
            r"^Odd must give .* \(4, 3\); got",
        ),
        (
            lambda known, p: p * np.nan,
            ValueError,
            r"^Odd must give .* sum to 1",
        ),
        (lambda known, p: p + 0j, ValueError, "must be numbers"),
        (lambda known, p: np.ma.masked_array(p, p > 0), ValueError, "sum to 1; got .*nan"),
        (
            lambda known, p: p + known.n,
            AttributeError,
            "object has no attribute 'n'",
        ),
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


@pytest.mark.parametrize("kind", [list, np.float32, np.float64])
def test_lists_and_numbers_of_less_precision(kind):
    as_kind = list if kind is list else lambda p: p.astype(kind)
    made = bandit(policy=Odd(lambda known, p: as_kind(p * (1 + 1e-7))))
    made.update(world(3)[0], list(ARMS), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(made.choose(world(4)[0]).probabilities.sum(axis=1), 1, rtol=1e-15)
