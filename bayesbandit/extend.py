"""What authors of policies, beliefs, balances, players and studies need.

Protocols, the values that predictions are, base classes and decorators; CONTRIBUTING has a recipe
of each. Engines are registered by `bb.engines`.
"""

from typing import TYPE_CHECKING, Any

from bayesbandit.runtime.lazy import load

if TYPE_CHECKING:
    from bayesbandit.bandit.player import Choice, Player
    from bayesbandit.bandit.presets.preset import pop_fields, preset
    from bayesbandit.beliefs.base import (
        Belief,
        BeliefModel,
        Described,
        Forgets,
        Mergeable,
        Refits,
        Resizable,
        Reweighable,
        Storable,
        WithPosterior,
    )
    from bayesbandit.beliefs.by_draws import ByDraws, ByFits
    from bayesbandit.beliefs.rounds import Rounds
    from bayesbandit.experiments.study import Study
    from bayesbandit.history import History
    from bayesbandit.inference.draws import PoorDiagnostics
    from bayesbandit.policies import Policy
    from bayesbandit.predictions import Conjugate, Draws, Joint, LocationScale, Prediction
    from bayesbandit.runtime.one_thread import one_thread
    from bayesbandit.runtime.savable import savable
    from bayesbandit.runtime.shown import settings_repr
    from bayesbandit.schedule import Schedule
    from bayesbandit.weighting.base import Balance

__all__ = [
    "Balance",
    "Belief",
    "BeliefModel",
    "ByDraws",
    "ByFits",
    "Choice",
    "Conjugate",
    "Described",
    "Draws",
    "Forgets",
    "History",
    "Joint",
    "LocationScale",
    "Mergeable",
    "Player",
    "Policy",
    "PoorDiagnostics",
    "Prediction",
    "Refits",
    "Resizable",
    "Reweighable",
    "Rounds",
    "Schedule",
    "Storable",
    "Study",
    "WithPosterior",
    "one_thread",
    "pop_fields",
    "preset",
    "savable",
    "settings_repr",
]

HOMES = {
    "Balance": "weighting.base",
    "Belief": "beliefs.base",
    "BeliefModel": "beliefs.base",
    "ByDraws": "beliefs.by_draws",
    "ByFits": "beliefs.by_draws",
    "Choice": "bandit.player",
    "Conjugate": "predictions",
    "Described": "beliefs.base",
    "Draws": "predictions",
    "Forgets": "beliefs.base",
    "History": "history",
    "Joint": "predictions",
    "LocationScale": "predictions",
    "Mergeable": "beliefs.base",
    "Player": "bandit.player",
    "Policy": "policies",
    "PoorDiagnostics": "inference.draws",
    "Prediction": "predictions",
    "Refits": "beliefs.base",
    "Resizable": "beliefs.base",
    "Reweighable": "beliefs.base",
    "Rounds": "beliefs.rounds",
    "Schedule": "schedule",
    "Storable": "beliefs.base",
    "Study": "experiments.study",
    "WithPosterior": "beliefs.base",
    "one_thread": "runtime.one_thread",
    "pop_fields": "bandit.presets.preset",
    "preset": "bandit.presets.preset",
    "savable": "runtime.savable",
    "settings_repr": "runtime.shown",
}


def __getattr__(name: str) -> Any:
    return load(__name__, HOMES, name)


def __dir__() -> list[str]:
    return list(__all__)
