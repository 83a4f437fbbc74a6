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
from bayesbandit_studies.bayesian_lasso import SIGMA
from bayesbandit_studies.tables import medians, paired

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
    """Return regret ± SE and the median, a row for each combination."""
    shown = medians(table)
    bare = shown["bandit"].isin([BARE, LISTING, LINEAR])
    shown.insert(1, "draws", shown["bandit"].map(DRAWS).fillna("exact"))
    shown.insert(2, "constant", bare.map({True: "no", False: "yes"}))
    return shown


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret above that of ours."""
    return {"differences": plots.paired_differences(results, OURS)}


STUDY = Study(
    title="Regret of the Bayesian LASSO, with and without a constant and renewed draws",
    environments=[SparseLinear(sigma=SIGMA)],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=printed,
    details=paired(PAIRS),
    figures=figures,
    replications=20,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
