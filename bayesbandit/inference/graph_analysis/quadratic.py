"""The natural parameters of a log density that is quadratic in its variables, and affine functions.

In variables θ (D,),

    log p = c + η'θ − ½ θ'Λθ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from bayesbandit.checks import Array

Given = Sequence[float | Array]  # values of the variables that the block is given


@dataclass(frozen=True)
class Natural:
    """Natural parameters of exp(c + h log q − βq + q (η'θ − ½ θ'Λθ)), q the precision of the noise.

    precision: Λ (D, D). shift: η (D,). power: h. rate: β. constant: c. Without an unknown noise
    q = 1, and h = β = 0.
    """

    precision: Array
    shift: Array
    power: float = 0.0
    rate: float = 0.0
    constant: float = 0.0


def affine(function: Callable[[Array], Array], dim: int) -> tuple[Array, Array]:
    """Return slopes (D, …) and intercept (…) of an affine function of θ, read at [0; e_1 … e_D].

    If the intercept is so large that the slopes would drown in its rounding, a second call takes
    longer steps, by a power of two.
    """
    # f(e_j) − f(0) is slope j, for f is affine
    directions = np.eye(dim)
    values = function(np.vstack([np.zeros((1, dim)), directions]))
    intercept = values[0]
    slopes = values[1:] - values[0]
    largest = np.abs(intercept).max(initial=0.0)
    smallest = np.abs(slopes).max(initial=0.0)
    # f(0) of 1e9 beside slopes of 1 leaves them 7 digits; a step of 2^30 gives these back
    if 8.0 * smallest < largest < math.inf and smallest > 0.0:
        # a power of two: the division by it rounds nothing
        step = 2.0 ** math.ceil(math.log2(largest / smallest))
        slopes = (function(step * directions) - intercept) / step
    return slopes, intercept


def total(graphs: Sequence[Variable]) -> Variable:
    """Return the sum of all elements of some log densities."""
    return pt.add(pt.constant(0.0), *map(pt.sum, graphs))


def gradient(graph: Variable, variable: Variable) -> TensorVariable:
    """Return the gradient, 0 where the graph does not depend on the variable."""
    slope = pt.grad(graph, variable, disconnected_inputs="ignore")
    assert isinstance(slope, Variable)
    return pt.as_tensor_variable(slope)
