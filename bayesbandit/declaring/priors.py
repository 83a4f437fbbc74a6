"""Priors as values: functions that check, copy, compare and print them.

A prior is a `Prior` (or another variable factory of pymc_extras), a number, or an array of numbers.
A number or an array fixes a variable. Importing this file imports PyMC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from numbers import Real
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc_extras.prior import Prior, VariableFactory
from pytensor.tensor.random.op import RandomVariable

from bayesbandit.checks import Array, finite, floats, is_real

__all__ = ["Prior", "VariableFactory"]

MAY_BE_INFINITE = "lower", "upper"  # parameters: bounds

type Value = VariableFactory | float | Array  # a Prior is a variable factory


def checked(value: object, what: str, dims: tuple[str, ...], allowed: Sequence[str]) -> Value:
    """Return a checked copy of the prior; a prior without dimensions gets `dims`.

    Raise ValueError or TypeError for an invalid one. what: its description in errors. allowed:
    the possible dimensions.
    """
    if isinstance(value, VariableFactory):
        value = deepcopy(value)
        if isinstance(value, Prior) and value.dims is None and dims:
            value.dims = dims
        unknown = [d for one in _factories(value) for d in dims_of(one) if d not in allowed]
        if unknown:
            names = ", ".join(allowed)
            raise ValueError(
                f"{what} has the dimension {unknown[0]!r}; allowed: {names}. A dimension that the "
                "declaration adds itself is there for priors made in its body alone: "
                f"pm.modelcontext(None).add_coord({unknown[0]!r}, …), and then "
                f"bb.Prior(…, dims={unknown[0]!r}).create_variable(name)"
            )
        parameters = [pair for one in _factories(value) for pair in _parameters(one).items()]
        for name, number in parameters:
            if not isinstance(number, Real | np.number | np.ndarray):
                continue
            numbers = floats(number, f"{name} of {what}")
            if np.isnan(numbers).any():
                raise ValueError(f"{name} of {what} must be a number; got {text(number)}")
            if np.isinf(numbers).any() and name not in MAY_BE_INFINITE:
                raise ValueError(f"{name} of {what} must be finite; got {text(number)}")
        return value
    if not (is_real(value) or isinstance(value, np.ndarray | list | tuple)):
        raise TypeError(
            f"{what} must be a bb.Prior, or a number or an array that fixes it; got {value!r}"
        )
    array = finite(np.atleast_1d(floats(value, what)), what)
    if array.size == 0:
        raise ValueError(f"{what} must not be an empty array")
    return float(array[0]) if np.ndim(value) == 0 else array.copy()


def dims_of(value: object) -> tuple[str, ...]:
    """Return the dimensions that a prior names; a number has none."""
    dims: str | tuple[str, ...] = (value.dims or ()) if isinstance(value, VariableFactory) else ()
    return (dims,) if isinstance(dims, str) else tuple(dims)


def _parameters(value: object) -> Mapping[str, Any]:
    """Return the parameters of a prior; another variable factory has none."""
    return value.parameters if isinstance(value, Prior) else {}


def _factories(value: object) -> Iterable[VariableFactory]:
    """Yield a prior and the priors in it; a number has none."""
    if isinstance(value, VariableFactory):
        yield value
        for parameter in _parameters(value).values():
            yield from _factories(parameter)


def variable(name: str, value: Value, dims: tuple[str, ...], lengths: Mapping[str, Any]) -> Any:
    """Return the prior's variable in the current PyMC model; a number or an array is a constant.

    Numbers and arrays are broadcast to `dims`, the declared dimensions. lengths: by dimension.
    """
    if isinstance(value, VariableFactory):
        created = deepcopy(value).create_variable(name)  # a factory stores the variables it creates
        node = created.owner
        if node is not None and isinstance(node.op, RandomVariable) and node.op.ndim_supp == 0:
            _check_lengths(name, value, lengths)
        return created
    shape = [lengths[d] for d in dims]
    if "row" in dims:
        return pt.alloc(np.asarray(value), *shape)
    try:
        array: Array = np.broadcast_to(value, shape) if dims else np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} has the dimensions {', '.join(dims)}, here {tuple(shape)}; "
            f"it cannot be fixed to an array of shape {np.shape(value)}"
        ) from None
    return pt.as_tensor_variable(np.array(array), name=name)


def _check_lengths(name: str, prior: VariableFactory, lengths: Mapping[str, Any]) -> None:
    """Raise ValueError if an array among a prior's parameters does not fit its dimensions."""
    dims = dims_of(prior)
    shape = () if "row" in dims else tuple(lengths[d] for d in dims if d in lengths)
    for parameter, number in _parameters(prior).items():
        if len(shape) < len(dims) or not isinstance(number, np.ndarray):
            continue
        try:
            np.broadcast_to(number, shape)
        except ValueError:
            raise ValueError(
                f"{parameter} of the prior of {name} has the shape {number.shape}, and the "
                f"prior's dimensions, {', '.join(dims)}, are here {shape}"
            ) from None


def same(a: Value, b: Value) -> bool:
    """Return whether two priors are equal."""
    if isinstance(a, VariableFactory) or isinstance(b, VariableFactory):
        return type(a) is type(b) and bool(a == b)
    return np.shape(a) == np.shape(b) and np.array_equal(a, b)


def text(value: object) -> str:
    """Return a prior as Python code, without memory addresses."""
    value = value.item() if isinstance(value, np.number) else value
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)).split())
