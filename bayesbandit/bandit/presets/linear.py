"""Linear bandits (paper, section 3)."""

from __future__ import annotations

from typing import Any, Literal

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.preset import pop_fields, preset
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.checks import Alpha, Arms, Seed
from bayesbandit.policies import UCB, EpsilonGreedy, Greedy, Thompson
from bayesbandit.weighting.propensity import InversePropensity

# The defaults of `Ridge.prior_rows`, which is 2 for LinTS (docs/defaults.md). Thompson draws go
# beyond one standard deviation, but a UCB bonus with α = 1 never does. It must be larger while an
# arm has few rewards. Balanced rows of weight 10 count as ten, and make an arm certain sooner.
UCB_ROWS = 32.0
BLTS_ROWS = 4.0

Lambda = float | Literal["cv"]
Variance = float | Literal["empirical_bayes", "rss/n", "rss", "nig"]
Intercept = bool | Literal["unpenalised"]


@preset(Ridge)
def LinTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0, *,
    min_probability: Alpha = 0.0, **settings: Any,
) -> Bandit:  # fmt: skip
    """Return linear Thompson sampling (Agrawal & Goyal 2013; paper, section 3).

    Arms draw from N(x'θ, α² x'V(θ)x).
    """
    model = Ridge(ridge, variance, intercept, **pop_fields(Ridge, settings))
    policy = Thompson(alpha, min_probability=min_probability)
    return Bandit(arms, model, policy, n_features=n_features, seed=seed, **settings)


@preset(Ridge)
def LinUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0, *,
    min_probability: Alpha = 0.0, prior_rows: float = UCB_ROWS, **settings: Any,
) -> Bandit:  # fmt: skip
    """Return linear UCB (Li et al. 2010; paper, section 3): the largest x'θ + α √(x'V(θ)x)."""
    model = Ridge(ridge, variance, intercept, prior_rows=prior_rows, **pop_fields(Ridge, settings))
    policy = UCB(alpha, min_probability=min_probability)
    return Bandit(arms, model, policy, n_features=n_features, seed=seed, **settings)


@preset(Ridge)
def BLTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "decision",
    normalize: bool = False, refresh: Literal["pulled", "all"] = "pulled", *,
    min_probability: Alpha = 0.0, prior_rows: float = BLTS_ROWS, **settings: Any,
) -> Bandit:  # fmt: skip
    """Return balanced linear Thompson sampling (paper, Algorithm 1).

    Weights are 1 / max(γ, propensity). By default the propensity is the exact probability at the
    moment of decision. The paper uses "pooled".
    """
    model = Ridge(ridge, variance, intercept, prior_rows=prior_rows, **pop_fields(Ridge, settings))
    policy = Thompson(alpha, min_probability=min_probability)
    balance = InversePropensity(clip, propensity, normalize, refresh=refresh)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@preset(Ridge)
def BLUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "estimated",
    normalize: bool = False, refresh: Literal["pulled", "all"] = "pulled", *,
    min_probability: Alpha = 0.0, prior_rows: float = UCB_ROWS, **settings: Any,
) -> Bandit:  # fmt: skip
    """Return balanced linear UCB (paper, Algorithm 2), with weights 1 / max(γ, propensity).

    A UCB decision is deterministic, so its own propensity is 0 or 1. The paper estimates one by a
    multinomial logistic regression of arm on context. As in its pseudocode, only the pulled arm is
    reweighted; `refresh="all"` reweights all arms, as section 3 may be read.
    """
    model = Ridge(ridge, variance, intercept, prior_rows=prior_rows, **pop_fields(Ridge, settings))
    policy = UCB(alpha, min_probability=min_probability)
    balance = InversePropensity(clip, propensity, normalize, refresh=refresh)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@preset(Ridge)
def LinGreedy(
    arms: Arms, n_features: int | None = None, epsilon: Alpha = 0.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0, *,
    min_probability: Alpha = 0.0, **settings: Any,
) -> Bandit:  # fmt: skip
    """Return greedy ridge regression: the largest x'θ, or with probability ε any arm."""
    model = Ridge(ridge, variance, intercept, **pop_fields(Ridge, settings))
    policy = (
        Greedy(min_probability=min_probability)
        if epsilon == 0.0
        else EpsilonGreedy(epsilon, min_probability=min_probability)
    )
    return Bandit(arms, model, policy, n_features=n_features, seed=seed, **settings)
