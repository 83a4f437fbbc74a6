"""Smoothing the assignment policy, section 4.3: policy trees beside the bandits that they smooth.

A tree of four regions whose outcome model is that of LinTS or LinUCB, in designs where the linear
model is wrong (non-linear, mis-specified) and right (sparse, d = 12), and on the bundled data sets.
Each bandit is the preset of its name.

The paper argues that simpler assignment lowers the variance of what is estimated later. In the
designs the truth is known, so that this is seen: the variance over replications, and the squared
bias, of each arm's estimated mean reward at contexts that are the same for all, early and at the
end. Of a tree, that of its leaf means, and that of its outcome model (", model"), the linear
bandit's own estimator on rounds that the tree assigned: the paper's argument by itself.

The study `smoothing_controls` plays the tree with one setting changed at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.environments import (
    BUNDLED,
    Environment,
    NonLinear,
    SparseLinear,
    SyntheticExample,
    bundled,
)
from bayesbandit.experiments.experiment import stream
from bayesbandit.plots.style import words
from bayesbandit_studies import Factory, pictures
from bayesbandit_studies.accuracy import accuracy, replayed
from bayesbandit_studies.stops import stops
from bayesbandit_studies.tables import above as regret_above
from bayesbandit_studies.tables import by_pair, paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TS, UCB = "PolicyTreeTS", "PolicyTreeUCB"
PLAYERS: dict[str, Factory] = {
    "LinTS": bb.LinTS,
    TS: bb.systems.PolicyTreeTS,
    "LinUCB": bb.LinUCB,
    UCB: bb.systems.PolicyTreeUCB,
    "BLTS": bb.BLTS,
}
CONTROLLED: dict[str, Factory] = {
    TS: bb.systems.PolicyTreeTS,
    "depth 1": partial(bb.systems.PolicyTreeTS, depth=1),
    "depth 4": partial(bb.systems.PolicyTreeTS, depth=4),
    "balanced": partial(bb.systems.PolicyTreeTS, balanced=True),
    "plain variance": partial(bb.systems.PolicyTreeTS, prior_rows=0.0),
    "classification": partial(bb.systems.PolicyTreeTS, by="classification"),
}
PAIRS = [(TS, "LinTS"), (UCB, "LinUCB"), (TS, "BLTS")]
DESIGNS: tuple[Environment, ...] = (
    NonLinear(),
    SyntheticExample("mis", n_test=1000),
    SparseLinear(d=12, q=6),
)
MODEL = ", model"  # marks the outcome model of a tree
ESTIMATORS = ("LinTS", TS, TS + MODEL, "LinUCB", UCB, UCB + MODEL)
ABOVE = [(TS, "LinTS"), (TS + MODEL, "LinTS"), (UCB, "LinUCB"), (UCB + MODEL, "LinUCB")]
EARLY = 200
SHOWN = (50, 100, EARLY, 500, 1000)  # rounds at which estimates are drawn, with the last
ASKED = 500  # contexts at which they are judged
REPLAYED = 20  # replications of it, at most: unlike the runs, these are not kept
PARTS = {"variance": "variance", "squared_bias": "squared bias"}  # of the mean squared error


def environments() -> list[Environment]:
    """Return three designs and four data sets."""
    return [*DESIGNS, *map(bundled, BUNDLED)]


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return differences of regret from the bandit that is smoothed, replication by replication;
    variance and squared bias of the estimates, ± the standard error of the jackknife; and by how
    much these are above those of the bandit that is smoothed, paired."""
    replications, horizon, seed = replayed(results, REPLAYED)
    found = estimates(replications, horizon, seed)
    found = found[found["t"].isin(_times(horizon))]
    by = f"± SE, {replications} replications"
    frames = paired(PAIRS)(results)
    for world in DESIGNS:
        here = found[found["environment"] == world.name]
        for part, name in PARTS.items():
            frames[f"Estimated mean rewards, {world.name}: {name} {by}"] = spread(here, part)
    for part, name in PARTS.items():
        heading = f"{name.capitalize()} above that of the bandit that is smoothed"
        frames[f"{heading}, means of all arms {by}"] = above(found, part)
    return frames


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret, and by how much variance and squared bias of estimates are above those of
    the bandit that is smoothed, means of all arms."""
    replications, horizon, seed = replayed(results, REPLAYED)
    found = estimates(replications, horizon, seed)
    found = found[found["t"].isin(_times(horizon))]
    drawn = {"regret": pictures.regret_rows(evaluation.regrets(results))}
    for part in PARTS:
        drawn[part] = difference_rows(gaps(found, part), part, replications)
    return drawn


def difference_rows(cells: pd.DataFrame, part: str, replications: int) -> Figure:
    """Draw cells of `gaps`: a row a pair, a panel a design and t."""
    where = zip(cells["environment"], cells["t"], strict=True)
    panel = [f"{words(world)}, t = {t:,}" for world, t in where]
    over = f"mean and 95 % interval over {replications} replications"
    return pictures.interval_rows(
        cells.assign(panel=panel, difference=cells["one"] + " − " + cells["other"]),
        "difference",
        "value",
        "panel",
        f"difference of {PARTS[part]}",
        f"{PARTS[part].capitalize()} above that of the bandit that is smoothed: {over}",
        nominal=0.0,
    )


def _times(horizon: int) -> tuple[int, int]:
    """Return an early round and the last one."""
    return max(1, min(EARLY, horizon // 2)), horizon


@cache
def estimates(replications: int, horizon: int, seed: int = 0) -> pd.DataFrame:
    """Return `accuracy` of each design, estimator and number of rounds t, for each
    replication and arm."""
    rounds = sorted({t for t in SHOWN if t < horizon} | set(_times(horizon)))
    frames = []
    for world in DESIGNS:
        asked = world.sample(ASKED, np.random.default_rng(stream(seed, "contexts", world.name)))
        shape = len(rounds), replications, *asked.mean.shape
        means = {name: np.empty(shape) for name in ESTIMATORS}
        for i in range(replications):
            key = stream(seed, "smoothing", world.name, i)
            sample = world.sample(horizon, np.random.default_rng(key))
            for name in (name for name in PLAYERS if name in means):
                own = stream(seed, "smoother", world.name, i)
                stopped = stops(PLAYERS[name], world, sample, rounds, own)
                for when, bandit in enumerate(stopped):
                    means[name][when, i] = bandit.belief.predict(asked.x).mean
                    if name + MODEL in means:
                        inner = cast(Any, bandit.belief).inner
                        means[name + MODEL][when, i] = inner.predict(asked.x).mean
        for name, estimated in means.items():
            for t, values in zip(rounds, estimated, strict=True):
                found = accuracy(values, asked.mean)
                frames.append(found.assign(environment=world.name, estimator=name, t=t))
    return pd.concat(frames, ignore_index=True)


def spread(found: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return a part of `estimates` of one design, mean ± SE: a row for each estimator, a column for
    each t and arm."""
    pairs = zip(found["arm"], found["t"], strict=True)
    found = found.assign(column=[f"arm {arm}, t = {t:,}" for arm, t in pairs])
    cells = found.groupby(["estimator", "t", "arm", "column"], sort=False)[part]
    rows = cells.agg(value="mean", value_se="sem").reset_index()
    return evaluation.wide(rows, 4, "estimator", "column", "value")


