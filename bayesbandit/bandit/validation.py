"""What a bandit may be made of, checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayesbandit.beliefs import base
from bayesbandit.beliefs.base import Belief, BeliefModel
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.checks import integer, shown
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, rule
from bayesbandit.schedule import Schedule
from bayesbandit.tables.encoder import Encoder
from bayesbandit.weighting.base import Balance, schedule_of
from bayesbandit.weighting.by_arm import WeighingByArm
from bayesbandit.weighting.propensity import InversePropensity, Unweighted


def length(n_features: object, encoder: object) -> int:
    """d, the length of a context, which an encoder knows."""
    if encoder is None:
        if n_features is None:
            raise TypeError(
                "a bandit needs n_features, the length of a context, or an encoder: "
                "encoder=bb.Encoder.fit(frame)"
            )
        return integer(n_features, "n_features")
    if not isinstance(encoder, Encoder):
        raise TypeError(
            f"encoder must be a bb.Encoder, as bb.Encoder.fit(frame); got {shown(encoder)}"
        )
    d = len(encoder.features)
    if n_features is not None and integer(n_features, "n_features") != d:
        raise ValueError(f"n_features is {n_features}, and the encoder makes {d} features")
    return d


def spec(model: object, n_arms: int, n_features: int, settings: Mapping[str, Any]) -> BeliefModel:
    """What makes the belief: `Ridge`, a declared model with these settings (None: not given), or
    anyone's with a method `belief`."""
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(model, RewardModel):
        from bayesbandit.beliefs.declared import Declared  # loads PyMC

        declared = Declared(model, **given)
        declared.plan(n_arms, n_features)
        return declared
    if isinstance(model, Shared):
        return Shared(spec(model.model, 1, n_features, settings))
    if isinstance(model, type) or not isinstance(model, base.BeliefModel):
        raise TypeError(
            "model must be a reward model, Ridge() or a declared one, or have a method "
            f"belief(n_arms, n_features, normalize, seed); got {shown(model)}"
        )
    if given:
        raise ValueError(f"{', '.join(given)}: only of a declared reward model; got {shown(model)}")
    return model


def check_policy(policy: object) -> None:
    """Raise TypeError unless this is a policy."""
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise TypeError(
            "policy must be Thompson(), UCB(), Greedy(), EpsilonGreedy(), Boltzmann(), TopTwo() or "
            f"have a method probabilities(prediction, t) -> (n, K); got {shown(policy)}"
        )


def check_balance(balance: object) -> None:
    """Raise TypeError unless this is a balance."""
    if isinstance(balance, type) or not isinstance(balance, Balance):
        raise TypeError(
            "balance must be Unweighted(), InversePropensity() or have a method "
            f"weights(history, belief) -> (n,); got {shown(balance)}"
        )


def check(
    spec: BeliefModel, policy: Policy, balance: Balance, n_arms: int, n_features: int
) -> None:
    """A policy and a balance, and a model that can be balanced so."""
    check_policy(policy)
    check_balance(balance)
    if not isinstance(schedule := schedule_of(balance), Schedule):
        raise TypeError(f"the schedule of {shown(balance)} must be a Schedule(…); got {schedule!r}")
    if isinstance(spec, Shared) and not weighs_by_decision(balance):
        raise ValueError(
            f"{shown(balance)} compares an arm's contexts with all contexts, and arms that share a "
            "model have features and no contexts: balance must be Unweighted(), "
            "InversePropensity(propensity='decision') or have `weights` that are no ByArm"
        )
    if is_pooled(balance) and rule(policy) is None:
        raise ValueError(
            f"pooled propensities ask past policies again, and {shown(policy)} has no compiled "
            "rule; propensity must be 'decision' or 'estimated'"
        )
    if not isinstance(balance, Unweighted) and (
        why := base.refuses_weights(spec, n_arms, n_features)
    ):
        raise ValueError(why)


def check_belief(
    belief: Belief, spec: BeliefModel, balance: object, n_arms: int, n_features: int
) -> None:
    """That a bandit can play by a belief, and balance it so."""
    base.check(belief, type(spec).__name__)
    n = len(belief.n), belief.n_features
    if n != (n_arms, n_features):
        raise ValueError(f"{shown(belief)} is of {n} arms and features, not {(n_arms, n_features)}")
    if is_pooled(balance) and not base.can_recall(belief):
        name = spec.declared.name if isinstance(spec, base.Declaring) else type(spec).__name__
        raise ValueError(
            f"{name}: pooled propensities need snapshots of past beliefs, and it has none; "
            "propensity must be 'decision' or 'estimated'"
        )


def weighs_by_decision(balance: object) -> bool:
    """Whether a balance needs no contexts of the arms that were not chosen."""
    estimated = isinstance(balance, InversePropensity) and balance.propensity != "decision"
    return not (isinstance(balance, WeighingByArm) or estimated)


def is_pooled(balance: object) -> bool:
    """Whether past policies are asked again."""
    return isinstance(balance, InversePropensity) and balance.propensity == "pooled"
