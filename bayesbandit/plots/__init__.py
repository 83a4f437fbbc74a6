"""Pictures of results and logs: each function returns a matplotlib `Figure`, ready to save."""

from bayesbandit.plots.curves import MAX_PANELS, regret_curves
from bayesbandit.plots.differences import paired_differences
from bayesbandit.plots.evidence import policy_contrasts, policy_values

__all__ = [
    "MAX_PANELS",
    "paired_differences",
    "policy_contrasts",
    "policy_values",
    "regret_curves",
]
