"""What a bandit faces: contexts and every arm's potential reward, drawn whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np


def _nothing(*shape: int) -> np.ndarray:
    return np.empty(shape)


@dataclass(frozen=True)
class Sample:
    """One environment drawn whole, so that compared bandits face identical data.

    x: (T, d) contexts in order of arrival, or (T, K, d) where each arm has features of its own.
    mean, reward: (T, K) expected and realised rewards of every arm. warm_*: m rounds logged before
    the first decision: contexts (m, d), or the features of the arms assigned, arm indices (m,),
    rewards (m,) and the propensities (m,) they were assigned with. test_x, test_mean: (n, d), or
    (n, K, d), and (n, K), fresh contexts on which a policy is judged on the way; None where there
    are none.
    """

    x: np.ndarray
    mean: np.ndarray
    reward: np.ndarray
    warm_x: np.ndarray = field(default_factory=lambda: _nothing(0, 0))
    warm_arm: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    warm_reward: np.ndarray = field(default_factory=lambda: _nothing(0))
    warm_propensity: np.ndarray = field(default_factory=lambda: _nothing(0))
    test_x: np.ndarray | None = None
    test_mean: np.ndarray | None = None


@runtime_checkable
class Environment(Protocol):
    """A source of samples: its arms' names, the number of features, and a name for tables.

    One that has test contexts may also have an optimum (`HasOptimum`). One whose `repr` does not
    say all that decides its numbers has a `fingerprint` (`HasFingerprint`).
    """

    @property
    def name(self) -> str: ...

    @property
    def arms(self) -> tuple[str | int, ...]: ...

    @property
    def n_features(self) -> int: ...

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Draw `horizon` rounds (None: as many as the environment has by itself)."""
        ...


@runtime_checkable
class HasOptimum(Protocol):
    """An environment that says which policies count as the optimal assignment."""

    def solved(self, value: float, agreement: float) -> bool:
        """Return whether a policy is optimal that has this mean reward, and this agreement with the
        best arm, on the test contexts."""
        ...


@runtime_checkable
class HasFingerprint(Protocol):
    """An environment that says in a text what tells it from another of its name."""

    @property
    def fingerprint(self) -> str: ...
