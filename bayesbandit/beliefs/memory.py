"""How what is known changes as time passes: rounds fade by a half-life, or coefficients walk."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from bayesbandit.beliefs.base import Clock
from bayesbandit.checks import SETTING_BOUNDS, is_real, number, one_of, seconds
from bayesbandit.kernels.fading import MIN_ROWS_LEFT

CLOCKS = "rounds", "time"
HALF_LIVES = (None, 2000.0, 500.0, 125.0)  # among which `half_life="auto"` chooses
MIN_SHARE = 1e-30  # the share of a round below which it is left out: it changes no sum in float64


@dataclass(frozen=True)
class Memory:
    """A half-life of rounds, or the steps of coefficients that walk, in ticks of a clock.

    half_life: a number of rounds, or with clock="time" seconds or a text as "7d" or "12h"; "auto":
    one that is chosen among several (`HalfLives`). drift: the variance of each coefficient's step
    in a tick; 0 is no drift. Without either, rounds count as long as the belief lives.
    """

    half_life: float | str | None = None
    clock: Clock = "rounds"
    drift: float | None = None

    def __post_init__(self) -> None:
        one_of(self.clock, "clock", CLOCKS)
        if self.chooses:
            if self.clock != "rounds":
                raise ValueError('half_life="auto" chooses among rounds; got clock="time"')
        elif self.half_life is not None:
            _ = self._ticks  # which raises ValueError if it is no number
        if self.drift is None:
            return
        number(self.drift, "drift", least=0, **(SETTING_BOUNDS if self.drift else {}))
        if self.half_life is not None:
            raise ValueError(
                "half_life and drift are two rules for one thing: give one of them; got "
                f"half_life={self.half_life!r}, drift={self.drift!r}"
            )

    @cached_property
    def _ticks(self) -> float:
        """The half-life in ticks, if there is one."""
        timed = self.clock == "time" and isinstance(self.half_life, str)
        ticks = seconds(self.half_life, "half_life") if timed else self.half_life
        try:
            return number(ticks, "half_life", above=0, **SETTING_BOUNDS)
        except ValueError:
            if is_real(ticks):
                raise
            raise ValueError(
                'half_life must be a finite number > 0, "auto", or with clock="time" a text as '
                f'"7d"; got {ticks!r}'
            ) from None

    @property
    def chooses(self) -> bool:
        """Whether the half-life is one that the rewards choose."""
        return self.half_life == "auto"

    def each(self) -> list[Memory]:
        """Return the memory of each half-life: this one, or those that the rewards choose among."""
        if not self.chooses:
            return [self]
        return [replace(self, half_life=half_life) for half_life in HALF_LIVES]

    @property
    def fades(self) -> bool:
        """Whether rounds fade, by one half-life."""
        return self.half_life is not None and not self.chooses

    @property
    def ticks(self) -> Clock | None:
        """What ticks; None if time changes nothing."""
        return self.clock if self.half_life is not None or self.drift else None

    @property
    def rate(self) -> float:
        """The rate ρ at which a round fades: e^(−ρ age) of it is left; 0 if rounds do not fade."""
        return math.log(2.0) / self._ticks if self.fades else 0.0

    @property
    def lasting(self) -> float:
        """The age at which less than 1e-9 of a round is left; ∞ if rounds do not fade."""
        return -math.log(MIN_ROWS_LEFT) / self.rate if self.fades else math.inf


FOR_EVER = Memory()
