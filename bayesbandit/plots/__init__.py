"""Pictures of results and logs: each function returns a matplotlib `Figure`, ready to save."""

from bayesbandit.plots.curves import MANY, regret_curves
from bayesbandit.plots.differences import paired_differences
from bayesbandit.plots.evidence import (
    calibration,
    policy_contrasts,
    policy_values,
    value_sequences,
)
from bayesbandit.plots.results import pairwise_scatter, propensities

__all__ = [
    "MANY",
    "calibration",
    "paired_differences",
    "pairwise_scatter",
    "policy_contrasts",
    "policy_values",
    "propensities",
    "regret_curves",
    "value_sequences",
]
