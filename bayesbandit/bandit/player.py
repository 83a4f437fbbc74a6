"""Players: bandits, or your own algorithms, that an experiment compares.

The smallest player:

    class Always:
        arms, n_features = ("a", "b"), 3

        def choose(self, x):
            return Choice("a", 1.0)

        def observe(self, choice, reward):
            pass
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import Array, Name, shown

if TYPE_CHECKING:
    from bayesbandit.environments.base import Environment


@dataclass(frozen=True)
class Choice:
    """A chosen arm's name, and the probability of choosing it (NaN: unknown)."""

    arm: Name
    propensity: float = np.nan


@runtime_checkable
class Player(Protocol):
    """A bandit, or any object that chooses arms and learns their rewards.

    Its `repr` gives its settings. A stored run is recognised by these and by the player's code. A
    player may also have the methods of `HasGreedy` and `HasUpdate`.
    """

    @property
    def arms(self) -> tuple[Name, ...]: ...

    @property
    def n_features(self) -> int: ...

    def choose(self, x: Array) -> Any:
        """Choose for a context (d,); return an object with `arm`, a name, and `propensity`."""
        ...

    def observe(self, choice: Any, reward: float) -> object:
        """Learn the reward of a choice that `choose` returned."""
        ...


@runtime_checkable
class HasGreedy(Protocol):
    """A player that can be judged on test contexts."""

    def greedy(self, x: Array) -> Sequence[Name] | Array:
        """Return the names (n,) of the arms with the highest estimates at contexts (n, d)."""
        ...


@runtime_checkable
class HasUpdate(Protocol):
    """A player that learns rounds logged elsewhere."""

    def update(self, x: Array, arm: Sequence[Name], reward: Array, propensity: Array) -> object:
        """Learn the rewards (n,) of arms at contexts (n, d), assigned with propensities (n,)."""
        ...


Factory = Callable[..., Player]  # (arms, n_features, seed) → Player


def check(player: Player, environment: Environment) -> None:
    """Raise unless a player has the methods, arms and n_features that an environment needs."""
    for name in ("arms", "n_features", "choose", "observe"):
        if not hasattr(player, name):
            raise TypeError(f"a player needs `{name}`; {shown(player)} has none")
    if tuple(player.arms) != tuple(environment.arms):
        raise ValueError(
            f"{shown(player)} has the arms {list(player.arms)!r}; {environment.name} has "
            f"{list(environment.arms)!r}"
        )
    if player.n_features != environment.n_features:
        raise ValueError(
            f"{shown(player)} has n_features = {player.n_features!r}; {environment.name} has "
            f"{environment.n_features}"
        )


def step(player: Player, x: Array, reward: Array, every: int) -> tuple[Array, Array]:
    """Play contexts x (T, d) with the rewards (T, K) of all arms, one round at a time.

    Return the chosen arms' numbers (T,) and propensities (T,), NaN except in every `every`-th
    round.
    """
    chosen = np.empty(len(x), dtype=np.int64)
    propensity = np.full(len(x), np.nan)
    index = {arm: k for k, arm in enumerate(player.arms)}
    for t, context in enumerate(x):
        choice = player.choose(context)
        if not hasattr(choice, "arm"):
            raise TypeError(
                f"{shown(player)} must choose a bb.extend.Choice(arm, propensity); got {choice!r}"
            )
        chosen[t] = k = _number(player, choice.arm, index)
        if t % every == 0:
            propensity[t] = getattr(choice, "propensity", np.nan)
        player.observe(choice, float(reward[t, k]))
    if not (np.isnan(propensity) | ((propensity >= 0.0) & (propensity <= 1.0 + 1e-9))).all():
        raise ValueError(
            f"propensities of {shown(player)} must be in [0, 1], or NaN; got {propensity}"
        )
    return chosen, propensity


def _number(player: Player, arm: Any, index: dict[Name, int]) -> int:
    try:
        return index[arm]
    except (KeyError, TypeError):
        arms = list(index)
        raise ValueError(f"{shown(player)} chose {arm!r}; the arms are {arms!r}") from None


def names_of(player: Player, arms: ArrayLike, among: Sequence[Name], n: int) -> Array:
    """Return the numbers (n,) of the arms that a player named for n contexts; raise if unknown."""
    names = np.asarray(arms)
    if names.shape != (n,):
        raise ValueError(f"{shown(player)} must name an arm for each of {n} contexts; got {arms!r}")
    index = {arm: k for k, arm in enumerate(among)}
    return np.array([_number(player, arm, index) for arm in names.tolist()], dtype=np.int64)
