"""Propensities by a regression of arm on context (paper, Algorithm 2)."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np

from bayesbandit.balance.base import measured
from bayesbandit.beliefs.base import Belief
from bayesbandit.checks import Name
from bayesbandit.engines.base import one_thread
from bayesbandit.history import History, Layout
from bayesbandit.kernels.reweighted import shares
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
        with one_thread(), warnings.catch_warnings():
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
        out = np.empty(len(rows))
        shares(rows[:, : layout.n_features], self.coef, self.arms.index(arm), out)
        return out

    def arrays(self, layout: Layout) -> dict[str, np.ndarray]:
        place = [self.arms.index(arm) if arm in self.arms else -1 for arm in layout.arms]
        return {"logits": self.coef, "place": np.array(place)}

    def fork(self) -> Estimated:
        return copy(self)

    def state(self) -> dict[str, Any]:
        return {"arms": list(self.arms), "coef": self.coef}

    def restore(self, state: dict[str, Any], belief: Belief) -> None:
        self.arms, self.coef = tuple(state["arms"]), state["coef"]
