"""A balance of one's own: inverse propensities, raised to a power."""

from dataclasses import dataclass

import numpy as np

import bayesbandit as bb


@bb.savable
@dataclass(frozen=True)
class Tempered:
    """Weights max(clip, p)^−power: 1 balances in full, 0 not at all."""

    power: float = 0.5
    clip: float = 0.05
    schedule = bb.Schedule(0.25)  # the past is weighed anew each time an arm has grown by a quarter

    def weights(self, history, belief):
        p = np.nan_to_num(history.propensity, nan=1.0)  # NaN: the log had none
        return np.maximum(self.clip, p) ** -self.power

    provisional = weights  # and so does a new round until then
