"""The option `--tune` of `bayesbandit compare`: settings chosen on half of the streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from bayesbandit import evaluation
from bayesbandit.bandit.player import Factory
from bayesbandit.cli.bandits import BANDITS, parse, parse_bandit
from bayesbandit.environments.base import Environment
from bayesbandit.evaluation.results import in_order
from bayesbandit.experiments.experiment import Experiment

ALPHA_CANDIDATES = {"TS": (0.1, 0.25, 0.5, 1.0), "UCB": (0.25, 0.5, 1.0, 2.0)}
RIDGE_CANDIDATES = (0.1, 1.0, 10.0)
LINEAR_BANDITS = "LinTS", "LinUCB", "BLTS", "BLUCB", "LinGreedy"
OTHER_GRIDS = {"ILTCB": {"exploration": (0.01, 0.1, 1.0)}}


def tried(text: str) -> dict[str, tuple[float, ...]]:
    """Return the values of each setting of a bandit that `--tune` tries.

    text: `NAME` or `NAME(setting=value, …)`; settings that it names are kept. Thompson sampling and
    UCB are tried at four values of alpha, a linear bandit at three of ridge, ILTCB at three of
    exploration; any other player is played as it is.
    """
    name, given = parse(text)
    found: dict[str, tuple[float, ...]] = dict(OTHER_GRIDS.get(name, {}))
    kind = next(
        (kind for kind in ALPHA_CANDIDATES if name in BANDITS and name.endswith(kind)), None
    )
    if kind is not None:
        found["alpha"] = ALPHA_CANDIDATES[kind]
    if name in LINEAR_BANDITS:
        found["ridge"] = RIDGE_CANDIDATES
    return {key: values for key, values in found.items() if key not in given}


def grid(text: str) -> dict[str, Factory]:
    """Return the settings of a bandit that `--tune` tries, by their names."""
    name, given = parse(text)
    free = tried(text)
    found = {}
    for values in product(*free.values()):
        settings = given | dict(zip(free, values, strict=True))
        inside = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        label, factory = parse_bandit(f"{name}({inside})" if inside else name)
        found[label] = factory
    return found


def play_tuned(
    sets: Sequence[Environment],
    named: Sequence[str],
    horizon: int | None,
    replications: int,
    seed: int,
    jobs: int,
    folder: Path,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Choose each bandit's settings on the first half of the streams; play the second half.

    named: the bandits, as of --bandit. Return the results on the second half, each bandit at its
    setting under its own name, and a row for each data set and bandit with what was chosen. Raise
    ValueError for fewer than two replications.
    """
    if replications < 2:
        raise ValueError(f"--tune needs two replications or more; got {replications}")
    half = replications // 2
    grids = {parse_bandit(text)[0]: grid(text) for text in named}
    every = {label: factory for cells in grids.values() for label, factory in cells.items()}
    first = Experiment(sets, every, horizon, half, seed).run(jobs, folder)
    best = chosen(first, grids)
    some = {label: every[label] for label in every if label in set(best["setting"])}
    both = Experiment(sets, some, horizon, replications, seed).run(jobs, folder)
    later = both[both["replication"] >= half]
    keep = best[["environment", "bandit", "setting"]].rename(columns={"bandit": "name"})
    tuned = later.rename(columns={"bandit": "setting"}).merge(keep, on=["environment", "setting"])
    tuned = tuned.drop(columns="setting").rename(columns={"name": "bandit"})
    runs = in_order(tuned[list(later.columns)], [*pd.unique(later["environment"]), *grids])
    runs.attrs["seed"] = later.attrs["seed"]
    tunable = best[best["tried"] != ""]
    return runs, beside(tunable, runs)


def chosen(first: pd.DataFrame, grids: Mapping[str, Mapping[str, Factory]]) -> pd.DataFrame:
    """Return for each data set and bandit the setting of least regret, with this regret a round and
    its standard error, and which values were tried."""
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
