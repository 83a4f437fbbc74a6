"""Classes whose settings a file may hold, by name.

A file's word never imports a module: a name is looked up among the classes that are registered
here, and then among those that installed packages offer as `bayesbandit.savable`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

from bayesbandit.runtime.plugins import loaded, plugins

TOOLKIT = "bayesbandit."
META = {"kind", "foreign", "code"}  # what a file says beside the fields
KINDS: dict[str, type] = {}  # by the name that a file has


def savable[T](kind: type[T]) -> type[T]:
    """Register a dataclass, a model, policy or balance: files hold its fields, and `load` finds it
    where its module has been imported, or its package offers it as one of `bayesbandit.savable`.
    An Enum, which is the setting of one, too."""
    if not (isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum))):
        raise TypeError(f"only a dataclass is stored by its fields, or an Enum; got {kind!r}")
    if is_dataclass(kind) and (taken := META & {f.name for f in fields(kind)}):
        raise ValueError(f"{kind.__name__}: files have another use for a field {taken.pop()!r}")
    KINDS[name_of(kind)] = kind
    return kind


def name_of(kind: type) -> str:
    """Return the name that a file has for a class: with its module, where it is not ours."""
    ours = kind.__module__.startswith(TOOLKIT)
    return kind.__name__ if ours else f"{kind.__module__}:{kind.__qualname__}"


def is_registered(kind: type) -> bool:
    """Return whether files hold the settings of this class."""
    return KINDS.get(name_of(kind)) is kind


def kind_of(name: str) -> type | None:
    """Return the class that a file calls by this name, loaded if an installed package offers it
    (as `Name = "module:Name"`); None if there is none."""
    if name not in KINDS:
        for points in plugins("savable").values():
            for point in points:
                if name in (point.name, point.value):
                    loaded(point, "savable")
    return KINDS.get(name)
