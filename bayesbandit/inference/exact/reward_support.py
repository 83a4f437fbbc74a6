"""Which rewards have a likelihood, read off the comparisons that a density makes of them.

Where these are with numbers, or with the reward made whole, a likelihood is 0 or not throughout
each piece between those numbers, of whole rewards and of others: one reward of each piece tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.inference.graph_analysis.dependence import Influence
from bayesbandit.inference.graph_analysis.operations import (
    COMPARISONS,
    bare,
    elementwise_name,
    number,
    operands,
)

WHOLE = {"Floor", "Ceil", "Trunc", "RoundHalfToEven", "RoundHalfAwayFromZero"}
LOGIC = {"AND", "OR", "XOR", "Invert", "IsNan", "IsInf", "Mul", "Add", "Switch", "Identity"}
FAR = 1000.0  # beyond all numbers


@dataclass(frozen=True)
class RewardSupport:
    """The rewards that have a likelihood: 0 and 1 for a probability, rewards ≥ 0 for a rate.

    whole: whether only whole numbers have one.
    """

    binary: bool
    whole: bool

    def excludes(self, reward: np.ndarray) -> np.ndarray:
        """Return which of some rewards (n,) have no likelihood."""
        if self.binary:
            return np.asarray((reward != 0.0) & (reward != 1.0))
        off = reward != np.floor(reward) if self.whole else np.zeros(reward.shape, np.bool_)
        return np.asarray((reward < 0.0) | off)


def uncast(graphs: Sequence[Any], reward: Variable) -> list[Any]:
    """Return graphs of whole rewards without casts of them to integers, which change nothing."""
    casts = {
        v: v.owner.inputs[0]
        for v in ancestors(graphs)
        if elementwise_name(v) == "Cast"
        and v.type.dtype == "int64"
        and bare(v.owner.inputs[0]) is reward
    }
    recast = clone_replace(list(graphs), casts, rebuild_strict=False)
    return list(recast)


def telling(graphs: Sequence[Any], inputs: Mapping[str, Any], whole: bool) -> np.ndarray:
    """Return rewards (n,), one in each piece, that tell which rewards have a likelihood.

    whole: whether rewards are whole numbers. Return none if contexts, weights or other functions of
    the reward matter too.
    """
    reward, at = inputs["reward"], {0.0, 1.0}
    influence = Influence(graphs, {v: (role,) for role, v in inputs.items()})
    for v in ancestors(graphs):
        if v.owner is None or not influence.of(v):
            continue
        if (numbers := compared(v, reward)) is None:
            return np.empty(0)
        at.update(numbers)
    ends = np.array([min(at) - FAR, *sorted(at), max(at) + FAR])
    low, high = ends[:-1], ends[1:]
    inside, integer = low + 0.4142 * (high - low), np.floor(low) + 1.0
    rewards = np.concatenate([ends, inside, integer[integer < high]])
    return rewards[rewards == np.floor(rewards)] if whole else rewards


def compared(v: Variable, reward: Variable) -> list[float] | None:
    """Return the numbers at which a node's statement about the reward may change, at whole rewards
    or others. None if they are not known."""
    name, given = elementwise_name(v), [_plain(u) for u in operands(v)]
    if name == "Switch" and given[0].type.dtype != "bool":
        return [0.0] if given[0] is reward or number(given[0]) is not None else None
    if name in COMPARISONS:
        if reward in given and any(_is_made_whole(u, reward) for u in given):
            return [] if name in ("EQ", "NEQ") else None
        slope, constant = _affine(given[0], reward) - _affine(given[1], reward)
        if slope == 0.0 or math.isinf(constant):
            return []
        return None if math.isnan(slope) else [float(-constant / slope)]
    if (v.type.dtype == "bool" and name in LOGIC) or v.type.dtype.startswith("float"):
        return []
    return [] if _is_made_whole(v, reward) else None


def _affine(v: Variable, reward: Variable) -> np.ndarray:
    """Return s and c of a node that is s · reward + c, by sums and differences; else NaN."""
    v = _plain(v)
    if v is reward:
        return np.array([1.0, 0.0])
    if (k := number(v)) is not None:
        return np.array([0.0, k])
    signs = {"Add": [1.0] * len(operands(v)), "Sub": [1.0, -1.0], "Neg": [-1.0]}.get(
        elementwise_name(v)
    )
    if signs is None:
        return np.full(2, math.nan)
    return np.asarray(signs @ np.array([_affine(u, reward) for u in operands(v)]))


def _is_made_whole(v: Variable, reward: Variable) -> bool:
    whole = elementwise_name(v) in WHOLE or (
        elementwise_name(v) == "Cast" and v.type.dtype == "int64"
    )
    return whole and _plain(v.owner.inputs[0]) is reward


def _plain(v: Variable) -> Variable:
    """Return the variable beneath changes of shape, copies and casts to floating point."""
    v = bare(v)
    while elementwise_name(v) == "Cast" and v.type.dtype == "float64":
        v = bare(v.owner.inputs[0])
    return v
