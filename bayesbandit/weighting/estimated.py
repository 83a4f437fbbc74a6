"""Propensities estimated by a regression of arm on context (paper, Algorithm 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import Array, Name
from bayesbandit.forms import ARM_NAME, Form, Numbers, State
from bayesbandit.history import History, Layout
from bayesbandit.kernels.reweighted import Known, shares
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.weighting.base import mean_and_sd
from bayesbandit.weighting.reweighting import Inverse

if TYPE_CHECKING:
    from bayesbandit.weighting.propensity import InversePropensity

GRADIENT_TOLERANCE = 1e-4  # the gradient's tolerance, in coordinates with a curvature of about 1
MANY_COLUMNS = 100  # with more columns than this and than rows, fit in the span of the rows


class Estimated(Inverse):
    """Multinomial logistic regression of arm on standardised context, penalty ½ ‖coefficients‖²."""

    def __init__(self, balance: InversePropensity) -> None:
        super().__init__(balance)
        self.arms: tuple[Name, ...] = ()
        self.coef = np.empty((0, 0))  # (arms, d + 1), the constant last

    def learn(self, history: History, belief: Belief) -> None:
        names, played = history.by_name()
        x = history.x
        present = np.flatnonzero(np.bincount(played))
        if len(present) < 2:
            return
        mean, sd = mean_and_sd(x)
        with one_thread():
            logits = logistic((x - mean) / sd, np.searchsorted(present, played))
        coef = logits[:, :-1] / sd
        self.arms = tuple(names[k] for k in present)
        self.coef = np.column_stack([coef, logits[:, -1] - coef @ mean])

    def chance_of(self, arm: Name, rows: Array, layout: Layout) -> Array | None:
        if arm not in self.arms:
            return None
        out = np.empty(len(rows))
        shares(rows[:, : layout.n_features], self.coef, self.arms.index(arm), out)
        return out

    def known(self, layout: Layout) -> Known:
        place = [self.arms.index(arm) if arm in self.arms else -1 for arm in layout.arms]
        return Known(logits=self.coef, place=np.array(place))

    def state(self) -> State:
        return super().state() | {"arms": list(self.arms), "coef": self.coef}

    def form(self, state: State, layout: Layout, belief: Belief, total: int) -> Form:
        A = len(state["arms"])
        shape = (A, layout.n_features + 1) if A else (0, 0)
        form = super().form(state, layout, belief, total)
        return form | {"arms": [ARM_NAME], "coef": Numbers(shape)}

    def restore(self, state: State, belief: Belief) -> None:
        super().restore(state, belief)
        self.arms = tuple(state["arms"])
        self.coef = state["coef"]


def logistic(x: Array, label: Array) -> Array:
    """Fit a penalised multinomial logistic regression; return coefficients (A, d + 1).

    x (n, d), label (n,): 0, …, A − 1 with A ≥ 2. The constant's coefficient is last. The result is
    that of scikit-learn's `LogisticRegression` with C = 1; if A = 2, the first row is 0.

    L-BFGS works in the coordinates v = w L, where L Lᵀ = ¼ XᵀX + I is about the curvature at w = 0.
    It then needs few steps even if columns are correlated. With more columns than rows, the
    coefficients lie in the span of the rows, and the fit uses coordinates there.
    """
    from scipy.linalg import cholesky, qr, solve_triangular
    from scipy.optimize import minimize

    n, d = x.shape
    if n < d and d > MANY_COLUMNS:
        span, coordinates = qr(x.T, mode="economic")
        w = logistic(coordinates.T, label)
        return np.column_stack([w[:, :-1] @ span.T, w[:, -1]])
    A = 1 + label.max()
    free = A if A > 2 else 1
    X = np.column_stack([x, np.ones(n)])
    L = cholesky(0.25 * X.T @ X + np.eye(d + 1), lower=True)
    back = solve_triangular(L, np.eye(d + 1), lower=True)
    Z = back @ X.T
    penalty = back[:, :d] @ back[:, :d].T
    logit = np.zeros((A, n))
    sums = np.eye(A)[label].T @ Z.T

    def loss(v: Array) -> tuple[float, Array]:
        v = v.reshape(free, d + 1)
        np.matmul(v, Z, out=logit[-free:])
        top = logit.max(axis=0)
        odds = np.exp(logit - top)
        total = odds.sum(axis=0)
        shrunk = v @ penalty
        # Σ_i log Σ_a e^(logit_ia) − Σ_i logit_{i, label_i} + ½ v'Pv, without overflow
        value = (top + np.log(total)).sum() - np.vdot(v, sums[-free:]) + 0.5 * np.vdot(v, shrunk)
        return float(value), ((odds[-free:] / total) @ Z.T - sums[-free:] + shrunk).ravel()

    stop: Any = {"maxiter": 1000, "gtol": GRADIENT_TOLERANCE, "ftol": 0.0}
    best = minimize(loss, np.zeros(free * (d + 1)), jac=True, method="L-BFGS-B", options=stop)
    return np.vstack([np.zeros((A - free, d + 1)), best.x.reshape(free, d + 1) @ back])
