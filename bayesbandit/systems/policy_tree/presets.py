"""Policy-tree smoothing (paper, section 4.3)."""

from __future__ import annotations

from typing import Any, Literal

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.policy_tree.belief import PolicyTree

UCB_ROWS = 16.0  # `PolicyTree.prior_rows` for UCB: α = 1 looks only one sd up

Propensity = Literal["decision", "estimated"]


@bb.extend.preset(PolicyTree)
def PolicyTreeTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    clip: float = 0.1, propensity: Propensity = "decision", *,
    min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of policy-tree Thompson sampling (paper, section 4.3).

    In each leaf of a shallow tree it draws from N(mean, α² variance) of each arm's efficient
    scores.

    The balance's weights 1 / max(γ, p) are used in the scores. by="classification" follows the
    paper's text.

    `print(bandit.belief.text(bandit.arms))` shows the tree.
    """
    model = PolicyTree(**bb.extend.pop_fields(PolicyTree, settings))
    policy = bb.Thompson(alpha, min_probability=min_probability)
    balance = bb.InversePropensity(clip, propensity)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(PolicyTree)
def PolicyTreeUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    clip: float = 0.1, propensity: Propensity = "estimated", *,
    min_probability: Alpha = 0.0, prior_rows: float = UCB_ROWS, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of policy-tree UCB (paper, section 4.3).

    In each leaf it chooses the arm with the largest mean + α sd of its efficient scores. UCB's
    decisions are not random, so propensities are estimated, as in `BLUCB`. As in `LinUCB`, an arm's
    first variance has to be larger (`prior_rows`).
    """
    model = PolicyTree(prior_rows=prior_rows, **bb.extend.pop_fields(PolicyTree, settings))
    policy = bb.UCB(alpha, min_probability=min_probability)
    balance = bb.InversePropensity(clip, propensity)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)
