"""Bootstrap LASSO and ridge (paper, sections 2.2 and 4.1)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.bootstrap.belief import Bootstrap


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapLassoTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of bootstrap LASSO Thompson sampling (paper, sections 2.2 and 4.1).

    It draws one of the replicates, or from their N(mean, α² sd²) with draw="normal".
    """
    model = Bootstrap("lasso", **bb.extend.pop_fields(Bootstrap, settings))
    policy = bb.Thompson(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapLassoUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of bootstrap LASSO UCB, which chooses the arm of the largest mean + α sd.

    The mean and sd are those of the replicates.
    """
    model = Bootstrap("lasso", **bb.extend.pop_fields(Bootstrap, settings))
    policy = bb.UCB(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapRidgeTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of bootstrap ridge Thompson sampling."""
    model = Bootstrap("ridge", **bb.extend.pop_fields(Bootstrap, settings))
    policy = bb.Thompson(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapRidgeUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of bootstrap ridge UCB, which chooses the arm of the largest mean + α sd.

    The mean and sd are those of the replicates.
    """
    model = Bootstrap("ridge", **bb.extend.pop_fields(Bootstrap, settings))
    policy = bb.UCB(alpha, min_probability=min_probability)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)
