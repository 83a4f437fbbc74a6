"""Who finds the best policy for given gains: the oracle of cost-sensitive classification.

An oracle is asked `on(x)` for contexts (n, d), and answers with a function from gains (n, K), one
for each context and arm, to a policy whose gains are (nearly) largest: something with
`scores(x) -> (n, K)`, which chooses the arm of the largest score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesbandit import savable
from bayesbandit.checks import number

Array = np.ndarray
ROUNDING = 1e-11  # of a column's square, more than sums of a million rows lose


class Scorer(Protocol):
    """A policy: the arm of the largest score."""

    def scores(self, x: Array) -> Array:
        """At contexts x (n, d): (n, K)."""
        ...


class Oracle(Protocol):
    """Finds policies of large gain."""

    def on(self, x: Array) -> Callable[[Array], Scorer]:
        """For contexts x (n, d): from gains (n, K) to a policy."""
        ...


@dataclass(frozen=True, eq=False)
class Linear:
    """Scores x'θ_a + c_a; coef (d + 1, K), the constants last."""

    coef: Array

    def scores(self, x: Array) -> Array:
        return np.asarray(x @ self.coef[:-1] + self.coef[-1])


@savable
@dataclass(frozen=True)
class LinearOracle:
    """Each arm's gains by least squares on the contexts, penalised by λ = penalty."""

    penalty: float = 1.0

    def __post_init__(self) -> None:
        number(self.penalty, "penalty", above=0)

    def on(self, x: Array) -> Callable[[Array], Linear]:
        from scipy.linalg import cho_factor, cho_solve

        z = np.column_stack([x, np.ones(len(x))])
        factor = cho_factor(penalised(z.T @ z, self.penalty))
        return lambda gains: Linear(cho_solve(factor, z.T @ gains))


def penalised(G: Array, penalty: float) -> Array:
    """Moments G (D, D) with a penalty, of each column's own size besides: what rounding leaves of
    columns that are equal, however large, is positive."""
    return G + np.diag(penalty + ROUNDING * np.diag(G))


@dataclass(frozen=True)
class Fitted:
    """Scores by a fitted regressor of K outputs."""

    estimator: Any
    n_arms: int

    def scores(self, x: Array) -> Array:
        return np.asarray(self.estimator.predict(x), dtype=np.float64).reshape(len(x), self.n_arms)


@dataclass(frozen=True)
class RegressorOracle:
    """Gains by a scikit-learn regressor of several outputs, which is cloned for each policy."""

    estimator: Any

    def on(self, x: Array) -> Callable[[Array], Fitted]:
        from sklearn.base import clone

        return lambda gains: Fitted(clone(self.estimator).fit(x, gains), gains.shape[1])
