"""Balances, which weight observations. A class with `weights` is one:

    class ByReward:
        def weights(self, history, belief):
            return 1 + abs(history.reward)

It computes the weights of all past rounds again. An optional `schedule` says when: by default, each
reward of an arm reweights this arm's rounds (`Schedule(1)`). Until then new rounds have weight 1.

A balance that weights each arm's rounds separately can subclass `ByArm`. It writes `of_arm`, which
is called only for arms that are due.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import Array
from bayesbandit.history import History
from bayesbandit.kernels.rounds import GIVEN
from bayesbandit.runtime.capabilities import declares
from bayesbandit.schedule import Schedule

EVERY_ROUND = Schedule(1)


@runtime_checkable
class Balance(Protocol):
    """A function from the observed rounds to their weights."""

    def weights(self, history: History, belief: Belief) -> Array:
        """Return precision weights > 0 of all rounds of the history (n,), by the current belief."""
        ...


@runtime_checkable
class Scheduled(Protocol):
    """A balance with a schedule for reweighting past rounds."""

    @property
    def schedule(self) -> Schedule: ...


@runtime_checkable
class Normalized(Protocol):
    """A balance with a setting that rescales each arm's weights to average 1."""

    @property
    def normalize(self) -> bool: ...


def schedule_of(balance: Balance) -> Schedule:
    """Return the schedule by which a balance reweights past rounds."""
    return balance.schedule if isinstance(balance, Scheduled) else EVERY_ROUND


def is_normalized(balance: Balance) -> bool:
    """Return whether each arm's weights are rescaled to average 1."""
    return isinstance(balance, Normalized) and bool(balance.normalize)


def is_known(balance: object) -> bool:
    """Return whether the kernels know a balance.

    They know the toolkit's own, but not a subclass that replaces `weights`.
    """
    return declares(balance, "compiled", ("weights",)) is True


def weight_source(balance: Balance) -> tuple[int, float]:
    """Return where the kernels find an observation's weight, and the clip γ of propensities."""
    ours: Any = balance
    return (ours.source, float(ours.clip)) if is_known(balance) else (GIVEN, 1.0)


def mean_and_sd(x: Array) -> tuple[Array, Array]:
    """Return means and sds (d,) of the columns of x (n, d); constant columns get an sd of ∞."""
    mean = x.mean(axis=0)
    centred = x - mean
    sd = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(x))
    sd[sd <= 1e-12 * np.abs(mean)] = np.inf
    return mean, sd
