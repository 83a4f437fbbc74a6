"""What a round of probabilities or rates keeps: the a and b that its arms had at the decision."""

import numpy as np

from bayesbandit.kernels.row_layout import BETA, GAMMA, THOMPSON, UCB
from tests.beliefs.test_conjugate import bandit, models, played
from tests.cases import moments_of

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


def test_what_the_kernels_play_and_in_which_rows():
    belief = bandit().belief
    assert belief.kernel.kind(THOMPSON, (1.0, 0.0)) == BETA
    assert belief.kernel.kind(THOMPSON, (1.5, 0.0)) is None
    assert belief.kernel.kind(THOMPSON, None) is None
    assert belief.kernel.kind(UCB, None) == UCB
