"""Bandits with a bound on their regret."""

from __future__ import annotations

from typing import Any, Literal

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.arguments import Arms, Seed, kept, made, takes
from bayesbandit.beliefs.levels import Levels
from bayesbandit.beliefs.mixture.belief import PolicyMixture
from bayesbandit.beliefs.mixture.oracle import LinearOracle, Oracle
from bayesbandit.policies import Thompson
from bayesbandit.weighting.propensity import InversePropensity

UNCLIPPED = 1e-12  # below any propensity


@takes(PolicyMixture)
def ILTCB(
    arms: Arms, n_features: int | None = None, exploration: float = 0.01, psi: float = 1.0,
    gains: Literal["dr", "ips"] = "dr", oracle: Oracle | None = None,
    refit_every: int | float = 0.25, rewards: tuple[float, float] = (0.0, 1.0), seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """ILOVETOCONBANDITS (Agarwal et al. 2014): a distribution over policies that an oracle finds.

    exploration, psi, gains, oracle, refit_every, rewards: of `PolicyMixture`. The theory has
    psi=100, gains="ips" and refit_every=1.0 (epochs that double); the defaults earn more on the
    bundled data sets. Other than in the listing, an arm without a reward so far is drawn with
    probability 1/K, as by every bandit here. `bandit.belief.mixture` has policies and weights.
    settings: of `PolicyMixture` (delta, log_policies) and `Bandit` (history, encoder,
    min_probability).
    """
    own, settings = kept(settings)
    model = PolicyMixture(
        exploration=exploration, psi=psi, gains=gains, oracle=oracle or LinearOracle(),
        refit_every=refit_every, rewards=rewards, **settings,
    )  # fmt: skip
    balance = InversePropensity(clip=UNCLIPPED)
    return made(arms, model, Thompson(), balance, n_features, seed, own)


@takes()
def SuperLinUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, seed: Seed = 0, **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperLinUCB (Chu et al. 2011): √T regret, by levels whose rewards are independent.

    horizon, alpha, ridge, intercept: of `Levels`. settings: of `Bandit` (history, encoder,
    min_probability). A reward that comes after later decisions is learned at the level where its
    arm is wide by then.
    """
    model = Levels(horizon, alpha, ridge, intercept)
    return made(arms, model, Thompson(), None, n_features, seed, settings)


@takes()
def SuperBLUCB(
    arms: Arms, n_features: int | None = None, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, clip: float = 0.1, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperBLUCB (paper, Appendix A): SuperLinUCB under weights 1 / max(γ, estimated propensity).

    See `SuperLinUCB`. Rounds that are told together are weighed, and shared out among the levels,
    by one estimate of their propensities; one by one, by those of their time. Later decisions
    differ.
    """
    model, balance = Levels(horizon, alpha, ridge, intercept), InversePropensity(clip, "estimated")
    return made(arms, model, Thompson(), balance, n_features, seed, settings)
