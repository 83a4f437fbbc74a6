"""The propensities of the chosen arms, by round."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bayesbandit.evaluation import RUN, check
from bayesbandit.plots.style import Given
from bayesbandit_studies.pictures.shares import shares_over_time


def propensities(
    table: pd.DataFrame,
    *,
    ax: Given = None,
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw the mean propensity of the chosen arms in each twentieth of the rounds.

    It is 1 for a policy without randomness.
    """
    table = check(table)
    rounds = table.sort_values("t").groupby(RUN)["t"].diff().fillna(table["t"])
    rounds = rounds.where(table["propensity"].notna())
    part = np.ceil(20 * table["t"] / table.groupby("environment")["t"].transform("max"))
    table = table.assign(propensity=table["propensity"] * rounds, n=rounds, part=part)
    parts = table.groupby([*RUN, "part"], sort=False)
    mean = parts["propensity"].sum() / parts["n"].sum()
    table = parts.max().assign(propensity=mean).reset_index()
    label = "propensity of chosen arm"
    return shares_over_time(
        table, "propensity", "Propensity", label, ax=ax, title=title, width=width
    )
