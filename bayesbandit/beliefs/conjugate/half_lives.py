"""`half_life="auto"` of a probability or a rate: the half-life that predicts best decides."""

from __future__ import annotations

import numpy as np

from bayesbandit.beliefs.conjugate.belief import ConjugateBelief
from bayesbandit.beliefs.half_lives import HalfLives
from bayesbandit.beliefs.memory import GONE
from bayesbandit.kernels.conjugate import fading

Array = np.ndarray


class ConjugateHalfLives(HalfLives[ConjugateBelief]):
    """Beliefs about a probability or a rate for each arm, by several half-lives."""

    clock_at = fading.CLOCK

    def advance(self, tick: float) -> None:
        for member in self.each():
            member.advance(tick)

    def _learn(self, tick: Array, x: Array, arm: Array, reward: Array, weight: Array) -> None:
        self.members[0].check_rewards(x, reward)
        rates = np.array([member.memory.rate for member in self.members])
        rows = [np.ascontiguousarray(v) for v in (tick, arm, reward, weight)]
        fading.learn_all(self.arms, rates, *rows, self.settings[0], GONE, self.log_weight)
