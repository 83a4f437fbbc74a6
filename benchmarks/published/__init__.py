"""Models that others have published, as their authors write them, and how they are handed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm

import bayesbandit as bb


@dataclass(frozen=True)
class Handed:
    """A PyMC model with its rows, and the reward model that is made of it.

    x (n, d), reward (n,), arm (n,): numbers 0 … K − 1, None if it has no arms. settings: how plain
    PyMC samples it.
    """

    original: pm.Model
    model: bb.RewardModel
    x: np.ndarray
    reward: np.ndarray
    arm: np.ndarray | None = None

    @property
    def n_arms(self) -> int | None:
        """The number of arms, K."""
        return None if self.arm is None else int(self.arm.max()) + 1


@dataclass(frozen=True)
class Case:
    """A published model. rewrite: "none", or what had to be changed, and why."""

    name: str
    source: str
    rewrite: str
    build: Callable[[], Handed]


CASES: dict[str, Case] = {}


def published(
    source: str, rewrite: str = "none"
) -> Callable[[Callable[[], Handed]], Callable[[], Handed]]:
    """Add a function that builds a case to `CASES`; its name is that of the case."""

    def add(build: Callable[[], Handed]) -> Callable[[], Handed]:
        name = build.__name__
        CASES[name] = Case(name, source, rewrite, build)
        return build

    return add
