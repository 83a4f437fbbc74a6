"""The clock of a bandit that forgets: what tick it is, and at which one a decision was made.

By `clock="rounds"` the contexts decided and the rounds learned by `Bandit.update` are counted, by
`clock="time"` seconds since 1970. `Bandit.forget` puts the clock forward (`Bandit.ahead`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit import checks
from bayesbandit.checks import Array

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit
    from bayesbandit.bandit.decision import Decision


def tick(bandit: Bandit, rounds: int = 0) -> float:
    """Return what tick it is, or will be after so many more rounds."""
    if bandit.belief.clock == "rounds":
        return bandit.t + bandit.ahead + rounds
    return (time.time() if bandit.now is None else bandit.now) + bandit.ahead


def next_ticks(bandit: Bandit, n: int) -> Array | None:
    """Return the ticks (n,) of the next n rounds; None if the bandit does not forget."""
    if bandit.belief.clock is None:
        return None
    rounds = np.arange(n) if bandit.belief.clock == "rounds" else 0
    return np.broadcast_to(tick(bandit, 1) + rounds, n).astype(np.float64)


def logged(bandit: Bandit, at: object, n: int) -> Array | None:
    """Return the ticks (n,) of rounds that were decided at these times; None: not told.

    at: dates or seconds since 1970, (n,) or one for all. Raise ValueError if the bandit's clock is
    not of time, or if they are later than now, or are no numbers.
    """
    if at is None:
        return None
    if bandit.belief.clock != "time":
        other = "does not forget" if bandit.belief.clock is None else "counts rounds"
        raise ValueError(
            f'time is for a half_life with clock="time"; {checks.shown(bandit.model)} {other}'
        )
    what = (
        "time, as dates (datetime or datetime64; for texts, pandas.to_datetime) or seconds since "
        "1970,"
    )
    at = np.atleast_1d(checks.floats(checks.instants(at), what))
    at = checks.one_a_row(np.repeat(at, n) if at.size == 1 else at, n, "time")
    at = at + bandit.ahead
    now = tick(bandit)
    valid = (at <= now) & (at >= -checks.MAX_TICK)
    if not valid.all():
        raise ValueError(
            f"time must be at most now, {now - bandit.ahead:.0f} seconds since 1970, and at least "
            f"{-checks.MAX_TICK}; got {at[~valid][0] - bandit.ahead:.16g}"
        )
    return at


def catch_up(bandit: Bandit, latest: float) -> None:
    """Put a clock of rounds forward to the tick of a decision that another process has made.

    Else the bandit's own next rounds would be of the past (Lamport 1978, Communications of the ACM
    21, 558–565).
    """
    if bandit.belief.clock == "rounds":
        bandit.ahead += max(0.0, latest - tick(bandit))


def ticks_of(bandit: Bandit, decision: Decision) -> Array | None:
    """Return the ticks (n,) at which a decision was made; None if the bandit does not forget.

    A decision of a bandit that does not forget is as of now. Raise ValueError for a tick that no
    clock has.
    """
    if bandit.belief.clock is None:
        return None
    n = len(np.atleast_2d(decision.rows))
    decided = tick(bandit) if decision.tick is None else decision.tick
    checks.finite(np.asarray(decided), "the decision's tick", checks.MAX_TICK)
    return np.broadcast_to(decided, n).astype(np.float64)
