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
    "BootstrapLassoTS": "systems.bootstrap.presets",
    "BootstrapLassoUCB": "systems.bootstrap.presets",
    "BootstrapRidgeTS": "systems.bootstrap.presets",
    "BootstrapRidgeUCB": "systems.bootstrap.presets",
    "ForestTS": "systems.forest.presets",
    "ForestUCB": "systems.forest.presets",
    "ILTCB": "systems.iltcb.presets",
    "LinGreedy": "bandit.presets.linear",
    "LinTS": "bandit.presets.linear",
    "LinUCB": "bandit.presets.linear",
    "PolicyTreeTS": "systems.policy_tree.presets",
    "PolicyTreeUCB": "systems.policy_tree.presets",
    "SuperBLUCB": "systems.super_ucb.presets",
    "SuperLinUCB": "systems.super_ucb.presets",
    "Bootstrap": "systems.bootstrap.belief",
    "Forest": "systems.forest.belief",
    "PolicyMixture": "systems.iltcb.belief",
    "PolicyTree": "systems.policy_tree.belief",
    "SuperUCB": "systems.super_ucb.belief",
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
    "Declared": "beliefs.declared",
    "Laplace": "beliefs.declared",
    "Sampled": "beliefs.declared",
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
    "BeliefModel": "beliefs.base",
    "ByDraws": "beliefs.by_draws",
    "Conjugate": "predictions",
    "Draws": "predictions",
    "Joint": "predictions",
    "LocationScale": "predictions",
    "Prediction": "predictions",
    "ByNormal": "beliefs.by_draws",
    "Rounds": "beliefs.rounds",
    "Choice": "bandit.player",
    "Player": "bandit.player",
    "Policy": "policies",
    "PoorDiagnostics": "inference.draws",
    "Schedule": "schedule",
    "savable": "runtime.savable",
    "one_thread": "runtime.one_thread",
    "preset": "bandit.presets.preset",
    "Experiment": "experiments.experiment",
    "Study": "experiments.study",
    "History": "history",
    "DecisionLog": "store.log",
    "Service": "service.service",
    "Client": "service.client",
    "learn": "scale.learning",
    "score": "scale.scoring",
}
_ROOMS = ("checks", "engines", "environments", "evaluation", "kernels", "ope", "plots")

__all__ = ["__version__", *_HOME, *_ROOMS]

if TYPE_CHECKING:
    from bayesbandit import checks, engines, environments, evaluation, kernels, ope, plots
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.bandit.decision import Decision
    from bayesbandit.bandit.player import Choice, Player
    from bayesbandit.bandit.presets.bayesian_lasso import BayesianLassoTS, BayesianLassoUCB
    from bayesbandit.bandit.presets.linear import BLTS, BLUCB, LinGreedy, LinTS, LinUCB
    from bayesbandit.bandit.presets.preset import preset
    from bayesbandit.beliefs.base import Belief, BeliefModel
    from bayesbandit.beliefs.by_draws import ByDraws, ByNormal
    from bayesbandit.beliefs.declared import Declared, Laplace, Sampled
    from bayesbandit.beliefs.linear import Ridge
    from bayesbandit.beliefs.rounds import Rounds
    from bayesbandit.beliefs.shared.belief import Shared
    from bayesbandit.declaring.gallery import list_models
    from bayesbandit.declaring.priors import Prior
    from bayesbandit.experiments.experiment import Experiment
    from bayesbandit.experiments.study import Study
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
    from bayesbandit.posteriors.comparing import compare_models
    from bayesbandit.posteriors.fitting import fit
    from bayesbandit.predictions import Conjugate, Draws, Joint, LocationScale, Prediction
    from bayesbandit.runtime.one_thread import one_thread
    from bayesbandit.runtime.savable import savable
    from bayesbandit.scale.learning import learn
    from bayesbandit.scale.scoring import score
    from bayesbandit.schedule import Schedule
    from bayesbandit.service.client import Client
    from bayesbandit.service.service import Service
    from bayesbandit.store.log import DecisionLog
    from bayesbandit.systems.bootstrap.belief import Bootstrap
    from bayesbandit.systems.bootstrap.presets import (
        BootstrapLassoTS,
        BootstrapLassoUCB,
        BootstrapRidgeTS,
        BootstrapRidgeUCB,
    )
    from bayesbandit.systems.forest.belief import Forest
    from bayesbandit.systems.forest.presets import ForestTS, ForestUCB
    from bayesbandit.systems.iltcb.belief import PolicyMixture
    from bayesbandit.systems.iltcb.presets import ILTCB
    from bayesbandit.systems.policy_tree.belief import PolicyTree
    from bayesbandit.systems.policy_tree.presets import PolicyTreeTS, PolicyTreeUCB
    from bayesbandit.systems.super_ucb.belief import SuperUCB
    from bayesbandit.systems.super_ucb.presets import SuperBLUCB, SuperLinUCB
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
