"""Models compared by how well each predicts rewards that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import Contexts, shown
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.predictive import check_observes_rewards
from bayesbandit.model import RewardModel
from bayesbandit.posteriors.fitting import fit
from bayesbandit.posteriors.posterior import Posterior

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

    if not (isinstance(models, Mapping) and models):
        raise TypeError(f"models must be a dict of models or posteriors; got {shown(models)}")
    trees: dict[str, Any] = {}
    rows: Rows = {"reward": np.asarray(reward)}
    for name, model in models.items():
        posterior = fit(model, x, reward, **settings) if isinstance(model, RewardModel) else model
        if not isinstance(posterior, Posterior):
            raise TypeError(f"{name} must be a RewardModel or a Posterior; got {shown(model)}")
        if not _are_same(posterior.rows, rows):
            raise ValueError(f"{name}: a posterior of other rows; fit it to these")
        rows = {**posterior.rows, **rows}
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
        weight = posterior.rows.get("weight", np.ones(n))
        if (weight != 1.0).any():
            raise ValueError(
                f"{name}: rows must have weights of 1, for one is left out as a whole; got "
                f"{weight[weight != 1.0][0]:g}"
            )
        if by_row[0] in posterior.plan.built.named_vars:  # else it is of a potential
            check_observes_rewards(posterior.plan.built, str(by_row[0]), name)
        tree["log_likelihood"] = (
            tree["log_likelihood"].dataset[by_row].rename({by_row[0]: "reward"})
        )
        trees[name] = tree
    # by itself ArviZ rounds numbers to the digits that their standard errors leave
    return az.compare(trees, var_name="reward", round_to="none")


def _are_same(rows: Rows, others: Rows) -> bool:
    """Return whether rows are equal in the roles that both have; one may be without contexts."""
    roles = [role for role in ("reward", "arm", "x") if role in rows and role in others]
    return all(
        np.array_equal(rows[role], others[role])
        for role in roles
        if role != "x" or rows["x"].shape[1] == others["x"].shape[1]
    )
