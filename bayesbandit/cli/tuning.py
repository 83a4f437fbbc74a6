"""The option `--tune` of `bayesbandit compare`: settings chosen on half of the streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bayesbandit.bandit.player import Factory
from bayesbandit.cli.players import BANDITS, parse, parse_bandit
from bayesbandit.environments.base import Environment
from bayesbandit.experiments.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd

ALPHAS = {"TS": (0.1, 0.25, 0.5, 1.0), "UCB": (0.25, 0.5, 1.0, 2.0)}
RIDGES = (0.1, 1.0, 10.0)
LINEAR = "LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy"
OTHERS = {"ILTCB": {"exploration": (0.01, 0.1, 1.0)}}


@dataclass(frozen=True)
class Tuned:
    """A comparison whose bandits are tuned: the runs to show, and what was chosen.

    runs: the results on the second half of the streams, each bandit at its setting under its own
        name. choices: a row for each data set and bandit.
    """

    runs: pd.DataFrame
    choices: pd.DataFrame


def tried(text: str) -> dict[str, tuple[float, ...]]:
    """Return the values of each setting of a bandit that `--tune` tries.

    text: `NAME` or `NAME(setting=value, …)`; settings that it names are kept. Thompson sampling and
    UCB are tried at four values of alpha, a linear bandit at three of ridge, ILTCB at three of
    exploration; a player of an installed package is played as it is.
    """
    name, given = parse(text)
    found: dict[str, tuple[float, ...]] = dict(OTHERS.get(name, {}))
    kind = next((kind for kind in ALPHAS if name in BANDITS and name.endswith(kind)), None)
    if kind is not None:
        found["alpha"] = ALPHAS[kind]
    if name in LINEAR:
        found["ridge"] = RIDGES
    return {key: values for key, values in found.items() if key not in given}


def grid(text: str) -> dict[str, Factory]:
    """Return the settings of a bandit that `--tune` tries, by their names."""
    name, given = parse(text)
    free, found = tried(text), {}
    for values in product(*free.values()):
        settings = given | dict(zip(free, values, strict=True))
        inside = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        label, factory = parse_bandit(f"{name}({inside})" if inside else name)
        found[label] = factory
    return found


def play_tuned(
    sets: Sequence[Environment],
    named: Sequence[str],
    others: Mapping[str, Factory],
    horizon: int | None,
    replications: int,
    seed: int,
    jobs: int,
    folder: Path,
) -> Tuned:
    """Choose each bandit's settings on the first half of the streams; play the second half.

    named: bandits whose settings are tuned. others: players that are played as they are. Raise
    ValueError for fewer than two replications.
    """
    if replications < 2:
        raise ValueError(f"--tune needs two replications or more; got {replications}")
    half = replications // 2
    grids = {parse_bandit(text)[0]: grid(text) for text in named}
    every = {label: factory for cells in grids.values() for label, factory in cells.items()}
    first = Experiment(sets, every | dict(others), horizon, half, seed).run(jobs, folder)
    best = chosen(first, grids)
    wanted = set(best["setting"])
    some = {label: factory for label, factory in every.items() if label in wanted}
    both = Experiment(sets, some | dict(others), horizon, replications, seed).run(jobs, folder)
    later = both[both["replication"] >= half]
    keep = best[["environment", "bandit", "setting"]].rename(columns={"bandit": "name"})
    tuned = later.rename(columns={"bandit": "setting"}).merge(keep, on=["environment", "setting"])
    tuned = tuned.drop(columns="setting").rename(columns={"name": "bandit"})
    runs = together(later, tuned, [*grids, *others])
    return Tuned(runs, beside(best, runs))


def chosen(first: pd.DataFrame, grids: Mapping[str, Mapping[str, Factory]]) -> pd.DataFrame:
    """Return for each data set and bandit the setting of least regret, with this regret a round and
    its standard error, and which values were tried."""
    import pandas as pd

    from bayesbandit import evaluation

    cells = evaluation.summary(first).set_index(["environment", "bandit"])
    rows = []
    for environment in pd.unique(first["environment"]):
        here = cells.loc[environment]
        for name, settings in grids.items():
            setting = here.loc[list(settings), "normalised_regret"].idxmin()
            regret, se = here.loc[setting, ["normalised_regret", "normalised_regret_se"]]
            text = "; ".join(
                f"{key} {', '.join(f'{value:g}' for value in values)}"
                for key, values in tried(name).items()
            )
            row = {"environment": environment, "bandit": name, "tried": text}
            rows.append(row | {"setting": setting, "regret": regret, "se": se})
    return pd.DataFrame(rows)


def beside(best: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return what was chosen, with regrets as texts: on the streams that chose, and on the others.

    The first is too small, because the setting was chosen by it.
    """
    from bayesbandit import evaluation

    cells = evaluation.summary(runs).set_index(["environment", "bandit"])
    key = list(zip(best["environment"], best["bandit"], strict=True))
    after = cells.loc[key]
    pairs = {
        "regret where chosen": (best["regret"], best["se"]),
        "regret on the other half": (after["normalised_regret"], after["normalised_regret_se"]),
    }
    texts = {
        heading: [evaluation.within(mean, se, 3) for mean, se in zip(*columns, strict=True)]
        for heading, columns in pairs.items()
    }
    return best[["environment", "bandit", "tried", "setting"]].assign(**texts)


def together(later: pd.DataFrame, tuned: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the tuned bandits' runs and those of the other players, in the order of the names."""
    import pandas as pd

    from bayesbandit.evaluation.results import in_order

    rest = later[later["bandit"].isin(names) & ~later["bandit"].isin(tuned["bandit"])]
    runs = pd.concat([tuned, rest])[list(later.columns)]
    runs = in_order(runs, [*pd.unique(later["environment"]), *names])
    runs.attrs["seed"] = later.attrs["seed"]
    return runs
