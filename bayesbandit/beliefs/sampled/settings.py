"""How often a declared model is sampled, and by what."""

from __future__ import annotations

from dataclasses import dataclass

from bayesbandit.checks import MANY, integer, one_of
from bayesbandit.model import RewardModel
from bayesbandit.schedule import Schedule

GROWTH = 0.1  # by which an arm's rounds grow between two refits, unless told otherwise
DRAWS = 400


@dataclass(frozen=True)
class Sampling:
    """A declared reward model, `declared`, and how its posterior is had.

    engine: as of `bb.fit`. For models whose posterior does not stream row by row: refit_every, when
    it is computed anew, every m rounds of an arm (an int) or each time they have grown by a share
    (a float); draws, how many stand for it; tune, sweeps before them, the engine's choice if None;
    frozen, whether one draw, picked at random, stands for an arm until its next reward, as in the
    paper's Appendix C (only for Gibbs).
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
        """When draws are computed anew."""
        return Schedule(self.refit_every)
