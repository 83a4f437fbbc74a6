"""Bandits with declared models: what they choose, with which propensity, and what they learn."""

import numpy as np
import pytest
from pytensor.compile.maker import FunctionMaker
from scipy import stats

import bayesbandit as bb
from bayesbandit.beliefs.sampled.belief import SampledBelief
from bayesbandit.model import RewardModel
from tests import declarations as declared
from tests.bandit.kinds import (
    ARMS,
    POLICIES,
    D,
    agree,
    bandit_of,
    close,
    every,
    kinds,
    probe,
    trained,
)
from tests.cases import few, moments_of, slow_but
from tests.inference import linear
from tests.players import world

# ---- decisions -----------------------------------------------------------------------------------


@pytest.mark.slow
@every
def test_thompson_sampling_chooses_arms_as_often_as_their_probabilities_say(kind):
    as_often_as_it_says(kind, POLICIES[0])


@pytest.mark.slow
@kinds("affine, unknown noise", "joint, by draws")
@pytest.mark.parametrize("policy", POLICIES[1:], ids=str)
def test_so_does_any_policy(kind, policy):
    as_often_as_it_says(kind, policy)


def as_often_as_it_says(kind, policy):
    """4,000 choices for one context, a χ² test at 10⁻³ of a fixed seed."""
    bandit, x = trained(kind, policy), probe(1)
    expected = policy.probabilities(bandit.belief.predict(x))[0]
    mean, sd = moments_of(bandit.belief, x)
    decision = bandit.choose(np.repeat(x, 4000, axis=0))
    p = decision.probabilities[0]
    np.testing.assert_allclose(p, expected, atol=1e-9)
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    close(decision.mean[0], mean[0])
    close(decision.sd[0], sd[0])
    chosen = np.array([ARMS.index(a) for a in decision.arm])
    np.testing.assert_array_equal(decision.propensity, decision.probabilities[0][chosen])
    counts, possible = np.bincount(chosen, minlength=3), p > 0
    assert not counts[~possible].any()
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], 4000 * p[possible] / p.sum()).pvalue > 1e-3
    if isinstance(policy, bb.UCB | bb.Greedy):
        score = mean[0] + (0.7 * sd[0] if isinstance(policy, bb.UCB) else 0.0)
        assert set(chosen.tolist()) == {int(score.argmax())}


@pytest.mark.slow
@every
def test_probabilities_can_be_asked_for(kind):
    """Which draws nothing, and leaves the next decisions what they would have been."""
    bandit = trained(kind)
    before = bandit.copy()
    p = bandit.probabilities(probe())
    np.testing.assert_array_equal(bandit.probabilities(probe()), p)
    decision, wanted = bandit.choose(probe()), before.choose(probe())
    close(wanted.probabilities, p)
    np.testing.assert_array_equal(decision.probabilities, wanted.probabilities)
    assert decision.arm.tolist() == wanted.arm.tolist()


@pytest.mark.slow
@every
def test_a_subset_of_arms(kind):
    bandit, x = trained(kind), probe(1)
    decision = bandit.choose(np.repeat(x, 2000, axis=0), arms=["a", 3])
    p = decision.probabilities[0]
    assert p[1] == 0.0
    assert decision.mean[0, 1] == -np.inf
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    counts = np.bincount([ARMS.index(a) for a in decision.arm], minlength=3)
    assert counts[1] == 0
    error = np.sqrt(2000 * p * (1 - p))
    assert (np.abs(counts - 2000 * p) <= 4 * error + 1e-6).all()
    two = bandit_of(kind, arms=("a", 3))
    if not bandit.model.takes_arm:  # arms that do not share: as if there were these alone
        history = bandit.history
        kept = history.arm != "b"
        two.update(history.x[kept], history.arm[kept], history.reward[kept],
                   history.propensity[kept])  # fmt: skip
        if not isinstance(two.belief, SampledBelief):
            close(two.choose(x[0]).probabilities, p[[0, 2]])
    alone = bandit.choose(x[0], arms="b")
    assert (alone.arm, alone.propensity) == ("b", 1.0)


@pytest.mark.slow
@every
def test_a_batch_is_as_many_single_choices(kind):
    batch = trained(kind)
    single, x = batch.copy(), probe(40)
    together = batch.choose(x)
    for row, context in enumerate(x):
        decision = single.choose(context)
        assert decision.arm == together.arm[row]
        close(decision.mean, together.mean[row])
        close(decision.sd, together.sd[row])
        np.testing.assert_allclose(decision.probabilities, together.probabilities[row], atol=2e-3)
    assert batch.t == single.t == 40
    np.testing.assert_array_equal(batch.stream, single.stream)


@every
def test_each_new_arm_has_its_share(kind):
    bandit = bandit_of(kind)
    for arm in ARMS[:2]:
        new = bandit.belief.new
        np.testing.assert_allclose(bandit.choose(probe()).probabilities[:, new], 1 / 3)
        bandit.update(probe(1)[0], arm, 1.0)
        assert np.isnan(bandit.history.propensity[-1])
    np.testing.assert_array_equal(bandit.choose(probe(), arms=["a", 3]).propensity, 0.5)
    p = bandit.choose(probe(), arms=["a", "b"]).probabilities
    assert not (p == 0.5).all()


