"""The laws of a belief, for every one: of each kind of model, and a stranger's.
Those that answer wrongly, or do not count: a sentence names the method, nothing changes."""

from itertools import product

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.runtime.savable import KINDS
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.iltcb.belief import PolicyMixture
from bayesbandit.systems.policy_tree.belief import PolicyTree
from tests.cases import all_quick, few, slow_but
from tests.nouns import RECIPE
from tests.nouns.stage import ARMS, THETA, D, bandit, played, same, world

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


OWN = {n: k for n, k in KINDS.items() if hasattr(k, "belief") and k is not Shared}  # (K, d): apart
MODELS = {name: kind() for name, kind in OWN.items()} | {
    "PolicyMixture": PolicyMixture(rewards=(-20.0, 20.0), refit_every=0.25, psi=1.0),
    "PolicyTree": PolicyTree(depth=6),  # one of fewer leaves cannot be near a linear truth
    "Forest": Forest(least=5),
    "nig": bb.Ridge(variance="nig"),
    "cv": bb.Ridge("cv"),
    **{name: bb.load_model(name) for name in bb.list_models()},
}
RARE = {  # not of real rewards
    *("logistic", "hierarchical_logistic", "probit", "ordinal", "poisson", "beta_bernoulli"),
    *("gamma_poisson", "revenue", "censored_time"),
}
MODELS = {name: model for name, model in MODELS.items() if name not in RARE}
QUICK = ("Ridge", "nig", "ridge", "laplace", next(n for n in MODELS if n.endswith("Trees")))
every = pytest.mark.parametrize("name", slow_but(QUICK, MODELS))


def believed(name, n=24):
    """The belief of a bandit, and what it was told."""
    made = bandit(MODELS[name])
    x, reward = world(n)
    arm = np.arange(n) % len(ARMS)
    made.update(x, np.array(ARMS)[arm], reward[range(n), arm], np.full(n, 1 / 3))
    return made.belief


@every
def test_moments_draws_and_comparisons_agree(name, rng):
    found = believed(name).predict(world(3, 4)[0])
    mean, sd, draws = found.mean, found.sd, found.draw(4000, rng)
    assert mean.shape == sd.shape == (3, len(ARMS)) == draws.shape[1:]
    error = np.maximum(sd, 1e-12) / np.sqrt(4000)
    heavy = 3.0  # Student-t of few degrees of freedom, and draws that are picked with repetition
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * heavy * error + 1e-9).all()
    np.testing.assert_allclose(found.best().sum(axis=1), 1.0, atol=1e-9)
    two = found.among(np.array([True, False, True]))
    assert two.best().shape == two.mean.shape == (3, 2) == two.draw(7, rng).shape[1:]
    np.testing.assert_array_equal(two.mean, mean[:, [0, 2]])


@every
def test_it_learns(name):
    """After 300 rounds its means are near the truth, whatever is believed at first."""
    belief, x = believed(name, 300), world(50, 6)[0]
    error = belief.predict(x).mean - x @ THETA.T
    assert np.sqrt((error**2).mean()) < 0.6 * np.sqrt(((x @ THETA.T) ** 2).mean())


@few("[Greedy()]")
@pytest.mark.parametrize("policy", [bb.Thompson(), bb.UCB(0.5), bb.TopTwo(), bb.Greedy()], ids=str)
def test_two_methods_are_enough(policy):
    """It plays, learns and copies; what it cannot do is one sentence, and changes nothing."""
    made = played(bandit(Model(Mean), policy), 30)
    decision = made.choose(world(300, 3)[0])
    np.testing.assert_allclose(decision.probabilities.sum(axis=1), 1.0)
    same(made.copy(), made)
    for needs, call in {
        "add_arm": lambda: made.add_arm("d"),
        "remove_arm": lambda: made.remove_arm("a"),
        "posterior": lambda: made.posterior("a"),
        "state": lambda: made.save("nowhere"),
    }.items():
        with pytest.raises(TypeError, match=f"Mean needs a method .*`{needs}`.*, where"):
            call()
    assert made.arms == ARMS
    with pytest.raises(TypeError, match="needs a method `reweigh`, where the weights"):
        played(bandit(Model(Mean), policy, RECIPE["balance"].Tempered()), 3)


def test_what_is_no_belief_is_named():
    class Nothing:
        def belief(self, n_arms, n_features, normalize, seed):
            return [n_arms]

    with pytest.raises(TypeError, match=r"Nothing.belief\(…\) must give a belief; \[3\] lacks `n`"):
        bandit(Nothing())
    with pytest.raises(TypeError, match="have a method belief"):
        bandit("ridge")


DECIDE = "PolicyMixture", "SuperUCB"  # beliefs that are a policy in themselves
GLMS = "logistic", "probit", "poisson"
LAPLACE = {f"{name} by Laplace": bb.Laplace(bb.load_model(name)) for name in GLMS}
SCALED = {name: model for name, model in MODELS.items() if name not in DECIDE} | LAPLACE
SCALED |= {name: bb.load_model(name) for name in (*GLMS, "beta_bernoulli", "gamma_poisson")}


@pytest.mark.parametrize("name", slow_but(("Ridge",), SCALED))
def test_a_number_multiplies_the_distance_of_a_draw_from_the_mean_reward(name, rng):
    """α · (draw − mean) of mean rewards, whatever the engine; so α = 0 is greedy."""
    made, n, size = bandit(SCALED[name]), 40, 20_000
    x, arm = np.random.default_rng(1).normal(size=(n, D)), np.arange(n) % len(ARMS)
    rare = np.random.default_rng(2).random(n) < np.array([0.1, 0.6, 0.3])[arm]
    made.update(x, np.array(ARMS)[arm], rare.astype(float), np.full(n, 1 / 3))
    found = made.belief.predict(x[:4])
    greedy = found.mean == found.mean.max(axis=1, keepdims=True)
    for none in (found.best(0.0), bb.Thompson(0.0).probabilities(found)):
        np.testing.assert_allclose(none, greedy / greedy.sum(axis=1, keepdims=True), atol=1e-12)
    mean, draws = found.mean, found.draw(size, rng)
    for alpha in (0.3, 2.0, np.array([0.0, 0.5, 1.0, 3.0])):
        a = np.broadcast_to(alpha, 4)[:, None]
        scores = mean + a * (draws - mean)
        first = scores == scores.max(axis=2, keepdims=True)
        share = (first / first.sum(axis=2, keepdims=True)).mean(axis=0)
        error = np.sqrt(np.maximum(share * (1 - share), 1 / size) / size)
        assert (np.abs(found.best(alpha) - share) < 5 * error + 2e-3).all()
