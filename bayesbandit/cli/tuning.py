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


def grid(text: str) -> dict[str, Factory]:
    """Return the settings of a bandit that `--tune` tries, by their names.

    text: `NAME` or `NAME(setting=value, …)`; settings that it names are kept. Thompson sampling and
    UCB are tried at four values of alpha, a linear bandit at three of ridge; any other player is
    played as it is.
    """
    name, chosen = parse(text)
    tried: dict[str, tuple[float, ...]] = {}
    for kind, values in ALPHA_CANDIDATES.items():
        if name in BANDITS and name.endswith(kind):
            tried["alpha"] = values
    if name in LINEAR_BANDITS:
        tried["ridge"] = RIDGE_CANDIDATES
    free = {key: values for key, values in tried.items() if key not in chosen}
    variants = {}
    for cell in product(*free.values()):
        settings = chosen | dict(zip(free, cell, strict=True))
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
    cell = ["environment", "bandit"]
    grids = {parse_bandit(text)[0]: grid(text) for text in named}
    every = {label: factory for variants in grids.values() for label, factory in variants.items()}
    first = Experiment(sets, every, horizon, half, seed).run(jobs, folder)
    before = evaluation.summary(first).set_index(cell)["normalised_regret"]
    best = {
        (world.name, name): min(variants, key=lambda label: before[world.name, label])
        for world in sets
        for name, variants in grids.items()
    }
    selected = {label: every[label] for label in best.values()}
    both = Experiment(sets, selected, horizon, replications, seed).run(jobs, folder)
    later = dict([*both[both["replication"] >= half].groupby(cell)])
    runs = pd.concat(
        [later[where, label].assign(bandit=name) for (where, name), label in best.items()],
        ignore_index=True,
    )
    runs.attrs = both.attrs
    after = evaluation.summary(runs).set_index(cell)["normalised_regret"]
    rows = [
        {
            "environment": where,
            "bandit": name,
            "setting": label,
            "regret where chosen": before[where, label],
            "regret on the other half": after[where, name],
        }
        for (where, name), label in best.items()
        if len(grids[name]) > 1
    ]
    return runs, pd.DataFrame(rows)
