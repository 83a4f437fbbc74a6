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
