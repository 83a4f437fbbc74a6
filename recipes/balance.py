"""A custom balance: inverse propensities raised to a power."""

from dataclasses import dataclass

import numpy as np

import bayesbandit as bb


@bb.extend.savable
@dataclass(frozen=True)
class Tempered:
    """Weights max(clip, p)^−power: a power of 1 balances fully, 0 does not balance."""

    power: float = 0.5
    clip: float = 0.05
    refit_every: float | int = 0.25

    @property
    def schedule(self):
        return bb.extend.Schedule(self.refit_every)  # when an arm's rounds have grown by a quarter

    def weights(self, history, belief):
        p = np.nan_to_num(history.propensity, nan=1.0)  # NaN: the log has no propensity
        return np.maximum(self.clip, p) ** -self.power
