"""Bootstrap LASSO and ridge (paper, sections 2.2 and 4.1)."""

from __future__ import annotations

from typing import Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.arguments import Arms, Seed, kept, made, takes
from bayesbandit.policies import UCB, Alpha, Policy, Thompson
from bayesbandit.systems.bootstrap.belief import Bootstrap
from bayesbandit.systems.bootstrap.replicates import Penalty
from bayesbandit.weighting.base import Balance


@takes(Bootstrap, but="penalty")
def BootstrapLassoTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap LASSO Thompson sampling (paper, sections 2.2 and 4.1): one of the replicates, or
    from N(mean, α² sd²) of them with draw="normal".

    settings: of `Bootstrap` (replicates, lam, draw, degree, …) and `Bandit` (history, encoder,
    min_probability).
    """
    return _bootstrap("lasso", Thompson(alpha), arms, n_features, seed, balance, settings)


@takes(Bootstrap, but="penalty")
def BootstrapLassoUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap LASSO UCB: the largest mean + α sd of the replicates. See `BootstrapLassoTS`."""
    return _bootstrap("lasso", UCB(alpha), arms, n_features, seed, balance, settings)


@takes(Bootstrap, but="penalty")
def BootstrapRidgeTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap ridge Thompson sampling. See `BootstrapLassoTS`."""
    return _bootstrap("ridge", Thompson(alpha), arms, n_features, seed, balance, settings)


@takes(Bootstrap, but="penalty")
def BootstrapRidgeUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap ridge UCB: the largest mean + α sd of the replicates. See `BootstrapLassoTS`."""
    return _bootstrap("ridge", UCB(alpha), arms, n_features, seed, balance, settings)


def _bootstrap(
    penalty: Penalty, policy: Policy, arms: Arms, n_features: int | None, seed: Seed,
    balance: Balance | None, settings: dict[str, Any],
) -> Bandit:  # fmt: skip
    own, settings = kept(settings)
    model = Bootstrap(penalty, **settings)
    return made(arms, model, policy, balance, n_features, seed, own)
