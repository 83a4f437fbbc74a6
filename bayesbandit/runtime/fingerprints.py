"""Fingerprints of the user's code, by which a run notices that the code has changed.

A module of the user's counts by its whole text; modules that it imports do not count.
"""

from __future__ import annotations

import hashlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache, partial
from importlib.metadata import packages_distributions, version
from inspect import getattr_static, unwrap
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from bayesbandit.checks import Row, Table
from bayesbandit.runtime import user_modules
from bayesbandit.runtime.shown import in_full
from bayesbandit.runtime.user_modules import installed

distributions = cache(packages_distributions)  # by the names of their modules
VALUES_BY_REPR = int, float, complex, str, bytes, type(None)


class Deferred(ABC):
    """A function that is loaded when it is called, such as a player of a file or package."""

    @abstractmethod
    def load(self) -> Callable[..., Any]:
        """Return the function."""


def fingerprint(*values: object) -> str:
    """Return a digest of the user's functions, classes and objects among these values.

    It covers the texts of their modules and the values that functions and objects hold. It is "" if
    all values are from installed packages.
    """
    found, homes = _walk(values)
    if not homes:
        return ""
    texts = [user_modules.digest(name) for name in sorted(homes)]
    return hashlib.sha256(repr((found, texts)).encode()).hexdigest()[:16]


def texts(*values: object) -> dict[str, str]:
    """Return digests of the user's modules in which the code of these values stands."""
    homes = sorted(_walk(values)[1] - {"__main__"})
    return {name: user_modules.digest(name) for name in homes if user_modules.text(name)}


def packages(*values: object) -> list[str]:
    """Return the installed packages that define these functions, classes and objects.

    Each is a text "name version". The toolkit and Python are left out.
    """
    tops = {home.partition(".")[0] for home in map(_home, values) if installed(home)}
    tops -= {"bayesbandit", *sys.stdlib_module_names}
    names = {name for top in tops for name in distributions().get(top, [])}
    return [f"{name} {version(name)}" for name in sorted(names)]


def _home(value: object) -> str:
    """Return the module of a function or a class, or of an object's class."""
    value = value.func if isinstance(value, partial) else value
    value = value.load() if isinstance(value, Deferred) else value
    named = value if isinstance(value, FunctionType | type) else type(value)
    return named.__module__ or ""


def _walk(values: Iterable[object]) -> tuple[list[Any], set[str]]:
    """Return what values hold, and the names of the user's modules in which their code stands."""
    found: list[Any] = []
    homes: set[str] = set()
    seen: dict[int, tuple[int, object]] = {}  # kept alive, so that ids stay theirs
    waiting: list[Any] = [*values]
    for value in waiting:  # it grows
        if isinstance(value, VALUES_BY_REPR):  # Python may share one object for equal values
            found.append(repr(value))
            continue
        if id(value) in seen:
            found.append(("again", seen[id(value)][0]))
            continue
        seen[id(value)] = len(seen), value
        match value:
            case partial():
                waiting += [value.func, value.args, value.keywords]
            case Deferred():
                waiting.append(value.load())
            case Mapping():
                found.append(len(value))
                waiting += [*value, *value.values()]
            case set() | frozenset():  # in an order that is the same in each process
                waiting.append(sorted(value, key=repr))
            case tuple() | list():
                found.append(len(value))
                waiting += value
            case np.ndarray() if value.dtype.hasobject:  # its bytes are addresses
                waiting += [value.shape, value.tolist()]
            case np.ndarray():
                found.append((value.shape, value.dtype.str, value.tobytes()))
            case FunctionType() if installed(value.__module__ or ""):
                waiting.append(unwrap(value))
            case FunctionType():
                homes.add(value.__module__ or "")
                found.append(_does(value.__code__))
                waiting += [cell.cell_contents for cell in value.__closure__ or ()]
                waiting += [value.__defaults__, value.__kwdefaults__]
                if not user_modules.text(value.__module__ or ""):  # of a notebook
                    around = value.__globals__
                    names = value.__code__.co_names
                    waiting += [around[name] for name in names if name in around]
            case type():
                found.append(value.__qualname__)
                own = [one for one in value.__mro__ if not installed(one.__module__)]
                homes |= {one.__module__ or "" for one in own}
                waiting += [
                    v for one in own for v in vars(one).values() if isinstance(v, FunctionType)
                ]
            case _ if isinstance(inner := getattr_static(value, "__wrapped__", None), FunctionType):
                waiting.append(inner)
            case _ if is_dataclass(value) or not installed(type(value).__module__):
                waiting += [type(value), object.__getstate__(value)]
            case Table():  # its repr leaves rows out
                waiting += [list(value.columns), np.asarray(value)]
            case Row():
                waiting += [np.asarray(value.index), np.asarray(value)]
            case _:
                with in_full():
                    found.append(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)))
    return found, homes


def _does(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, independent of the file and the lines in which it stands."""
    constants = [
        _does(value) if isinstance(value, CodeType)
        else sorted(map(repr, value)) if isinstance(value, frozenset)
        else repr(value)
        for value in code.co_consts
    ]  # fmt: skip
    return code.co_code, constants, code.co_names, code.co_varnames
