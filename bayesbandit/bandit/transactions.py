"""Transactions: a call changes the whole bandit or nothing, even with threads and signals.

One round of a compiled belief is one compiled call. No signal and no other thread can interrupt it,
and it allocates memory before it writes. It needs no lock, because it reads all its arguments from
one tuple of the bandit, `deciding` or `learning` (`fast_path.py`).

A longer change takes the bandit's lock and locks the counts of its arrays (`hold`). Compiled calls
then refuse, and their callers wait for the lock. The change is made to a fork. One `dict.update`
gives the fork's attributes to the bandit. Python handles signals only between two of its
instructions, and this is one instruction.

If a process is forked while a thread holds a lock, the child has the lock but not the thread. So
the child makes new locks. Its bandit is as it was before the call that held the lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from bayesbandit.bandit import fast_path
from bayesbandit.bandit.observed import Observed
from bayesbandit.growing_rows import unheld

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

_locked: WeakSet[Bandit] = WeakSet()  # all bandits that have a lock


def guard(bandit: Bandit) -> None:
    """Give a bandit a new lock, and a record of its own of what it has learned."""
    bandit.lock = RLock()
    bandit.observed = Observed(vars(bandit).get("observed", {}))
    _locked.add(bandit)


def _guard_again() -> None:
    for bandit in list(_locked):
        bandit.lock = RLock()
        unlock_counts(bandit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guard_again)


def exclusive[**P, T](change: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function of a bandit, its first argument: other calls wait while it runs."""

    @wraps(change)
    def exclusive(*args: P.args, **settings: P.kwargs) -> T:
        bandit: Any = args[0]
        with bandit.lock:
            try:
                lock_counts(bandit)
                return change(*args, **settings)
            finally:
                unlock_counts(bandit)

    return exclusive


def lock_counts(bandit: Bandit) -> None:
    """Lock the counts of the stream and the history: compiled calls refuse negative counts."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] >= 0:
            count[0] = -1 - count[0]


def unlock_counts(bandit: Bandit) -> None:
    """Unlock the counts if they are locked."""
    for count in (bandit.stream, bandit.history.count):
        if count[0] < 0:
            count[0] = unheld(count[0])


def fork[B: Bandit](bandit: B) -> B:
    """Return a bandit in the same state, which may change while this one stays as it is."""
    draft = fork_to_decide(bandit)
    reweighting = bandit.reweighting
    if draft.belief is bandit.belief:
        draft.belief = bandit.belief.fork()
    draft.history = bandit.history.fork()
    draft.reweighting = None if reweighting is None else reweighting.fork()
    return draft


def fork_to_decide[B: Bandit](bandit: B) -> B:
    """Return a bandit in the same state, which may decide while this one stays as it is."""
    draft = object.__new__(type(bandit))
    belief = bandit.belief
    stream = bandit.stream.copy()
    stream[0] = unheld(stream[0])
    belief = belief.fork() if belief.predict_may_refit else belief
    vars(draft).update(vars(bandit), stream=stream, belief=belief, deciding=None, learning=None)
    return draft


def commit(bandit: Bandit, draft: Bandit) -> None:
    """Replace the state of a bandit by its fork's, in one step."""
    vars(bandit).update(vars(draft) | fast_path.calls(draft))


def reserve(bandit: Bandit, n: int) -> None:
    """Make room for n more rounds in the history, and tell the compiled calls of a new array."""
    history = bandit.history
    learning = bandit.learning
    if not history.has_room(n):
        try:
            lock_counts(bandit)
            history.reserve(n)
        finally:
            unlock_counts(bandit)
    if learning is not None and learning.n_rows is not bandit.history.count:
        fast_path.publish(bandit)
