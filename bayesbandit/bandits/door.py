"""What a bandit may be made of, checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.checks import integer
from bayesbandit.model import RewardModel
from bayesbandit.policies import rule

if TYPE_CHECKING:
    from bayesbandit.beliefs.declared import Declared


def model(
    model: Any, n_arms: int, n_features: Any, settings: Mapping[str, Any]
) -> Ridge | Declared:
    """What is believed: `Ridge`, or by a declared model with these settings (None: not given)."""
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(model, RewardModel):
        from bayesbandit.beliefs.declared import believed  # loads PyMC

        return believed(model, n_arms, integer(n_features, "n_features", least=1), **given)
    if isinstance(model, type) or not hasattr(model, "belief"):
        raise TypeError(f"model must be a reward model, Ridge() or a declared one; got {model!r}")
    if given:
        raise ValueError(f"{', '.join(given)}: only of a declared reward model; got {model!r}")
    return model


def check(model: Ridge | Declared, policy: Any, balance: Any, n_arms: int, n_features: int) -> None:
    """A policy and a balance, and a model that can be balanced so."""
    if isinstance(policy, type) or not callable(getattr(policy, "probabilities", None)):
        raise TypeError(
            "policy must be Thompson(), UCB(), Greedy(), EpsilonGreedy(), Boltzmann(), TopTwo() or "
            f"have a method probabilities(belief, x, t) -> (n, K); got {policy!r}"
        )
    if not isinstance(balance, Unweighted | InversePropensity):
        raise TypeError(f"balance must be Unweighted or InversePropensity; got {balance!r}")
    if getattr(balance, "propensity", "") == "pooled" and rule(policy) is None:
        raise ValueError(
            f"pooled propensities ask past policies again, and {policy!r} has no compiled rule; "
            "propensity must be 'decision' or 'estimated'"
        )
    if isinstance(model, Ridge) or isinstance(balance, Unweighted):
        return
    name = model.model.name
    if not model.model.takes_weight:
        raise ValueError(f"{name} does not take `weight`: it cannot be balanced")
    if not model.plan(n_arms, n_features).uses_weight:
        raise ValueError(f"{name} has no use for its `weight`: it cannot be balanced")
    if balance.propensity == "pooled":
        raise ValueError(
            f"{name}: pooled propensities are for ridge regressions; "
            "propensity must be 'decision' or 'estimated'"
        )
