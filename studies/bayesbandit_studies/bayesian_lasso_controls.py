"""What costs the Bayesian LASSO's pseudocode regret: its two differences from ours, one by one.

In the appendix's pseudocode an arm that was not pulled keeps its old draw, and there is no
constant. Ours renews every draw and has a constant. All four combinations play at λ = 1 with σ
known, in the sparse design of section 4.1, σ = 0.1; LinTS with and without a constant stands
beside them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.environments import SparseLinear
from bayesbandit_studies import Factory
from bayesbandit_studies.bayesian_lasso import SIGMA
from bayesbandit_studies.tables import above, medians, paired

NOISE: dict[str, Any] = {"sigma2": SIGMA**2}
OURS, LISTING = "λ = 1, σ known", "λ = 1, listing"
BARE, WITH = f"{OURS}, no constant", f"{LISTING}, constant"
LINEAR = "LinTS, no constant"
PLAYERS: dict[str, Factory] = {
    OURS: partial(bb.BayesianLassoTS, lam=1.0, **NOISE),
    BARE: partial(bb.BayesianLassoTS, lam=1.0, intercept=False, **NOISE),
    WITH: partial(bb.BayesianLassoTS, lam=1.0, listing=True, intercept=True, **NOISE),
    LISTING: partial(bb.BayesianLassoTS, lam=1.0, listing=True, **NOISE),
    "LinTS": bb.LinTS,
    LINEAR: partial(bb.LinTS, intercept=False),
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


STUDY = bb.extend.Study(
    title="Regret of the Bayesian LASSO, with and without a constant and renewed draws",
    environments=[SparseLinear(sigma=SIGMA)],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=printed,
    details=paired(PAIRS),
    figures=above(OURS),
    replications=20,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
