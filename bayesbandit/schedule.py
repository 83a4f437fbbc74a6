"""When a computation is repeated as rounds come in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayesbandit.checks import MAX_COUNT, integer, number


@dataclass(frozen=True)
class Schedule:
    """A schedule of repeated computations; the first is due after one round.

    every: an int m repeats it every m rounds. A float s repeats it when the rounds have grown by
    the share s (0.25 = 25 %). The total cost is then nearly linear in the rounds.
    """

    every: int | float

    def __post_init__(self) -> None:
        if isinstance(self.every, float):
            number(self.every, "refit_every, as a share of growth,", above=0)
        else:
            integer(self.every, "refit_every, as a number of rounds,", least=1)

    def next_due(self, n: int) -> int:
        """Return the rounds at which the next computation is due, after one at n rounds."""
        if n == 0:
            return 1
        if isinstance(self.every, float):
            return max(n + 1, math.ceil(min(n * (1.0 + self.every), MAX_COUNT)))
        return min(n + self.every, MAX_COUNT)

    def latest(self, done: int, n: int, least: int) -> int:
        """Return the rounds, at most n, at which a computation was last due.

        The one before was at `done` rounds (0: none), and none is due before `least`. One update of
        many rounds gives the same result as many updates of one.
        """
        due = done
        while due <= n:
            done = due
            due = max(least, self.next_due(due))
        return done
