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
    clip: float = 0.1, propensity: Propensity = "decision", **settings: Any,
) -> tuple[PolicyTree, bb.extend.Policy, bb.extend.Balance]:  # fmt: skip
    """Return a bandit of policy-tree Thompson sampling (paper, section 4.3).

    In each leaf of a shallow tree it draws from N(mean, α² variance) of each arm's efficient
    scores.

    clip, propensity: settings of the balance, whose weights 1 / max(γ, p) are used in the scores.
    settings: of `PolicyTree` (base, depth, by, cuts, least, refit_every, prior_rows, balanced) and
    `Bandit` (history, encoder, min_probability). by="classification" follows the paper's text.

    `print(bandit.belief.text(bandit.arms))` shows the tree, and `bb.plots.policy_tree(bandit)`
    draws it.
    """
    return PolicyTree(**settings), bb.Thompson(alpha), bb.InversePropensity(clip, propensity)


@bb.extend.preset(PolicyTree)
def PolicyTreeUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    clip: float = 0.1, propensity: Propensity = "estimated", **settings: Any,
) -> tuple[PolicyTree, bb.extend.Policy, bb.extend.Balance]:  # fmt: skip
    """Return a bandit of policy-tree UCB (paper, section 4.3).

    In each leaf it chooses the arm with the largest mean + α sd of its efficient scores. UCB's
    decisions are not random, so propensities are estimated, as in `BLUCB`. As in `LinUCB`, an arm's
    first variance has to be larger (`prior_rows`). See `PolicyTreeTS`.
    """
    settings.setdefault("prior_rows", UCB_ROWS)
    return PolicyTree(**settings), bb.UCB(alpha), bb.InversePropensity(clip, propensity)
