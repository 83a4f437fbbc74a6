"""Environments, and samples from them: contexts and every arm's potential reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np


def _empty(*shape: int) -> np.ndarray:
    return np.empty(shape)


@dataclass(frozen=True)
class Sample:
    """A sample of all rounds of an environment, so that compared bandits face identical data.

    x: contexts (T, d) in order of arrival; (T, K, d) if each arm has its own features.
    mean, reward: expected and realised rewards (T, K) of every arm.
    warm_x, warm_arm, warm_reward, warm_propensity: m rounds logged before the first decision. They
        are contexts (m, d), or the features of the assigned arms; arm indices (m,); rewards (m,);
        and the propensities (m,) of the assigned arms.
    test_x, test_mean: test contexts (n, d), or (n, K, d), and their mean rewards (n, K), with which
        a policy is evaluated at checkpoints; None without test contexts.
    """

    x: np.ndarray
    mean: np.ndarray
    reward: np.ndarray
    warm_x: np.ndarray = field(default_factory=lambda: _empty(0, 0))
    warm_arm: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    warm_reward: np.ndarray = field(default_factory=lambda: _empty(0))
    warm_propensity: np.ndarray = field(default_factory=lambda: _empty(0))
    test_x: np.ndarray | None = None
    test_mean: np.ndarray | None = None


@runtime_checkable
class Environment(Protocol):
    """A source of samples: its arms' names, the number of features, and a name for tables.

    Without `HasFingerprint`, `repr` must contain all settings of its data, or its class is defined
    outside installed packages: what such an object holds is read.
    """

    @property
    def name(self) -> str: ...

    @property
    def arms(self) -> tuple[str | int, ...]: ...

    @property
    def n_features(self) -> int: ...

    def sample(self, horizon: int | None, rng: np.random.Generator) -> Sample:
        """Draw `horizon` rounds (None: the environment's own number)."""
        ...


@runtime_checkable
class HasOptimum(Protocol):
    """An environment that defines which policies count as the optimal assignment."""

    def solved(self, value: float, agreement: float) -> bool:
        """Return whether a policy counts as optimal.

        value: its mean reward on the test contexts. agreement: how often its arm is best there.
        """
        ...


@runtime_checkable
class HasFingerprint(Protocol):
    """An environment with a text that distinguishes it from others of the same name."""

    @property
    def fingerprint(self) -> str: ...
