"""Environments, and samples from them: contexts and every arm's potential reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from bayesbandit.checks import MAX_ABS_VALUE, Array, finite, propensities


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

    x: Array
    mean: Array
    reward: Array
    warm_x: Array = field(default_factory=lambda: np.empty((0, 0)))
    warm_arm: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    warm_reward: Array = field(default_factory=lambda: np.empty(0))
    warm_propensity: Array = field(default_factory=lambda: np.empty(0))
    test_x: Array | None = None
    test_mean: Array | None = None


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


def check_sample(sample: object, environment: Environment, horizon: int | None) -> None:
    """Raise an error, named after the environment, for a sample that cannot be played.

    horizon: the rounds asked for. There may be fewer: a data set ends.
    """
    try:
        if not isinstance(sample, Sample):
            raise TypeError(f"must return a Sample; got a {type(sample).__name__}")
        _check_arrays(sample, len(environment.arms), environment.n_features, horizon)
    except (TypeError, ValueError) as error:
        raise type(error)(f"`sample` of environment {environment.name!r}: {error}") from error


def _check_arrays(sample: Sample, K: int, d: int, horizon: int | None) -> None:
    """Raise an error unless the arrays of a sample have finite numbers and the right shapes."""
    T = len(_numbers(sample.x, "x"))
    m = len(_numbers(sample.warm_arm, "warm_arm"))
    if T == 0 or (horizon is not None and horizon < T):
        most = "1 round or more" if horizon is None else f"1 to {horizon:,} rounds"
        raise ValueError(f"x must have {most}; got {T:,}")
    shapes: dict[str, list[tuple[int, ...]]] = {
        "x": [(T, d), (T, K, d)],
        "mean": [(T, K)],
        "reward": [(T, K)],
    }
    if m:
        shapes |= {"warm_x": [(m, d)], "warm_arm": [(m,)], "warm_reward": [(m,)]}
    if (sample.test_x is None) != (sample.test_mean is None):
        raise ValueError("test_x and test_mean must be given together; one is None")
    if sample.test_x is not None:
        n = len(_numbers(sample.test_x, "test_x"))
        shapes |= {"test_x": [(n, d), (n, K, d)], "test_mean": [(n, K)]}
    for what, allowed in shapes.items():
        array = _numbers(vars(sample)[what], what)
        if array.shape not in allowed:
            shown = " or ".join(map(str, allowed))
            raise ValueError(f"{what} must have shape {shown}; got {array.shape}")
        finite(array, what, MAX_ABS_VALUE)
    if m:
        propensities(sample.warm_propensity, m)
        known = np.arange(K if sample.warm_arm.dtype.kind in "iu" else 0)
        if (unknown := sample.warm_arm[~np.isin(sample.warm_arm, known)]).size:
            raise ValueError(f"warm_arm must be integers from 0 to {K - 1}; got {unknown[0]}")


def _numbers(array: object, what: str) -> Array:
    """Return an array of numbers; raise TypeError for anything else."""
    if not isinstance(array, np.ndarray) or array.ndim == 0 or array.dtype.kind not in "iuf":
        shown = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{what} must be a NumPy array of numbers; got {shown}")
    return array
