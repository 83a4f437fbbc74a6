"""Mean rewards as an affine function of variables, by a map from contexts to features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesbandit.checks import Array


@dataclass(frozen=True)
class FeatureMap:
    """A mean reward (x C + a)'θ + x'c + e of every context x (d,).

    C (d, D), a (D,), c (d,), e (). Of a model over arms, they have an axis of the arms in front.
    """

    C: Array
    a: Array
    c: Array
    e: Array

    @cached_property
    def has_offset(self) -> bool:
        """Whether x'c + e is not 0."""
        return bool(self.c.any() or self.e.any())

    @cached_property
    def is_identity(self) -> bool:
        """Whether the mean reward is x'θ."""
        plain = self.C.ndim == 2 and not (self.has_offset or self.a.any())
        return plain and np.array_equal(self.C, np.eye(len(self.a)))

    def __call__(self, x: Array, arm: Array | None = None) -> tuple[Array, Array]:
        """Return A and b of the mean rewards A θ + b of contexts x (n, d): (n, D) and (n,).

        Of a model over arms, without `arm`, (n, K, D) and (n, K).
        """
        # Σ_j x_j C_j θ + a'θ + x'c + e: features A(x) = x C + a, and an offset b(x) = x'c + e
        if self.C.ndim == 2:
            return x if self.is_identity else x @ self.C + self.a, x @ self.c + self.e
        if arm is None:
            return (x @ self.C).transpose(1, 0, 2) + self.a, x @ self.c.T + self.e
        A = np.empty((len(x), self.C.shape[2]))
        b = np.empty(len(x))
        for k in set(arm.tolist()):
            mine = arm == k
            A[mine] = x[mine] @ self.C[k] + self.a[k]
            b[mine] = x[mine] @ self.c[k] + self.e[k]
        return A, b
