"""What costs the Bayesian LASSO's pseudocode regret: its two differences from ours, one by one.

In the appendix's pseudocode an arm that was not pulled keeps its old draw, and there is no
constant. Ours renews every draw and has a constant. All four combinations play at λ = 1 with σ
known, in the sparse design of section 4.1, σ = 0.1; LinTS with and without a constant stands
beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesbandit import evaluation, plots
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.presets.bayesian_lasso import BayesianLassoTS
from bayesbandit.bandit.presets.linear import LinTS
from bayesbandit.environments import SparseLinear
from bayesbandit.experiments.study import Study
from bayesbandit.studies.bayesian_lasso import SIGMA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOISE: dict[str, Any] = {"sigma2": SIGMA**2}
OURS, LISTING = "λ = 1, σ known", "λ = 1, listing"
BARE, WITH = f"{OURS}, no constant", f"{LISTING}, constant"
LINEAR = "LinTS, no constant"
PLAYERS: dict[str, Callable[..., Bandit]] = {
    OURS: partial(BayesianLassoTS, lam=1.0, **NOISE),
    BARE: partial(BayesianLassoTS, lam=1.0, intercept=False, **NOISE),
    WITH: partial(BayesianLassoTS, lam=1.0, listing=True, intercept=True, **NOISE),
    LISTING: partial(BayesianLassoTS, lam=1.0, listing=True, **NOISE),
    "LinTS": LinTS,
    LINEAR: partial(LinTS, intercept=False),
}
DRAWS = {OURS: "renewed", BARE: "renewed", WITH: "frozen", LISTING: "frozen"}
PAIRS = [
    (BARE, OURS), (WITH, OURS), (LISTING, BARE), (LISTING, WITH), (LISTING, OURS),
    (LINEAR, "LinTS"), (OURS, "LinTS"), (BARE, LINEAR),
]  # fmt: skip


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return regret ± SE and the median, a row a combination."""
    pairs = zip(table["regret"], table["regret_se"], strict=True)
    return pd.DataFrame(
        {
            "bandit": table["bandit"],
            "draws": table["bandit"].map(DRAWS).fillna("exact"),
            "constant": [
                "no" if name in (BARE, LISTING, LINEAR) else "yes" for name in table["bandit"]
            ],
            "regret": [evaluation.within(mean, se) for mean, se in pairs],
            "median": table["median"].round(),
        }
    )


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return differences of regret, replication by replication."""
    return {"Differences, replication by replication": evaluation.gaps(results, PAIRS)}


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret above that of ours."""
    return {"differences": plots.paired_differences(results, OURS)}


STUDY = Study(
    title="Regret of the Bayesian LASSO, with and without a constant and renewed draws",
    environments=[SparseLinear(sigma=SIGMA)],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=printed,
    details=details,
    figures=figures,
    replications=20,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
