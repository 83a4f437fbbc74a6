"""Who plays in `bayesbandit compare`: bandits, declared models, and players from the user's files.

Also plays a few rounds, so that the kernels are compiled ahead of time (`rehearse`).
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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

# What `compare` plays unless told otherwise, each as the preset of its name is by default.
PLAYED = ("LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy")

MODEL_SETTINGS = ("alpha", "engine", "refit_every", "draws")  # of a declared model that plays
ARMS, FEATURES = ("a", "b", "c"), 2  # of a rehearsal
FROM_FILE = "bayesbandit.cli.players:"  # begins the module name of a player's file


def parse_bandit(text: str) -> tuple[str, Factory]:
    """Return `NAME` or `NAME(setting=value, …)`, values as Python writes them, as (text,
    factory)."""
    name, settings = parse(text)
    if name not in BANDITS and name in plugins("players"):
        offered = OfferedPlayer(name)
        offered.load()  # so that what cannot be loaded is said at once
        return text.strip(), partial(offered, **settings)
    if name not in BANDITS:
        there = ", ".join(dict.fromkeys([*BANDITS, *plugins("players")]))
        raise ValueError(f"unknown bandit {name!r}; there are {there}")
    hides("players", name, "the preset of bayesbandit")
    factory = partial(BANDITS[name], **settings)
    try:
        factory(2, 1)
    except TypeError as error:
        raise ValueError(f"{text}: {error}") from error
    return text.strip(), factory


def parse_model(text: str) -> tuple[str, Factory]:
    """Return a reward model's name or file, with settings or without, as (label, factory)."""
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
    """Return a declared model by Thompson sampling; settings are those of `Bandit`."""
    from bayesbandit.model import load_model

    declared, policy = load_model(model), Thompson(alpha)
    return Bandit(arms, declared, policy, n_features=n_features, seed=seed, **settings)


def rehearse(factory: Callable[..., Any]) -> float:
    """Call what a service calls of a bandit, about one context and about a batch; return the
    seconds that it took."""
    start = time.perf_counter()
    bandit = factory(ARMS, FEATURES, seed=0)
    for value in (1.0, 0.0, 1.0):  # rewards that every model takes
        contexts = np.random.default_rng(0).normal(size=(len(ARMS), FEATURES))
        for x in (contexts[0], contexts):
            decision = bandit.choose(x)
            _ = decision.propensity, decision.probabilities
            bandit.observe(decision, value if x.ndim == 1 else np.full(len(x), value))
        bandit.update(contexts, list(ARMS), np.full(len(ARMS), value), np.full(len(ARMS), 0.5))
        bandit.choose(contexts[0], arms=ARMS[:2])
        bandit.probabilities(contexts), bandit.greedy(contexts)
    bandit.belief.predict(contexts)
    return time.perf_counter() - start


def parse_player(text: str) -> tuple[str, Factory]:
    """Return `FILE.py:NAME` or `FILE.py:NAME(setting=value, …)` as (label, factory): NAME is a
    class or a function (arms, n_features, seed) → `Player`."""
    where, settings = parse(text)
    found = re.fullmatch(r"(.+\.py):(\w+)", where)
    if found is None:
        raise ValueError(f"a player is given as FILE.py:NAME; got {where!r}")
    file = Path(found[1]).expanduser().resolve()
    _player(file, found[2])  # so that what cannot be loaded is said at once
    label = text.strip().replace(where, found[2], 1)
    return label, partial(FilePlayer(str(file), found[2]), **settings)


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
    """Makes a player by a function that every process loads for itself."""

    def __call__(self, arms: Arms, n_features: int, seed: Seed = 0, **settings: object) -> Player:
        player: Player = self.load()(arms, n_features, seed=seed, **settings)
        return player


@dataclass(frozen=True)
class FilePlayer(Deferred):
    """Makes a player of a file."""

    file: str
    name: str

    def load(self) -> Factory:
        return _player(Path(self.file), self.name)


@dataclass(frozen=True)
class OfferedPlayer(Deferred):
    """Makes a player of an installed package."""

    name: str

    def load(self) -> Factory:
        factory = plugin("players", self.name)
        if not callable(factory):
            raise refused("players", self.name, factory, "a player")
        return factory


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of `NAME` or `NAME(setting=value, …)`."""
    name, bracket, inside = text.strip().partition("(")
    try:
        call = ast.parse(f"f({inside}" if bracket else "f()", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("settings must be named")
        return name.strip(), {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read {text!r} as NAME(setting=value, …): {error}") from error
