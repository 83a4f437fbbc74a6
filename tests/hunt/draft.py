"""A declaration while it is being written, and the choices that it is written by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Choices:
    """Where integers come from."""

    integer: Callable[[int], int]

    def below(self, bound: int) -> int:
        """An integer 0 … bound − 1."""
        return min(self.integer(bound), bound - 1)

    def pick(self, *options: Any) -> Any:
        """One of some options, the simplest first."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True so often; False is simpler."""
        return self.below(100) >= 100 - percent


def seeded(seed: int) -> Choices:
    """Choices by a seed."""
    rng = np.random.default_rng(seed)
    return Choices(lambda bound: int(rng.integers(bound)))


@dataclass
class Draft:
    """A declaration while it is being written.

    before: surroundings; priors: of the decorator; lines: of the body. d, K: sizes. scale: the
    noise's standard deviation as an expression, `learned` the name of its variable ("" if known).
    conjugate: whether θ's prior is scaled by the noise. walls: variables that may get a potential.
    """

    d: int
    K: int
    columns: str = "real"
    before: list[str] = field(default_factory=list)
    change: str = ""
    priors: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    scale: str = "1.0"
    learned: str = ""
    conjugate: bool = False
    walls: list[str] = field(default_factory=list)
    rewards: str = "real"

    @property
    def arm(self) -> bool:
        """Whether arms share the model."""
        return self.K > 0

    def variable(self, c: Choices, name: str, family: str, arguments: str, dims: str = "") -> None:
        """A variable, as a prior of the decorator or in the body, where others may be named."""
        where = f', dims="{dims}"' if dims else ""
        if c.chance(50):
            self.lines.append(f'{name} = pm.{family}("{name}", {arguments}{where})')
        else:
            self.priors[name] = f'P("{family}", {arguments}{where})'

    def local(self, name: str, family: str, arguments: str, dims: str = "") -> None:
        """A variable of the body."""
        where = f", dims={dims!r}" if dims else ""
        self.lines.append(f'{name} = pm.{family}("{name}", {arguments}{where})'.replace("'", '"'))

    def source(self, returned: str) -> str:
        """The whole declaration."""
        text = " ".join([*self.lines, returned])
        weight = ["weight"] if "weight" in text else []
        arguments = ["x", "reward", *weight, *(["arm"] if self.arm else []), *self.priors]
        priors = ", ".join(f"{k}={v}" for k, v in self.priors.items())
        body = "\n    ".join([*self.lines, f"return {returned}"])
        head = "\n".join(self.before) + ("\n\n" if self.before else "")
        return (
            f"{head}@bb.reward_model({priors})\ndef declared({', '.join(arguments)}):\n    {body}\n"
        )
