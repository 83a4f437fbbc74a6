"""Propensities by a regression of arm on context (paper, Algorithm 2)."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np

from bayesbandit.balance.base import measured
from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import Name
from bayesbandit.history import History, Layout
from bayesbandit.policies import Policy


class Estimated:
    """Multinomial logistic regression of arm on standardised context, by scikit-learn (C = 1)."""

    def __init__(self) -> None:
        self.arms: tuple[Name, ...] = ()
        self.coef = np.empty((0, 0))  # (arms, d), the constant's column last

    def count(self, belief: Belief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        pass

    def learn(self, history: History) -> None:
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        names, x = history.names(), history.x
        code = np.array([names.index(name) for name in names])  # an arm that came back is one arm
        arm = code[history.played()]
        if x.shape[1] == 0:
            x = np.zeros((len(x), 1))
        present = np.unique(arm)
        if len(present) < 2:
            return
        centre, width = measured(x)
        width[np.isinf(width)] = 1.0
        with threadpool_limits(limits=1), warnings.catch_warnings():  # one thread: small matrices
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            fit = LogisticRegression(max_iter=1000).fit((x - centre) / width, arm)
        coef, constant = fit.coef_ / width, fit.intercept_ - fit.coef_ @ (centre / width)
        if len(present) == 2:  # one logit, of the second against the first
            coef, constant = np.vstack([0 * coef, coef]), np.append(0.0, constant)
        self.arms = tuple(names[k] for k in present)
        coef = coef[:, : history.layout.n_features]
        self.coef = np.ascontiguousarray(np.column_stack([coef, constant]))

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        if arm not in self.arms:
            return None
        logits = rows[:, : layout.n_features] @ self.coef[:, :-1].T + self.coef[:, -1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds[:, self.arms.index(arm)] / odds.sum(axis=1)

    def fork(self) -> Estimated:
        return copy(self)

    def state(self) -> dict[str, Any]:
        return {"arms": list(self.arms), "coef": self.coef}

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        self.arms, self.coef = tuple(state["arms"]), state["coef"]
