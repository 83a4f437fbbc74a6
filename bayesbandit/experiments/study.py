"""Studies: an experiment, and the tables and figures that are made of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bayesbandit.bandit.player import Factory
from bayesbandit.environments.base import Environment
from bayesbandit.experiments.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def _as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table."""
    return table


def _none(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return no tables."""
    return {}


class Runs(Protocol):
    """What a study runs: an `Experiment`, or simulations of its own."""

    def run(self, jobs: int = 1, out: str | Path | None = None) -> pd.DataFrame:
        """Return the results. out: a folder that keeps them."""
        ...


@dataclass(frozen=True, kw_only=True)
class Study:
    """Environments × players, and the tables and figures of them.

    title: what the printed table shows.
    environments: a sequence, or a function that returns one, for data that take time to load.
    players: name → a function (arms, n_features, seed) → `Bandit` or another `Player`.
    simulations: (replications, seed) → what is run in place of environments × players.
    table: makes the table that is stored of the results (`evaluation.SCHEMA`).
    figures: makes the pictures, by file name, of the results.
    printed: makes the table that is printed of the stored one; by default it is the same.
    details: makes further printed tables, by heading, of the results.
    replications, horizon, points: as of `Experiment`.
    quick: the fields that are different in the small version.
    """

    title: str
    table: Callable[[pd.DataFrame], pd.DataFrame]
    figures: Callable[[pd.DataFrame], Mapping[str, Figure]]
    environments: Sequence[Environment] | Callable[[], Sequence[Environment]] = ()
    players: Mapping[str, Factory] = field(default_factory=dict)
    simulations: Callable[[int, int], Runs] | None = None
    printed: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is
    details: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame]] = _none
    replications: int = 20
    horizon: int | None = None
    points: int = 100
    quick: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [field.name for field in fields(self)]
        if unknown := [name for name in self.quick if name not in names]:
            raise ValueError(f"quick must name fields of a study; got {unknown[0]!r}")

    def small(self) -> Study:
        """Return the small version."""
        return replace(self, **self.quick)

    def experiment(self, seed: int = 0, replications: int | None = None) -> Runs:
        """Return what is run; replications: in place of the study's own number."""
        n = self.replications if replications is None else replications
        if self.simulations is not None:
            return self.simulations(n, seed)
        environments = self.environments() if callable(self.environments) else self.environments
        return Experiment(environments, self.players, self.horizon, n, seed, self.points)
