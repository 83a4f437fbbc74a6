"""What the transform of a model's variable says of its bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytensor.graph.basic import Variable

from bayesbandit.inference.graph_analysis.operations import number

if TYPE_CHECKING:
    from pymc.logprob.transforms import Transform


def transform_name(transform: Transform | None) -> str:
    """Return PyMC's name of a transform; "" for none."""
    return "" if transform is None else str(transform.name)


def ends(variable: Variable, transform: Transform | None) -> tuple[float | None, float | None]:
    """Return the bounds of a variable; None for a bound that is not constant."""
    if transform is None:
        return -math.inf, math.inf
    match transform_name(transform):
        case "log":
            return 0.0, math.inf
        case "logodds" | "simplex":
            return 0.0, 1.0
        case "interval":
            lower, upper = transform.args_fn(*variable.owner.inputs)
            low = -math.inf if lower is None else number(lower)
            return low, math.inf if upper is None else number(upper)
    return -math.inf, math.inf


def support(variable: Variable, transform: Transform | None) -> tuple[float, float]:
    """Return the bounds of a variable, infinite where they are not constants."""
    low, high = ends(variable, transform)
    return -math.inf if low is None else low, math.inf if high is None else high
