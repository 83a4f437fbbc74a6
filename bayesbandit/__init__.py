"""Bayesian contextual bandits, balanced and exact, with reward models declared in PyMC.

Names load when they are first used, so that `import bayesbandit` stays quick and leaves PyMC out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Bandit": "bandit.bandit",
    "Decision": "bandit.decision",
    "BLTS": "bandit.presets.linear",
    "BLUCB": "bandit.presets.linear",
    "BayesianLassoTS": "bandit.presets.bayesian_lasso",
    "BayesianLassoUCB": "bandit.presets.bayesian_lasso",
    "BootstrapLassoTS": "bandit.presets.bootstrap",
    "BootstrapLassoUCB": "bandit.presets.bootstrap",
    "BootstrapRidgeTS": "bandit.presets.bootstrap",
    "BootstrapRidgeUCB": "bandit.presets.bootstrap",
    "ForestTS": "bandit.presets.forest",
    "ForestUCB": "bandit.presets.forest",
    "ILTCB": "bandit.presets.theory",
    "LinGreedy": "bandit.presets.linear",
    "LinTS": "bandit.presets.linear",
    "LinUCB": "bandit.presets.linear",
    "PolicyTreeTS": "bandit.presets.policy_tree",
    "PolicyTreeUCB": "bandit.presets.policy_tree",
    "SuperBLUCB": "bandit.presets.theory",
    "SuperLinUCB": "bandit.presets.theory",
    "Encoder": "tables.encoder",
    "Prior": "declaring.priors",
    "RewardModel": "model",
    "reward_model": "model",
    "fit": "posteriors.fitting",
    "list_models": "declaring.gallery",
    "load_model": "model",
    "Ridge": "beliefs.linear",
    "Shared": "beliefs.shared.belief",
    "InversePropensity": "weighting.propensity",
    "Unweighted": "weighting.propensity",
    "KernelBalance": "weighting.kernel",
    "ResidualBalance": "weighting.residual",
    "balance_table": "weighting.table",
    "Boltzmann": "policies",
    "EpsilonGreedy": "policies",
    "Greedy": "policies",
    "Thompson": "policies",
    "TopTwo": "policies",
    "UCB": "policies",
    "choice_probabilities": "policies",
    "Balance": "weighting.base",
    "Belief": "beliefs.base",
    "ByDraws": "beliefs.by_draws",
    "Choice": "bandit.player",
    "Player": "bandit.player",
    "Policy": "policies",
    "PoorDiagnostics": "inference.draws",
    "Schedule": "schedule",
    "savable": "bandit.storage.settings",
    "Experiment": "experiments.experiment",
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
