"""Pictures of results and logs: each function returns a matplotlib `Figure`, ready to save."""

from typing import TYPE_CHECKING, NoReturn

from bayesbandit.plots.curves import MAX_PANELS, regret_curves
from bayesbandit.plots.differences import paired_differences
from bayesbandit.plots.evidence import policy_contrasts, policy_values
from bayesbandit.runtime.lazy import missing

__all__ = [
    "MAX_PANELS",
    "paired_differences",
    "policy_contrasts",
    "policy_values",
    "regret_curves",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        """Raise the error for a name that is not here."""
        raise missing(__name__, name)
