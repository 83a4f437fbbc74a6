"""Studies: an experiment, and the tables and figures made from its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bayesbandit.bandit.player import Factory
from bayesbandit.environments.base import Environment
from bayesbandit.experiments.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Runs(Protocol):
    """A runnable object: an `Experiment`, or a study's own simulations."""

    def run(self, jobs: int = 1, out: str | Path | None = None) -> pd.DataFrame:
        """Return the results. jobs: processes. out: a folder that keeps the results."""
        ...


@dataclass(frozen=True, kw_only=True)
class Study:
    """Environments × players, and the functions that make tables and figures from the results.

    title: the title of the printed table.
    environments: a sequence, or a function that returns one, for data that take time to load.
    players: name → a function (arms, n_features, seed) → `Bandit` or another `Player`.
    simulations: a function (replications, seed) → `Runs`, used instead of environments × players.
    table: a function from the results (`evaluation.SCHEMA`) to the table that is stored.
    figures: a function from the results to figures by file name.
    printed: a function from the stored table to the printed one; by default they are the same.
    details: a function from the results to further printed tables by heading.
    replications, horizon, points: as in `Experiment`.
    quick: the fields that are different in the small version, with their values.
    """

    title: str
    table: Callable[[pd.DataFrame], pd.DataFrame]
    figures: Callable[[pd.DataFrame], Mapping[str, Figure]]
    environments: Sequence[Environment] | Callable[[], Sequence[Environment]] = ()
    players: Mapping[str, Factory] = field(default_factory=dict)
    simulations: Callable[[int, int], Runs] | None = None
    printed: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    details: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame]] = lambda results: {}
    replications: int = 20
    horizon: int | None = None
    points: int = 100
    quick: Mapping[str, Any] = field(default_factory=dict)

    def small(self) -> Study:
        """Return the study's small version."""
        return replace(self, **self.quick)

    def experiment(self, seed: int = 0, replications: int | None = None) -> Runs:
        """Return the experiment or the simulations to run.

        replications: replaces the study's own number.
        """
        n = self.replications if replications is None else replications
        if self.simulations is not None:
            return self.simulations(n, seed)
        environments = self.environments() if callable(self.environments) else self.environments
        return Experiment(environments, self.players, self.horizon, n, seed, self.points)
