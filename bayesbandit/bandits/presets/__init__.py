"""The paper's bandits by name: a model, a policy and a balance, put together.

Each loads when it is first used, with the models that it needs and no others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesbandit.bandits.presets.bayesian_lasso import (
        BayesianLassoTS,
        BayesianLassoUCB,
    )
    from bayesbandit.bandits.presets.bootstrap import (
        BootstrapLassoTS,
        BootstrapLassoUCB,
        BootstrapRidgeTS,
        BootstrapRidgeUCB,
    )
    from bayesbandit.bandits.presets.forest import (
        ForestTS,
        ForestUCB,
    )
    from bayesbandit.bandits.presets.linear import (
        BLTS,
        BLUCB,
        LinGreedy,
        LinTS,
        LinUCB,
    )
    from bayesbandit.bandits.presets.policy_tree import (
        PolicyTreeTS,
        PolicyTreeUCB,
    )
    from bayesbandit.bandits.presets.theory import (
        ILTCB,
        SuperBLUCB,
        SuperLinUCB,
    )

_HOME = {
    "bayesian_lasso": ("BayesianLassoTS", "BayesianLassoUCB"),
    "bootstrap": ("BootstrapLassoTS", "BootstrapLassoUCB", "BootstrapRidgeTS", "BootstrapRidgeUCB"),
    "forest": ("ForestTS", "ForestUCB"),
    "linear": ("BLTS", "BLUCB", "LinGreedy", "LinTS", "LinUCB"),
    "policy_tree": ("PolicyTreeTS", "PolicyTreeUCB"),
    "theory": ("ILTCB", "SuperBLUCB", "SuperLinUCB"),
}

__all__ = [
    "BLTS",
    "BLUCB",
    "ILTCB",
    "BayesianLassoTS",
    "BayesianLassoUCB",
    "BootstrapLassoTS",
    "BootstrapLassoUCB",
    "BootstrapRidgeTS",
    "BootstrapRidgeUCB",
    "ForestTS",
    "ForestUCB",
    "LinGreedy",
    "LinTS",
    "LinUCB",
    "PolicyTreeTS",
    "PolicyTreeUCB",
    "SuperBLUCB",
    "SuperLinUCB",
]


def __getattr__(name: str) -> Any:
    for room, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"bayesbandit.bandits.presets.{room}"), name)
    raise AttributeError(f"module 'bayesbandit.bandits.presets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
