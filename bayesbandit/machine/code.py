"""Code of one's own: what tells it from other code of the same name."""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np


@cache
def installed(module: str) -> bool:
    """Whether a module is a part of Python or of an installed package, and not the user's."""
    own = ":" in module  # a file of the user's: see `source.py`
    if not own and module.partition(".")[0] in (*sys.builtin_module_names, "bayesbandit"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    paths = {Path(p).resolve() for p in sysconfig.get_paths().values()}
    return file is not None and any(p in paths for p in Path(file).resolve().parents)


def does(code: CodeType) -> tuple[Any, ...]:
    """What code does, wherever it stands."""
    constants = tuple(map(_constant, code.co_consts))
    names = code.co_names, code.co_varnames, code.co_freevars
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, names, counts, code.co_exceptiontable


def _constant(value: Any) -> tuple[Any, ...]:
    if isinstance(value, CodeType):
        return does(value)
    if isinstance(value, frozenset):  # whose order differs from process to process
        return "set", *sorted(map(repr, value))
    return type(value).__name__, repr(value)


def names(code: CodeType) -> Iterator[str]:
    """The names that code and the functions in it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)


def fingerprint(*values: Any) -> str:
    """What tells functions, classes and objects that are the user's from others of the same name:
    their code, and what it refers to. "" of values that are all of installed packages."""
    found: list[Any] = []
    own, seen, left = False, {}, list(reversed(values))
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        more, is_own = _parts(value, found)
        own |= is_own
        if more:
            seen[id(value)] = value  # kept alive, so that its number stays its own
            left += reversed(more)
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16] if own else ""


def _parts(value: Any, found: list[Any]) -> tuple[list[Any], bool]:
    """What a value consists of, and whether it is the user's; what it says of itself is added to
    `found`."""
    match value:
        case FunctionType() if not installed(value.__module__ or ""):
            found.append((value.__qualname__, does(value.__code__)))
            around = sorted(set(names(value.__code__)) & set(value.__globals__))
            cells = [v for cell in value.__closure__ or () for v in _held(cell)]
            defaults = [*(value.__defaults__ or ()), value.__kwdefaults__]
            return [*(value.__globals__[name] for name in around), *cells, *defaults], True
        case type() if not installed(value.__module__):
            found.append(value.__qualname__)
            kept = {k: v for k, v in vars(value).items() if k not in HIDDEN}
            return [*kept, *kept.values(), *value.__bases__], True
        case FunctionType() | type():
            found.append(value.__qualname__)
        case ModuleType():
            found.append(value.__name__)
        case partial():
            return [value.func, value.args, value.keywords], False
        case MethodType() | staticmethod() | classmethod():
            return [value.__func__, getattr(value, "__self__", None)], False
        case property():
            return [value.fget, value.fset], False
        case Mapping():
            found.append(len(value))
            return [*value, *value.values()], False
        case tuple() | list():
            found.append(len(value))
            return [*value], False
        case set() | frozenset():
            found.append(sorted(map(_said, value)))
        case np.ndarray():
            found.append((value.shape, value.dtype.str, value.tobytes()))
        case _:
            own = not installed(type(value).__module__)
            if hasattr(value, "__dict__") and (own or is_dataclass(value)):
                return [type(value), dict(vars(value))], False
            found.append(_said(value))
    return [], False


HIDDEN = ("__dict__", "__weakref__", "__doc__", "__firstlineno__", "__module__", "_abc_impl")


def _said(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _held(cell: Any) -> list[Any]:
    """What a cell holds; nothing, where its variable has no value so far."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []
