"""What --bandit names: presets, declared models, players of files and packages, saved bandits.

`rehearse` plays a few rounds, so that the kernels are compiled ahead of time.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.player import Factory, Player
from bayesbandit.bandit.presets import bayesian_lasso, linear
from bayesbandit.checks import Arms, Seed
from bayesbandit.declaring.declaration import Declaration
from bayesbandit.declaring.gallery import FROM_FILE, list_models, running
from bayesbandit.policies import Thompson
from bayesbandit.runtime import fingerprints
from bayesbandit.runtime.plugins import blamed, module_of, plugin, plugins, refused
from bayesbandit.systems.bootstrap import presets as bootstrap
from bayesbandit.systems.forest import presets as forest
from bayesbandit.systems.iltcb import presets as iltcb
from bayesbandit.systems.policy_tree import presets as policy_tree
from bayesbandit.systems.super_ucb import presets as super_ucb
from bayesbandit.tables.encoder import Encoder

PRESETS = (
    linear.BLTS, linear.BLUCB, bayesian_lasso.BayesianLassoTS, bayesian_lasso.BayesianLassoUCB,
    bootstrap.BootstrapLassoTS, bootstrap.BootstrapLassoUCB, bootstrap.BootstrapRidgeTS,
    bootstrap.BootstrapRidgeUCB, forest.ForestTS, forest.ForestUCB, iltcb.ILTCB, linear.LinGreedy,
    linear.LinTS, linear.LinUCB, policy_tree.PolicyTreeTS, policy_tree.PolicyTreeUCB,
    super_ucb.SuperBLUCB, super_ucb.SuperLinUCB,
)  # fmt: skip
BANDITS = {preset.__name__: preset for preset in PRESETS}

# The bandits that `compare` plays by default, with their presets' default settings.
DEFAULT_BANDITS = ("LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy")

# settings of a declared model
MODEL_SETTINGS = ("alpha", "engine", "refit_every", "draws", "refit_below")
# for `rehearse`
REHEARSED_ARMS = ("a", "b", "c")
REHEARSED_FEATURES = 2
IN_FILE = re.compile(r"(.+?\.py)(?::(\w+))?(?=\s*(?:\(|$))")  # FILE.py or FILE.py:NAME


def parse_bandit(text: str) -> tuple[str, Factory]:
    """Return a label and a factory of new bandits for what --bandit names.

    text: a preset or a player of an installed package; a reward model of the gallery, FILE.py or
        FILE.py:NAME; or a class or function (arms, n_features, seed) of a file. Each may have
        settings, as `NAME(setting=value, …)`, with Python literals.
    Raise ValueError for an unknown name or setting, and for a saved bandit, which is not new; and
    FileNotFoundError for a saved one that is not there.
    """
    if is_saved(text):
        raise ValueError(f"{text} is a saved bandit, and a new one is needed, as LinTS(alpha=0.5)")
    if Path(text).suffix == ".npz":
        raise FileNotFoundError(f"there is no file {text} (--bandit)")
    name, settings = parse(text)
    label = text.strip()
    file = IN_FILE.fullmatch(name)
    if name in BANDITS:
        factory = partial(BANDITS[name], **settings)
        try:
            factory(2, 1)
        except TypeError as error:
            raise ValueError(f"{text}: {error}") from error
        return label, factory
    player = None
    if file and file[2] and not isinstance(_in_file(file[1], file[2]), Declaration):
        player = NamedPlayer(file[2], str(Path(file[1]).expanduser().resolve()))
    elif not file and name in plugins("players"):
        player = NamedPlayer(name)
    if player is not None:
        player.load()  # errors come before the run
        return label.replace(name, player.name, 1), partial(player, **settings)
    if not file and name not in list_models() and running(name) is None:
        listed = ", ".join(dict.fromkeys([*BANDITS, *plugins("players")]))
        raise ValueError(
            f"unknown bandit {name!r}; there are {listed}; the models of `bayesbandit models`; and "
            "FILE.py:NAME"
        )
    from bayesbandit.model import load_model

    if unknown := sorted(set(settings) - set(MODEL_SETTINGS)):
        allowed = ", ".join(MODEL_SETTINGS)
        raise ValueError(f"{text}: unknown setting {unknown[0]!r}; there are {allowed}")
    return label.replace(name, load_model(name).name, 1), partial(play_model, name, **settings)


def is_saved(text: str) -> bool:
    """Return whether --bandit names a file that is no file of Python."""
    return Path(text).suffix != ".py" and Path(text).is_file()


def made(named: tuple[str, Factory], *args: Any, **settings: Any) -> Bandit:
    """Return a new bandit of a parsed name; raise TypeError if it is none of the toolkit.

    Raise `Failed`, with the label, for an error in a user's code.
    """
    label, factory = named
    with blamed(f"{label} cannot be made"):
        bandit = factory(*args, **settings)
    if not isinstance(bandit, Bandit):
        kind = type(bandit).__name__
        raise TypeError(f"--bandit {label} must be a bandit of the toolkit; it is a {kind}")
    return bandit


def _in_file(file: str, name: str) -> Any:
    """Return the object of a file by its name: a reward model, or what can be called."""
    path = Path(file).expanduser().resolve()
    module = module_of(path, FROM_FILE)
    variables = vars(module)
    if name in variables:
        return variables[name]
    players = [
        key for key, value in variables.items()
        if isinstance(value, Declaration) or getattr(value, "__module__", "") == module.__name__
    ]  # fmt: skip
    raise ValueError(f"{path} has no object {name!r}; it has {', '.join(players) or 'none'}")


def play_model(
    model: str,
    arms: Arms,
    n_features: int | None,
    alpha: float = 1.0,
    seed: Seed = 0,
    encoder: Encoder | None = None,
    **settings: Any,
) -> Bandit:
    """Return a bandit with a declared model and Thompson sampling.

    settings: of `Declared`, or of `Sampled` if there are any of draws.
    """
    from bayesbandit.beliefs.declared import Declared, Sampled
    from bayesbandit.model import load_model

    kind = Sampled if settings.keys() - {"engine"} else Declared
    learning = kind(load_model(model), **settings)
    policy = Thompson(alpha)
    return Bandit(arms, learning, policy, n_features=n_features, encoder=encoder, seed=seed)


def rehearse(bandit: Bandit) -> float:
    """Call the methods that a program calls, with one context and a batch, and what a service
    calls; return the seconds.

    A reward model is fitted, too: a few rewards only weight its draws.
    """
    from bayesbandit.store import versions

    start = time.perf_counter()
    versions.rehearse(bandit)
    arms = list(bandit.arms)
    n = len(arms)
    contexts = np.random.default_rng(0).normal(size=(n, bandit.n_features))
    for value in (1.0, 0.0, 1.0):  # rewards that every model accepts
        rewards = np.full(n, value)
        for x, reward in ((contexts[0], value), (contexts, rewards)):
            decision = bandit.choose(x)
            _ = decision.propensity, decision.probabilities
            bandit.observe(decision, reward)
        bandit.update(contexts, arms, rewards, np.full(n, 0.5))
        bandit.choose(contexts[0], arms=arms[:2])
        bandit.probabilities(contexts), bandit.greedy(contexts)
    bandit.belief.predict(contexts)
    if isinstance(bandit.model, Declaration):
        bandit.posterior(arms[0])
    return time.perf_counter() - start


def rehearsed(text: str) -> Bandit:
    """Return a bandit for `rehearse`: a new one, or one like a saved one, without its encoder."""
    if not is_saved(text):
        return made(parse_bandit(text), REHEARSED_ARMS, REHEARSED_FEATURES, seed=0)
    saved = Bandit.load(text)
    parts = saved.spec, saved.policy, saved.balance
    return Bandit(REHEARSED_ARMS, *parts, n_features=REHEARSED_FEATURES)


@dataclass(frozen=True)
class NamedPlayer(fingerprints.Deferred):
    """A factory of players whose function is loaded in each process, by its name.

    file: where it is; "": an installed package offers it.
    """

    name: str
    file: str = ""

    def load(self) -> Factory:
        player = _in_file(self.file, self.name) if self.file else plugin("players", self.name)
        if callable(player):
            return cast(Factory, player)
        if not self.file:
            raise refused("players", self.name, player, "a player")
        raise ValueError(
            f"{self.name!r} of {self.file} must be a reward model, or a class or function "
            f"(arms, n_features, seed); it is {player!r}"
        )

    def __call__(self, arms: Arms, n_features: int, seed: Seed = 0, **settings: object) -> Player:
        return self.load()(arms, n_features, seed=seed, **settings)


def parse_bandits(texts: Sequence[str]) -> dict[str, Factory]:
    """Return factories by their labels.

    Raise ValueError for two of one label, and for one with a seed.
    """
    factories: dict[str, Factory] = {}
    for label, factory in map(parse_bandit, texts):
        if label in factories:
            raise ValueError(
                f"two bandits are named {label!r}, and results are by name: rename one"
            )
        if isinstance(factory, partial) and "seed" in factory.keywords:
            raise ValueError(f"{label}: each replication has a seed of its own")
        factories[label] = factory
    return factories


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of `NAME` or `NAME(setting=value, …)`."""
    text = text.strip()
    file = IN_FILE.match(text)
    name = file[0] if file else text.partition("(")[0].strip()
    inside = text.removeprefix(name).strip()
    try:
        code = f"f{inside}" if inside.startswith("(") else "f()"
        compile(code, "", "eval")  # which refuses a setting that is given twice
        call = ast.parse(code, mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("settings must be named")
        return name, {str(k.arg): literal(str(k.arg), k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read {text!r} as NAME(setting=value, …): {error}") from error


def literal(name: str, value: ast.expr) -> Any:
    """Return the value of a setting; raise ValueError if it is no literal."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        written = ast.unparse(value)
        raise ValueError(f"{name} must be a literal, as 0.5 or 'cv'; got {written}") from None
