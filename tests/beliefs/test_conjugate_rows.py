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


def test_what_the_kernels_play_and_in_which_rows():
    belief = bandit().belief
    assert belief.kernel.kind(THOMPSON, (1.0, 0.0)) == BETA
    assert belief.kernel.kind(THOMPSON, (1.5, 0.0)) is None
    assert belief.kernel.kind(THOMPSON, None) is None
    assert belief.kernel.kind(UCB, None) == UCB
