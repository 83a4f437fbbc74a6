"""The oracle, which finds the best policy for given gains by least squares.

A policy chooses the arm of the largest score x'θ_a + c_a. Its coefficients are (d + 1, K), the
constants last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesbandit.checks import Array

# share of a column's sum of squares; rounding over a million rows is smaller
DIAGONAL_SHARE = 1e-11


def scores(x: Array, coef: Array) -> Array:
    """Return scores (…, n, K) at contexts x (n, d) by policies' coefficients (…, d + 1, K)."""
    return np.asarray(x @ coef[..., :-1, :] + coef[..., -1:, :])


def least_squares(x: Array, ridge: float = 1.0) -> Callable[[Array], Array]:
    """Return a function from gains (n, K) at contexts x (n, d) to a policy of (nearly) the largest
    total gain: the coefficients of each arm's ridge regression. ridge: λ."""
    from scipy.linalg import cho_factor, cho_solve

    z = np.column_stack([x, np.ones(len(x))])
    factor = cho_factor(penalised(z.T @ z, ridge))
    return lambda gains: np.ascontiguousarray(cho_solve(factor, z.T @ gains))  # as files hold them


def penalised(G: Array, penalty: float) -> Array:
    """Return moments G (D, D) plus a penalty and a tiny share of G's diagonal.

    The result is positive definite despite rounding, also with equal columns of any size.
    """
    return G + np.diag(penalty + DIAGONAL_SHARE * np.diag(G))
