"""Beliefs that answer wrongly, or do not count: a sentence names the method, nothing changes."""

from itertools import product

import numpy as np
import pytest

import bayesbandit as bb
from tests.cases import all_quick
from tests.nouns.stage import bandit, world

POLICIES = [bb.Thompson(), bb.UCB(), bb.TopTwo()]


class Mean(bb.Belief):
    """An arm's mean reward, of whatever context."""

    def __init__(self, n_arms, n_features, normalize, seed):
        self.n, self.n_features, self.sum = np.zeros(n_arms), n_features, np.zeros(n_arms)

    def predict(self, x):
        sd = 1 / np.sqrt(self.n + 1)
        return bb.LocationScale(np.tile(self.sum * sd**2, (len(x), 1)), np.tile(sd, (len(x), 1)))

    def update(self, x, arm, reward, weight=None):
        np.add.at(self.n, arm, 1.0)
        np.add.at(self.sum, arm, reward)


class Drawn(bb.ByDraws):
    def values(self, x):
        return np.tile(np.arange(5.0), (len(x), len(self.n), 1)) + self.n[:, None]


class Model:
    def __init__(self, kind, **answers):
        self.kind = type(kind.__name__, (kind,), answers)

    def belief(self, *shape):
        return self.kind(*shape)


class Odd(bb.Prediction):
    """Moments as they were given."""

    mean = sd = None

    def __init__(self, mean, sd=None, best=None):
        self.mean, self.sd, self.p = mean, sd, best

    def draw(self, size, rng):
        return np.stack([self.mean] * size)

    def best(self, alpha=1.0):
        return self.p

    def among(self, arms):
        return self


def wrong(change):
    """A method that gives what the right one of `Mean` does, changed."""
    return lambda self, x: change(np.ones((len(x), len(self.n))))


MOMENTS = {
    "nothing": (lambda m: None, "must give a prediction, as .*; got None"),
    "means alone": (lambda m: m, "must give a prediction"),
    "one row": (lambda m: Odd(m[0], m[0]), r"must be of \(4, 3\); got means \(3,\) and sds \(3,\)"),
    "unknown means": (lambda m: bb.LocationScale(m * np.nan, m), "must be finite"),
    "unknown sds": (lambda m: bb.LocationScale(m, m * np.nan), "deviations ≥ 0; got nan"),
    "negative sds": (lambda m: Odd(m, -m), "standard deviations ≥ 0; got -1"),
}


VALUES = {
    "no draws": lambda v: v[:, :, :0],
    "flat": lambda v: v[:, :, 0],
    "turned": lambda v: v.transpose(2, 1, 0),
    "endless": lambda v: v / 0.0,
    "unknown of one context": lambda v: np.where(np.arange(len(v))[:, None, None] == 0, np.nan, v),
    "unknown of one draw": lambda v: np.where(np.arange(5) == 2, np.nan, v),
}


BEST = {
    "more than 1": (lambda p: p + 0.5, "probabilities ≥ 0 that sum to 1"),
    "less than 1": (lambda p: 0.5 * p, "probabilities ≥ 0 that sum to 1"),
    "negative": (lambda p: 0 * p + [2.0, -0.5, -0.5], "probabilities ≥ 0"),
    "unknown": (lambda p: p * np.nan, "probabilities ≥ 0"),
    "turned probabilities": (lambda p: p.T, r"must give probabilities \(4, 3\); got \(3, 4\)"),
}


def chances(change):
    """A method that gives moments, and other probabilities of being best."""

    def predict(self, x):
        third = np.full((len(x), 3), 1 / 3)
        return Odd(third, third, change(third))

    return predict


WRONG = {  # a model, and words of the error
    **{
        name: (Model(Mean, predict=wrong(change)), rf"Mean\.predict.*{match}")
        for name, (change, match) in MOMENTS.items()
    },
    **{
        name: (Model(Drawn, values=lambda self, x, f=f: f(Drawn.values(self, x))), r"\.values must")
        for name, f in VALUES.items()
    },
    **{
        name: (Model(Mean, predict=chances(change)), rf"Odd\.best.*{match}")
        for name, (change, match) in BEST.items()
    },
}
CASES = [*product([*MOMENTS, *VALUES], POLICIES), *((name, POLICIES[0]) for name in BEST)]


@all_quick()
@pytest.mark.parametrize(("case", "policy"), CASES, ids=str)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_wrong_answer_is_named_and_changes_nothing(case, policy):
    model, match = WRONG[case]
    made = bandit(model, policy)
    made.belief.n += 1.0
    before = made.stream.copy()
    for ask in (made.choose, made.greedy)[: 2 if case in MOMENTS else 1]:
        with pytest.raises((TypeError, ValueError), match=match):
            ask(world(4)[0])
    np.testing.assert_array_equal(made.stream, before)


@pytest.mark.parametrize("kind", [Mean, Drawn])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_lists_and_contexts_that_it_writes_into(kind, policy):
    """An answer may be lists, and the contexts are a belief's own: the log has those that came."""
    name = "predict" if kind is Mean else "values"

    def answer(self, x):
        found = getattr(kind, name)(self, x)
        x[:] = 99.0
        if kind is Mean:
            return bb.LocationScale(found.mean.tolist(), found.sd.tolist())
        return found.tolist()

    plain, odd = (bandit(Model(kind, **own), policy) for own in ({}, {name: answer}))
    x, reward = world(20)
    for made in (plain, odd):
        made.update(x[:6], ["a", "b"] * 3, reward[:6, 0])
        made.observe(made.choose(x), reward[:, 0])
    np.testing.assert_array_equal(odd.history.x, plain.history.x)
    np.testing.assert_array_equal(odd.history.propensity, plain.history.propensity)
    assert odd.greedy(x).tolist() == plain.greedy(x).tolist()


def test_one_that_does_not_count_its_rounds():
    """Else its arms would be new for ever, and be drawn alike."""
    made = bandit(Model(Mean, update=lambda self, x, arm, reward, weight=None: None))
    with pytest.raises(ValueError, match=r"Mean\.update must leave n = \[1\. 0\. 0\.\]"):
        made.update(world(1)[0], ["a"], [1.0])
    assert made.history.total == 0


def test_a_state_that_a_file_would_change_is_not_saved(tmp_path):
    model = Model(Mean, state=lambda self: {"seen": {0: 10.0}}, restore=lambda self, state: None)
    made = bandit(model)
    with pytest.raises(TypeError, match=r"belief\.seen has the key 0; .* keys of text alone"):
        made.save(tmp_path / "bandit")
    assert not (tmp_path / "bandit").exists()
