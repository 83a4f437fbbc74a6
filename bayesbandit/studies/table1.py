"""Table 1 of the paper: how often a bandit finds the optimal assignment (section 3.1).

Features (x, x²) or x with a penalised constant, λ by 5-fold cross-validation on {.1, 1, 10} at
every update, σ² = RSS/n, α = 1, γ = .2: the closest of the settings that the paper leaves open.
The controls hold λ fixed at α = .5, since weights above 1 also shrink the penalty: LinTS at a third
of λ, and BLTS with its weights scaled to mean 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesbandit import evaluation, plots
from bayesbandit.bandits.bandit import Bandit
from bayesbandit.bandits.presets import BLTS, BLUCB, LinTS, LinUCB
from bayesbandit.environments import SyntheticExample
from bayesbandit.experiment import Experiment

Kind = Literal["decision", "pooled", "estimated"]

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAME = "synthetic-"
TITLE = "Simulations that find the optimal assignment (%), well- and mis-specified"
REPLICATIONS = 100
QUICK: dict[str, Any] = {"replications": 10, "horizon": 2_000}

PAPER = {
    ("LinTS", "well"): 84, ("LinTS", "mis"): 39,
    ("LinUCB", "well"): 51, ("LinUCB", "mis"): 29,
    ("BLTS", "well"): 92, ("BLTS", "mis"): 58,
    ("BLUCB", "well"): 79, ("BLUCB", "mis"): 30,
}  # fmt: skip

PAPER_NOISE: dict[str, Any] = {"variance": "rss/n"}
CV: dict[str, Any] = {
    "alpha": 1.0, "ridge": "cv", "grid": (0.1, 1.0, 10.0), "folds": 5, **PAPER_NOISE,
}  # fmt: skip
FIXED: dict[str, Any] = {"alpha": 0.5, **PAPER_NOISE}
CLIP = 0.2

FOUR = ["LinTS", "LinUCB", "BLTS", "BLUCB"]
WINDOWS = [(0, 0), (1, 50), (51, 200), (201, 500), (501, 1000)]  # of the pictures of one simulation


def bandits(propensity: Kind = "decision") -> dict[str, Callable[..., Bandit]]:
    """The four algorithms of the table, then the controls at fixed λ."""
    return {
        "LinTS": partial(LinTS, **CV),
        "LinUCB": partial(LinUCB, **CV),
        "BLTS": partial(BLTS, clip=CLIP, propensity=propensity, **CV),
        "BLUCB": partial(BLUCB, clip=CLIP, **CV),
        "LinTS λ=1": partial(LinTS, ridge=1.0, **FIXED),
        "LinTS λ=1/3": partial(LinTS, ridge=1 / 3, **FIXED),
        "BLTS λ=1": partial(BLTS, ridge=1.0, clip=CLIP, **FIXED),
        "BLTS λ=1, mean 1": partial(BLTS, ridge=1.0, clip=CLIP, normalize=True, **FIXED),
    }


def experiment(
    replications: int = REPLICATIONS, horizon: int = 10_000, seed: int = 0,
    propensity: Kind = "decision",
) -> Experiment:  # fmt: skip
    """Both specifications, the four algorithms and the controls."""
    environments = [SyntheticExample("well"), SyntheticExample("mis")]
    return Experiment(environments, bandits(propensity), horizon, replications, seed)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """For each bandit and specification, one row, shares in % of the simulations.

    optimal: at the optimal assignment at T, and its standard error; paper: what the paper reports;
    ever: there at some checkpoint; first_round: the median first one there (inf where half of the
    simulations never arrive); regret: cumulative, at T, and its standard error.
    """
    cells = evaluation.summary(results)
    share = cells["optimal_at_end"]
    key = list(zip(cells["bandit"], cells["environment"].str.removeprefix(NAME), strict=True))
    return cells[["bandit"]].assign(
        specification=[specification for _, specification in key],
        optimal=100 * share,
        optimal_se=100 * np.sqrt(share * (1 - share) / cells["replications"]),
        paper=[PAPER.get(k, np.nan) for k in key],
        ever=100 * cells["optimal_ever"],
        first_round=cells["first_optimal"],
        regret=cells["normalised_regret"] * cells["t"],
        regret_se=cells["normalised_regret_se"] * cells["t"],
        simulations=cells["replications"],
    )


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """The table as the paper sets it, ours ± SE beside the paper's numbers."""
    shown = table[["bandit"]].drop_duplicates().set_index("bandit")
    for specification, rows in table.groupby("specification", sort=False):
        cells = rows.set_index("bandit")
        shown[f"{specification} (%)"] = [
            f"{a:.0f} ± {b:.0f}" for a, b in zip(cells["optimal"], cells["optimal_se"], strict=True)
        ]
        shown[f"paper, {specification}"] = cells["paper"]
        shown[f"{specification}: regret"] = [
            f"{a:.0f} ± {b:.0f}" for a, b in zip(cells["regret"], cells["regret_se"], strict=True)
        ]
    return shown.reset_index()


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Pictures by file name: of all simulations, and of one in the context space."""
    four = results[results["bandit"].isin(FOUR)]
    drawn = {
        "optimal_share": plots.optimal_share(results),
        "regret": plots.regret_curves(results),
        "propensities": plots.propensities(four),
    }
    for specification in ("well", "mis"):
        environment = SyntheticExample(specification, horizon=WINDOWS[-1][1])
        grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 61)] * 2), axis=-1).reshape(-1, 2)
        truth, estimates = environment.expected_rewards(grid), []
        for name in FOUR:
            x, arm, t, means = walk(environment, bandits()[name], grid)
            estimates.append(means[-1])
            regions = np.stack([mean.argmax(axis=1) for mean in means])
            drawn[f"assignment-{specification}-{name}"] = plots.assignment(
                x, arm, t, environment.arms, WINDOWS, grid, regions, truth,
                title=f"Arm assignment by {name}, {specification}-specified",
            )  # fmt: skip
        drawn[f"bias-{specification}"] = plots.bias(
            grid, np.stack(estimates), truth, environment.arms, FOUR,
            title=f"Estimation bias after {WINDOWS[-1][1]:,} rounds, {specification}-specified",
        )  # fmt: skip
    return drawn


def walk(
    environment: SyntheticExample, factory: Callable[..., Bandit], grid: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """One simulation: contexts of the plane (n, 2), arms (n,) and rounds (n,), the warm start as
    round 0, and the estimated mean rewards over the grid (m, K) at the end of each window."""
    sample = environment.sample(None, np.random.default_rng(seed))
    bandit = factory(environment.arms, environment.n_features, seed=seed)
    bandit.update(sample.warm_x, sample.warm_arm, sample.warm_reward, sample.warm_propensity)
    features, chosen, means = environment.features(grid), [sample.warm_arm], []
    for first, last in WINDOWS:
        rounds = slice(max(first - 1, 0), last)
        if last > 0:
            chosen.append(bandit.play(sample.x[rounds], sample.reward[rounds])[0])
        means.append(bandit.belief.mean(features))
    t = np.concatenate([np.zeros(len(sample.warm_arm)), 1.0 + np.arange(len(sample.x))])
    x = np.concatenate([sample.warm_x, sample.x])[:, :2]
    return x, np.concatenate(chosen), t, means
