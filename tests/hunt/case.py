"""A declaration and its rows as short Python source, so that what goes wrong can be pasted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np

from bayesbandit.inference.base import NotThisEngine

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


BAD = ("wrong", "crash")


class Spared(Exception):
    """NUTS would have to compile."""


@dataclass(frozen=True)
class Verdict:
    """One answer, judged. what: "fit", "changed" or "stream". engine: that answered, or was asked.

    outcome: "right"; "wrong"; "crash", an error that names neither the model nor a variable;
    "refused"; "door", a refusal by the interface; "unmixed", draws that their own diagnostics
    warned of; "spared", NUTS not run; "unjudged". detail: of it.
    """

    what: str
    engine: str
    outcome: str
    detail: str = ""

    @property
    def bad(self) -> bool:
        """Whether this should never happen."""
        return self.outcome in BAD

    def __str__(self) -> str:
        return f"{self.what} by {self.engine}: {self.outcome}: {self.detail}"


def raised(scene: Scene, what: str, engine: str, error: Exception) -> Verdict:
    """A refusal with a reason; or a crash: an error that names neither model nor variable."""
    text = " ".join(str(error).split())
    if isinstance(error, Spared):
        return Verdict(what, "nuts", "spared")
    if isinstance(error, NotThisEngine):
        return Verdict(what, engine, "refused", text)
    if isinstance(error, ValueError | TypeError):
        named = re.search(r"'\w+'", text) or scene.model.name in text
        if named and "already exists" not in text:
            return Verdict(what, engine, "door", text[:200])
    return Verdict(what, engine, "crash", f"{type(error).__name__}: {text[:300]}")
