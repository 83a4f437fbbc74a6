"""The settings of a declared model's sampling: the engine, the schedule and the draws."""

from __future__ import annotations

from dataclasses import dataclass

from bayesbandit.checks import MANY, integer, one_of
from bayesbandit.model import RewardModel
from bayesbandit.schedule import Schedule

GROWTH = 0.1  # the default share by which an arm's rounds grow between two refits
DRAWS = 400


@dataclass(frozen=True)
class Sampling:
    """A declared reward model, `declared`, and settings of its posterior.

    engine: as in `bb.fit`. The other settings are for models that are not updated row by row.
    refit_every: an arm is refitted every m of its rounds (an int), or each time they have grown by
    a share (a float).
    draws: the number of posterior draws. tune: sweeps before them; None: the engine's choice.
    frozen: whether an arm uses one random draw until its next reward, as in the paper's Appendix C
    (only for Gibbs).
    """

    declared: RewardModel
    engine: str = "auto"
    refit_every: int | float = GROWTH
    draws: int = DRAWS
    tune: int | None = None
    frozen: bool = False

    def __post_init__(self) -> None:
        from bayesbandit.inference.registry import choices  # loads PyMC

        one_of(self.engine, "engine", choices())
        Schedule(self.refit_every)
        integer(self.draws, "draws", least=2, most=MANY)
        if self.tune is not None:
            integer(self.tune, "tune", least=0, most=MANY)

    @property
    def schedule(self) -> Schedule:
        """When draws are renewed."""
        return Schedule(self.refit_every)
