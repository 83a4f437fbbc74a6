"""The paper's other systems, each with its model, belief, kernels and presets in one folder."""

from typing import TYPE_CHECKING, Any

from bayesbandit.runtime.lazy import load

if TYPE_CHECKING:
    from bayesbandit.systems.iltcb.belief import PolicyMixture
    from bayesbandit.systems.iltcb.presets import ILTCB
    from bayesbandit.systems.policy_tree.belief import PolicyTree
    from bayesbandit.systems.policy_tree.presets import PolicyTreeTS, PolicyTreeUCB
    from bayesbandit.systems.super_ucb.belief import SuperUCB
    from bayesbandit.systems.super_ucb.presets import SuperBLUCB, SuperLinUCB

__all__ = [
    "ILTCB",
    "PolicyMixture",
    "PolicyTree",
    "PolicyTreeTS",
    "PolicyTreeUCB",
    "SuperBLUCB",
    "SuperLinUCB",
    "SuperUCB",
]

HOMES = {
    "ILTCB": "systems.iltcb.presets",
    "PolicyMixture": "systems.iltcb.belief",
    "PolicyTree": "systems.policy_tree.belief",
    "PolicyTreeTS": "systems.policy_tree.presets",
    "PolicyTreeUCB": "systems.policy_tree.presets",
    "SuperBLUCB": "systems.super_ucb.presets",
    "SuperLinUCB": "systems.super_ucb.presets",
    "SuperUCB": "systems.super_ucb.belief",
}


def __getattr__(name: str) -> Any:
    return load(__name__, HOMES, name)


def __dir__() -> list[str]:
    return list(__all__)
