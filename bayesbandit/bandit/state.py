"""What a bandit consists of: plain attributes, and the names of its arms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from threading import RLock
from typing import Any

import numpy as np

from bayesbandit import checks
from bayesbandit.beliefs.base import Belief, Declaring, Kernel
from bayesbandit.checks import Name
from bayesbandit.history import History, Layout
from bayesbandit.tables.encoder import Encoder, numbers_only
from bayesbandit.tables.inputs import is_row, named
from bayesbandit.weighting.base import Balance
from bayesbandit.weighting.reweighting import Reweighting


class BanditState:
    """A bandit between two calls.

    encoder: what makes contexts of rows of a table, where they are none. spec: what makes the
    belief. rule, param: the compiled rule of the policy, and its number and
    least probability where they never change. has_kernel: whether
    the belief has a compiled way, that no subclass changed.
    source, clip: where they find an observation's weight. reweighting: what settles past weights.
    stream: a block of normals of `rng`, with the number of contexts decided so far. deciding,
    learning: what the compiled calls take (see `forks.py`).
    """

    encoder: Encoder | None = None
    spec: Any
    belief: Belief
    policy: Any
    rule: int | None
    param: tuple[float, float] | None
    layout: Layout
    all_arms: np.ndarray  # (K,) True: all are available
    deciding: tuple[Any, ...] | None
    learning: tuple[Any, ...] | None
    lock: RLock
    balance: Balance
    seed: np.random.SeedSequence
    has_kernel: bool
    source: int
    clip: float
    reweighting: Reweighting | None
    history: History
    rng: np.random.Generator
    stream: np.ndarray

    def __repr__(self) -> str:
        return (
            f"Bandit({len(self.arms)} arms, {self.spec}, {self.policy}, {self.balance}, "
            f"n_features={self.n_features}{'' if self.encoder is None else f', {self.encoder}'})"
        )

    @property
    def t(self) -> int:
        """Contexts decided so far."""
        return int(self.stream[-1])

    @t.setter
    def t(self, t: int) -> None:
        self.stream[-1] = t

    @property
    def model(self) -> Any:
        """The reward model: `Ridge`, a declared `RewardModel`, or a model of yours."""
        return self.spec.declared if isinstance(self.spec, Declaring) else self.spec

    @property
    def arms(self) -> tuple[Name, ...]:
        """The arms' names."""
        return self.layout.arms

    @property
    def n_features(self) -> int:
        """The length d of a context."""
        return self.layout.n_features

    @property
    def kernel(self) -> Kernel | None:
        """The compiled way of the belief, where it has one."""
        return self.belief.kernel if self.has_kernel else None

    @property
    def compiled(self) -> bool:
        """Whether kernels learn the rows of rounds as they are."""
        return (kernel := self.kernel) is not None and kernel.plain

    @property
    def of_arms(self) -> bool:
        """Whether a context has a row of features for each arm, (K, d)."""
        return self.belief.of_arms

    def encoded(self, x: Any) -> Any:
        """Contexts as numbers: where there is an encoder, (d,) of one row and (n, d) of a table, or
        of a list of dicts."""
        if self.encoder is None:
            return numbers_only(x)
        features = self.encoder.transform(table_of(x))
        return features[0] if is_row(x) else features

    def number(self, arm: Any) -> int:
        """The number of the arm of this name."""
        try:
            k = self.layout.index.get(checks.arm_name(arm))
        except TypeError:
            k = None
        if k is None:
            raise ValueError(f"unknown arm {arm!r}; the arms are {list(self.arms)!r}")
        return k

    def among(self, arms: Iterable[Name]) -> np.ndarray:
        """Which of all arms these are (K,)."""
        available = np.zeros(len(self.arms), dtype=np.bool_)
        names = [arms] if isinstance(arms, str | Integral) else list(arms)
        available[[self.number(arm) for arm in names]] = True
        if not names:
            raise ValueError(f"no arm to choose from; the arms are {list(self.arms)!r}")
        return available


def table_of(x: Any) -> Any:
    """Return dicts, each a row with the same names, as a table; anything else as it is."""
    if not (isinstance(x, list | tuple) and x and all(isinstance(row, Mapping) for row in x)):
        return x
    import pandas as pd

    names = list(dict.fromkeys(name for row in x for name in row))
    for i, row in enumerate(x):
        if lost := [name for name in names if name not in row]:
            raise ValueError(f"row {i} lacks {named(lost)}; other rows have {named(names)}")
    return pd.DataFrame({name: [row[name] for row in x] for name in names})
