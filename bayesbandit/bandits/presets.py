"""The paper's bandits by name: a model, a policy and a balance, put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesbandit.balance.base import Balance
from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.bandits.bandit import Bandit
from bayesbandit.beliefs.ensemble.bootstrap import Bootstrap
from bayesbandit.beliefs.ensemble.replicates import Penalty
from bayesbandit.beliefs.levels import Levels
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.mixture.belief import PolicyMixture
from bayesbandit.beliefs.mixture.oracle import LinearOracle, Oracle
from bayesbandit.checks import Name, number
from bayesbandit.policies import UCB, Alpha, EpsilonGreedy, Greedy, Policy, Thompson

__all__ = [
    "BLTS",
    "BLUCB",
    "ILTCB",
    "BayesianLassoTS",
    "BayesianLassoUCB",
    "LinGreedy",
    "LinTS",
    "LinUCB",
]  # fmt: skip

if TYPE_CHECKING:
    from pymc_extras.prior import Prior

    from bayesbandit.beliefs.declared import Declared

WARM = 10  # sweeps that a sampler makes before those that are kept, from where it stood
# Of `Ridge.prior_rows`. Thompson's draws reach beyond one standard deviation, UCB with α = 1 never:
# its bonus has to be larger while an arm has but a few rewards (docs/defaults.md).
UCB_ROWS = 16.0
UNCLIPPED = 1e-12  # below any propensity

Arms = int | Iterable[Name]
Lambda = float | Literal["cv"]
Variance = float | Literal["empirical_bayes", "rss/n", "rss", "nig"]
Intercept = bool | Literal["unpenalised"]
Seed = int | np.random.SeedSequence


def _linear(
    policy: Policy, balance: Unweighted | InversePropensity, arms: Arms, n_features: int,
    ridge: Lambda, variance: Variance, intercept: Intercept, seed: Seed, settings: dict[str, Any],
) -> Bandit:  # fmt: skip
    if isinstance(policy, UCB) and variance == "empirical_bayes":
        settings.setdefault("prior_rows", UCB_ROWS)
    history = {"history": settings.pop("history")} if "history" in settings else {}
    model = Ridge(ridge=ridge, variance=variance, intercept=intercept, **settings)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **history)


def LinTS(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Linear Thompson sampling (Agrawal & Goyal 2013; paper, section 3): N(x'θ, α² x'V(θ)x).

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history).
    """
    policy, balance = Thompson(alpha), Unweighted()
    return _linear(
        policy, balance, arms, n_features, ridge, variance, intercept, seed, settings
    )  # fmt: skip


def LinUCB(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Linear UCB (Li et al. 2010; paper, section 3): the largest x'θ + α √(x'V(θ)x).

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history).
    """
    return _linear(
        UCB(alpha), Unweighted(), arms, n_features, ridge, variance, intercept, seed, settings
    )


def BLTS(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "decision",
    normalize: bool = False, **settings: Any,
) -> Bandit:  # fmt: skip
    """Balanced linear Thompson sampling (paper, Algorithm 1): weights 1 / max(γ, propensity).

    The propensity is by default the exact one of the moment of decision; "pooled" is the paper's.
    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history).
    """
    balance = InversePropensity(clip, propensity, normalize)
    return _linear(
        Thompson(alpha), balance, arms, n_features, ridge, variance, intercept, seed, settings
    )


def BLUCB(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    clip: float = 0.1, propensity: Literal["decision", "pooled", "estimated"] = "estimated",
    normalize: bool = False, **settings: Any,
) -> Bandit:  # fmt: skip
    """Balanced linear UCB (paper, Algorithm 2): weights 1 / max(γ, estimated propensity).

    A UCB decision is deterministic, so its own propensity says nothing: the paper estimates one by
    multinomial logistic regression of arm on context.
    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history).
    """
    balance = InversePropensity(clip, propensity, normalize)
    return _linear(
        UCB(alpha), balance, arms, n_features, ridge, variance, intercept, seed, settings
    )


def LinGreedy(
    arms: Arms, n_features: int, epsilon: Alpha = 0.0, ridge: Lambda = 1.0,
    variance: Variance = "empirical_bayes", intercept: Intercept = True, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Greedy ridge regression: the largest x'θ, or with probability ε any arm.

    settings: of `Ridge` (floor, grid, folds, refit_every, prior, prior_rows) and `Bandit`
    (history).
    """
    policy = Greedy() if epsilon == 0.0 else EpsilonGreedy(epsilon)
    return _linear(
        policy, Unweighted(), arms, n_features, ridge, variance, intercept, seed, settings
    )


def ILTCB(
    arms: Arms, n_features: int, exploration: float = 0.01, psi: float = 1.0,
    gains: Literal["dr", "ips"] = "dr", oracle: Oracle | None = None,
    refit_every: int | float = 0.25, rewards: tuple[float, float] = (0.0, 1.0), seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """ILOVETOCONBANDITS (Agarwal et al. 2014): a distribution over policies that an oracle finds.

    exploration, psi, gains, oracle, refit_every, rewards: of `PolicyMixture`. The theory has
    psi=100, gains="ips" and refit_every=1.0 (epochs that double); the defaults earn more on the
    bundled data sets. Other than in the listing, an arm without a reward so far is drawn with
    probability 1/K, as by every bandit here. `bandit.belief.mixture` has policies and weights.
    settings: of `PolicyMixture` (delta, log_policies) and `Bandit` (history).
    """
    history = {"history": settings.pop("history")} if "history" in settings else {}
    model = PolicyMixture(
        exploration=exploration, psi=psi, gains=gains, oracle=oracle or LinearOracle(),
        refit_every=refit_every, rewards=rewards, **settings,
    )  # fmt: skip
    balance = InversePropensity(clip=UNCLIPPED)
    return Bandit(arms, model, Thompson(), balance, n_features=n_features, seed=seed, **history)


def SuperLinUCB(
    arms: Arms, n_features: int, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, seed: Seed = 0, **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperLinUCB (Chu et al. 2011): √T regret, by levels whose rewards are independent.

    horizon, alpha, ridge, intercept: of `Levels`. settings: of `Bandit` (history). A reward that
    comes after later decisions is learned at the level where its arm is wide by then.
    """
    model = Levels(horizon, alpha, ridge, intercept)
    return Bandit(arms, model, Thompson(), n_features=n_features, seed=seed, **settings)


def SuperBLUCB(
    arms: Arms, n_features: int, horizon: int = 10_000, alpha: float | None = None,
    ridge: float = 1.0, intercept: bool = True, clip: float = 0.1, seed: Seed = 0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """SuperBLUCB (paper, Appendix A): SuperLinUCB under weights 1 / max(γ, estimated propensity).

    See `SuperLinUCB`.
    """
    model, balance = Levels(horizon, alpha, ridge, intercept), InversePropensity(clip, "estimated")
    return Bandit(arms, model, Thompson(), balance, n_features=n_features, seed=seed, **settings)


def BootstrapLassoTS(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap LASSO Thompson sampling (paper, sections 2.2 and 4.1): one of the replicates, or
    from N(mean, α² sd²) of them with draw="normal".

    settings: of `Bootstrap` (replicates, lam, draw, degree, …) and `Bandit` (history).
    """
    return _bootstrap("lasso", Thompson(alpha), arms, n_features, seed, balance, settings)


def BootstrapLassoUCB(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap LASSO UCB: the largest mean + α sd of the replicates. See `BootstrapLassoTS`."""
    return _bootstrap("lasso", UCB(alpha), arms, n_features, seed, balance, settings)


def BootstrapRidgeTS(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap ridge Thompson sampling. See `BootstrapLassoTS`."""
    return _bootstrap("ridge", Thompson(alpha), arms, n_features, seed, balance, settings)


def BootstrapRidgeUCB(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, seed: Seed = 0,
    balance: Balance | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bootstrap ridge UCB: the largest mean + α sd of the replicates. See `BootstrapLassoTS`."""
    return _bootstrap("ridge", UCB(alpha), arms, n_features, seed, balance, settings)


def _bootstrap(
    penalty: Penalty, policy: Policy, arms: Arms, n_features: int, seed: Seed,
    balance: Balance | None, settings: dict[str, Any],
) -> Bandit:  # fmt: skip
    history = {"history": settings.pop("history")} if "history" in settings else {}
    model = Bootstrap(penalty, **settings)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **history)


def BayesianLassoTS(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool | None = None, listing: bool = False,
    draws: int = 100, refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bayesian LASSO Thompson sampling (paper, Appendix C), by the Gibbs sampler.

    lam: λ, or a prior of λ². sigma2: the noise variance, or its prior; by default
    InverseGamma(1, 0.1), for rewards between 0 and 1 and the like. λ shrinks θ/σ.
    intercept: a constant with prior N(0, 100), outside the LASSO; by default there is one, but not
    in the listing.
    draws, refit_every: so many sweeps after each reward, from where the sampler stood. A decision
    takes one of an arm's draws at random, which are renewed when they have served as often.
    listing: the appendix to the letter: one of `draws` iterates, all of them kept, stands for the
    arm until its next reward; σ² must be a number. Its frozen draws are not Thompson sampling, and
    their propensities are 0 and 1.
    """
    if listing and not (isinstance(sigma2, int | float) and alpha == 1.0 and refit_every == 1):
        raise ValueError(
            "the appendix's listing needs a number as sigma2, alpha=1 and refit_every=1; got "
            f"sigma2={sigma2!r}, alpha={alpha!r}, refit_every={refit_every!r}"
        )
    intercept = not listing if intercept is None else intercept
    model = _lasso(lam, sigma2, intercept, draws, refit_every, listing)
    return Bandit(
        arms, model, Thompson(alpha), balance, n_features=n_features, seed=seed, **settings
    )


def BayesianLassoUCB(
    arms: Arms, n_features: int, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool = True, draws: int = 100,
    refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, **settings: Any,
) -> Bandit:  # fmt: skip
    """Bayesian LASSO UCB (paper, Appendix C): the largest posterior mean + α sd of the draws.

    See `BayesianLassoTS`.
    """
    model = _lasso(lam, sigma2, intercept, draws, refit_every)
    return Bandit(arms, model, UCB(alpha), balance, n_features=n_features, seed=seed, **settings)


def _lasso(
    lam: float | Prior, sigma2: float | Prior | None, intercept: bool, draws: int,
    refit_every: int | float, frozen: bool = False,
) -> Declared:  # fmt: skip
    """The gallery's Bayesian LASSO with these priors, by Gibbs sampling."""
    from bayesbandit.beliefs.declared import Declared  # loads PyMC
    from bayesbandit.declaring.priors import Prior
    from bayesbandit.model import load_model

    noise = Prior("InverseGamma", alpha=1, beta=0.1) if sigma2 is None else sigma2
    priors: dict[str, Any] = {"sigma2": noise}
    if intercept:
        priors["intercept"] = Prior("Normal", mu=0, sigma=10)
    priors["lambda2"] = lam if isinstance(lam, Prior) else number(lam, "lam", above=0) ** 2
    model = load_model("bayesian_lasso").with_priors(**priors)
    tune = 0 if frozen else WARM
    return Declared(model, "gibbs", refit_every, draws, tune, frozen)
