"""Bootstrap LASSO and ridge (paper, sections 2.2 and 4.1)."""

from __future__ import annotations

from typing import Any

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.bootstrap.belief import Bootstrap


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapLassoTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Bootstrap, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of bootstrap LASSO Thompson sampling (paper, sections 2.2 and 4.1).

    It draws one of the replicates, or from their N(mean, α² sd²) with draw="normal".

    settings: of `Bootstrap` (replicates, lam, draw, degree, …) and `Bandit` (history, encoder,
    min_probability).
    """
    return Bootstrap("lasso", **settings), bb.Thompson(alpha), balance


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapLassoUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Bootstrap, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of bootstrap LASSO UCB, which chooses the arm of the largest mean + α sd.

    The mean and sd are those of the replicates. See `BootstrapLassoTS`.
    """
    return Bootstrap("lasso", **settings), bb.UCB(alpha), balance


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapRidgeTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Bootstrap, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of bootstrap ridge Thompson sampling. See `BootstrapLassoTS`."""
    return Bootstrap("ridge", **settings), bb.Thompson(alpha), balance


@bb.extend.preset(Bootstrap, but="penalty")
def BootstrapRidgeUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: bb.extend.Balance | None = None, **settings: Any,
) -> tuple[Bootstrap, bb.extend.Policy, bb.extend.Balance | None]:  # fmt: skip
    """Return a bandit of bootstrap ridge UCB, which chooses the arm of the largest mean + α sd.

    The mean and sd are those of the replicates. See `BootstrapLassoTS`.
    """
    return Bootstrap("ridge", **settings), bb.UCB(alpha), balance
