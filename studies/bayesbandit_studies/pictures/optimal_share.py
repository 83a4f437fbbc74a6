"""How many simulations reach the optimal assignment, by round."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from bayesbandit.evaluation import check
from bayesbandit_studies.pictures.shares import shares_over_time


def optimal_share(table: pd.DataFrame) -> Figure:
    """Draw the share of replications in which the optimal assignment is reached, by round.

    It needs environments with test contexts.
    """
    table = check(table)
    tested = (table["value"].notna() | table["optimal"]).groupby(table["environment"]).any()
    if not tested.any():
        raise ValueError(f"none of {tested.index.tolist()} has test contexts to judge a policy by")
    table = table[table["environment"].isin(tested.index[tested])]
    return shares_over_time(table, "optimal", "Optimal assignment", "share of replications")
