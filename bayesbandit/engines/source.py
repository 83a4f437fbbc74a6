"""What a declaration says, as a key: two declarations of one source and one surrounding are equal.

A declaration reads names around it: numbers, arrays, functions. These count with their values, so
that a cell of a notebook that is run again after one of them has changed is another declaration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from bayesbandit.model import RewardModel


def declaration(model: RewardModel) -> tuple[Any, ...]:
    """A model's declaration and priors, hashable and comparable."""
    return meaning(model.function), priors(model)


def digest(model: RewardModel, n_features: int, n_arms: int) -> str | None:
    """The declaration as a text that is the same in every process; None where it reads a thing
    whose value cannot be seen."""
    try:
        text = repr(_written(declaration(model)))
    except ValueError:
        return None
    return hashlib.sha256(f"{n_features} {n_arms} {text}".encode()).hexdigest()


def _written(key: Any) -> Any:
    """A key with modules, and what can be imported, by name."""
    if isinstance(key, tuple):
        return tuple(map(_written, key))
    if not isinstance(key, Same):
        return key
    thing = key.thing
    if isinstance(thing, ModuleType):
        return "module", thing.__name__
    name = getattr(thing, "__qualname__", None)
    if isinstance(thing, type | BuiltinFunctionType) and name:
        return "name", thing.__module__, name
    raise ValueError(thing)


def priors(model: RewardModel) -> tuple[Any, ...]:
    """Priors by name; one that cannot be written as data is equal to itself alone."""
    from bayesbandit.priors import to_data

    found = []
    for name, prior in model.priors.items():
        try:
            said: Any = json.dumps(to_data(prior, name), sort_keys=True, default=repr)
        except TypeError:
            said = Same(prior)
        found.append((name, said, tuple((model.dims or {}).get(name, ()))))
    return tuple(found)


class Same:
    """A key for what is equal to itself alone; it keeps the thing alive."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def meaning(value: Any, seen: tuple[Any, ...] = ()) -> Any:
    """A key of a value: of numbers and arrays what they are, of functions what they do."""
    if isinstance(value, FunctionType):
        if any(value is f for f in seen):
            return "itself", value.__name__
        return _function(value, (*seen, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return "array", value.shape, value.dtype.str, digest
    if isinstance(value, bool | int | float | complex | str | bytes | None | np.number):
        return type(value).__name__, repr(value)
    if isinstance(value, tuple | list):
        return type(value).__name__, *(meaning(v, seen) for v in value)
    if isinstance(value, dict):
        return "dict", *((meaning(k, seen), meaning(v, seen)) for k, v in value.items())
    return Same(value)


def _function(function: Callable[..., Any], seen: tuple[Any, ...]) -> tuple[Any, ...]:
    f: Any = function
    around = tuple(
        (name, meaning(f.__globals__[name], seen))
        for name in sorted(set(_names(f.__code__)))
        if name in f.__globals__
    )
    cells = tuple(_cell(cell, seen) for cell in f.__closure__ or ())
    defaults = meaning([*(f.__defaults__ or ()), f.__kwdefaults__ or {}], seen)
    return f.__name__, _code(f.__code__), around, cells, defaults


def _cell(cell: Any, seen: tuple[Any, ...]) -> Any:
    try:
        return meaning(cell.cell_contents, seen)
    except ValueError:  # not filled yet
        return "empty"


def _code(code: CodeType) -> tuple[Any, ...]:
    """What code does, wherever it stands."""
    constants = tuple(
        _code(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, names, counts, code.co_exceptiontable


def _names(code: CodeType) -> Iterator[str]:
    """The names that code and the functions in it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
