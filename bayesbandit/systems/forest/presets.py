"""Honest forests (paper, sections 2.2 and 4.2)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.forest.belief import Forest


@bb.extend.preset(Forest)
def ForestTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Forest, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of generalized random forest Thompson sampling (paper, sections 2.2 and 4.2).

    It draws from N(mean, α² variance), with the variance by little bags.

    settings: of `Forest` (trees, bag, share, min_leaf, tried, weights, variance_floor,
    refit_every, least) and `Bandit` (history, encoder, min_probability).
    """
    return Forest(**settings), bb.Thompson(alpha), balance


@bb.extend.preset(Forest)
def ForestUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Forest, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of generalized random forest UCB, which chooses the largest mean + α sd. See
    `ForestTS`."""
    return Forest(**settings), bb.UCB(alpha), balance
