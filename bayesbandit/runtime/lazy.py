"""Names of a package that load when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return the object of this name; raise AttributeError if the package has none.

    homes: the module of each name, relative to bayesbandit. A module that has the name itself
    stands for the module.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module = import_module(f".{homes[name]}", "bayesbandit")
    return module if homes[name] == name else getattr(module, name)
