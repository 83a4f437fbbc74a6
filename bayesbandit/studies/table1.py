"""Table 1 of the paper: how often a bandit finds the optimal assignment (section 3.1).

Features (x, x²) or x with a penalised constant, λ by 5-fold cross-validation on {.1, 1, 10} at
every update, σ² = RSS/n, α = 1, γ = .2: METHODS, section 2, on what the paper leaves open.
The controls hold λ fixed, since weights above 1 also shrink the penalty.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit import evaluation, plots
from bayesbandit.bandits.presets import BLTS, BLUCB, LinTS, LinUCB
from bayesbandit.environments import SyntheticExample
from bayesbandit.experiment import Experiment, Factory

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TITLE = "Simulations that find the optimal assignment (%), well- and mis-specified"
REPLICATIONS = 100
QUICK = {"replications": 10, "horizon": 2_000}

PAPER = {
    ("LinTS", "well"): 84, ("LinTS", "mis"): 39,
    ("LinUCB", "well"): 51, ("LinUCB", "mis"): 29,
    ("BLTS", "well"): 92, ("BLTS", "mis"): 58,
    ("BLUCB", "well"): 79, ("BLUCB", "mis"): 30,
}  # fmt: skip

CV = {"alpha": 1.0, "ridge": "cv", "grid": (0.1, 1.0, 10.0), "folds": 5}
FIXED = {"alpha": 0.5}
CLIP = 0.2


def bandits(propensity: str = "decision") -> dict[str, Factory]:
    """The four algorithms of the table, then the controls."""
    return {
        "LinTS": partial(LinTS, **CV),
        "LinUCB": partial(LinUCB, **CV),
        "BLTS": partial(BLTS, clip=CLIP, propensity=propensity, **CV),
        "BLUCB": partial(BLUCB, clip=CLIP, **CV),
        "LinTS, λ = 1, α = .5": partial(LinTS, ridge=1.0, **FIXED),
        "LinTS, λ = 1/3, α = .5": partial(LinTS, ridge=1 / 3, **FIXED),
        "BLTS, λ = 1, α = .5": partial(BLTS, ridge=1.0, clip=CLIP, **FIXED),
        "BLTS, λ = 1, α = .5, weights of mean 1": partial(
            BLTS, ridge=1.0, clip=CLIP, normalize=True, **FIXED
        ),
    }


def experiment(
    replications: int = REPLICATIONS, horizon: int = 10_000, seed: int = 0,
    propensity: str = "decision",
) -> Experiment:  # fmt: skip
    """Both specifications, the four algorithms and the controls."""
    environments = [SyntheticExample("well"), SyntheticExample("mis")]
    return Experiment(environments, bandits(propensity), horizon, replications, seed)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """% of simulations at the optimal assignment at T, ± its standard error, beside the paper's.

    Also: how many got there at any time, the median first round there ("never" where half do not),
    and the cumulative regret.
    """
    import pandas as pd

    cells = evaluation.summary(results)
    rows = []
    for _, cell in cells.iterrows():
        specification = cell["environment"].removeprefix("synthetic-")
        share, n = cell["optimal_at_end"], cell["replications"]
        first = cell["first_optimal"]
        rows.append({
            "bandit": cell["bandit"],
            "specification": specification,
            "optimal at T (%)": 100 * share,
            "± SE": 100 * np.sqrt(share * (1 - share) / n),
            "paper (%)": PAPER.get((cell["bandit"], specification), np.nan),
            "ever (%)": 100 * cell["optimal_ever"],
            "median first round": "never" if np.isinf(first) else f"{first:.0f}",
            "regret at T": cell["normalised_regret"] * cell["t"],
            "regret ± SE": cell["normalised_regret_se"] * cell["t"],
        })  # fmt: skip
    return pd.DataFrame(rows)


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Pictures by file name."""
    four = results[results["bandit"].isin(["LinTS", "LinUCB", "BLTS", "BLUCB"])]
    return {
        "optimal_share": plots.optimal_share(results),
        "regret": plots.regret_curves(results),
        "propensities": plots.propensities(four),
    }
