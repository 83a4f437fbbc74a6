"""How often something is computed anew as rounds come in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayesbandit.checks import COUNT, integer, number


@dataclass(frozen=True)
class Schedule:
    """Anew every m rounds (an int), or each time they have grown by a share (a float, .25 = 25 %),
    which makes the total cost near linear in the rounds. The first round is always worth it."""

    every: int | float

    def __post_init__(self) -> None:
        if isinstance(self.every, float):
            number(self.every, "refit_every, as a share of growth,", above=0)
        else:
            integer(self.every, "refit_every, as a number of rounds,", least=1)

    def next_due(self, n: int) -> int:
        """Return the number of rounds at which the next computation is due, after one at n
        rounds."""
        if n == 0:
            return 1
        if isinstance(self.every, float):
            return max(n + 1, math.ceil(min(n * (1.0 + self.every), COUNT)))
        return min(n + self.every, COUNT)

    def latest(self, done: int, n: int, least: int) -> int:
        """Return the last number of rounds up to n, and from `least` on, at which a computation
        was due, after one at `done` rounds (0: none). It is the same whether rounds came one by
        one or together."""
        due = done
        while due <= n:
            done, due = due, max(least, self.next_due(due))
        return done
