"""A declaration and its rows as short Python source, so that what goes wrong can be pasted."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np

PREAMBLE = """\
import numpy as np, pandas as pd, pymc as pm, pytensor, pytensor.tensor as pt
from types import SimpleNamespace
import bayesbandit as bb
P = bb.Prior
"""


@dataclass(frozen=True)
class Case:
    """A declaration, rows, and what may change around it, as source.

    source: declares `declared`. rows: sets x (n, d) and reward (n,), and weight (n,), arm (n,),
    K where they are used. change: run between two fits; the second is then judged. stream: whether
    bandits are fed with the rows, too.
    """

    source: str
    rows: str
    change: str = ""
    stream: bool = False

    def __post_init__(self) -> None:
        for name in ("source", "rows", "change"):
            object.__setattr__(self, name, dedent(getattr(self, name)).strip("\n"))

    def __str__(self) -> str:
        call = "posterior = bb.fit(declared, x, reward, weight, n_arms=K, arm=arm, seed=0)"
        parts = [PREAMBLE + self.source, "weight = arm = K = None\n" + self.rows, call]
        if self.change:
            parts += [self.change, call]
        return "\n\n".join(parts) + "\n"

    def run(self) -> Scene:
        """The declaration and its rows, brought to life."""
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(PREAMBLE, space)
        exec(compile(self.source, "<declaration>", "exec"), space)
        exec(compile("weight = arm = K = None\n" + self.rows, "<rows>", "exec"), space)
        return Scene(space)


class Scene(SimpleNamespace):
    """What a case's source defines: `model` and the rows x, reward, weight, arm, and K."""

    def __init__(self, space: dict[str, Any]) -> None:
        super().__init__(space=space, model=space["declared"], K=space["K"])
        self.rows: dict[str, np.ndarray] = {
            role: np.asarray(space[role], dtype=np.int64 if role == "arm" else np.float64)
            for role in ("x", "reward", "weight", "arm")
            if space[role] is not None
        }

    def change(self, source: str) -> None:
        """Let the surroundings change."""
        exec(compile(source, "<change>", "exec"), self.space)
