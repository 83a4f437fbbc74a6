"""How long a round counts: a half-life on a clock of rounds or of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayesbandit.beliefs.base import Clock
from bayesbandit.checks import SIZES, number, one_of, seconds
from bayesbandit.kernels.fading import FORGOTTEN

CLOCKS = "rounds", "time"


@dataclass(frozen=True)
class Memory:
    """A half-life of rounds, in ticks of a clock; None: rounds count as long as the belief lives.

    half_life: a number of rounds, or with clock="time" seconds or a text as "7d" or "12h".
    """

    half_life: float | str | None = None
    clock: Clock = "rounds"

    def __post_init__(self) -> None:
        one_of(self.clock, "clock", CLOCKS)
        if self.half_life is not None:
            number(self._ticks, "half_life", above=0, **SIZES)

    @property
    def _ticks(self) -> float:
        timed = self.clock == "time" and isinstance(self.half_life, str)
        return seconds(self.half_life, "half_life") if timed else self.half_life  # type: ignore[return-value]

    @property
    def fades(self) -> bool:
        """Whether there is a half-life."""
        return self.half_life is not None

    @property
    def ticks(self) -> Clock | None:
        """What ticks while rounds fade; None if they do not."""
        return self.clock if self.fades else None

    @property
    def rate(self) -> float:
        """The rate ρ at which a round fades: e^(−ρ age) of it is left; 0 if rounds do not fade."""
        return math.log(2.0) / self._ticks if self.fades else 0.0

    @property
    def window(self) -> float:
        """The age up to which rounds count whole where they cannot fade: half_life / ln 2 ticks.

        They are then as many as fading would leave.
        """
        return 1.0 / self.rate

    @property
    def lasting(self) -> float:
        """The age at which less than 1e-9 of a round is left."""
        return -math.log(FORGOTTEN) / self.rate


FOR_EVER = Memory()
