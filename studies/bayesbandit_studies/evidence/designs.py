"""The designs of the study: logs of linear Thompson sampling, many replications at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bayesbandit.ope import Log
from bayesbandit.policies import choice_probabilities

K, T, BATCH = 3, 1000, 40
Floor = Callable[[int], float]  # of round t


@dataclass(frozen=True)
class Logged:
    """R logs of T rounds: contexts x (R, T, d), numbers of the arms (R, T), rewards (R, T) and
    probabilities (R, T, K). snapshots: each batch's policy at all contexts (R, B, T, K)."""

    x: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    probabilities: np.ndarray
    snapshots: np.ndarray | None = None

    def logs(self, snapshots: bool = False) -> Iterator[Log]:
        """Yield each replication's log, with the batches of the policy."""
        batch = np.arange(self.arm.shape[1]) // BATCH
        for i, (x, arm, reward, e) in enumerate(
            zip(self.x, self.arm, self.reward, self.probabilities, strict=True)
        ):
            known = self.snapshots[i] if snapshots and self.snapshots is not None else None
            yield Log(x, arm, reward, e, batch=batch, snapshots=known)


def constant(t: int) -> float:
    """Return a minimum probability of 1/30 for all rounds."""
    return 1 / 30


def decaying(t: int) -> float:
    """Return a minimum probability of t^−.7/3 for round t."""
    return float(t**-0.7 / 3)


DESIGNS: dict[str, tuple[bool, Floor]] = {  # whether the linear model is right, and the floor
    "well": (True, constant),
    "mis": (False, constant),
    "mis, decaying": (False, decaying),
    "well, decaying": (True, decaying),
}
APART: dict[str, float] = {  # by how many standard deviations of the noise the arms' values differ
    "apart by 1 sd": 1.0,
    "apart by 10 sd": 10.0,
    "apart by 100 sd": 100.0,
}
NOISE = 0.5  # standard deviation of the rewards


def values(apart: float) -> np.ndarray:
    """Return the values (K,) of the arms: 0, one below it and one above."""
    return apart * NOISE * np.array([0.0, -1.0, 1.0])


def linear(
    R: int, seed: int | np.random.SeedSequence, well: bool = True, floor: Floor = constant,
    T: int = T, noise: float = NOISE, snapshots: bool = False, apart: float = 0.0,
) -> Logged:  # fmt: skip
    """Return R logs of three arms, of value 0 or `apart`.

    well: whether the mean rewards are linear in x, with slopes −.5, 0, .5; if not, quadratic.
    floor: the minimum probability of round t. T: rounds. noise: the rewards' standard deviation.
    apart: see `values`.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(R, T, 1))
    shape = x if well else (x**2 - 1) / np.sqrt(2)
    mu = shape * np.array([-0.5, 0.0, 0.5]) + values(apart)
    f = np.concatenate([np.ones_like(x), x], axis=2)
    return thompson(rng, x, f, mu + noise * rng.normal(size=(R, T, K)), floor, noise, snapshots)


def bernoulli(
    R: int, seed: int | np.random.SeedSequence, p: float = 0.3, T: int = T, floor: Floor = constant
) -> Logged:
    """Return R logs of three arms whose rewards are 1 with probability p, else 0; no contexts.

    T, floor: see `linear`.
    """
    rng = np.random.default_rng(seed)
    y = (rng.random((R, T, K)) < p).astype(np.float64)
    return thompson(rng, np.empty((R, T, 0)), np.ones((R, T, 1)), y, floor, 0.5, False)


def thompson(
    rng: np.random.Generator, x: np.ndarray, f: np.ndarray, y: np.ndarray, floor: Floor,
    noise: float, snapshots: bool,
) -> Logged:  # fmt: skip
    """Return logs of linear Thompson sampling on features f (R, T, D), with rewards y (R, T, K),
    refitted after each batch."""
    R, T, D = f.shape
    B = np.broadcast_to(np.eye(D), (R, K, D, D)).copy()
    b, e = np.zeros((R, K, D)), np.empty((R, T, K))
    arm = np.empty((R, T), dtype=np.int64)
    reward = np.empty((R, T))
    policies = []
    for start in range(0, T, BATCH):
        at = slice(start, start + BATCH)
        now = f[:, at]
        inverse = np.linalg.inv(B)
        asked = f if snapshots else now
        mean = np.einsum("rtd,rkde,rke->rtk", asked, inverse, b)
        sd = noise * np.sqrt(np.einsum("rtd,rkde,rte->rtk", asked, inverse, asked))
        g = floor(start + 1)
        p = g + (1 - K * g) * choice_probabilities(mean, sd)
        p /= p.sum(axis=2, keepdims=True)
        if snapshots:
            policies.append(p)
        e[:, at] = p[:, at] if snapshots else p
        draw = rng.random((R, now.shape[1], 1))
        arm[:, at] = np.minimum((e[:, at].cumsum(axis=2) < draw).sum(axis=2), K - 1)
        reward[:, at] = np.take_along_axis(y[:, at], arm[:, at, None], 2)[..., 0]
        took = np.eye(K)[arm[:, at]]
        B += np.einsum("rtk,rtd,rte->rkde", took, now, now)
        b += np.einsum("rtk,rtd,rt->rkd", took, now, reward[:, at])
    return Logged(x, arm, reward, e, np.stack(policies, axis=1) if snapshots else None)
