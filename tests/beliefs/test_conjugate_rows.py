"""What a round of probabilities or rates keeps: the a and b that its arms had at the decision."""

import numpy as np
import pytest

import bayesbandit as bb
from bayesbandit.kernels.row_layout import BETA, GAMMA, TABULATED, THOMPSON, UCB
from tests.beliefs.test_conjugate import ARMS, bandit, models, played, rewards, sums
from tests.cases import few, moments_of, slow_but
from tests.kernels.test_rounds import fits

KINDS = {"beta_bernoulli": BETA, "gamma_poisson": GAMMA}
EMPTY = np.empty((1, 0))


@models
def test_a_round_keeps_a_and_b_to_the_last_bit(name):
    made = played(bandit(name, balance="of mean 1"))
    made.update(np.empty((1, 0)), ["c"], [1.0], [1e-3])  # next to 1, of a probability
    decision, known = made.choose(), [made.belief.known(k) for k in range(3)]
    assert decision.records["rule"] == KINDS[name]
    assert decision.records["last"].tolist() == [k.a for k in known]
    assert decision.records["scale"].tolist() == [k.b for k in known]
    for at, moment in zip(
        (decision.mean, decision.sd), moments_of(made.belief, EMPTY), strict=True
    ):
        np.testing.assert_array_equal(at, moment[0])


@few("[0-gamma_poisson]")
@models
@pytest.mark.parametrize("d", [0, 2])
def test_an_arm_is_chosen_as_often_as_it_says(name, d):
    made, n = played(bandit(name, d=d), 12), 6000
    x = np.zeros((n, d))
    p = made.probabilities(x[:1])[0]
    assert (p > 0.02).all()
    number = {arm: k for k, arm in enumerate(ARMS)}
    one_by_one = [number[made.choose(row).arm] for row in x]
    at_once = [number[arm] for arm in made.choose(x).arm]
    for chosen in (one_by_one, at_once):
        fits(np.bincount(chosen, minlength=3), p)


@models
@pytest.mark.parametrize("policy", slow_but(("floored",), ["Thompson", "floored"]))
def test_probabilities_asked_for_late_are_those_of_then(name, policy):
    made = played(bandit(name, policy))
    then, decision, some = made.probabilities()[0], made.choose(), made.choose(arms=["a", "c"])
    best = made.belief.predict(EMPTY).among(np.array([True, False, True])).best()[0]
    floor = 0.05 if policy == "floored" else 0.0
    played(made, 30, seed=8)
    np.testing.assert_array_equal(decision.probabilities, then)
    assert decision.propensity == then[ARMS.index(decision.arm)]
    np.testing.assert_allclose(some.probabilities[[0, 2]], floor + (1 - 2 * floor) * best)
    assert some.probabilities[1] == some.sd[1] == 0.0
    assert some.mean[1] == -np.inf
    made.remove_arm("b")
    np.testing.assert_array_equal(decision.probabilities, then)


@models
@pytest.mark.parametrize("policy", slow_but(("floored",), ["Thompson", "floored"]))
@pytest.mark.parametrize("balance", ["none", "of mean 1"])
@few("none")
def test_propensities_of_a_run_are_those_of_its_rounds(name, policy, balance):
    """Also where few are asked for: those that the weights need are all there, and the others can
    be known from the history."""
    run, stepped, some = (bandit(name, policy, balance) for _ in range(3))
    x, reward = np.empty((40, 0)), rewards(40)
    _, propensity = run.play(x, reward)
    decisions = []
    for r in reward:
        decisions.append(stepped.choose())
        stepped.observe(decisions[-1], float(r[ARMS.index(decisions[-1].arm)]))
    _, few = some.play(x, reward, every=7)
    assert propensity.tolist() == [d.propensity for d in decisions]
    asked = np.arange(40) % 7 == 0 if balance == "none" else np.ones(40, np.bool_)
    np.testing.assert_array_equal(few, np.where(asked, propensity, np.nan))
    np.testing.assert_array_equal(sums(run), sums(some))
    for made in (run, stepped, some):
        np.testing.assert_array_equal(made.history.propensity, propensity)


@models
def test_a_late_reward_has_the_weight_of_its_decision(name):
    made = played(bandit(name, balance="weights"))
    decision, twin = made.choose(), made.copy()
    played(made, 20, seed=5)
    made.observe(decision, 1.0)
    assert made.history.weight[-1] == 1 / max(0.1, decision.propensity)
    twin.remove_arm("a" if decision.arm != "a" else "b")
    twin.observe(decision, 1.0)  # by its name
    assert twin.history.weight[-1] == made.history.weight[-1]


def tabulated(made):
    """Its history as rounds were kept when their probabilities were tabulated."""
    rows, layout = made.history.ordered(), made.layout
    for row in rows:
        decision, log = bb.Decision(layout, row.copy()), layout.records(row)
        log["last"], log["scale"], log["rule"] = decision.probabilities, decision.sd, TABULATED


def test_what_the_kernels_play_and_in_which_rows():
    belief = bandit().belief
    assert belief.kernel.kind(THOMPSON, (1.0, 0.0)) == BETA
    assert belief.kernel.kind(THOMPSON, (1.5, 0.0)) is None
    assert belief.kernel.kind(THOMPSON, None) is None
    assert belief.kernel.kind(UCB, None) == UCB
