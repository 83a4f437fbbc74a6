"""Oracles, which find the best policy for given gains by cost-sensitive classification.

For contexts x (n, d), `oracle.on(x)` returns a function. It takes gains (n, K), one for each
context and arm, and returns a policy whose total gain is (nearly) the largest. A policy has
`scores(x) -> (n, K)` and chooses the arm of the largest score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bayesbandit.checks import number
from bayesbandit.extend import savable, settings_repr

Array = np.ndarray
# share of a column's sum of squares; rounding over a million rows is smaller
DIAGONAL_SHARE = 1e-11


class Scorer(Protocol):
    """A policy that chooses the arm of the largest score."""

    def scores(self, x: Array) -> Array:
        """Return scores (n, K) at contexts x (n, d)."""
        ...


class Oracle(Protocol):
    """An algorithm that finds policies of large gain."""

    def on(self, x: Array) -> Callable[[Array], Scorer]:
        """Return a function from gains (n, K) to a policy, for contexts x (n, d)."""
        ...


@dataclass(frozen=True, eq=False)
class Linear:
    """A policy with scores x'θ_a + c_a; coef (d + 1, K), the constants last."""

    coef: Array

    def scores(self, x: Array) -> Array:
        return np.asarray(x @ self.coef[:-1] + self.coef[-1])


@savable
@dataclass(frozen=True)
class LinearOracle:
    """An oracle that regresses each arm's gains on the contexts.

    ridge: λ, the penalty.
    """

    __repr__ = settings_repr

    ridge: float = 1.0

    def __post_init__(self) -> None:
        number(self.ridge, "ridge", above=0)

    def on(self, x: Array) -> Callable[[Array], Linear]:
        from scipy.linalg import cho_factor, cho_solve

        z = np.column_stack([x, np.ones(len(x))])
        factor = cho_factor(penalised(z.T @ z, self.ridge))
        return lambda gains: Linear(cho_solve(factor, z.T @ gains))


def penalised(G: Array, penalty: float) -> Array:
    """Return moments G (D, D) plus a penalty and a tiny share of G's diagonal.

    The result is positive definite despite rounding, also with equal columns of any size.
    """
    return G + np.diag(penalty + DIAGONAL_SHARE * np.diag(G))
