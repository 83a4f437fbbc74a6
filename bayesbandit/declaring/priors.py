"""Priors as values: checked and copied when they are given, printed, and written as plain data.

A prior is a `Prior` (or another variable factory of pymc_extras), a number, or an array of numbers;
the last two fix a variable. Importing this file imports PyMC.
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import yaml
from pymc_extras.deserialize import DeserializableError, deserialize
from pymc_extras.prior import Prior, VariableFactory

from bayesbandit.checks import finite, floats

__all__ = ["Prior", "VariableFactory"]

type Value = VariableFactory | float | np.ndarray  # a Prior is a variable factory

KEYS = ("dist", "kwargs", "dims", "centered", "transform")
DEEPEST = 40  # levels of a text


def checked(value: Any, what: str, dims: tuple[str, ...], allowed: Sequence[str]) -> Value:
    """A copy of the prior that nobody else holds; one without dimensions takes `dims`."""
    if isinstance(value, VariableFactory):
        value = deepcopy(value)
        if isinstance(value, Prior) and value.dims is None and dims:
            value.dims = dims
        unknown = [d for d in _all_dims(value) if d not in allowed]
        if unknown:
            names = _listed(allowed)
            raise ValueError(
                f"{what} has the dimension {unknown[0]!r}; allowed: {names}. A dimension that the "
                "declaration adds itself is there for priors made in its body alone: "
                f"pm.modelcontext(None).add_coord({unknown[0]!r}, …), and then "
                f"bb.Prior(…, dims={unknown[0]!r}).create_variable(name)"
            )
        for name, number in _numbers(value):
            if np.isnan(floats(number, f"{name} of {what}")).any():
                raise ValueError(f"{name} of {what} must be a number; got {text(number)}")
        return value
    number = isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_)
    if not (number or isinstance(value, np.ndarray | list | tuple)):
        raise TypeError(
            f"{what} must be a bb.Prior, or a number or an array that fixes it; got {value!r}"
        )
    array = finite(np.atleast_1d(floats(value, what)), what)
    if array.size == 0:
        raise ValueError(f"{what} must not be an empty array")
    return float(array[0]) if np.ndim(value) == 0 else array.copy()


def dims_of(value: Any) -> tuple[str, ...]:
    """The dimensions that a prior names; a number has none."""
    dims = getattr(value, "dims", None) or ()
    return (dims,) if isinstance(dims, str) else tuple(dims)


def with_dims(value: Any, dims: tuple[str, ...]) -> Any:
    """A copy of the prior with these dimensions."""
    value = deepcopy(value)
    value.dims = dims
    return value


def _all_dims(value: Any) -> Iterable[str]:
    """Dimensions of a prior and of the priors in it."""
    yield from dims_of(value)
    for parameter in getattr(value, "parameters", {}).values():
        if isinstance(parameter, VariableFactory):
            yield from _all_dims(parameter)


def _numbers(value: Any) -> Iterable[tuple[str, Any]]:
    """Parameters that are numbers, of a prior and of the priors in it."""
    for name, parameter in getattr(value, "parameters", {}).items():
        if isinstance(parameter, VariableFactory):
            yield from _numbers(parameter)
        elif isinstance(parameter, Real | np.number | np.ndarray):
            yield name, parameter


def variable(name: str, value: Value, dims: tuple[str, ...], lengths: Mapping[str, Any]) -> Any:
    """The prior's variable in the present PyMC model; a constant where the prior is a number.

    A number or an array is spread over `dims`, those of the declaration.
    """
    if isinstance(value, VariableFactory):
        return deepcopy(value).create_variable(name)  # it keeps what it made
    shape = [lengths[d] for d in dims]
    if "row" in dims:
        return pt.alloc(np.asarray(value), *shape)
    try:
        array: np.ndarray = np.broadcast_to(value, shape) if dims else np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} has the dimensions {_listed(dims)}, here {tuple(shape)}; "
            f"it cannot be fixed to an array of shape {np.shape(value)}"
        ) from None
    return pt.as_tensor_variable(np.array(array), name=name)


def same(a: Value, b: Value) -> bool:
    """Whether two priors are equal."""
    if isinstance(a, VariableFactory) or isinstance(b, VariableFactory):
        return type(a) is type(b) and bool(a == b)
    return np.shape(a) == np.shape(b) and np.array_equal(a, b)


def text(value: Any) -> str:
    """A prior as one would write it, without memory addresses."""
    if isinstance(value, Prior):
        parts = [f'"{value.distribution}"']
        parts += [f"{name}={text(v)}" for name, v in value.parameters.items()]
        if value.dims is not None:
            dims = value.dims[0] if len(value.dims) == 1 else value.dims
            parts.append(f"dims={dims!r}")
        parts += [] if value.centered else ["centered=False"]
        parts += [f"transform={value.transform!r}"] if value.transform else []
        return f"Prior({', '.join(parts)})".replace("'", '"')
    if isinstance(value, np.number):
        value = value.item()
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)).split())


# ---- as plain data ----------------------------------------------------------------------------


def dump(name: str, priors: Mapping[str, Any]) -> str:
    """A model's name and priors as YAML."""
    data = {"name": name, "priors": {k: to_data(p, f"prior {k!r}") for k, p in priors.items()}}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None)


