"""The Bayesian LASSO (paper, Appendix C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesbandit.bandit.presets.preset import Parts, preset
from bayesbandit.checks import Alpha, Arms, Seed, number
from bayesbandit.policies import UCB, Thompson
from bayesbandit.weighting.propensity import InversePropensity, Unweighted

if TYPE_CHECKING:
    from pymc_extras.prior import Prior

    from bayesbandit.beliefs.declared import Declared

WARM = 10  # sweeps that a sampler makes before those that are kept, from where it stood


@preset()
def BayesianLassoTS(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool | None = None, listing: bool = False,
    draws: int = 100, refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, **settings: Any,
) -> Parts:  # fmt: skip
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
    return model, Thompson(alpha), balance


@preset()
def BayesianLassoUCB(
    arms: Arms, n_features: int | None = None, alpha: Alpha = 1.0, lam: float | Prior = 1.0,
    sigma2: float | Prior | None = None, intercept: bool = True, draws: int = 100,
    refit_every: int | float = 1, seed: Seed = 0,
    balance: Unweighted | InversePropensity | None = None, **settings: Any,
) -> Parts:  # fmt: skip
    """Bayesian LASSO UCB (paper, Appendix C): the largest posterior mean + α sd of the draws.

    See `BayesianLassoTS`.
    """
    model = _lasso(lam, sigma2, intercept, draws, refit_every)
    return model, UCB(alpha), balance


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
