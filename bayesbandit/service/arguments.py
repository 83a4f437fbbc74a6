"""Arguments of a service's methods: the log, contexts, arms and ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bayesbandit.bandit import choosing
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Contexts, Name
from bayesbandit.runtime.addresses import hidden
from bayesbandit.store.log import DecisionLog
from bayesbandit.store.rows import check_id

if TYPE_CHECKING:
    from bayesbandit.store.ledger import Ledger


def ledger_of(log: object) -> Ledger:
    """Return the ledger of a log; raise TypeError unless it is a `DecisionLog`."""
    if not isinstance(log, DecisionLog):
        raise TypeError(
            f'log must be a bb.DecisionLog, as DecisionLog("sqlite:///…"); got {hidden(repr(log))}'
        )
    return log.ledger


def encoded(
    bandit: Bandit, context: Contexts, names: tuple[Name, ...] | None
) -> tuple[np.ndarray, tuple[Name, ...] | None, bool]:
    """Return encoded contexts, the available arms, and whether x is a single context.

    Contexts are (n, d), or (n, A, d) if the A available arms have features. Arms are in the
    bandit's order; None: all.
    """
    if not bandit.of_arms:
        context = choosing.EMPTY_CONTEXT if context is None else bandit.encoded(context)
    x, available, one = choosing.contexts(bandit, context, names)
    if not len(x):
        raise ValueError("contexts must have at least one row; got none")
    if names is None and not bandit.of_arms:
        return x, None, one
    among = tuple(arm for arm, on in zip(bandit.arms, available, strict=True) if on)
    return x[:, available] if bandit.of_arms else x, among, one


def arms_listed(arms: Iterable[Name] | None) -> tuple[Name, ...] | None:
    """Return different arms; a single name is a tuple of one. None: all arms."""
    if arms is None:
        return None
    return tuple(dict.fromkeys([arms] if isinstance(arms, str | int) else arms))


def ids_of(names: object, n: int, one: bool) -> list[str]:
    """Return the ids of n decisions as a list; raise ValueError unless all differ."""
    ids = [names] if one else list_of(names)
    checked = [check_id(each) for each in ids]
    if len(checked) != n or len(set(checked)) < n:
        raise ValueError(
            f"id must have one text for each of {n} contexts, all different; got {len(checked)}, "
            f"{len(set(checked))} of them different"
        )
    return checked


def list_of(values: object) -> list[object]:
    """Return ids as a list; raise TypeError if they are no list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"id must be text, or a list of texts for several; got {values!r}")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
