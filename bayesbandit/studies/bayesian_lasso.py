"""Bayesian LASSO Thompson sampling (Appendix C) in the sparse design of section 4.1, σ = 0.1.

Our reading (a chain that goes on from where it stood, every arm drawn anew in each round; σ learned
or known) and the appendix to the letter, which knows σ and has no constant, at fixed λ over a wide
grid, and with λ learned under a gamma prior; beside them the bootstrap LASSO and ridge, and LinTS.
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
from bayesbandit.experiments.experiment import Experiment
from bayesbandit.systems.bootstrap.presets import BootstrapLassoTS, BootstrapRidgeTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Regret of Bayesian LASSO Thompson sampling in the sparse design"
QUICK: dict[str, Any] = {"replications": 2, "horizon": 200}
LAMS = (0.3, 1.0, 3.0, 10.0, 30.0)
SIGMA = 0.1
LEARNED = {"alpha": 1.0, "beta": 1.78}  # of a Gamma prior of λ², as Park & Casella (2008) have it
REFERENCES = ("bootstrap LASSO", "bootstrap ridge", "LinTS")


def players(sigma: float = SIGMA) -> dict[str, Callable[..., Bandit]]:
    """Each reading at each λ, λ learned, and the bandits beside them; sigma: what those know that
    know it."""
    found: dict[str, Callable[..., Bandit]] = {}
    known: dict[str, Any] = {"sigma2": sigma**2}
    for lam in LAMS:
        found[f"λ = {lam:g}"] = partial(BayesianLassoTS, lam=lam)
        found[f"λ = {lam:g}, σ known"] = partial(BayesianLassoTS, lam=lam, **known)
        found[f"λ = {lam:g}, listing"] = partial(BayesianLassoTS, lam=lam, listing=True, **known)
    found["λ learned"] = learned
    found["bootstrap LASSO"] = partial(BootstrapLassoTS, refit_every=20)
    found["bootstrap ridge"] = partial(BootstrapRidgeTS, refit_every=20)
    found["LinTS"] = LinTS
    return found


def learned(arms: Any, n_features: int, seed: Any = 0) -> Bandit:
    """λ² with a gamma prior."""
    from bayesbandit.declaring.priors import Prior  # loads PyMC

    return BayesianLassoTS(arms, n_features, lam=Prior("Gamma", **LEARNED), seed=seed)


def experiment(replications: int = 20, horizon: int = 1000, seed: int = 0) -> Experiment:
    """All of them in the sparse design."""
    world = SparseLinear(sigma=SIGMA)
    return Experiment([world], players(), horizon, replications, seed, points=50)


def table(results: pd.DataFrame) -> pd.DataFrame:
    """For each bandit, the regret at the end and its standard error."""
    return evaluation.regrets(results)


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each λ, a column for each reading; references last. The paper has none."""
    cells = {
        row["bandit"]: evaluation.within(row["regret"], row["regret_se"])
        for row in table.to_dict("records")
    }
    rows = [
        {"λ": f"{lam:g}", "ours": cells.get(f"λ = {lam:g}"),
         "σ known": cells.get(f"λ = {lam:g}, σ known"),
         "the appendix's listing": cells.get(f"λ = {lam:g}, listing")}
        for lam in LAMS
    ]  # fmt: skip
    if "λ learned" in cells:
        rows.append({"λ": "learned", "ours": cells["λ learned"]})
    rows += [
        {"λ": "", "beside it": f"{name}: {cells[name]}"} for name in REFERENCES if name in cells
    ]
    return pd.DataFrame(rows).fillna("")


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Differences of regret from bootstrap LASSO, replication by replication."""
    pairs = [(name, "bootstrap LASSO") for name in players() if name != "bootstrap LASSO"]
    return {"Differences, replication by replication": evaluation.gaps(results, pairs)}


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Regret of each reading at the middle λ, and beside it the references."""
    middle = f"λ = {LAMS[len(LAMS) // 2]:g}"
    shown = [middle, f"{middle}, σ known", f"{middle}, listing", "λ learned", *REFERENCES]
    return {"regret": plots.regret_curves(results[results["bandit"].isin(shown)])}
