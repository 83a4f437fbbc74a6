"""Models compared by how well each predicts rewards that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import Contexts
from bayesbandit.model import RewardModel
from bayesbandit.posteriors.fitting import fit

if TYPE_CHECKING:
    import pandas as pd


def compare_models(
    models: Mapping[str, Any],
    x: Contexts,
    reward: ArrayLike,
    **settings: Any,
) -> pd.DataFrame:
    """Return a table of models, the best first, by how well each predicts a reward left out.

    models: reward models by name; posteriors of the same rows may stand among them. x, reward: rows
    as of `fit`, which also takes the settings (arm, n_arms, seed, draws, …). The columns are
    ArviZ's (`arviz.compare`): the expected log predictive density by Pareto-smoothed leave-one-out,
    its differences and their standard errors. Raise ValueError where a model's log likelihood is no
    sum over rows.
    """
    import arviz as az

    trees: dict[str, Any] = {}
    for name, model in models.items():
        fits = isinstance(model, RewardModel)
        posterior = fit(model, x, reward, **settings) if fits else model
        if len(posterior.rows["reward"]) != len(np.asarray(reward)):
            raise ValueError(f"{name}: a posterior of other rows; fit it to these")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tree = posterior.to_datatree()
        n = len(posterior.rows["reward"])
        likelihoods = tree["log_likelihood"].dataset if "log_likelihood" in tree else {}
        by_row = [k for k in likelihoods if likelihoods[k].shape[2:] == (n,)]
        if len(by_row) != 1:
            raise ValueError(
                f"{name}: its log likelihood is not one number for each row (it has "
                f"{', '.join(map(repr, likelihoods)) or 'none'}), which a comparison by leaving "
                "rows out needs"
            )
        tree["log_likelihood"] = (
            tree["log_likelihood"].dataset[by_row].rename({by_row[0]: "reward"})
        )
        trees[name] = tree
    return az.compare(trees, var_name="reward")
