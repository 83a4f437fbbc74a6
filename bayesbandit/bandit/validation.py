"""Checks of a bandit's arguments, before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayesbandit.beliefs import base
from bayesbandit.beliefs.base import Belief, BeliefModel
from bayesbandit.beliefs.shared.belief import Shared
from bayesbandit.checks import integer, shown
from bayesbandit.kernels.rounds import REGRESSIONS
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, rule
from bayesbandit.schedule import Schedule
from bayesbandit.tables.encoder import Encoder
from bayesbandit.weighting.base import Balance, is_normalized, schedule_of
from bayesbandit.weighting.by_arm import ByArm
from bayesbandit.weighting.propensity import InversePropensity, Unweighted
from bayesbandit.weighting.reweighting import begin

OF_MODELS = {  # settings that bandits had, and what has them now
    **dict.fromkeys(("draws", "refit_below", "refit_every", "background"), "Sampled"),
    **dict.fromkeys(("engine", "half_life", "drift", "clock"), "Declared"),
}


def length(n_features: object, encoder: object) -> int:
    """Return d, the length of a context: given, or the encoder's number of features."""
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


def refuse_settings(settings: Mapping[str, Any]) -> None:
    """Raise TypeError if there are any settings, which are not of a bandit."""
    for name, value in settings.items():
        if kind := OF_MODELS.get(name):
            raise TypeError(f"{name} is a setting of the model: bb.{kind}(model, {name}={value!r})")
        raise TypeError(f"a bandit has no setting {name!r}")


def spec(model: object) -> BeliefModel:
    """Return the object whose method `belief` makes the belief.

    It is the model itself, or a `Declared` for a declared reward model. Raise TypeError or
    ValueError for anything else.
    """
    if isinstance(model, RewardModel):
        from bayesbandit.beliefs.declared import Declared  # loads PyMC

        return Declared(model)
    if isinstance(model, Shared):
        return Shared(spec(model.model))
    if isinstance(model, type) or not isinstance(model, base.BeliefModel):
        raise TypeError(
            "model must be a reward model, Ridge() or a declared one, or have a method "
            f"belief(n_arms, n_features, normalize, seed); got {shown(model)}"
        )
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


def check_arms(spec: BeliefModel, arms: Sequence[object]) -> None:
    """Raise ValueError unless arms are those that a model knows by their places."""
    declared = spec.declared.arms if isinstance(spec, base.Declaring) else None
    if declared is not None and list(arms) != list(declared):
        raise ValueError(
            f"arms must be {list(declared)}, in the model's order; got {list(arms)}: make the "
            "model with arms= in your order, or the bandit with list(model.arms)"
        )


def check_change(spec: BeliefModel, n_arms: int, n_features: int, *, removes: bool) -> None:
    """Raise ValueError if a declared model knows the arms, so that none can come, or go."""
    if not isinstance(spec, base.Declaring):
        return
    if spec.declared.arms is not None:
        why = f"{spec.declared.name} is a model of the arms {list(spec.declared.arms)}"
    else:
        why = spec.refuses_removal(n_arms, n_features) if removes else ""
    if why:
        raise ValueError(
            f"{why}: make another bandit of the arms that you want, and give it their rounds by "
            "update"
        )


def check(
    spec: BeliefModel, policy: Policy, balance: Balance, n_arms: int, n_features: int
) -> None:
    """Raise unless policy and balance are valid and the model can be weighted by the balance."""
    check_policy(policy)
    check_balance(balance)
    if not isinstance(schedule := schedule_of(balance), Schedule):
        raise TypeError(f"the schedule of {shown(balance)} must be a Schedule(…); got {schedule!r}")
    estimated = isinstance(balance, InversePropensity) and balance.propensity != "decision"
    if isinstance(spec, Shared) and (estimated or isinstance(balance, ByArm)):
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
    belief: Belief, spec: BeliefModel, balance: Balance, n_arms: int, n_features: int
) -> None:
    """Raise unless a belief has the parts, the sizes and the snapshots that the bandit needs."""
    base.check(belief, type(spec).__name__)
    sizes = len(belief.n), belief.n_features
    if sizes != (n_arms, n_features):
        raise ValueError(
            f"{shown(belief)} is of {sizes} arms and features, not {(n_arms, n_features)}"
        )
    if belief.clock is not None and is_normalized(balance):
        raise ValueError(
            "a half_life or drift needs weights as they are, and normalize rescales them: the "
            "balance must have normalize=False, and propensity='decision'"
        )
    if belief.clock is not None and begin(balance) is not None:
        raise ValueError(
            f"{shown(balance)} weights past rounds again, and {shown(spec)} forgets them: balance "
            "must be Unweighted() or InversePropensity(propensity='decision')"
        )
    kernel = base.kernel_of(belief)
    if is_pooled(balance) and (kernel is None or kernel.functions is not REGRESSIONS):
        name = spec.declared.name if isinstance(spec, base.Declaring) else type(spec).__name__
        raise ValueError(
            f"{name}: pooled propensities need snapshots of past beliefs, which only regressions "
            "have; propensity must be 'decision' or 'estimated'"
        )


def is_pooled(balance: object) -> bool:
    """Return whether a balance needs the probabilities of past policies."""
    return isinstance(balance, InversePropensity) and balance.propensity == "pooled"
