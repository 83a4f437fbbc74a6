"""The settings of a declared model's sampling: the engine, when it refits, and the draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bayesbandit.beliefs.base import Clock
from bayesbandit.beliefs.memory import Memory
from bayesbandit.checks import MANY, integer, number, one_of
from bayesbandit.model import RewardModel
from bayesbandit.schedule import Schedule

GROWTH = 0.1  # the share by which an arm's rounds grow between two refits, if nothing else is due
DRAWS = 400
ESS = 0.5  # the effective share of weighted draws below which they are renewed


@dataclass(frozen=True)
class Sampling:
    """A declared reward model, `declared`, and settings of its posterior.

    engine: as in `bb.fit`. The other settings are for models that are not updated row by row.
    Draws are renewed after as many decisions as there are draws. Between two refits each reward
    multiplies the draws' weights by its likelihood, where rows are independent given the variables.

    refit_every: an arm is refitted at the latest after m of its rounds (an int), or each time they
    have grown by a share (a float). None: by 0.1 where draws cannot be weighted, else not.
    refit_below: weighted draws are renewed when their effective number (Kish 1965) is below this
    share of them, from 0 to 1.
    background: whether draws are renewed in a thread while decisions and rewards go on. Decisions
    then depend on how long that takes.
    draws: the number of posterior draws. tune: sweeps before them; None: the engine's choice.
    half_life: how long until a round counts half: a number of rounds, or with clock="time" seconds
    or a text as "7d"; None: rounds count as long as the bandit lives. The prior stays. Posteriors
    with a closed form fade, and so do those by engine="laplace". A model known by draws has a
    window instead, since its noise would seem small if the weights of old rows were. The rounds of
    the last half_life / ln 2 ticks count whole, as many as fading would leave. "auto" is as of
    `Ridge`, for linear-Gaussian models, probabilities and rates.
    drift: the variance of each variable's step in a tick, for linear-Gaussian models whose
    variables walk at random, as of `Ridge`; None or 0: they stand still. It is of the declared
    variables: of z, if the coefficients are m + s z.
    clock: what ticks: "rounds", contexts decided and rows learned by `update`, or "time".
    frozen: whether an arm uses one random draw until its next reward, as in the paper's Appendix C
    (only for Gibbs).
    """

    declared: RewardModel
    engine: str = "auto"
    refit_every: int | float | None = None
    draws: int = DRAWS
    tune: int | None = None
    frozen: bool = False
    refit_below: float = ESS
    background: bool = False
    half_life: float | str | None = None
    clock: Clock = "rounds"
    drift: float | None = None

    def __post_init__(self) -> None:
        from bayesbandit.inference.registry import choices  # loads PyMC

        one_of(self.engine, "engine", choices())
        _ = self.schedule
        number(self.refit_below, "refit_below", least=0, most=1)
        integer(self.draws, "draws", least=2, most=MANY)
        one_of(self.background, "background", (False, True))
        if self.tune is not None:
            integer(self.tune, "tune", least=0, most=MANY)
        _ = self.memory

    @cached_property
    def memory(self) -> Memory:
        """How long a round counts, or how the variables walk."""
        return Memory(self.half_life, self.clock, self.drift)

    @cached_property
    def schedule(self) -> Schedule:
        """When draws are renewed by the number of rounds."""
        return Schedule(GROWTH if self.refit_every is None else self.refit_every)
