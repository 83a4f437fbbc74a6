"""The studies of the paper, and those that installed packages offer: found by name, listed."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bayesbandit.experiments.experiment import Failed
from bayesbandit.runtime.plugins import hides, offer, plugin, plugins, said
from bayesbandit.runtime.user_modules import place

SETTINGS = Failed, ValueError, TypeError, OSError, ImportError
NEEDED = ("TITLE", "experiment", "table", "beside", "figures")  # parts of a study


def own() -> list[str]:
    """Names of the studies of the package."""
    return [module.name for module in pkgutil.iter_modules(__path__)]


def names() -> list[str]:
    """Names of all studies, those of the package first."""
    return [*dict.fromkeys([*own(), *plugins("studies")])]


def title(name: str) -> str:
    """What a study shows. One of the package is read and not run: it imports all that it plays."""
    if name not in own():
        return str(load(name).TITLE)
    file = Path(__path__[0]) / name
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Name("TITLE")], ast.Constant(str() as text)):
                return text
    return str(load(name).TITLE)


def load(name: str) -> Any:
    """A study by its name."""
    if name in own():
        hides("studies", name, "the study of bayesbandit")
        return import_module(f"bayesbandit.studies.{name}")
    offered = plugins("studies")
    if name not in offered:
        raise ValueError(f"unknown study {name!r}; there are {', '.join(names())}")
    module = plugin("studies", name)
    if missing := [part for part in NEEDED if not hasattr(module, part)]:
        by = offer(offered[name][0])
        raise ValueError(f"the study {name!r}, offered by {by}, lacks {', '.join(missing)}")
    return module


@contextmanager
def blamed(study: str, part: str, kept: str = "") -> Iterator[None]:
    """An error of a study's own code, which raises what it likes, is one of that part of it; but
    for one of the settings, which says so."""
    try:
        yield
    except Exception as error:
        if part == "experiment" and isinstance(error, SETTINGS):
            raise
        raise Failed(
            f"`{part}` of the study {study!r} failed: {said(error)}{place(error)}{kept}"
        ) from error
