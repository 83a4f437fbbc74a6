"""Pictures of results and beliefs: each function returns a matplotlib `Figure`, ready to save."""

from bayesbandit.plots.balancing import balance
from bayesbandit.plots.curves import MANY, regret_curves
from bayesbandit.plots.differences import paired_differences
from bayesbandit.plots.evidence import (
    calibration,
    policy_contrasts,
    policy_values,
    replay_curves,
    sample_sizes,
    value_sequences,
)
from bayesbandit.plots.interval_rows import interval_rows, regret_rows
from bayesbandit.plots.learning import learning_curves
from bayesbandit.plots.maps import assignment, bias, outcomes
from bayesbandit.plots.posteriors import coefficients, densities, shrinkage
from bayesbandit.plots.results import optimal_share, pairwise_scatter, propensities
from bayesbandit.plots.service import arm_shares, daily_counts, reward_lags, weekly_values
from bayesbandit.plots.trees import policy_tree

__all__ = [
    "MANY",
    "arm_shares",
    "assignment",
    "balance",
    "bias",
    "calibration",
    "coefficients",
    "daily_counts",
    "densities",
    "interval_rows",
    "learning_curves",
    "optimal_share",
    "outcomes",
    "paired_differences",
    "pairwise_scatter",
    "policy_contrasts",
    "policy_tree",
    "policy_values",
    "propensities",
    "regret_curves",
    "regret_rows",
    "replay_curves",
    "reward_lags",
    "sample_sizes",
    "shrinkage",
    "value_sequences",
    "weekly_values",
]
