"""ILOVETOCONBANDITS (Agarwal et al. 2014)."""

from __future__ import annotations

from typing import Any, Literal

import bayesbandit as bb
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.systems.iltcb.belief import PolicyMixture

UNCLIPPED = 1e-12  # below any propensity


@bb.extend.preset(PolicyMixture)
def ILTCB(
    arms: Arms, n_features: int | None = None, exploration: float = 0.01, psi: float = 1.0,
    gains: Literal["dr", "ips"] = "dr",
    refit_every: int | float = 0.25, rewards: tuple[float, float] = (0.0, 1.0), seed: Seed = 0,
    *, min_probability: Alpha = 0.0, **settings: Any,
) -> bb.Bandit:  # fmt: skip
    """Return a bandit of ILOVETOCONBANDITS (Agarwal et al. 2014): a distribution over policies
    found by a least-squares oracle.

    The theory has psi=100, gains="ips" and refit_every=1.0 (epochs that double). The defaults earn
    more on the bundled data sets. Unlike the paper's pseudocode, an arm without a reward so far is
    chosen with probability 1/K, as in every bandit here. `bandit.belief.mixture` has the policies
    and their weights.
    """
    model = PolicyMixture(
        exploration=exploration, psi=psi, gains=gains, refit_every=refit_every, rewards=rewards,
        **bb.extend.pop_fields(PolicyMixture, settings),
    )  # fmt: skip
    policy = bb.Thompson(min_probability=min_probability)
    balance = bb.InversePropensity(clip=UNCLIPPED)
    return bb.Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)
