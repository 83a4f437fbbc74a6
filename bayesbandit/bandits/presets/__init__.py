"""The paper's bandits by name: a model, a policy and a balance, put together."""

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
