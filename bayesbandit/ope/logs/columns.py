"""Checks of a log's columns. Each error names the column and the wrong value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import (
    MAX_ABS_VALUE,
    PROBABILITY_TOLERANCE,
    Arms,
    Array,
    Name,
    Table,
    arm_names,
    by_arm,
    column_names,
    finite,
    floats,
    instants,
    one_a_row,
    present,
    propensities,
    rescaled,
)


def arms_of(arms: Arms | None, chosen: Array, probabilities: ArrayLike | None) -> tuple[Name, ...]:
    """Return the arms' names, in the order of the columns of probabilities."""
    if arms is not None:
        return arm_names(arms)
    K = None if probabilities is None else np.shape(probabilities)[-1]
    if all(isinstance(a, int | np.integer) and 0 <= a < (K or len(chosen)) for a in chosen):
        return arm_names(K or int(max(chosen)) + 1)
    if K is not None:
        raise ValueError(
            f"arms= must name the {K} columns of probabilities, as {chosen.tolist()[0]!r} is no "
            "whole number; got None"
        )
    return arm_names(sorted(set(chosen.tolist()), key=lambda a: (isinstance(a, str), a)))


def numbers_of(chosen: Array, arms: tuple[Name, ...], what: str = "arms") -> Array:
    """Return the numbers (n,) of arms by their names; raise ValueError if one is unknown.

    what: how the error calls them.
    """
    index = {arm: k for k, arm in enumerate(arms)}
    numbers = []
    for arm in chosen.tolist():
        try:
            numbers.append(index[arm])
        except (KeyError, TypeError):
            raise ValueError(f"{what} must be among {list(arms)!r}; got {arm!r}") from None
    return np.array(numbers, dtype=np.int64)


def contexts_of(x: ArrayLike | Table | None, n: int) -> tuple[tuple[str, ...], Array]:
    """Return the names of the features, and the contexts (n, d)."""
    if x is None:
        return (), np.empty((n, 0))
    array = finite(floats(x, "contexts"), "contexts", MAX_ABS_VALUE)
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"contexts must have shape ({n}, d); got {array.shape}")
    names = column_names(x) if isinstance(x, Table) else range(array.shape[1])
    return tuple(name if isinstance(name, str) else f"x{name}" for name in names), array


def rewards_of(values: ArrayLike, n: int) -> Array:
    """Return rewards (n,); raise ValueError if one is infinite or all are NaN."""
    r = one_a_row(values, n, "rewards")
    finite(r[~np.isnan(r)], "rewards", MAX_ABS_VALUE)
    if np.isnan(r).all():
        raise ValueError(f"rewards must not all be missing; got NaN in {n} rounds")
    return r


def matrix_of(values: Any, n: int, arms: Sequence[Name], what: str) -> Array:
    """Return numbers (n, K), a table's columns by the arms' names."""
    array = by_arm(values, arms, what)
    if array.shape != (n, len(arms)):
        raise ValueError(f"{what} must be {(n, len(arms))}; got {array.shape}")
    return array


def ascending(values: Any, n: int, what: str) -> Array | None:
    """Return a column (n,). Raise ValueError if it ever decreases."""
    if values is None:
        return None
    array = finite(one_a_row(instants(values), n, what), what)
    if (back := np.flatnonzero(np.diff(array) < 0)).size:
        t = int(back[0]) + 1
        raise ValueError(
            f"{what} must not run back: rounds stand in the order of their decisions; got "
            f"{array[t]:g} after {array[t - 1]:g} in round {t}"
        )
    return array


def distribution(values: Any, n: int, arms: Sequence[Name], what: str) -> Array:
    """Return probabilities (n, K): each within [0, 1], rows that sum to 1."""
    p = matrix_of(values, n, arms, what)
    present(p.sum(axis=1), what)
    if len(outside := np.argwhere((p < 0) | (p > 1 + PROBABILITY_TOLERANCE))):
        t, k = outside[0].tolist()
        raise ValueError(f"{what} must be in [0, 1]; got {p[t, k]} for {arms[k]!r} in round {t}")
    return rescaled(p, what)


def propensities_of(
    probabilities: Any,
    propensity: Any,
    played: Array,
    arms: tuple[Name, ...],
    all_available: bool,
) -> tuple[Array | None, Array]:
    """Return every arm's probability (n, K), if known, and the chosen arm's (n,).

    all_available: whether all arms were always available, so that of two one has what the other
    leaves.
    """
    n = len(played)
    e = None
    rows = np.arange(n)
    if probabilities is None and propensity is None:
        raise ValueError("a log needs probabilities (n, K), or the propensity (n,); got neither")
    if probabilities is not None:
        e = distribution(probabilities, n, arms, "probabilities")
        p = e[rows, played]
    if propensity is not None:
        p_chosen = propensities(one_a_row(propensity, n, "propensities"), n)
        if e is not None and not (gap := np.abs(p_chosen - p)).max() <= PROBABILITY_TOLERANCE:
            t = int(gap.argmax())
            raise ValueError(
                f"the propensity {p_chosen[t]:.6g} of round {t} is not the probability of its arm, "
                f"{p[t]:.6g}"
            )
        p = p_chosen if e is None else p
    if (p == 0).any():
        t = int(np.argmin(p))
        raise ValueError(
            f"the arm of round {t}, {arms[played[t]]!r}, was chosen with probability 0; so were "
            f"{int((p == 0).sum())} of {n}"
        )
    if e is None and len(arms) == 2 and all_available:
        e = np.empty((n, 2))
        e[rows, played] = p
        e[rows, 1 - played] = 1 - p
    return e, p


def available_of(
    values: Any, played: Array, e: Array | None, arms: tuple[Name, ...]
) -> Array | None:
    """Return the mask (n, K) of the available arms, or None."""
    if values is None:
        return None
    mask = matrix_of(values, len(played), arms, "available")
    if (strange := mask[~np.isin(mask, (0.0, 1.0))]).size:
        raise ValueError(f"available must be true or false; got {strange[0]}")
    on = mask == 1.0
    could = played[:, None] == np.arange(len(arms)) if e is None else e > 0
    if len(wrong := np.argwhere(could & ~on)):
        t, k = wrong[0].tolist()
        raise ValueError(
            f"{arms[k]!r} was not available in round {t}, and was chosen or had a probability > 0"
        )
    return on