class Loader(yaml.SafeLoader):
    """YAML in which a small text stays small and says one thing: without aliases, keys that are
    there twice, or nesting without end."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*…) are not read", problem_mark=self.peek_event().start_mark
            )
        if self.depth == DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"more than {DEEPEST} levels", problem_mark=self.peek_event().start_mark
            )
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        found = set()
        for key, _ in node.value:
            if (said := (key.tag, str(key.value))) in found:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark
                )
            found.add(said)
        return super().construct_mapping(node, deep)


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """The name in a model's YAML, and its priors, each to be read by `from_data`."""
    try:
        data = yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:  # of numbers with too many digits
        raise ValueError(f"a model's text must be YAML: {_line(error)}") from error
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        found = reprlib.repr(data)
        raise ValueError(f"a model's text must have a 'name' and 'priors'; got {found}")
    _known(data, ("name", "priors"), f"{data['name']}: unknown key")
    priors = data.get("priors") or {}
    if not isinstance(priors, dict):
        raise ValueError(f"{data['name']}: priors must be a mapping; got {reprlib.repr(priors)}")
    return data["name"], {str(name): prior for name, prior in priors.items()}


def to_data(value: Any, what: str) -> Any:
    """A prior as numbers, texts, lists and mappings; `pymc_extras` reads the same form."""
    if isinstance(value, Prior):
        kwargs = {k: to_data(v, f"{what}.{k}") for k, v in value.parameters.items()}
        data: dict[str, Any] = {"dist": value.distribution}
        data |= {"kwargs": kwargs} if kwargs else {}
        data |= {"dims": list(value.dims)} if value.dims is not None else {}
        data |= {} if value.centered else {"centered": False}
        return data | ({"transform": value.transform} if value.transform else {})
    if isinstance(value, np.ndarray | np.number):
        return value.tolist()
    if isinstance(value, Real):
        return value if isinstance(value, int) else float(value)
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    raise TypeError(f"{what} cannot be written as text: {text(value)}")


def _plain(data: Any) -> Any:
    """Nested data with lists for tuples and arrays, numbers for NumPy's."""
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        return [_plain(value) for value in data]
    return data.tolist() if isinstance(data, np.ndarray | np.generic) else data


def from_data(data: Any, what: str) -> Any:
    """The inverse of `to_data`; a wrong key, distribution or parameter gets an error naming the
    allowed ones."""
    if isinstance(data, Mapping):
        if "class" in data:
            try:
                return deserialize(dict(data))
            except DeserializableError as error:
                raise ValueError(f"{what}: {error}") from error
        return _prior(data, what)
    if isinstance(data, bool) or not isinstance(data, Real | str | list):
        raise ValueError(
            f"{what} must be a number, a list of numbers or a prior (a mapping with a 'dist'); "
            f"got {reprlib.repr(data)}"
        )
    if isinstance(data, str):  # YAML takes 1e-3 for a text
        try:
            return float(data)
        except ValueError:
            raise ValueError(f"{what} must be a number; got {reprlib.repr(data)}") from None
    return np.array(data) if isinstance(data, list) and floats(data, what).size else data


def _prior(data: Mapping[str, Any], what: str) -> Prior:
    _known(data, KEYS, f"{what}: unknown key")
    if "dist" not in data:
        raise ValueError(f"{what} has no 'dist'; found {_listed(data)}")
    distributions = _distributions()
    _known([data["dist"]], distributions, f"{what}: PyMC has no distribution")
    kwargs = data.get("kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"{what}: kwargs must be a mapping; got {kwargs!r}")
    parameters = [
        p
        for p in signature(distributions[data["dist"]].dist).parameters
        if p not in ("args", "kwargs")
    ]
    _known(kwargs, parameters, f"{what}: {data['dist']} has no parameter")
    dims = data.get("dims")
    settings = {"centered": data.get("centered", True), "transform": data.get("transform")}
    values = {k: from_data(v, f"{what}.{k}") for k, v in kwargs.items()}
    try:
        return Prior(
            data["dist"],
            dims=tuple(dims) if isinstance(dims, list) else dims,
            **settings,
            **values,
        )
    except Exception as error:  # pymc_extras has its own kinds
        raise ValueError(f"{what}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _distributions() -> dict[str, Any]:
    """PyMC's distributions by name."""
    abstract = ("Distribution", "Continuous", "Discrete", "SymbolicRandomVariable")
    found = {name: getattr(pm, name) for name in dir(pm) if name not in abstract}
    return {k: v for k, v in found.items() if isinstance(v, type) and hasattr(v, "dist")}


def _known(names: Iterable[Any], allowed: Iterable[str], complaint: str) -> None:
    allowed = list(allowed)
    for name in names:
        if name not in allowed:
            close = difflib.get_close_matches(str(name), allowed, n=1, cutoff=0.7)
            hint = f", did you mean {close[0]!r}?" if close else ";"
            raise ValueError(f"{complaint} {name!r}{hint} allowed: {_listed(allowed)}")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
