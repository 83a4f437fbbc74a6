"""Linear bandits (paper, section 3)."""

from __future__ import annotations

from typing import Any, Literal

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.arguments import Arms, Seed, kept, made, takes
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.policies import UCB, Alpha, EpsilonGreedy, Greedy, Policy, Thompson
from bayesbandit.weighting.propensity import InversePropensity, Unweighted

# Of `Ridge.prior_rows`. Thompson's draws reach beyond one standard deviation, UCB with α = 1 never:
# its bonus has to be larger while an arm has but a few rewards (docs/defaults.md).
UCB_ROWS = 16.0

Lambda = float | Literal["cv"]
Variance = float | Literal["empirical_bayes", "rss/n", "rss", "nig"]
Intercept = bool | Literal["unpenalised"]


def _linear(
    policy: Policy, balance: Unweighted | InversePropensity, arms: Arms, n_features: int | None,
    ridge: Lambda, variance: Variance, intercept: Intercept, seed: Seed, settings: dict[str, Any],
) -> Bandit:  # fmt: skip
    own, settings = kept(settings)
    if isinstance(policy, UCB) and variance == "empirical_bayes":
        settings.setdefault("prior_rows", UCB_ROWS)
    model = Ridge(ridge=ridge, variance=variance, intercept=intercept, **settings)
    return made(arms, model, policy, balance, n_features, seed, own)


@takes(Ridge)
def LinTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Linear Thompson sampling (Agrawal & Goyal 2013; paper, section 3): N(x'θ, α² x'V(θ)x).

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history, encoder, min_probability).
    """
    policy, balance = Thompson(alpha), Unweighted()
    return _linear(
        policy, balance, arms, n_features, ridge, variance, intercept, seed, settings
    )  # fmt: skip


@takes(Ridge)
def LinUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Linear UCB (Li et al. 2010; paper, section 3): the largest x'θ + α √(x'V(θ)x).

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history, encoder, min_probability).
    """
    return _linear(
        UCB(alpha), Unweighted(), arms, n_features, ridge, variance, intercept, seed, settings
    )


@takes(Ridge)
def BLTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "decision",
    normalize: bool = False, refresh: Literal["pulled", "all"] = "pulled", **settings: Any,
) -> Bandit:  # fmt: skip
    """Balanced linear Thompson sampling (paper, Algorithm 1): weights 1 / max(γ, propensity).

    The propensity is by default the exact one of the moment of decision; "pooled" is the paper's.
    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history, encoder, min_probability).
    """
    balance = InversePropensity(clip, propensity, normalize, refresh=refresh)
    return _linear(
        Thompson(alpha), balance, arms, n_features, ridge, variance, intercept, seed, settings
    )


@takes(Ridge)
def BLUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "estimated",
    normalize: bool = False, refresh: Literal["pulled", "all"] = "pulled", **settings: Any,
) -> Bandit:  # fmt: skip
    """Balanced linear UCB (paper, Algorithm 2): weights 1 / max(γ, estimated propensity).

    A UCB decision is deterministic, so its own propensity says nothing: the paper estimates one by
    multinomial logistic regression of arm on context. Its listing refreshes the weights of the arm
    that was pulled; `refresh="all"` those of every arm, which the text of section 3 allows.
    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history, encoder, min_probability).
    """
    balance = InversePropensity(clip, propensity, normalize, refresh=refresh)
    return _linear(
        UCB(alpha), balance, arms, n_features, ridge, variance, intercept, seed, settings
    )


@takes(Ridge)
def LinGreedy(
    arms: Arms, n_features: int | None = None, epsilon: Alpha = 0.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Greedy ridge regression: the largest x'θ, or with probability ε any arm.

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history, encoder, min_probability).
    """
    policy = Greedy() if epsilon == 0.0 else EpsilonGreedy(epsilon)
    return _linear(
        policy, Unweighted(), arms, n_features, ridge, variance, intercept, seed, settings
    )
