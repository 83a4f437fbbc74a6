"""A custom policy: greedy, with exploration that decreases with time."""

from dataclasses import dataclass

import numpy as np

import bayesbandit as bb


@bb.extend.savable
@dataclass(frozen=True)
class Annealed:
    """Any arm with probability 1/√t, all equally likely; else the largest posterior mean."""

    def probabilities(self, prediction, t=1):
        mean = prediction.mean
        best = mean == mean.max(axis=1, keepdims=True)
        explore = np.reshape(t, (-1, 1)) ** -0.5
        return explore / mean.shape[1] + (1 - explore) * best / best.sum(axis=1, keepdims=True)
