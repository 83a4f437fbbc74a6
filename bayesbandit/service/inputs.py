"""Checks of a user's contexts, arms and ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesbandit.bandit import choosing
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import Name
from bayesbandit.store.rows import check_id


def encoded(
    bandit: Bandit, context: Any, names: tuple[Name, ...] | None
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


def ids_of(given: Any, n: int, one: bool) -> list[str]:
    """Return the ids of n decisions as a list; raise ValueError unless all differ."""
    ids = [given] if one else list_of(given, "id")
    found = [check_id(each) for each in ids]
    if len(found) != n or len(set(found)) < n:
        raise ValueError(
            f"id must have one text for each of {n} contexts, all different; got {len(found)}, of "
            f"which {len(set(found))} differ"
        )
    return found


def list_of(values: Any, what: str) -> list[Any]:
    """Return values as a list; raise TypeError if they are a single text."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be text, or a list of texts for several; got {values!r}")
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def each(value: Any, n: int, several: bool) -> list[Any]:
    """Return a list of n values; a single value is repeated."""
    if not several or isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return [value] * n
    if len(values := list(value)) != n:
        raise ValueError(f"key and at must have one value for each of {n} ids; got {len(values)}")
    return values
