"""Bayesian LASSO Thompson sampling (Appendix C) in the sparse design of section 4.1, σ = 0.1.

Two readings play. Ours continues each arm's chain and draws every arm again in each round; σ is
learned or known. The appendix's pseudocode knows σ and has no constant. λ is fixed, over a wide
grid, or learned under a gamma prior. The bootstrap LASSO and ridge, and LinTS, are references.
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
from bayesbandit.checks import Arms, Seed
from bayesbandit.environments import SparseLinear
from bayesbandit.experiments.study import Study
from bayesbandit.systems.bootstrap.presets import BootstrapLassoTS, BootstrapRidgeTS
from bayesbandit_studies.tables import paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAMS = (0.3, 1.0, 3.0, 10.0, 30.0)
SIGMA = 0.1
LEARNED = {"alpha": 1.0, "beta": 1.78}  # of a Gamma prior of λ², as Park & Casella (2008) have it
BOOTSTRAP = "bootstrap LASSO"
REFERENCES = (BOOTSTRAP, "bootstrap ridge", "LinTS")


def players(sigma: float = SIGMA) -> dict[str, Callable[..., Bandit]]:
    """Return each reading at each λ, λ learned, and the bandits beside them; sigma: what those know
    that know it."""
    found: dict[str, Callable[..., Bandit]] = {}
    known: dict[str, Any] = {"sigma2": sigma**2}
    for lam in LAMS:
        found[f"λ = {lam:g}"] = partial(BayesianLassoTS, lam=lam)
        found[f"λ = {lam:g}, σ known"] = partial(BayesianLassoTS, lam=lam, **known)
        found[f"λ = {lam:g}, listing"] = partial(BayesianLassoTS, lam=lam, listing=True, **known)
    found["λ learned"] = learned
    found[BOOTSTRAP] = partial(BootstrapLassoTS, refit_every=20)
    found["bootstrap ridge"] = partial(BootstrapRidgeTS, refit_every=20)
    found["LinTS"] = LinTS
    return found


def learned(arms: Arms, n_features: int, seed: Seed = 0) -> Bandit:
    """Return a bandit that learns λ, with a gamma prior of λ²."""
    from bayesbandit.declaring.priors import Prior  # loads PyMC

    return BayesianLassoTS(arms, n_features, lam=Prior("Gamma", **LEARNED), seed=seed)


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each λ, a column for each reading, and the references last."""
    cells = {
        row["bandit"]: evaluation.within(row["regret"], row["regret_se"])
        for row in table.to_dict("records")
    }
    rows = [
        {
            "λ": f"{lam:g}",
            "ours": cells.get(f"λ = {lam:g}"),
            "σ known": cells.get(f"λ = {lam:g}, σ known"),
            "the appendix's listing": cells.get(f"λ = {lam:g}, listing"),
        }
        for lam in LAMS
    ]
    if "λ learned" in cells:
        rows.append({"λ": "learned", "ours": cells["λ learned"]})
    rows += [
        {"λ": "", "beside it": f"{name}: {cells[name]}"} for name in REFERENCES if name in cells
    ]
    return pd.DataFrame(rows).fillna("")


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return differences of regret from bootstrap LASSO, replication by replication."""
    pairs = [(name, BOOTSTRAP) for name in players() if name != BOOTSTRAP]
    return paired(pairs)(results)


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret above that of bootstrap LASSO."""
    return {"regret": plots.paired_differences(results, BOOTSTRAP)}


STUDY = Study(
    title="Regret of Bayesian LASSO Thompson sampling in the sparse design",
    environments=[SparseLinear(sigma=SIGMA)],
    players=players(),
    table=evaluation.regrets,
    printed=printed,
    details=details,
    figures=figures,
    replications=20,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
