"""The option `--tune` of `bayesbandit compare`: settings chosen on half of the streams."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd

from bayesbandit import evaluation
from bayesbandit.bandit.player import Factory
from bayesbandit.cli.bandits import BANDITS, parse, parse_bandit
from bayesbandit.environments.base import Environment
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
    name, settings = parse(text)
    grids: dict[str, tuple[float, ...]] = dict(OTHER_GRIDS.get(name, {}))
    for kind, values in ALPHA_CANDIDATES.items():
        if name in BANDITS and name.endswith(kind):
            grids["alpha"] = values
    if name in LINEAR_BANDITS:
        grids["ridge"] = RIDGE_CANDIDATES
    return {key: values for key, values in grids.items() if key not in settings}


def grid(text: str) -> dict[str, Factory]:
    """Return the settings of a bandit that `--tune` tries, by their names."""
    name, chosen = parse(text)
    free = tried(text)
    variants = {}
    for values in product(*free.values()):
        settings = chosen | dict(zip(free, values, strict=True))
        inside = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        label, factory = parse_bandit(f"{name}({inside})" if inside else name)
        variants[label] = factory
    return variants


def play_tuned(
    sets: Sequence[Environment], named: Sequence[str], horizon: int | None, replications: int,
    seed: int, jobs: int, folder: Path,
) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Choose each bandit's settings on the first half of the streams; play the second half.

    named: the bandits, as of --bandit. Return the results on the second half, each bandit at its
    setting under its own name, and a row for each data set and bandit with what was chosen, and its
    regret a round: on the streams that chose it, where it is too small, and on the others. Raise
    ValueError for fewer than two replications.
    """
    if replications < 2:
        raise ValueError(f"--tune needs two replications or more; got {replications}")
    half = replications // 2
    texts = {parse_bandit(text)[0]: text for text in named}
    grids = {name: grid(text) for name, text in texts.items()}
    every = {label: factory for cells in grids.values() for label, factory in cells.items()}
    first = Experiment(sets, every, horizon, half, seed).run(jobs, folder)
    before = evaluation.summary(first).set_index(["environment", "bandit"])
    regret = before["normalised_regret"]
    best = {
        (world.name, name): min(settings, key=lambda label: regret[world.name, label])
        for world in sets
        for name, settings in grids.items()
    }
    selected = {label: every[label] for label in every if label in best.values()}
    both = Experiment(sets, selected, horizon, replications, seed).run(jobs, folder)
    later = both[both["replication"] >= half]
    played = dict([*later.groupby(["environment", "bandit"])])
    runs = pd.concat(
        [played[where, label].assign(bandit=name) for (where, name), label in best.items()],
        ignore_index=True,
    )
    runs.attrs["seed"] = both.attrs["seed"]
    after = evaluation.summary(runs).set_index(["environment", "bandit"])

    def shown(cells: pd.DataFrame, place: tuple[str, str]) -> str:
        mean = float(cells["normalised_regret"][place])
        return evaluation.within(mean, float(cells["normalised_regret_se"][place]), 3)

    free = {name: tried(text) for name, text in texts.items()}
    rows = [
        {
            "environment": where,
            "bandit": name,
            "tried": "; ".join(
                f"{key} {', '.join(f'{value:g}' for value in values)}"
                for key, values in free[name].items()
            ),
            "setting": label,
            "regret where chosen": shown(before, (where, label)),
            "regret on the other half": shown(after, (where, name)),
        }
        for (where, name), label in best.items()
        if free[name]
    ]
    return runs, pd.DataFrame(rows)
