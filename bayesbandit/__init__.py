"""Bayesian contextual bandits, balanced and exact, with reward models declared in PyMC.

Names load when they are first used, so that `import bayesbandit` stays quick and leaves PyMC out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Bandit": "bandits.bandit",
    "Decision": "bandits.decision",
    "BLTS": "bandits.presets.linear",
    "BLUCB": "bandits.presets.linear",
    "BayesianLassoTS": "bandits.presets.bayesian_lasso",
    "BayesianLassoUCB": "bandits.presets.bayesian_lasso",
    "BootstrapLassoTS": "bandits.presets.bootstrap",
    "BootstrapLassoUCB": "bandits.presets.bootstrap",
    "BootstrapRidgeTS": "bandits.presets.bootstrap",
    "BootstrapRidgeUCB": "bandits.presets.bootstrap",
    "ForestTS": "bandits.presets.forest",
    "ForestUCB": "bandits.presets.forest",
    "ILTCB": "bandits.presets.theory",
    "LinGreedy": "bandits.presets.linear",
    "LinTS": "bandits.presets.linear",
    "LinUCB": "bandits.presets.linear",
    "PolicyTreeTS": "bandits.presets.policy_tree",
    "PolicyTreeUCB": "bandits.presets.policy_tree",
    "SuperBLUCB": "bandits.presets.theory",
    "SuperLinUCB": "bandits.presets.theory",
    "Encoder": "tables.encoder",
    "Prior": "declaring.priors",
    "RewardModel": "model",
    "reward_model": "model",
    "fit": "posteriors.fitting",
    "list_models": "declaring.gallery",
    "load_model": "model",
    "Ridge": "beliefs.linear",
    "Shared": "beliefs.shared.belief",
    "InversePropensity": "balance.propensity",
    "Unweighted": "balance.propensity",
    "KernelBalance": "balance.kernel",
    "ResidualBalance": "balance.residual",
    "balance_table": "balance.table",
    "Boltzmann": "policies",
    "EpsilonGreedy": "policies",
    "Greedy": "policies",
    "Thompson": "policies",
    "TopTwo": "policies",
    "UCB": "policies",
    "choice_probabilities": "policies",
    "Balance": "balance.base",
    "Belief": "beliefs.base",
    "ByDraws": "beliefs.by_draws",
    "Choice": "bandits.base",
    "Player": "bandits.base",
    "Policy": "policies",
    "PoorDiagnostics": "engines.draws",
    "Schedule": "schedule",
    "savable": "bandits.saved.settings",
    "Experiment": "experiment",
    "History": "history",
}
_ROOMS = ("environments", "evaluation", "ope", "plots")

__all__ = ["__version__", *_HOME, *_ROOMS]

if TYPE_CHECKING:
    from bayesbandit import environments, evaluation, ope, plots
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.bandit.decision import Decision
    from bayesbandit.bandit.player import Choice, Player
    from bayesbandit.bandit.presets.bayesian_lasso import BayesianLassoTS, BayesianLassoUCB
    from bayesbandit.bandit.presets.bootstrap import (
        BootstrapLassoTS,
        BootstrapLassoUCB,
        BootstrapRidgeTS,
        BootstrapRidgeUCB,
    )
    from bayesbandit.bandit.presets.forest import ForestTS, ForestUCB
    from bayesbandit.bandit.presets.linear import BLTS, BLUCB, LinGreedy, LinTS, LinUCB
    from bayesbandit.bandit.presets.policy_tree import PolicyTreeTS, PolicyTreeUCB
    from bayesbandit.bandit.presets.theory import ILTCB, SuperBLUCB, SuperLinUCB
    from bayesbandit.bandit.storage.settings import savable
    from bayesbandit.beliefs.base import Belief
    from bayesbandit.beliefs.by_draws import ByDraws
    from bayesbandit.beliefs.linear import Ridge
    from bayesbandit.beliefs.shared.belief import Shared
    from bayesbandit.declaring.gallery import list_models
    from bayesbandit.declaring.priors import Prior
    from bayesbandit.experiments.experiment import Experiment
    from bayesbandit.history import History
    from bayesbandit.inference.draws import PoorDiagnostics
    from bayesbandit.model import RewardModel, load_model, reward_model
    from bayesbandit.policies import (
        UCB,
        Boltzmann,
        EpsilonGreedy,
        Greedy,
        Policy,
        Thompson,
        TopTwo,
        choice_probabilities,
    )
    from bayesbandit.posteriors.fitting import fit
    from bayesbandit.schedule import Schedule
    from bayesbandit.tables.encoder import Encoder
    from bayesbandit.weighting.base import Balance
    from bayesbandit.weighting.kernel import KernelBalance
    from bayesbandit.weighting.propensity import InversePropensity, Unweighted
    from bayesbandit.weighting.residual import ResidualBalance
    from bayesbandit.weighting.table import balance_table


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"bayesbandit.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"bayesbandit.{name}")
    raise AttributeError(f"module 'bayesbandit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
