"""A monitor of a running experiment, at a constant cost per round."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayesbandit.checks import Name, arm_names, finite, floats, integer, number, rescaled
from bayesbandit.ope.logs.log import next_size
from bayesbandit.ope.means import shrunk
from bayesbandit.ope.question import bounds_of
from bayesbandit.ope.sequences import (
    START,
    STEADY,
    Wealth,
    bet_scores,
    half_width,
    log_e,
    rho2,
)
from bayesbandit.ope.tally import Arms, effective, powers, variance
from bayesbandit.ope.weights import DEFAULT, FAINT, LEAST, POWER, WAIT

GRID = 200  # number of means that the exact sequences of a monitor try


def beside(values: np.ndarray, of: np.ufunc, nothing: Any) -> np.ndarray:
    """Return of(a_k, a_j) of all pairs of values a (K,), and last of(a_k, nothing), (K, K + 1)."""
    return of(values[:, None], np.append(values, nothing))


class Monitor:
    """A monitor of a running experiment: each arm's value and the best arm, valid at all rounds.

    arms: their names. planned: the number of rounds for which it is tuned. The experiment may stop
        sooner or later.
    level: of the intervals and of the verdict.
    bounds: (lo, hi) of the rewards, known in advance, for exact intervals.
    block: after how many rounds weights change. Default: as in a `Log` without batches.

    Add rounds in the order of their decisions. Wait for a missing reward before you add later
    rounds: adding rewards in the order of their arrival would bias the values. The numbers are
    those of `evaluate` for a log without contexts, with `mean="arm"`, StableVar weights and an
    asymptotic sequence. There is no verdict before round 120, nor before about 20 rewards make up
    the variance within arms.
    """

    def __init__(
        self,
        arms: int | Iterable[Name],
        planned: int,
        level: float = 0.95,
        bounds: tuple[float, float] | None = None,
        block: int | None = None,
    ) -> None:
        self.arms = arm_names(arms)
        self.planned = integer(planned, "planned", least=START)
        self.alpha = 1 - number(level, "level", above=0, below=1)
        self.block = None if block is None else integer(block, "block", least=1)
        self.bounds = bounds_of(bounds)
        self.index = {arm: k for k, arm in enumerate(self.arms)}
        K = len(self.arms)
        self.t, self.left, self.size = 0, 1, 1  # rounds; how many are left in the block; its size
        # number and sum of rewards less the first, by arm, and the sum of squares
        self.count, self.total, self.total2 = np.zeros(K), np.zeros(K), 0.0
        self.inverse, self.average, self.phi = np.zeros(K), np.zeros(K), np.ones((K, K + 1))
        # of pairs of arms (K, K), and, in the last column, of an arm and one that is always 0: its
        # value. Sums of `powers`; and Σh²w²(Y − m)², Σg, Σgm and Σgm², g = h²/e, of the first arm
        self.sums, self.parts = np.zeros((10, K, K + 1)), np.zeros((4, K, K + 1))
        self.w, self.w2 = np.zeros(K), np.zeros(K)  # Σw, Σw² of "always this arm"
        # by arm Σ(Y − mean)², Σ(Y − m)², and powers of u, Y less the mean so far
        self.squares, self.wrong, self.u2, self.u4 = np.zeros((4, K))
        self.first = 0.0
        self.rho: np.ndarray | None = None
        self.log_E = np.zeros((K, K))
        self.wealth = [
            [Wealth(1.0, self.alpha, GRID) for _ in range(2)]
            for _ in range(K if self.bounds else 0)
        ]

    def __repr__(self) -> str:
        return f"Monitor({self.t} of {self.planned} rounds, best={self.best()!r})"

    def observe(self, decision: Any, reward: float) -> None:
        """Add a round: a bandit's decision and its reward."""
        self.add(decision.arm, reward, decision.probabilities)

    def add(self, arm: Name, reward: float, probabilities: Any) -> None:
        """Add a round: its arm, reward, and every arm's probability at the decision (K,)."""
        if not isinstance(arm, Hashable) or arm not in self.index:
            raise ValueError(f"a round's arm must be among {list(self.arms)!r}; got {arm!r}")
        lo, hi = (-np.inf, np.inf) if self.bounds is None else self.bounds
        y = number(reward, "reward")
        a = self.index[arm]
        K = len(self.arms)
        if not lo <= y <= hi:
            raise ValueError(f"rewards must lie within [{lo:g}, {hi:g}]; got {y:g}")
        e = finite(floats(probabilities, "probabilities"), "probabilities")
        if e.shape != (K,) or not (e > 0).all():
            raise ValueError(f"probabilities must be ({K},), > 0 and sum to 1; got {e.tolist()}")
        e = rescaled(e[None], "probabilities")[0]
        if self.t == 0:  # the first round has its own φ
            self.phi, self.first = beside(1 / e, np.add, 0.0), y
        # less rounding error
        u = y - self.first
        m = shrunk(self.count, self.total, self.total2)
        y_m = u - m[a]
        scores = m.copy()
        scores[a] += y_m / e[a]
        seen = beside((self.count > 0) | (self.t >= WAIT), np.logical_and, True)
        h = np.where(seen, 1.0, FAINT) * self.phi ** -POWER[DEFAULT]
        self.sums += powers(h, beside(scores, np.subtract, 0.0))
        self.parts[0, a] += h[a] ** 2 * (y_m / e[a]) ** 2
        g = h**2 / e[:, None]
        self.parts[1:] += [g * m[:, None] ** j for j in range(3)]
        self.w[a] += 1 / e[a]
        self.w2[a] += 1 / e[a] ** 2
        if self.bounds is not None:
            mean = self.first * (self.t > 0) + m
            self._bet(a, (y - lo) / (hi - lo), e, np.clip((mean - lo) / (hi - lo), 0, 1))
        self.wrong[a] += y_m**2 * (self.count[a] > 0)
        self._next(a, u, e)
        self._vary(a, u)
        if self.t >= START:
            self._test()

    def values_table(self) -> pd.DataFrame:
        """Return a table by arm: the estimate, and low and high of its confidence sequence.

        The ends of an asymptotic sequence are NaN before the first verdict, and those of an exact
        one once it rejects every mean.
        """
        H, S = self.sums[:2, :, -1]
        v = self.first + S / H if self.t else np.full(len(self.arms), np.nan)
        if self.bounds is not None:
            lo, hi = self.bounds
            low, high = (lo + (hi - lo) * end for end in self._ends())
        elif self.rho is not None:
            half = half_width(H, self._variances()[:, -1], self.rho[:, -1], self.alpha)
            low = v - half
            high = v + half
        else:
            low = high = np.full(len(self.arms), np.nan)
        columns = {"estimate": v, "low": low, "high": high}
        return pd.DataFrame(columns, index=pd.Index(self.arms, name="arm"))

    @property
    def p(self) -> pd.DataFrame:
        """Always-valid p-values of "the row's value is at most the column's"."""
        p = np.exp(-self.log_E)
        np.fill_diagonal(p, np.nan)
        return pd.DataFrame(p, index=list(self.arms), columns=list(self.arms))

    def best(self) -> Name | None:
        """Return the arm with p < α/(K − 1) against every other arm, or None if there is none yet.

        The experiment may stop as soon as there is one.
        """
        K = len(self.arms)
        enough = self.log_E > np.log(max(K - 1, 1) / self.alpha)
        wins = np.flatnonzero((enough | np.eye(K, dtype=bool)).all(axis=1))
        return self.arms[wins[0]] if K > 1 and wins.size else None

    def _next(self, a: int, y: float, e: np.ndarray) -> None:
        """Count the round and its reward y, less the first; after a block, update weights."""
        self.t += 1
        self.count[a] += 1
        self.total[a] += y
        self.total2 += y**2
        self.inverse += 1 / e
        self.left -= 1
        if self.left == 0:
            self.average += self.inverse
            cost = np.maximum(self.inverse / self.size, LEAST * self.average / self.t)
            self.phi = beside(cost, np.add, 0.0)
            self.inverse = np.zeros_like(e)
            if self.block is None:
                self.size = next_size(self.size, self.t)
            else:
                self.size = min(2 * self.size, self.block)
            self.left = self.size

    def _vary(self, a: int, y: float) -> None:
        """Add a reward, less the first, to the sums for the variance within arm a, which has it."""
        n = self.count[a]
        u = y - self.total[a] / n
        self.squares[a] += u**2 * n / max(n - 1, 1)
        self.u2[a] += u**2
        self.u4[a] += u**4

    def _variances(self) -> np.ndarray:
        """Return V of pairs and values (K, K + 1), as in `Tally`."""
        seen, C, C1, C2 = self.parts
        each = (self.total / np.maximum(self.count, 1), self.count, self.squares, self.wrong)
        mean, n, own, left = (of[:, None] for of in each)
        far = np.maximum(mean**2 * C - 2 * mean * C1 + C2, 0.0)
        arms = Arms(n, own, left, self.u2[:, None], self.u4[:, None], C, far, seen)
        excess = arms.promised(self.squares.sum() / self.t) - seen
        excess[:, :-1] += excess[:, :-1].T.copy()
        size = beside(effective(self.w, self.w2), np.minimum, np.inf)
        V = variance(self.sums, excess, size)[1]
        np.fill_diagonal(V, 1.0)  # an arm and itself: any number
        return V

    def _test(self) -> None:
        """Update the evidence for each pair: its largest value so far."""
        V = self._variances()
        if self.rho is None:
            if effective(self.u2.sum(), self.u4.sum()) < STEADY:
                return
            self.rho = rho2(1.0, self.alpha) / (V * (self.planned / 2 / self.t))
        E = log_e(self.sums[1, :, :-1], V[:, :-1], self.rho[:, :-1])
        np.fill_diagonal(E, 0.0)
        np.maximum(self.log_E, E, out=self.log_E)

    def _bet(self, a: int, r: float, e: np.ndarray, m: np.ndarray) -> None:
        """Bet on a round: arm a, reward r, probabilities e (K,), means m (K,); r, m in [0, 1]."""
        one = np.array([a])
        for k, (above, below) in enumerate(self.wealth):
            pi = np.eye(len(e))[[k]]
            for wealth, y, means in ((above, r, m), (below, 1 - r, 1 - m)):
                one_r = np.array([y])
                wealth.add(bet_scores(pi, e[None], e[[a]], one, one_r, means[None], 1.0))

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends (K,) of the exact sequences, for rewards scaled to [0, 1]."""
        low = np.array([above.low for above, _ in self.wealth])
        high = 1 - np.array([below.low for _, below in self.wealth])
        return np.where(low > high, np.nan, low), np.where(low > high, np.nan, high)
