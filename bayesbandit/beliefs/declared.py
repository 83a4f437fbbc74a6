"""From a declared reward model to the belief that a bandit streams rewards into."""

from __future__ import annotations

from bayesbandit.beliefs.linear import Ridge
from bayesbandit.engines.base import NotThisEngine, Refusal
from bayesbandit.engines.plan import plan
from bayesbandit.model import RewardModel


def streaming(model: RewardModel, n_features: int) -> Ridge:
    """The weighted ridge regression that a declared model is, derived from its log density.

    Where the mean reward is x'θ and the prior θ ~ N(0, (σ²/λ) I), the posterior of each arm is that
    of `Ridge` with this λ: with a known noise variance, or normal-inverse-gamma. Other models are
    refused with the reason; `bb.fit` computes their posteriors.
    """
    if model.takes_arm:
        raise _refuse(model, "its arms share a model")
    found = plan(model, n_features, engine="exact")  # raises the refusals of both closed forms
    engine = found.method
    if not engine.identity_map:
        raise _refuse(model, "its mean reward is not x'θ for the context x as it comes")
    if engine.ridge is None:
        raise _refuse(model, "its prior is not θ ~ N(0, (σ²/λ) I) about 0")
    if found.engine == "exact_gaussian":
        return Ridge(ridge=engine.ridge, variance=engine.noise, intercept=False)
    if engine.noise_prior is None:
        raise _refuse(model, "its noise is not N(0, σ²/weight)")
    return Ridge(ridge=engine.ridge, variance="nig", intercept=False, prior=engine.noise_prior)


def _refuse(model: RewardModel, why: str) -> NotThisEngine:
    return NotThisEngine(Refusal("ridge", f"{model.name} does not stream row by row: {why}"))
