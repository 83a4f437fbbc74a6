"""Bayesian LASSO Thompson sampling (Appendix C) in the sparse design of section 4.1, σ = 0.1.

Two readings play. Ours continues each arm's chain and draws every arm again in each round; σ is
learned or known. The appendix's pseudocode knows σ and has no constant. λ is fixed, over a wide
grid, or learned under a gamma prior. The bootstrap LASSO and ridge, and LinTS, are references.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation
from bayesbandit.checks import Arms, Seed
from bayesbandit.environments import SparseLinear
from bayesbandit_studies import Factory
from bayesbandit_studies.tables import above, paired

LAMS = (0.3, 1.0, 3.0, 10.0, 30.0)
SIGMA = 0.1
LEARNED = {"alpha": 1.0, "beta": 1.78}  # of a Gamma prior of λ², as Park & Casella (2008) have it
BOOTSTRAP = "bootstrap LASSO"
REFERENCES = (BOOTSTRAP, "bootstrap ridge", "LinTS")


def players(sigma: float = SIGMA) -> dict[str, Factory]:
    """Return each reading at each λ, λ learned, and the bandits beside them; sigma: what those know
    that know it."""
    found: dict[str, Factory] = {}
    known: dict[str, Any] = {"sigma2": sigma**2}
    for lam in LAMS:
        found[f"λ = {lam:g}"] = partial(bb.BayesianLassoTS, lam=lam)
        found[f"λ = {lam:g}, σ known"] = partial(bb.BayesianLassoTS, lam=lam, **known)
        found[f"λ = {lam:g}, listing"] = partial(bb.BayesianLassoTS, lam=lam, listing=True, **known)
    found["λ learned"] = learned
    found[BOOTSTRAP] = partial(bb.BootstrapLassoTS, refit_every=20)
    found["bootstrap ridge"] = partial(bb.BootstrapRidgeTS, refit_every=20)
    found["LinTS"] = bb.LinTS
    return found


def learned(arms: Arms, n_features: int, seed: Seed = 0) -> bb.Bandit:
    """Return a bandit that learns λ, with a gamma prior of λ²."""

    return bb.BayesianLassoTS(arms, n_features, lam=bb.Prior("Gamma", **LEARNED), seed=seed)


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


STUDY = bb.extend.Study(
    title="Regret of Bayesian LASSO Thompson sampling in the sparse design",
    environments=[SparseLinear(sigma=SIGMA)],
    players=players(),
    table=evaluation.regrets,
    printed=printed,
    details=paired([(name, BOOTSTRAP) for name in players() if name != BOOTSTRAP]),
    figures=above(BOOTSTRAP, "regret"),
    replications=20,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
