"""How a bandit changes: all of it or nothing, also where threads share it or a signal interrupts.

One round of a compiled belief is one compiled call: no signal and no other thread comes in between,
and it allocates before it writes. It takes what it needs from one tuple of the bandit, `deciding`
or `learning`, without a lock.

What takes longer holds the bandit's lock, and `hold`s the arrays, which then refuse: those who call
wait for the lock. It is done to a fork, whose attributes become the bandit's by one `dict.update`:
Python handles signals between two of its own instructions, and this is one.

A process that is forked while a thread holds a lock has the lock without the thread: it gets new
ones, and the bandit as it was before the call that held the lock, whose result is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from bayesbandit.bandit import fast_path
from bayesbandit.history import unheld

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

_locked: WeakSet[Bandit] = WeakSet()  # that have a lock of their own


def guard(bandit: Bandit) -> None:
    """Give a bandit a lock of its own."""
    bandit.lock = RLock()
    _locked.add(bandit)


def _guard_again() -> None:
    for bandit in list(_locked):
        bandit.lock = RLock()
        release(bandit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guard_again)


def alone[**P, T](change: Callable[P, T]) -> Callable[P, T]:
    """Let others wait while a function runs, whose first argument is a bandit."""

    @wraps(change)
    def alone(*args: P.args, **settings: P.kwargs) -> T:
        bandit: Any = args[0]
        with bandit.lock:
            try:
                hold(bandit)
                return change(*args, **settings)
            finally:
                release(bandit)

    return alone


def hold(bandit: Bandit) -> None:
    """Let the arrays refuse to be changed: their counts become negative."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] >= 0:
            count[0] = -1 - count[0]


def release(bandit: Bandit) -> None:
    """Unlock the counts, if `hold` has locked them."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] < 0:
            count[0] = unheld(count[0])


def fork[B: Bandit](bandit: B) -> B:
    """Return a bandit in the same state, which may change while the other stays as it is."""
    twin, reweighting = fork_to_decide(bandit), bandit.reweighting
    twin.belief = bandit.belief.fork()
    twin.history = bandit.history.fork()
    twin.reweighting = None if reweighting is None else reweighting.fork()
    return twin


def fork_to_decide[B: Bandit](bandit: B) -> B:
    """Return a bandit in the same state, which may decide while the other stays as it is."""
    twin, belief, stream = object.__new__(type(bandit)), bandit.belief, bandit.stream.copy()
    stream[0] = unheld(stream[0])
    belief = belief.fork() if belief.computes_when_asked else belief
    vars(twin).update(vars(bandit), stream=stream, belief=belief, deciding=None, learning=None)
    return twin


def become(bandit: Bandit, twin: Bandit) -> None:
    """Take over all that has changed."""
    vars(bandit).update(vars(twin) | fast_path.calls(twin))


def reserve(bandit: Bandit, n: int) -> None:
    """Make room for n more rounds in the history."""
    history, learning = bandit.history, bandit.learning
    if not history.has_room(n):
        try:
            hold(bandit)
            history.reserve(n)
        finally:
            release(bandit)
    if learning is not None and learning[-1] is not bandit.history.count:
        fast_path.publish(bandit)
