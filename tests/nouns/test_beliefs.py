"""The laws of a belief, for every one: of each kind of model, and a stranger's."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.runtime.savable import KINDS
from bayesbandit.systems.forest.belief import Forest
from bayesbandit.systems.iltcb.belief import PolicyMixture
from bayesbandit.systems.policy_tree.belief import PolicyTree
from tests.cases import few, slow_but
from tests.nouns import RECIPE
from tests.nouns.stage import ARMS, THETA, D, bandit, played, same, world
from tests.nouns.test_strange_beliefs import Mean, Model

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
