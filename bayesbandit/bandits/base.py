"""Whatever plays rounds: what one writes to let an algorithm of one's own be compared.

class Always:
    arms, n_features = ("a", "b"), 3

    def choose(self, x):
        return Choice("a", 1.0)

    def observe(self, choice, reward):
        pass
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesbandit.checks import Name
from bayesbandit.environments.base import Environment


@dataclass(frozen=True)
class Choice:
    """An arm, by name, and the probability with which it was chosen, where that is known."""

    arm: Name
    propensity: float = np.nan


class Player(Protocol):
    """A bandit, or anything that chooses arms and is told their rewards.

    Extras, by name: `greedy(x) -> (n,)`, the arms' names that it holds best at contexts x (n, d),
    for environments with test contexts; `update(x, arm, reward, propensity)`, for those that begin
    with rounds logged elsewhere; `play(x, reward, every)`, as `Bandit.play`, whole runs at once;
    and a `repr` that says its settings, by which a run in a folder knows itself again.
    """

    @property
    def arms(self) -> tuple[Name, ...]: ...

    @property
    def n_features(self) -> int: ...

    def choose(self, x: np.ndarray) -> Any:
        """A choice for a context (d,): something with `arm`, a name, and `propensity`."""
        ...

    def observe(self, choice: Any, reward: float) -> None:
        """The reward of an own choice."""
        ...


Factory = Callable[..., Player]  # (arms, n_features, seed) → Player


def check(player: Any, environment: Environment) -> None:
    """That a player can play an environment."""
    rounds = () if hasattr(player, "play") else ("choose", "observe")
    for name in ("arms", "n_features", *rounds):
        if not hasattr(player, name):
            raise TypeError(f"a player needs `{name}`; {player!r} has none")
    if tuple(player.arms) != tuple(environment.arms):
        raise ValueError(
            f"{player!r} has the arms {list(player.arms)!r}; {environment.name} has "
            f"{list(environment.arms)!r}"
        )


def step(
    player: Player, x: np.ndarray, reward: np.ndarray, every: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds one by one: contexts x (T, d) against every arm's reward (T, K). Numbers of the chosen
    arms (T,) and their propensities (T,), in every `every`-th round at least, else NaN."""
    chosen, propensity = np.empty(len(x), dtype=np.int64), np.full(len(x), np.nan)
    index = {arm: k for k, arm in enumerate(player.arms)}
    for t, context in enumerate(x):
        choice = player.choose(context)
        if choice.arm not in index:
            raise ValueError(f"{player!r} chose {choice.arm!r}; the arms are {list(index)!r}")
        chosen[t] = k = index[choice.arm]
        if t % every == 0:
            propensity[t] = getattr(choice, "propensity", np.nan)
        player.observe(choice, float(reward[t, k]))
    return chosen, propensity