@pytest.mark.slow
def test_arms_with_an_improper_posterior_are_new():
    """σ known, an intercept and D coefficients that are flat: D + 1 rounds of each arm."""
    reward = np.random.default_rng(0).normal(size=(12, 2))
    x = np.repeat(np.vstack([np.eye(D), np.zeros((3, D))]), 2, axis=0)
    model = RewardModel(linear.improper, {})
    bandit = bb.Bandit(2, bb.Sampled(model, refit_every=1), bb.Thompson(), n_features=D)
    for t in range(12):
        expected = t >= 2 * (D + 1)
        decision = bandit.choose(probe())
        assert (abs(decision.probabilities - 0.5) > 1e-9).any() == expected, (
            "one of two new: a half each"
        )
        if t < 2:
            with pytest.raises(ValueError, match="not proper"):
                bandit.posterior(1)
        bandit.update(x[t], t % 2, reward[t, t % 2])
    assert bandit.posterior(1).mean(probe()).shape == (4,)


# ---- rewards and weights -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["affine", "joint", "by draws", "joint, by draws"])
@few("affine", "[joint]")
def test_rewards_late_in_any_order_and_in_batches(kind, rng):
    bandit = trained(kind, balance=bb.InversePropensity())
    decision, reward = bandit.choose(probe(12)), rng.normal(size=12)
    at_once, one_by_one, shuffled = bandit.copy(), bandit.copy(), bandit.copy()
    at_once.observe(decision, reward)
    for i in range(12):
        one_by_one.observe(decision[i], float(reward[i]))
    order = rng.permutation(12)
    shuffled.observe(decision[order], reward[order])
    for other in (one_by_one, shuffled):
        known = moments_of(at_once.belief, probe())
        for ours, theirs in zip(moments_of(other.belief, probe()), known, strict=True):
            close(ours, theirs, 1e-7)
    np.testing.assert_array_equal(
        at_once.history.weight[-12:], 1 / np.maximum(0.1, decision.propensity)
    )
    assert at_once.history.total == 42


@every
@few("affine", "Gibbs")
def test_a_decision_among_other_arms_is_observed_with_its_propensity(kind, rng):
    """Also one that was certain: a propensity is never above 1."""
    bandit = trained(kind, balance=bb.InversePropensity())
    decision = bandit.choose(np.repeat(probe(), 5, axis=0), arms=["b"])
    bandit.add_arm("new")
    bandit.observe(decision, np.ones(20))
    np.testing.assert_array_equal(bandit.history.propensity[-20:], 1.0)
    np.testing.assert_array_equal(bandit.history.weight[-20:], 1.0)


@few("[decision-affine]")
@pytest.mark.parametrize("kind", ["affine", "affine, unknown noise", "joint"])
@pytest.mark.parametrize(
    "balance",
    [
        pytest.param(None, marks=pytest.mark.slow),
        bb.InversePropensity(clip=0.2),
        pytest.param(
            bb.InversePropensity(propensity="estimated", refit_every=1), marks=pytest.mark.slow
        ),
        bb.InversePropensity(propensity="estimated", refit_every=0.5),
    ],
    ids=["unweighted", "decision", "estimated", "estimated now and then"],
)
def test_what_was_played_is_what_fit_finds_in_the_history(kind, balance, rng):
    """With the weights of the history, which the balance gave."""
    x, reward = world(rng, 40)
    bandit = bandit_of(kind, balance=balance, arms=3)
    bandit.play(x, reward)
    agree(bandit)
    weight, p = bandit.history.weight, bandit.history.propensity
    if balance is None:
        np.testing.assert_array_equal(weight, 1.0)
    elif balance.propensity == "decision":
        np.testing.assert_array_equal(weight, 1 / np.maximum(0.2, p))
    else:
        assert np.abs(weight - 1 / np.maximum(0.1, p)).max() > 0.1


@few("[estimated-by Gibbs]")
@pytest.mark.parametrize(
    "kind", slow_but(["joint", "by Gibbs"], ["joint", "by draws", "by Gibbs", "joint, by draws"])
)
@pytest.mark.parametrize("propensity", ["decision", "estimated"])
def test_weights_reach_the_rounds_that_the_belief_keeps(kind, propensity, rng):
    x, reward = world(rng, 30)
    balance = bb.InversePropensity(propensity=propensity, refit_every=1)
    bandit = bandit_of(kind, balance=balance, arms=3)
    bandit.play(x, reward)
    rows, history = bandit.belief.rounds.of(), bandit.history
    for role in ("x", "arm", "reward", "weight"):
        np.testing.assert_array_equal(rows[role], getattr(history, role))
    assert np.ptp(rows["weight"]) > 0.1
    np.testing.assert_array_equal(bandit.belief.n, np.bincount(history.arm, minlength=3))


@every
def test_logged_rounds_without_propensities_are_weighted_by_those_of_today(kind):
    bandit = trained(kind, balance=bb.InversePropensity(clip=0.01))
    p = bandit.policy.probabilities(bandit.belief.predict(probe()))
    bandit.update(probe(), ["a", "b", 3, "a"], np.ones(4))
    assert np.isnan(bandit.history.propensity[-4:]).all()
    close(bandit.history.weight[-4:], 1 / np.maximum(0.01, p[np.arange(4), [0, 1, 2, 0]]))
    bandit.update(probe(), ["a", "b", 3, "a"], np.ones(4), [0.25, 0.5, 0.125, 1.0])
    np.testing.assert_array_equal(bandit.history.weight[-4:], [4.0, 2.0, 8.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"draws": 20}, {"engine": "laplace"}])
def test_a_second_bandit_of_a_declaration_compiles_nothing(settings, monkeypatch, rng):
    model = declared.lasso if "draws" in settings else bb.load_model("logistic")
    x, reward = rng.normal(size=(12, D)), 1.0 * (rng.random(12) < 0.5)

    def live():
        bandit = declared.bandit(2, model, bb.Thompson(), n_features=D, **settings)
        bandit.update(x, [0, 1] * 6, reward)
        return bandit.choose(x).arm.tolist()

    first = live()
    monkeypatch.setattr(FunctionMaker, "__init__", None)
    assert live() == first
