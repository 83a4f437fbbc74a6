"""A monitor of a running experiment: its rounds as they come, and their evaluation so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesbandit.checks import Array, Name, arm_name, arm_names, integer, number
from bayesbandit.ope.evaluate import Evaluation, evaluate
from bayesbandit.ope.logs.columns import distribution
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.question import bounds_of, within_bounds
from bayesbandit.ope.sequences import FIRST_VERDICT_ROUND


class Monitor:
    """A monitor of a running experiment: each arm's value and the best arm, valid at all rounds.

    arms: their names. planned: the number of rounds for which it is tuned. The experiment may stop
        sooner or later.
    level: of the intervals and of the verdict.
    bounds: (lo, hi) of the rewards, known in advance, for exact intervals.

    Add rounds in the order of their decisions. Wait for a missing reward before you add later
    rounds: adding rewards in the order of their arrival would bias the values. The numbers are
    those of `evaluate` for the log of the rounds so far, without contexts. They are computed when
    they are asked for. There is no verdict before round 120.
    """

    def __init__(
        self,
        arms: int | Iterable[Name],
        planned: int,
        level: float = 0.95,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.arms = arm_names(arms)
        self.planned = integer(planned, "planned", least=FIRST_VERDICT_ROUND)
        self.level = number(level, "level", above=0, below=1)
        self.bounds = bounds_of(bounds)
        self._rounds: list[tuple[Name, float, Array]] = []
        self._evaluation: Evaluation | None = None

    def __repr__(self) -> str:
        return f"Monitor({self.t} of {self.planned} rounds, best={self.best()!r})"

    @property
    def t(self) -> int:
        """The number of rounds so far."""
        return len(self._rounds)

    def observe(self, decision: Any, reward: float) -> None:
        """Add a round: a bandit's decision and its reward; raise ValueError for a batch."""
        if np.ndim(decision.arm):
            raise ValueError(
                f"a monitor takes one decision at a time; got a batch of {len(decision.arm)}"
            )
        p = dict(zip(decision.arms, decision.probabilities.tolist(), strict=True))
        self.add(decision.arm, reward, [p.get(arm, 0.0) for arm in self.arms])

    def add(self, arm: Name, reward: float, probabilities: Any) -> None:
        """Add a round: its arm, reward, and every arm's probability at the decision: (K,) in the
        order of `arms`, or by the arms' names in a dict or a Series.

        Raise ValueError if one of them is not valid; the round is not added then.
        """
        arm = arm_name(arm)
        if arm not in self.arms:
            raise ValueError(f"a round's arm must be among {list(self.arms)!r}; got {arm!r}")
        reward = number(reward, "reward")
        within_bounds(np.array([reward]), self.bounds)
        is_named = isinstance(probabilities, Mapping | pd.Series)
        row = pd.DataFrame([probabilities]) if is_named else [probabilities]
        [p] = distribution(row, 1, self.arms, "probabilities")
        if not p.all():
            raise ValueError(f"probabilities must be > 0; got {p.tolist()}")
        self._rounds.append((arm, reward, p))
        self._evaluation = None

    @property
    def log(self) -> Log:
        """The rounds so far. Raise ValueError if there are fewer than two."""
        arm, reward, p = zip(*self._rounds, strict=True) if self._rounds else ((), (), ())
        return Log(None, arm, reward, np.reshape(p, (-1, len(self.arms))), arms=self.arms)

    def evaluation(self) -> Evaluation:
        """Return the evaluation of each arm by the rounds so far, with its confidence sequence.

        Raise ValueError if there are fewer than two.
        """
        if self._evaluation is None:
            self._evaluation = evaluate(
                self.log, self.arms, mean="arm", level=self.level, planned=self.planned,
                sequence="asymptotic" if self.bounds is None else self.bounds,
            )  # fmt: skip
        return self._evaluation

    @property
    def p(self) -> pd.DataFrame:
        """Always-valid p-values of "the row's value is at most the column's"."""
        return self.evaluation().best(1 - self.level).p

    def best(self) -> Name | None:
        """Return the arm with p < α/(K − 1) against every other arm, or None if there is none yet.

        The experiment may stop as soon as there is one.
        """
        return (
            self.evaluation().best(1 - self.level).policy if self.t >= FIRST_VERDICT_ROUND else None
        )
