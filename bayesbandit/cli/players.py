"""The players of `bayesbandit compare`: bandits, declared models, and players from user files.

`rehearse` plays a few rounds, so that the kernels are compiled ahead of time.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.player import Factory, Player
from bayesbandit.bandit.presets.bayesian_lasso import BayesianLassoTS, BayesianLassoUCB
from bayesbandit.bandit.presets.linear import BLTS, BLUCB, LinGreedy, LinTS, LinUCB
from bayesbandit.checks import Arms, Seed
from bayesbandit.policies import Thompson
from bayesbandit.runtime import fingerprints
from bayesbandit.runtime.plugins import hides, module_of, plugin, plugins, refused
from bayesbandit.systems.bootstrap.presets import (
    BootstrapLassoTS,
    BootstrapLassoUCB,
    BootstrapRidgeTS,
    BootstrapRidgeUCB,
)
from bayesbandit.systems.forest.presets import ForestTS, ForestUCB
from bayesbandit.systems.iltcb.presets import ILTCB
from bayesbandit.systems.policy_tree.presets import PolicyTreeTS, PolicyTreeUCB
from bayesbandit.systems.super_ucb.presets import SuperBLUCB, SuperLinUCB

BANDITS = {
    preset.__name__: preset
    for preset in (
        BLTS,
        BLUCB,
        BayesianLassoTS,
        BayesianLassoUCB,
        BootstrapLassoTS,
        BootstrapLassoUCB,
        BootstrapRidgeTS,
        BootstrapRidgeUCB,
        ForestTS,
        ForestUCB,
        ILTCB,
        LinGreedy,
        LinTS,
        LinUCB,
        PolicyTreeTS,
        PolicyTreeUCB,
        SuperBLUCB,
        SuperLinUCB,
    )
}

# The bandits that `compare` plays by default, with their presets' default settings.
PLAYED = ("LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy")

# settings of a declared model
MODEL_SETTINGS = ("alpha", "engine", "refit_every", "draws", "refit_below")
ARMS, FEATURES = ("a", "b", "c"), 2  # for `rehearse`
FROM_FILE = "bayesbandit.cli.players:"  # prefix of the module name of a player's file


def parse_bandit(text: str) -> tuple[str, Factory]:
    """Parse `NAME` or `NAME(setting=value, …)`, with Python literals; return (text, factory).

    Raise ValueError for an unknown bandit or setting.
    """
    name, settings = parse(text)
    if name not in BANDITS and name in plugins("players"):
        offered = OfferedPlayer(name)
        offered.load()  # raises now, not in the first run
        return text.strip(), partial(offered, **settings)
    if name not in BANDITS:
        known = ", ".join(dict.fromkeys([*BANDITS, *plugins("players")]))
        raise ValueError(f"unknown bandit {name!r}; there are {known}")
    hides("players", name, "the preset of bayesbandit")
    factory = partial(BANDITS[name], **settings)
    try:
        factory(2, 1)
    except TypeError as error:
        raise ValueError(f"{text}: {error}") from error
    return text.strip(), factory


def parse_model(text: str) -> tuple[str, Factory]:
    """Parse a reward model's name or file, with optional settings; return (label, factory)."""
    from bayesbandit.model import load_model

    where, settings = parse(text)
    if unknown := set(settings) - set(MODEL_SETTINGS):
        allowed = ", ".join(MODEL_SETTINGS)
        raise ValueError(f"{text}: unknown setting {sorted(unknown)[0]!r}; there are {allowed}")
    label = text.strip().replace(where, load_model(where).name, 1)
    return label, partial(play_model, where, **settings)


def play_model(
    model: str,
    arms: Arms,
    n_features: int,
    alpha: float = 1.0,
    seed: Seed = 0,
    **settings: Any,
) -> Bandit:
    """Return a bandit with a declared model and Thompson sampling.

    settings: of `Declared`, or of `Sampled` if there are any of draws.
    """
    from bayesbandit.beliefs.declared import Declared, Sampled
    from bayesbandit.model import load_model

    kind = Sampled if settings.keys() - {"engine"} else Declared
    learning = kind(load_model(model), **settings)
    return Bandit(arms, learning, Thompson(alpha), n_features=n_features, seed=seed)


def lacks_constant(text: str) -> str:
    """Return a sentence if a reward model, as of `parse_model`, has no constant; "" if it has."""
    from bayesbandit.beliefs.declared import Declared
    from bayesbandit.model import load_model

    model = load_model(parse(text)[0])
    if Declared(model).has_constant(len(ARMS), FEATURES):
        return ""
    return (
        f"{model.name} has no constant, and the presets have one: with contexts that have none, "
        "its mean rewards do not follow the general level of an arm's rewards. Add an intercept "
        "with a prior to its mean to compare like with like"
    )


def rehearse(factory: Callable[..., Any], fits: bool = False) -> float:
    """Call the methods that a program calls, with one context and a batch, and serve a few rounds
    by a log, where SQLAlchemy is installed; return the seconds.

    fits: whether the model is fitted, too: a few rewards only weight its draws.
    """
    start = time.perf_counter()
    bandit = factory(ARMS, FEATURES, seed=0)
    for value in (1.0, 0.0, 1.0):  # rewards that every model accepts
        contexts = np.random.default_rng(0).normal(size=(len(ARMS), FEATURES))
        for x in (contexts[0], contexts):
            decision = bandit.choose(x)
            _ = decision.propensity, decision.probabilities
            bandit.observe(decision, value if x.ndim == 1 else np.full(len(x), value))
        bandit.update(contexts, list(ARMS), np.full(len(ARMS), value), np.full(len(ARMS), 0.5))
        bandit.choose(contexts[0], arms=ARMS[:2])
        bandit.probabilities(contexts), bandit.greedy(contexts)
    bandit.belief.predict(contexts)
    if fits:
        bandit.posterior(ARMS[0])
    if find_spec("sqlalchemy") is not None and isinstance(bandit, Bandit):
        _serve(factory(ARMS, FEATURES, seed=0))
    return time.perf_counter() - start


def _serve(bandit: Bandit) -> None:
    """Decide, take rewards and learn as `serve` and `learn` do: they call kernels of their own."""
    from bayesbandit.service.service import Service
    from bayesbandit.store.log import DecisionLog

    contexts = np.zeros((len(ARMS), FEATURES))
    with TemporaryDirectory() as folder, DecisionLog(f"sqlite:///{folder}/log.db") as log:
        service = Service(bandit, log)
        for _ in range(2):  # the second time with a version that was learned
            made = [service.decide(contexts[0]), *service.decide(contexts)]
            service.reward([str(one.id) for one in made], [1.0] * len(made))
            service.learn()
        service.snapshot()


def parse_player(text: str) -> tuple[str, Factory]:
    """Parse `FILE.py:NAME` or `FILE.py:NAME(setting=value, …)`; return (label, factory).

    NAME is a class or a function (arms, n_features, seed) → `Player`. Raise ValueError without one.
    """
    where, settings = parse(text)
    match = re.fullmatch(r"(.+\.py):(\w+)", where)
    if match is None:
        raise ValueError(f"a player is given as FILE.py:NAME; got {where!r}")
    file = Path(match[1]).expanduser().resolve()
    _player(file, match[2])  # raises now, not in the first run
    label = text.strip().replace(where, match[2], 1)
    return label, partial(FilePlayer(str(file), match[2]), **settings)


def _player(path: Path, name: str) -> Factory:
    module = module_of(path, FROM_FILE)
    factory = vars(module).get(name)
    if not callable(factory):
        names = [
            k for k, v in vars(module).items() if callable(v) and v.__module__ == module.__name__
        ]
        raise ValueError(f"{path} has no player {name!r}; it has {', '.join(names) or 'none'}")
    return factory


class Deferred(fingerprints.Deferred):
    """A factory of players whose function is loaded in each process."""

    def __call__(self, arms: Arms, n_features: int, seed: Seed = 0, **settings: object) -> Player:
        player: Player = self.load()(arms, n_features, seed=seed, **settings)
        return player


@dataclass(frozen=True)
class FilePlayer(Deferred):
    """A factory of a player from a file."""

    file: str
    name: str

    def load(self) -> Factory:
        return _player(Path(self.file), self.name)


@dataclass(frozen=True)
class OfferedPlayer(Deferred):
    """A factory of a player from an installed package."""

    name: str

    def load(self) -> Factory:
        factory = plugin("players", self.name)
        if not callable(factory):
            raise refused("players", self.name, factory, "a player")
        return factory


def named_once(players: Iterable[tuple[str, Factory]]) -> dict[str, Factory]:
    """Return players by name; raise ValueError for two of one name, or for one with a seed."""
    found: dict[str, Factory] = {}
    for name, factory in players:
        if name in found:
            raise ValueError(f"two players are named {name!r}, and results are by name: rename one")
        if isinstance(factory, partial) and "seed" in factory.keywords:
            raise ValueError(f"{name}: each replication has its own seed, by --seed")
        found[name] = factory
    return found


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of `NAME` or `NAME(setting=value, …)`."""
    name, bracket, inside = text.strip().partition("(")
    try:
        call = ast.parse(f"f({inside}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("settings must be named")
        names = [str(k.arg) for k in call.keywords]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} is given twice")
        return name.strip(), {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read {text!r} as NAME(setting=value, …): {error}") from error
