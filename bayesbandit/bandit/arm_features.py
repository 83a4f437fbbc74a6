"""Contexts (K, d) with a row of features for each arm, found by position or by the arms' names."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesbandit.checks import MAX_ABS_VALUE, Array, Contexts, Name, Table, finite, floats
from bayesbandit.checks import contexts as checked

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit


def contexts(
    bandit: Bandit, x: Contexts, arms: Iterable[Name] | None = None
) -> tuple[Array, Array, bool]:
    """Return contexts (n, K, d), a mask (K,) of the available arms, and whether x is one context.

    Features of arms that are not available are 0.

    x: (A, d) or (n, A, d), with a row for each of `arms`, or of all arms, in their order; with an
    encoder a table, or for several contexts a list of lists of rows by name. If the index of a
    pandas table has arms' names, each row is that arm's. An index with other texts raises
    ValueError. If `arms` are given, an index that counts from 0 is ignored.
    """
    K = len(bandit.arms)
    named = _named(bandit, x, arms is not None)
    listed = list(range(K)) if arms is None else bandit.listed(arms)
    x = floats(_encoded(bandit, x), "contexts")
    if named is not None:
        if arms is not None and set(listed) != set(named):
            given = [bandit.arms[k] for k in named]
            raise ValueError(f"the table's index has the arms {given!r}; arms are {arms!r}")
        listed = named
    if len(set(listed)) < len(listed):
        names = [bandit.arms[k] for k in listed]
        raise ValueError(f"each arm may be given once; got {names!r}")
    A = len(listed)
    d = bandit.n_features
    if x.ndim not in (2, 3) or x.shape[-2:] != (A, d):
        raise ValueError(
            f"contexts must have a row of {d} features for each of {A} arms, ({A}, {d}) or "
            f"(n, {A}, {d}); got {x.shape}"
        )
    one = x.ndim == 2
    x = finite(x.reshape(-1, A, d), "contexts", MAX_ABS_VALUE)
    if listed == list(range(K)):
        return x, bandit.all_arms, one
    full = np.zeros((len(x), K, d))
    available = np.zeros(K, dtype=np.bool_)
    full[:, listed] = x
    available[listed] = True
    return full, available, one


def of_all(bandit: Bandit, x: Contexts, n: int = 1) -> Array:
    """Return contexts (n, d), or (n, K, d) if arms have features; raise if an arm has no row."""
    if not bandit.of_arms:
        return checked(bandit.encoded(x), bandit.n_features, n)
    z, available, _ = contexts(bandit, x)
    if not available.all():
        missing = [arm for arm, given in zip(bandit.arms, available, strict=True) if not given]
        raise ValueError(f"contexts must have a row for every arm; there is none of {missing!r}")
    return z


def logged(bandit: Bandit, x: Contexts, arm: ArrayLike) -> Array:
    """Return contexts of rounds logged elsewhere, (n, d).

    If arms have features, return (n, K, d). If x has only the chosen arms' features, return (n, d).
    """
    if not bandit.of_arms:
        return checked(bandit.encoded(x), bandit.n_features, np.size(arm))
    x = floats(bandit.encoded(x), "contexts")
    return of_all(bandit, x) if x.ndim > 2 else checked(x, bandit.n_features)


def _encoded(bandit: Bandit, x: Contexts) -> Contexts:
    """Return encoded contexts; a list of lists of rows by name is one of several contexts."""
    if bandit.encoder is None or not (isinstance(x, list) and x and isinstance(x[0], list)):
        return bandit.encoded(x)
    if len({len(rows) if isinstance(rows, list) else None for rows in x}) > 1:
        raise ValueError("contexts must all have as many rows as there are arms")
    return np.stack([bandit.encoded(rows) for rows in x])


def _named(bandit: Bandit, x: object, listed: bool) -> list[int] | None:
    """Return the numbers of the arms that a pandas table's index names; None if it names none.

    listed: whether arms are given, so that an index that only counts rows names none. Raise
    ValueError if it names some arms and something else, or has other texts.
    """
    if not isinstance(x, Table):
        return None
    import pandas as pd  # here, as it takes long to load

    if not isinstance(x, pd.DataFrame):
        return None
    if listed and isinstance(x.index, pd.RangeIndex) and x.index.equals(pd.RangeIndex(len(x))):
        return None
    values = x.index.tolist()
    numbers = [bandit.layout.number(value) for value in values]
    if not any(isinstance(value, str) for value in values) and set(numbers) == {None}:
        return None
    if None in numbers:
        unknown = values[numbers.index(None)]
        raise ValueError(
            f"unknown arm {unknown!r} in the table's index; the arms are "
            f"{reprlib.repr(list(bandit.arms))} (rows go by position after reset_index(drop=True))"
        )
    return [k for k in numbers if k is not None]
