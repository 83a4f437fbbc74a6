"""Fingerprints of the user's code, by which a run notices that the code has changed.

A module of the user's that the code names counts by its text. What that module imports does not.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from bayesbandit.runtime import user_modules
from bayesbandit.runtime.shown import in_full
from bayesbandit.runtime.user_modules import installed


def does(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, independent of the file and the lines in which it stands."""
    constants = tuple(map(_constant, code.co_consts))
    names = code.co_names, code.co_varnames, code.co_freevars
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, names, counts, code.co_exceptiontable


def _constant(value: object) -> tuple[Any, ...]:
    if isinstance(value, CodeType):
        return does(value)
    if isinstance(value, frozenset):  # whose order differs from process to process
        return "set", *sorted(map(repr, value))
    return type(value).__name__, repr(value)


def names(code: CodeType) -> Iterator[str]:
    """Return the names that code and the functions in it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)


def fingerprint(*values: object) -> str:
    """Return a digest of the user's functions, classes and objects among these values.

    It covers their code and all that the code refers to. It is "" if all values are from installed
    packages.
    """
    said, own = _walked(values)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16] if own else ""


def texts(*values: object) -> dict[str, str]:
    """Return digests of the user's modules in which the code of these values stands."""
    return user_modules.digests(sorted(_walked(values)[1]))


def packages(*values: object) -> list[str]:
    """Return the installed packages that define these functions, classes and objects.

    Each is a text "name version". The toolkit and Python are left out.
    """
    return user_modules.packages(map(_home, values))


class Deferred(ABC):
    """A function that is loaded when it is called, such as a player of a file or package."""

    @abstractmethod
    def load(self) -> Callable[..., Any]:
        """Return the function."""


def _attributes(value: object) -> Mapping[str, Any]:
    """Return what an object's own dict holds, nothing where it has none."""
    try:
        return vars(value)
    except TypeError:
        return {}


def _home(value: object) -> str:
    """Return the module of a function or a class, or of an object's class."""
    value = value.func if isinstance(value, partial) else value
    value = value.load() if isinstance(value, Deferred) else value
    if isinstance(value, FunctionType | type):
        return value.__module__ or ""
    return str(_attributes(value).get("__module__", type(value).__module__))


def _walked(values: Iterable[Any]) -> tuple[list[Any], set[str]]:
    """Return what values say of themselves and of all that they refer to, and the modules that are
    the user's among those in which it stands."""
    found: list[Any] = []
    own: set[str] = set()
    seen: dict[int, Any] = {}
    left = list(values)[::-1]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        more = _parts(value, found, own)
        if more:
            seen[id(value)] = value  # kept alive, so that its number stays its own
            left += reversed(more)
    return found, own


def _parts(value: object, found: list[Any], own: set[str]) -> list[Any]:
    """Return what a value consists of; what it says of itself is added to `found`, and the module
    that it stands in to `own`, where it is the user's."""
    match value:
        case FunctionType() | type():
            home = value.__module__ or ""
            found.append(value.__qualname__)
            if installed(home):
                return _inner(value)
            own.add(home)
            return _function(value, found) if isinstance(value, FunctionType) else _class(value)
        case ModuleType():
            found.append(value.__name__)
            if not installed(value.__name__):
                own.add(value.__name__)
                found.append(user_modules.says(value.__name__))
            return []
        case partial():
            return [value.func, value.args, value.keywords]
        case MethodType():
            return [value.__func__, value.__self__]
        case staticmethod() | classmethod():
            return [value.__func__, None]
        case property():
            return [value.fget, value.fset, value.fdel]
    more = _content(value, found)
    if not installed(type(value).__module__ or ""):
        return [*(more or []), type(value), object.__getstate__(value)]
    if more is None and is_dataclass(value):
        return [type(value), object.__getstate__(value), *_inner(value)]
    if more is None and not (more := _inner(value)):
        found.append(_said(value))
    return more or []


def _content(value: object, found: list[Any]) -> list[Any] | None:
    """Return what plain values and collections hold; None of others."""
    match value:
        case Mapping():
            found.append(len(value))
            return [*value, *value.values()]
        case tuple() | list():
            found.append(len(value))
            return [*value]
        case set() | frozenset():
            found.append(sorted(map(_said, value)))
        case np.ndarray():
            found.append((value.shape, value.dtype.str, value.tobytes()))
        case None | int() | float() | complex() | str() | bytes():
            found.append(_said(value))
        case _:
            return None
    return []


def _function(value: FunctionType, found: list[Any]) -> list[Any]:
    """Return what a function of the user's refers to."""
    found.append(does(value.__code__))
    near = sorted(set(names(value.__code__)) & set(value.__globals__))
    around = [value.__globals__[name] for name in near]
    if any(isinstance(v, np.ufunc) and v.__name__.endswith(" (vectorized)") for v in around):
        # A ufunc does not show the function behind it.
        found.append(user_modules.says(value.__module__ or ""))
    cells = [v for cell in value.__closure__ or () for v in _held(cell)]
    defaults = [*(value.__defaults__ or ()), value.__kwdefaults__]
    return [*around, *cells, *defaults, vars(value)]


def _class(value: type) -> list[Any]:
    """Return what a class of the user's consists of."""
    kept = {k: v for k, v in vars(value).items() if k not in HIDDEN}
    if not kept.get("__annotations__", True):  # made where somebody asks a class for them
        del kept["__annotations__"]
    return [*kept, *kept.values(), *value.__bases__, type(value)]


def _inner(value: object) -> list[Any]:
    """Return what stands behind an object or a function of an installed package: the functions that
    it calls, and how."""
    attributes = _attributes(value)
    inner = [attributes[name] for name in INNER if name in attributes]
    if isinstance(value, Deferred):
        inner.append(value.load())
    cells = (value.__closure__ or ()) if isinstance(value, FunctionType) else ()
    return inner + [v for cell in cells for v in _held(cell) if callable(v)]


# What a class has of its own accord, and `__static_attributes__`, whose order is not the same in
# all processes, and `__slotnames__`, which copies make.
HIDDEN = (
    "__dict__ __weakref__ __doc__ __firstlineno__ __module__ _abc_impl __static_attributes__ "
    "__slotnames__"
).split()
# Where what stands before a function has it: `wraps`, caches, numba, NumPy, lazy properties.
INNER = (
    "__wrapped__ py_func pyfunc func args keywords targetoptions class_type jit_methods jit_props "
    "jit_static_methods"
).split()


def _said(value: object) -> str:
    with in_full():
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _held(cell: CellType) -> list[Any]:
    """Return what a cell holds; nothing, where its variable has no value so far."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []
