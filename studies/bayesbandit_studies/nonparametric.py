"""Forest, LASSO and ridge in the non-linear design of section 4.2.

Thompson sampling by an honest forest of 200 trees, and by 100 bootstrap replicates of LASSO and
ridge with squares and products of the contexts, λ by cross-validation. A linear bandit of the raw
contexts stands beside them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation, plots
from bayesbandit.environments import NonLinear
from bayesbandit_studies import Factory, pictures
from bayesbandit_studies.tables import paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAYERS: dict[str, Factory] = {
    "forest-TS": bb.ForestTS,
    "LASSO-TS": partial(bb.BootstrapLassoTS, degree=2),
    "ridge-TS": partial(bb.BootstrapRidgeTS, degree=2),
    "LinTS": bb.LinTS,
}
PAIRS = [("LASSO-TS", "forest-TS"), ("ridge-TS", "forest-TS"), ("ridge-TS", "LASSO-TS")]
SHOWN = ("forest-TS", "LASSO-TS", "ridge-TS")  # whose assignment is drawn
PARTS = 4  # windows of rounds, growing fourfold


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret at the end and on the way, and who got which arm in one run of each."""
    horizon = int(results["t"].max())
    drawn = {
        "regret": pictures.regret_rows(evaluation.regrets(results)),
        "curves": plots.regret_curves(results),
    }
    ends = sorted({max(1, horizon // 4**i) for i in range(PARTS)})
    windows = list(zip([1, *(end + 1 for end in ends)], ends, strict=False))
    side = np.linspace(-3, 3, 61)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    truth = NonLinear().expected_rewards(_contexts(grid))
    for name in SHOWN:
        x, arm, regions = walk(PLAYERS[name], windows, grid, evaluation.seed_of(results))
        drawn[f"assignment-{name}"] = pictures.assignment(
            x,
            arm,
            1 + np.arange(len(x)),
            NonLinear.arms,
            windows,
            grid,
            regions,
            truth,
            title=f"Arm assignment by {name}, non-linear design, one simulation",
        )
    return drawn


def walk(
    factory: Factory,
    windows: list[tuple[int, int]],
    grid: np.ndarray,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Play one run. Return its contexts in the plane (n, 2), arms (n,), and the arm of the
    largest mean over the grid, where all other contexts are 0, at the end of each window (m, g)."""
    world = NonLinear()
    sample = world.sample(windows[-1][1], np.random.default_rng(seed))
    bandit = factory(world.arms, world.n_features, seed=seed)
    chosen = []
    regions = []
    for first, last in windows:
        now = slice(first - 1, last)
        chosen.append(bandit.play(sample.x[now], sample.reward[now], every=last)[0])
        regions.append(bandit.belief.predict(_contexts(grid)).mean.argmax(axis=1))
    return sample.x[:, :2], np.concatenate(chosen), np.stack(regions)


def _contexts(grid: np.ndarray) -> np.ndarray:
    """Return points of the plane (m, 2) among the ten contexts (m, 10)."""
    return np.column_stack([grid, np.zeros((len(grid), NonLinear.n_features - 2))])


STUDY = bb.extend.Study(
    title="Regret of forest, LASSO and ridge in the non-linear design",
    environments=[NonLinear()],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=evaluation.wide,  # the paper's figure has no numbers: the forest wins, then LASSO
    details=paired(PAIRS),
    figures=figures,
    replications=20,
    horizon=5000,
    points=50,
    quick={"replications": 2, "horizon": 300},
)
