"""The rounds of a log, as a bandit learns them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bayesbandit import checks
from bayesbandit.checks import Array, Name
from bayesbandit.tables.encoder import Encoder

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit


@runtime_checkable
class Logged(Protocol):
    """A log of n rounds, as `bb.ope.Log`.

    x: contexts (n, d) as numbers, with the names of their features and the encoder that made them,
    if there is one. of_table: whether they are a table's columns, and not from a bandit's history.
    arm, reward, propensity, time: (n,).
    """

    x: Array
    features: tuple[str, ...]
    encoder: Encoder | None
    of_table: bool
    reward: Array
    propensity: Array
    time: Array | None

    @property
    def arm(self) -> Array: ...


def rounds_of(bandit: Bandit, log: object, time: object) -> tuple[Array, Array, Array, Array, Any]:
    """Return the rounds of a log that a bandit is to learn: contexts (n, d) as numbers, and names
    of arms, rewards, propensities and times, each (n,).

    time: when they were decided, instead of the log's times. Raise TypeError for what is no log,
    and ValueError if its contexts are not those of the bandit, or if rewards or needed times are
    missing.
    """
    if not isinstance(log, Logged):
        raise TypeError(
            "update takes contexts, arm and reward; or a log alone, as bb.ope.Log.of(…) makes one; "
            f"got a {type(log).__name__} alone"
        )
    check_contexts(bandit, log)
    missing = np.isnan(log.reward)
    if missing.any():
        raise ValueError(
            f"{int(missing.sum())} of {len(missing)} rewards are missing (NaN), and no bandit can "
            "learn them: log[~np.isnan(log.reward)] leaves them out, and log.within(delay, "
            "default=0) says what no reward in time means"
        )
    by_time = bandit.belief.clock == "time"
    time = log.time if time is None and by_time else time
    if by_time and time is None:
        raise ValueError(
            f'{checks.shown(bandit.model)} forgets with clock="time", and the log has no times: '
            "give the log time=, or update(log, time=…)"
        )
    return log.x, log.arm, log.reward, np.minimum(log.propensity, 1.0), time


def check_contexts(bandit: Bandit, log: Logged) -> None:
    """Raise ValueError if the contexts of a log are not those of a bandit.

    Both have the same encoder, or features of the same names; or the bandit takes so many numbers.
    """
    encoder = bandit.encoder
    d = log.x.shape[1]
    if encoder is None:
        if d != bandit.n_features or bandit.of_arms:
            what = "features of each arm" if bandit.of_arms else f"{bandit.n_features} features"
            raise ValueError(f"the bandit takes {what}; the log has {list(log.features)!r}")
        if log.encoder is not None:
            warnings.warn(
                "the bandit learns contexts that the log's encoder made, and has none itself: make "
                "it with encoder=log.encoder, or give it log.encoder.transform(x) later",
                stacklevel=5,  # of `Bandit.update`
            )
    else:
        check_encoder(bandit, log, by_name=True)


def columns_in_order(
    bandit: Bandit, columns: Sequence[Name], named: Sequence[Name] = ()
) -> Sequence[Name]:
    """Return the columns of contexts in the order in which a bandit without an encoder takes them.

    columns: those of a table without a role. named: those that the user names, in order. Without
    them it takes x0 … x(d − 1), in any order; a new bandit takes any, as they stand. Raise
    ValueError for others: their order would be a guess.
    """
    if bandit.encoder is not None:
        return columns
    d = bandit.n_features
    numbered = checks.feature_names(d)
    order = named or (numbered if {*columns} == {*numbered} else columns)
    is_told = bool(named) or order is numbered or d == 1
    if len(order) != d or not (is_told or bandit.history.total == 0):
        raise ValueError(
            f"the bandit has no encoder and takes {d} numbers; the log has the contexts "
            f"{list(columns)!r}: name a column for each number, in order, features=[…] (a command: "
            "--column context=NAME for each). Columns x0, x1, … need no names"
        )
    return order


def check_encoder(bandit: Bandit, log: Logged, by_name: bool = False) -> None:
    """Raise ValueError if a bandit and a log have different encoders.

    A log without one must not be of a table's columns as they are. Its features have the encoder's
    names, or unless `by_name` they are those of an array.
    """
    encoder = bandit.encoder
    if encoder is None or encoder == log.encoder:
        return
    names = tuple(log.features)
    is_array = list(names) == checks.feature_names(len(names))
    is_named = names == encoder.features or (is_array and not by_name)
    if log.encoder is None and not log.of_table and is_named:
        return
    raise ValueError(
        "the log's contexts were not made by the bandit's encoder: give it to the log, as "
        "bb.ope.read_log(path, encoder=bandit.encoder) or bb.ope.Log.of(frame, "
        f"encoder=bandit.encoder); the bandit has {list(encoder.features)!r}, the log "
        f"{list(log.features)!r}"
    )