def above(found: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return `gaps` as a table: a row for each pair, a column for each design and t."""
    return by_pair(gaps(found, part), 3, "column")


def gaps(found: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return by how much a part of `estimates` is above that of the bandit that is smoothed, with
    its standard error: a row for each pair, design and t."""
    key = ["environment", "t", "replication"]
    rows = []
    means = found.pivot_table(part, key, "estimator", sort=False)
    for one, other in ABOVE:
        differences = (means[one] - means[other]).groupby(level=key[:2], sort=False)
        row = differences.agg(["mean", "sem"]).set_axis(["value", "value_se"], axis=1)
        rows.append(row.reset_index().assign(one=one, other=other))
    cells = pd.concat(rows)
    where = zip(cells["environment"], cells["t"], strict=True)
    return cells.assign(column=[f"{world}, t = {t:,}" for world, t in where])


STUDY = bb.extend.Study(
    title="Regret of policy trees and of the bandits that they smooth",
    environments=environments,
    players=PLAYERS,
    table=evaluation.regrets,
    printed=evaluation.wide,  # the paper has no numbers; it expects the trees to do better
    details=details,
    figures=figures,
    replications=20,
    horizon=2000,  # or once through a shorter data set
    points=50,
    quick={"replications": 2, "horizon": 300},
)
CONTROLS = replace(
    STUDY,
    title="Regret of policy trees with one setting changed",
    players=CONTROLLED,
    details=paired([(name, TS) for name in CONTROLLED if name != TS]),
    figures=regret_above(TS),
)
