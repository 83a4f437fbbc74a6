"""LASSO against ridge in the sparse design of section 4.1, and how both fit randomised data.

Bootstrap Thompson sampling with B = 100 replicates and λ by cross-validation, refitted after every
20 rounds of an arm. The paper does not state σ, and with it scale the nuisance variables and the
advantage of sparsity: the study shows four.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

import bayesbandit as bb
from bayesbandit import evaluation, plots
from bayesbandit.environments import SparseLinear
from bayesbandit.experiments.experiment import stream
from bayesbandit_studies import Factory, pictures
from bayesbandit_studies.tables import paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMAS = (0.05, 0.1, 0.2, 0.5)
LASSO, RIDGE = "LASSO-TS", "ridge-TS"
PLAYERS: dict[str, Factory] = {
    LASSO: partial(bb.BootstrapLassoTS, refit_every=20),
    RIDGE: partial(bb.BootstrapRidgeTS, refit_every=20),
    "LinTS": bb.LinTS,
}
PAIRS = [(RIDGE, LASSO), ("LinTS", LASSO)]
SIZES = (50, 100, 200, 300, 500, 700, 1000)  # of randomised data
ASKED = 1000  # contexts at which fits are judged
FIRST = 100  # rounds whose coefficients are followed
GROUPS = {"decides": slice(0, 2), "nuisance": slice(2, 53), "noise": slice(53, 102)}


def details(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return differences of regret, replication by replication, fits of randomised data, and
    coefficients after the first rounds."""
    mse = fits(*_few(results)).groupby(["sigma", "n"], sort=False)[["lasso", "ridge"]]
    mean = mse.mean()
    se = mse.sem()
    text = partial(evaluation.within, digits=3)
    found = pd.DataFrame({name: map(text, mean[name], se[name]) for name in mean}, mean.index)
    return paired(PAIRS)(results) | {
        "Mean squared error / σ² of fits of n randomised rounds of an arm": found.reset_index(),
        f"Mean |coefficient| of arm 0 after {FIRST} rounds, σ = 0.1": sizes(paths(*_few(results))),
    }


def figures(results: pd.DataFrame) -> dict[str, Figure]:
    """Draw the regret above that of LASSO, fits of randomised data, and coefficients on the way."""
    mse = fits(*_few(results))
    return {
        "regret": plots.paired_differences(results, LASSO),
        "mse": fit_curves(
            mse.melt(["sigma", "n", "replication"], ["lasso", "ridge"], "method", "mse")
        ),
        "coefficients": pictures.learning_curves(
            paths(*_few(results)),
            "t",
            "coefficient",
            "group",
            "bandit",
            "round t",
            "mean |coefficient| of arm 0",
            f"Coefficients in the first {FIRST} rounds, σ = 0.1",
            alike=True,
        ),
    }


def sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean |coefficient| ± SE after the first rounds, of rows of `paths`, by group."""
    by = rows[rows["t"] == FIRST].groupby(["bandit", "group"], sort=False)["coefficient"]
    cells = pd.DataFrame({"mean": by.mean(), "se": by.sem()}).reset_index()
    text = partial(evaluation.within, digits=4)
    cells["text"] = [text(*pair) for pair in zip(cells["mean"], cells["se"], strict=True)]
    return cells.pivot(index="bandit", columns="group", values="text")[[*GROUPS]].reset_index()


def fit_curves(rows: pd.DataFrame) -> Figure:
    """Draw the errors of fits of randomised data, of rows with sigma, n, method and mse."""
    return pictures.learning_curves(
        rows.assign(sigma=[f"sparse design, σ = {sigma:g}" for sigma in rows["sigma"]]),
        "n",
        "mse",
        "method",
        "sigma",
        "randomised rounds n of an arm",
        "mean squared error / σ²",
        "Fit of randomised data",
        log=True,
    )


def _few(results: pd.DataFrame) -> tuple[int, int]:
    """Return the number of replications, and the seed, of what is fitted beside the runs."""
    return min(10, int(results["replication"].nunique())), evaluation.seed_of(results)


@cache
def fits(replications: int, seed: int = 0) -> pd.DataFrame:
    """Return mean squared error of arm 0's mean reward, in units of σ², by scikit-learn's LASSO and
    ridge with λ by 5-fold cross-validation, on n rounds that were assigned to it at random."""
    from sklearn.linear_model import LassoCV, RidgeCV
    from threadpoolctl import threadpool_limits

    rows = []
    for sigma in SIGMAS:
        world = SparseLinear(sigma=sigma)
        for replication in range(replications):
            rng = np.random.default_rng(stream(seed, "fits", world.name, replication))
            drawn = world.sample(max(SIZES) + ASKED, rng)
            asked = drawn.x[max(SIZES) :]
            truth = drawn.mean[max(SIZES) :, 0]
            for n in SIZES:
                x = drawn.x[:n]
                r = drawn.reward[:n, 0]
                row = {"sigma": sigma, "n": n}
                with threadpool_limits(limits=1):
                    lasso = LassoCV(cv=5, alphas=30).fit(x, r)
                    ridge = RidgeCV(np.geomspace(1e-3, 1e4, 30), cv=5).fit(x, r)
                errors = {
                    name: float(np.mean((fit.predict(asked) - truth) ** 2)) / sigma**2
                    for name, fit in (("lasso", lasso), ("ridge", ridge))
                }
                rows.append(row | {"replication": replication} | errors)
    return pd.DataFrame(rows)


@cache
def paths(replications: int, seed: int = 0) -> pd.DataFrame:
    """Return mean |coefficient| of arm 0, mean of the replicates, over the variables of each group,
    after every fifth of the first rounds; refitted at each reward."""
    world = SparseLinear(sigma=0.1)
    rows = []
    for name, preset in ((LASSO, bb.BootstrapLassoTS), (RIDGE, bb.BootstrapRidgeTS)):
        for replication in range(replications):
            key = stream(seed, "paths", replication)
            drawn = world.sample(FIRST, np.random.default_rng(key))
            bandit = preset(world.arms, world.n_features, refit_every=1, seed=key)
            for t in range(0, FIRST, 5):
                bandit.play(drawn.x[t : t + 5], drawn.reward[t : t + 5])
                coef = np.abs(np.nan_to_num(cast(Any, bandit.belief).coef[0].mean(axis=0)))
                rows += [
                    {
                        "bandit": name,
                        "replication": replication,
                        "t": t + 5,
                        "group": group,
                        "coefficient": float(coef[which].mean()),
                    }
                    for group, which in GROUPS.items()
                ]
    return pd.DataFrame(rows)


STUDY = bb.extend.Study(
    title="Regret of LASSO and ridge in the sparse design",
    environments=[SparseLinear(sigma=sigma) for sigma in SIGMAS],
    players=PLAYERS,
    table=evaluation.regrets,
    printed=evaluation.wide,  # the paper's figure has no numbers: LASSO wins
    details=details,
    figures=figures,
    replications=50,
    horizon=1000,
    points=50,
    quick={"replications": 2, "horizon": 200},
)
