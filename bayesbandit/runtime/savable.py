"""Classes whose settings a file may hold, by name.

A name in a file never imports a module. It is looked up among the classes that are registered here,
and then among those that installed packages offer as `bayesbandit.savable`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

from bayesbandit.runtime.plugins import loaded, plugins

TOOLKIT = "bayesbandit."
META = {"kind", "foreign"}  # what a file says beside the fields
KINDS: dict[str, type] = {}  # by the name that a file has


def savable[T](kind: type[T]) -> type[T]:
    """Register a class, so that files can hold its objects: a dataclass (model, policy or balance)
    or an Enum.

    Files hold the fields of a dataclass. `load` finds the class if its module has been imported, or
    if its package offers it by an entry point of `bayesbandit.savable`. An Enum may be a field's
    value.
    """
    if not (isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum))):
        raise TypeError(f"only a dataclass is stored by its fields, or an Enum; got {kind!r}")
    if is_dataclass(kind) and (taken := META & {f.name for f in fields(kind)}):
        raise ValueError(f"{kind.__name__}: files have another use for a field {taken.pop()!r}")
    KINDS[name_of(kind)] = kind
    return kind


def name_of(kind: type) -> str:
    """Return the name of a class in files, with its module if the class is not the toolkit's."""
    ours = kind.__module__.startswith(TOOLKIT)
    return kind.__name__ if ours else f"{kind.__module__}:{kind.__qualname__}"


def kind_of(name: str) -> type | None:
    """Return the class with this name in files; None if there is none.

    It is loaded if an installed package offers it (as `Name = "module:Name"`, also of another
    module that imports the class).
    """
    if name not in KINDS:
        short_name = name.rpartition(":")[2]
        for points in plugins("savable").values():
            for point in points:
                if short_name in (point.name, point.attr):
                    loaded(point, "savable")
    return KINDS.get(name)
