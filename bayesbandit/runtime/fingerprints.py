"""Fingerprints of the user's code, by which a run notices that the code has changed.

A module of the user's counts by its whole text; modules that it imports do not count.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from bayesbandit.runtime import user_modules
from bayesbandit.runtime.shown import in_full
from bayesbandit.runtime.user_modules import installed


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
    walk = _Walk(values)
    if not walk.homes:
        return ""
    texts = [user_modules.says(name) for name in sorted(walk.homes)]
    return hashlib.sha256(repr((walk.found, texts)).encode()).hexdigest()[:16]


def texts(*values: object) -> dict[str, str]:
    """Return digests of the user's modules in which the code of these values stands."""
    return user_modules.digests(sorted(_Walk(values).homes))


def packages(*values: object) -> list[str]:
    """Return the installed packages that define these functions, classes and objects.

    Each is a text "name version". The toolkit and Python are left out.
    """
    return user_modules.packages(map(_home, values))


def _home(value: object) -> str:
    """Return the module of a function or a class, or of an object's class."""
    value = value.func if isinstance(value, partial) else value
    value = value.load() if isinstance(value, Deferred) else value
    named = value if isinstance(value, FunctionType | type) else type(value)
    return named.__module__ or ""


class _Walk:
    """What values hold (`found`), and the user's modules in which their code stands (`homes`)."""

    def __init__(self, values: Iterable[object]) -> None:
        self.found: list[Any] = []
        self.homes: set[str] = set()
        self._seen: dict[int, object] = {}  # kept alive, so that numbers stay theirs
        self._visit(tuple(values))

    def _visit(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        match value:
            case partial():
                self._visit((value.func, value.args, value.keywords))
            case Deferred():
                self._visit(value.load())
            case Mapping():
                self._visit((*value, *value.values()))
            case tuple() | list():
                self.found.append(len(value))
                for one in value:
                    self._visit(one)
            case np.ndarray():
                self.found.append((value.shape, value.dtype.str, value.tobytes()))
            case type():
                self._visit_class(value)
            case FunctionType():
                self._visit_function(value)
            case _:
                self._visit_object(value)

    def _visit_class(self, value: type) -> None:
        self.found.append(value.__qualname__)
        for one in value.__mro__:
            if not installed(one.__module__):
                self.homes.add(one.__module__)
                self._visit([v for v in vars(one).values() if isinstance(v, FunctionType)])

    def _visit_function(self, value: FunctionType) -> None:
        home = value.__module__ or ""
        if installed(home):
            if (inner := inspect.unwrap(value)) is not value:
                self._visit(inner)
            return
        self.homes.add(home)
        self.found.append(_does(value.__code__))
        self._visit([cell.cell_contents for cell in value.__closure__ or ()])
        self._visit((value.__defaults__, value.__kwdefaults__))
        if not user_modules.text(home):  # of a notebook
            around = value.__globals__
            self._visit([around[name] for name in value.__code__.co_names if name in around])

    def _visit_object(self, value: Any) -> None:
        inner = inspect.getattr_static(
            value, "__wrapped__", None
        )  # of what stands before a function
        if isinstance(inner, FunctionType):
            self._visit(inner)
        elif is_dataclass(value) or not installed(type(value).__module__):
            self._visit(type(value))
            self._visit(object.__getstate__(value))
        else:
            with in_full():
                self.found.append(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)))


def _does(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, independent of the file and the lines in which it stands."""
    constants = [
        _does(value) if isinstance(value, CodeType)
        else sorted(map(repr, value)) if isinstance(value, frozenset)
        else repr(value)
        for value in code.co_consts
    ]  # fmt: skip
    return code.co_code, constants, code.co_names, code.co_varnames
