"""The Bayesian LASSO (paper, Appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.preset import preset
from bayesbandit.checks import Alpha, Arms, Seed, number
from bayesbandit.policies import UCB, Thompson
from bayesbandit.weighting.propensity import InversePropensity, Unweighted

if TYPE_CHECKING:
    from pymc_extras.prior import Prior

    from bayesbandit.beliefs.declared import Sampled

WARM_SWEEPS = 10  # sweeps before the kept ones, from the sampler's last state


@preset()
def BayesianLassoTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool | None = None, listing: bool = False,
    draws: int = 100, refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, *, min_probability: Alpha = 0.0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Return Bayesian LASSO Thompson sampling (paper, Appendix C), by the Gibbs sampler.

    lam: λ, or a prior of λ². λ shrinks θ/σ.
    sigma2: the noise variance, or its prior. The default InverseGamma(1, 0.1) suits rewards between
    0 and 1.
    intercept: a constant with prior N(0, 100) that the LASSO does not shrink. By default there is
    one, but not with `listing`.
    draws, refit_every: a refit makes `draws` sweeps from the sampler's last state; it is due after
    so many rewards of an arm. A decision uses one of the arm's draws at random. After as many
    decisions as there are draws, new ones are computed.
    listing: follow the appendix's pseudocode, for a number sigma2. One of `draws` iterates, without
    burn-in, is used for the arm until its next reward. Such a frozen draw is not Thompson sampling,
    and its propensities are 0 and 1.
    """
    if listing and not (isinstance(sigma2, int | float) and alpha == 1.0 and refit_every == 1):
        raise ValueError(
            "the appendix's listing needs a number as sigma2, alpha=1 and refit_every=1; got "
            f"sigma2={sigma2!r}, alpha={alpha!r}, refit_every={refit_every!r}"
        )
    intercept = not listing if intercept is None else intercept
    model = _lasso(lam, sigma2, intercept, draws, refit_every, listing)
    policy = Thompson(alpha, min_probability=min_probability)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


@preset(like=BayesianLassoTS)
def BayesianLassoUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool = True, draws: int = 100,
    refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, *, min_probability: Alpha = 0.0,
    **settings: Any,
) -> Bandit:  # fmt: skip
    """Return Bayesian LASSO UCB (paper, Appendix C): the largest mean + α sd of the draws.

    intercept: whether there is a constant, with prior N(0, 100), that the LASSO does not shrink.
    """
    model = _lasso(lam, sigma2, intercept, draws, refit_every)
    policy = UCB(alpha, min_probability=min_probability)
    return Bandit(arms, model, policy, balance, n_features=n_features, seed=seed, **settings)


def _lasso(
    lam: float | Prior, sigma2: float | Prior | None, intercept: bool, draws: int,
    refit_every: int | float, frozen: bool = False,
) -> Sampled:  # fmt: skip
    """Return the gallery's Bayesian LASSO with these priors, fitted by Gibbs sampling."""
    from bayesbandit.beliefs.declared import Sampled  # loads PyMC
    from bayesbandit.declaring.priors import Prior
    from bayesbandit.model import load_model

    noise = Prior("InverseGamma", alpha=1, beta=0.1) if sigma2 is None else sigma2
    constant = Prior("Normal", mu=0, sigma=10) if intercept else 0.0
    priors: dict[str, Any] = {"sigma2": noise, "intercept": constant}
    priors["lambda2"] = lam if isinstance(lam, Prior) else number(lam, "lam", above=0) ** 2
    model = load_model("bayesian_lasso").with_priors(**priors)
    tune = 0 if frozen else WARM_SWEEPS
    return Sampled(model, "gibbs", draws=draws, tune=tune, refit_every=refit_every, frozen=frozen)
