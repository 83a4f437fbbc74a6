"""Inverse-propensity weights (paper, section 2.3): known at the decision, pooled, or estimated."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from bayesbandit.checks import Name, integer, number, one_of
from bayesbandit.history import History, Layout
from bayesbandit.kernels import linear
from bayesbandit.kernels.rounds import DECISION, GIVEN, UNWEIGHTED, pooled_chances

if TYPE_CHECKING:
    from bayesbandit.beliefs.linear import LinearBelief
    from bayesbandit.policies import Policy


@dataclass(frozen=True)
class Unweighted:
    """Every observation counts alike."""

    source = UNWEIGHTED
    clip = 1.0
    normalize = False

    def estimator(self) -> None:
        """Weights of the past never change."""
        return

    def next_due(self, n: int) -> int:
        """Never, in effect."""
        return sys.maxsize


@dataclass(frozen=True)
class InversePropensity:
    """Weight 1 / max(γ, p): each observation by the inverse of its arm's propensity.

    clip: γ in (0, 1].
    propensity: "decision", the exact probability at the moment of decision (what the theory
        needs); "pooled", the paper's Algorithm 1: the mean over past periods' policies,
        (1/t) Σ_s P_s(a best | x), uniform warm-up periods included; "estimated", the paper's
        Algorithm 2: a multinomial logistic regression of arm on context.
    normalize: scale each arm's weights to mean 1, so that they do not also weaken the penalty.
    refresh: for "pooled" and "estimated": when the pulled arm's past weights are settled anew, each
        time its rows have grown by a share (a float, .25 = 25 %; total cost near linear in the
        rounds) or every m of its rows (an int).
    snapshots: for "pooled": at most so many past posteriors are kept, evenly thinned.
    """

    clip: float = 0.1
    propensity: Literal["decision", "pooled", "estimated"] = "decision"
    normalize: bool = False
    refresh: float | int = 0.25
    snapshots: int = 32

    def __post_init__(self) -> None:
        number(self.clip, "clip", above=0, most=1)
        one_of(self.propensity, "propensity", ("decision", "pooled", "estimated"))
        one_of(self.normalize, "normalize", (True, False))
        if isinstance(self.refresh, float):
            number(self.refresh, "refresh, as a share of growth,", above=0)
        else:
            integer(self.refresh, "refresh, as a number of rows,", least=1)
        integer(self.snapshots, "snapshots", least=2)

    @property
    def source(self) -> int:
        """Where the kernels find an observation's weight."""
        return DECISION if self.propensity == "decision" else GIVEN

    def estimator(self) -> Propensities | None:
        """What estimates past propensities anew; None where they are known for good."""
        if self.propensity == "pooled":
            return Pooled(self.snapshots)
        return Estimated() if self.propensity == "estimated" else None

    def next_due(self, n: int) -> int:
        """The number of an arm's rows at which its weights are next refreshed."""
        if isinstance(self.refresh, float):
            return max(n + 1, math.ceil(n * (1.0 + self.refresh)))
        return n + self.refresh


class Propensities(Protocol):
    """Propensities that are estimated from the past, and change as it grows."""

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        """`n` more periods at round t, decided by this belief, not yet updated by their rewards."""
        ...

    def learn(self, history: History) -> None:
        """Take in the history."""
        ...

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        """P(arm | context) at the contexts of rows (n, width): (n,), None while not known."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as arrays and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        ...


class Pooled:
    """The mean over past periods' policies, each stretch of periods by one snapshot of the belief.

    A snapshot is taken at each refresh and stands for the periods until the next. At the greatest
    number of snapshots every second one is dropped, and its periods go to the one before.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.periods: list[int] = []
        self.beliefs: list[np.ndarray] = []
        self.rules: list[tuple[int, float]] = []
        self.arms: list[tuple[Name, ...]] = []
        self.settings = np.empty(0)
        self.stale = True

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
        if self.stale or self.arms[-1] != layout.arms:
            rule = (policy.kind, policy.param(t))
            if len(self.periods) == self.most:
                self._thin()
            core = linear.core_width(belief.n_columns)
            self.settings = belief.settings
            self.beliefs.append(belief.arms[:, :core].copy())
            self.rules.append(rule)
            self.arms.append(layout.arms)
            self.periods.append(0)
            self.stale = False
        self.periods[-1] += n

    def _thin(self) -> None:
        self.periods = [sum(self.periods[i : i + 2]) for i in range(0, len(self.periods), 2)]
        self.beliefs, self.rules, self.arms = self.beliefs[::2], self.rules[::2], self.arms[::2]

    def learn(self, history: History) -> None:
        self.stale = True

    def of(self, arm: Name, rows: np.ndarray, layout: Layout) -> np.ndarray | None:
        z = np.ascontiguousarray(rows[:, : layout.n_columns])
        p = np.zeros(len(z))
        for periods, belief, (kind, param), arms in zip(
            self.periods, self.beliefs, self.rules, self.arms, strict=True
        ):
            if arm in arms:
                share = periods / sum(self.periods)
                pooled_chances(z, arms.index(arm), belief, self.settings, kind, param, share, p)
        return p

    def state(self) -> dict[str, Any]:
        return {
            "periods": self.periods,
            "rules": [list(rule) for rule in self.rules],
            "arms": [list(arms) for arms in self.arms],
            "stale": self.stale,
            "settings": self.settings,
            **{f"belief{i}": belief for i, belief in enumerate(self.beliefs)},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.periods = list(state["periods"])
        self.rules = [(kind, param) for kind, param in state["rules"]]
        self.arms = [tuple(arms) for arms in state["arms"]]
        self.stale, self.settings = state["stale"], state["settings"]
        self.beliefs = [state[f"belief{i}"] for i in range(len(self.periods))]


class Estimated:
    """Multinomial logistic regression of arm on standardised context, by scikit-learn (C = 1)."""

    def __init__(self) -> None:
        self.arms: tuple[Name, ...] = ()
        self.coef = np.empty((0, 0))  # (arms, d), the constant's column last

    def count(self, belief: LinearBelief, policy: Policy, layout: Layout, t: int, n: int) -> None:
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
        centre, width = x.mean(axis=0), x.std(axis=0)
        width[width <= 1e-12 * np.abs(centre)] = 1.0
        with threadpool_limits(limits=1):  # small matrices suffer badly from more threads
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

    def state(self) -> dict[str, Any]:
        return {"arms": list(self.arms), "coef": self.coef}

    def restore(self, state: dict[str, Any]) -> None:
        self.arms, self.coef = tuple(state["arms"]), state["coef"]
