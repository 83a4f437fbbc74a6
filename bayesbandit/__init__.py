"""Bayesian contextual bandits, balanced and exact, with reward models declared in PyMC.

Names load when they are first used, so that `import bayesbandit` stays quick and leaves PyMC out.
"""

from typing import TYPE_CHECKING, Any

from bayesbandit import extend, systems
from bayesbandit.runtime.lazy import load

if TYPE_CHECKING:
    from bayesbandit import checks, engines, environments, evaluation, forms, kernels, ope, plots
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.bandit.decision import Decision
    from bayesbandit.bandit.presets.bayesian_lasso import BayesianLassoTS, BayesianLassoUCB
    from bayesbandit.bandit.presets.linear import BLTS, BLUCB, LinGreedy, LinTS, LinUCB
    from bayesbandit.beliefs.declared import Declared, Laplace, Sampled
    from bayesbandit.beliefs.linear import Ridge
    from bayesbandit.beliefs.shared.belief import Shared
    from bayesbandit.declaring.gallery import list_models
    from bayesbandit.declaring.priors import Prior
    from bayesbandit.experiments.experiment import Experiment
    from bayesbandit.extend import *
    from bayesbandit.model import RewardModel, load_model, reward_model
    from bayesbandit.policies import (
        UCB,
        Boltzmann,
        EpsilonGreedy,
        Greedy,
        Thompson,
        TopTwo,
        choice_probabilities,
    )
    from bayesbandit.posteriors.comparing import compare_models
    from bayesbandit.posteriors.fitting import fit
    from bayesbandit.scale.learning import learn
    from bayesbandit.service.client import Client
    from bayesbandit.service.service import Service
    from bayesbandit.store.log import DecisionLog
    from bayesbandit.systems import *
    from bayesbandit.systems.bootstrap.belief import Bootstrap
    from bayesbandit.systems.bootstrap.presets import (
        BootstrapLassoTS,
        BootstrapLassoUCB,
        BootstrapRidgeTS,
        BootstrapRidgeUCB,
    )
    from bayesbandit.systems.forest.belief import Forest
    from bayesbandit.systems.forest.presets import ForestTS, ForestUCB
    from bayesbandit.tables.encoder import Encoder
    from bayesbandit.weighting.kernel import KernelBalance
    from bayesbandit.weighting.propensity import InversePropensity, Unweighted
    from bayesbandit.weighting.residual import ResidualBalance
    from bayesbandit.weighting.table import balance_table

__version__ = "0.1.0"

__all__ = [
    "BLTS",
    "BLUCB",
    "UCB",
    "Bandit",
    "BayesianLassoTS",
    "BayesianLassoUCB",
    "Boltzmann",
    "Bootstrap",
    "BootstrapLassoTS",
    "BootstrapLassoUCB",
    "BootstrapRidgeTS",
    "BootstrapRidgeUCB",
    "Client",
    "Decision",
    "DecisionLog",
    "Encoder",
    "EpsilonGreedy",
    "Experiment",
    "Forest",
    "ForestTS",
    "ForestUCB",
    "Greedy",
    "InversePropensity",
    "KernelBalance",
    "Laplace",
    "LinGreedy",
    "LinTS",
    "LinUCB",
    "Prior",
    "ResidualBalance",
    "RewardModel",
    "Ridge",
    "Sampled",
    "Service",
    "Shared",
    "Thompson",
    "TopTwo",
    "Unweighted",
    "choice_probabilities",
    "compare_models",
    "engines",
    "environments",
    "evaluation",
    "extend",
    "fit",
    "list_models",
    "load_model",
    "ope",
    "plots",
    "reward_model",
    "systems",
]

_HOMES = {
    "Bandit": "bandit.bandit",
    "Decision": "bandit.decision",
    "BLTS": "bandit.presets.linear",
    "BLUCB": "bandit.presets.linear",
    "BayesianLassoTS": "bandit.presets.bayesian_lasso",
    "BayesianLassoUCB": "bandit.presets.bayesian_lasso",
    "BootstrapLassoTS": "systems.bootstrap.presets",
    "BootstrapLassoUCB": "systems.bootstrap.presets",
    "BootstrapRidgeTS": "systems.bootstrap.presets",
    "BootstrapRidgeUCB": "systems.bootstrap.presets",
    "ForestTS": "systems.forest.presets",
    "ForestUCB": "systems.forest.presets",
    "LinGreedy": "bandit.presets.linear",
    "LinTS": "bandit.presets.linear",
    "LinUCB": "bandit.presets.linear",
    "Bootstrap": "systems.bootstrap.belief",
    "Forest": "systems.forest.belief",
    "Encoder": "tables.encoder",
    "Prior": "declaring.priors",
    "RewardModel": "model",
    "reward_model": "model",
    "compare_models": "posteriors.comparing",
    "fit": "posteriors.fitting",
    "list_models": "declaring.gallery",
    "load_model": "model",
    "Ridge": "beliefs.linear",
    "Shared": "beliefs.shared.belief",
    "Laplace": "beliefs.declared",
    "Sampled": "beliefs.declared",
    "InversePropensity": "weighting.propensity",
    "Unweighted": "weighting.propensity",
    "KernelBalance": "weighting.kernel",
    "ResidualBalance": "weighting.residual",
    "Boltzmann": "policies",
    "EpsilonGreedy": "policies",
    "Greedy": "policies",
    "Thompson": "policies",
    "TopTwo": "policies",
    "UCB": "policies",
    "choice_probabilities": "policies",
    "Experiment": "experiments.experiment",
    "DecisionLog": "store.log",
    "Service": "service.service",
    "Client": "service.client",
    "engines": "engines",
    "environments": "environments",
    "evaluation": "evaluation",
    "ope": "ope",
    "plots": "plots",
    # reachable, and not listed
    "Declared": "beliefs.declared",
    "balance_table": "weighting.table",
    "checks": "checks",
    "forms": "forms",
    "kernels": "kernels",
    "learn": "scale.learning",
    **extend.HOMES,
    **systems.HOMES,
}


def __getattr__(name: str) -> Any:
    return load(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return list(__all__)
