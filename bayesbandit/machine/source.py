"""Python files and packages of one's own: loaded by path, and found by their entry points."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def module_of(path: Path, prefix: str) -> ModuleType:
    """A file as a module, named by its path behind a prefix; run once, and again after a change."""
    path = path.expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    stat = path.stat()
    return _module(path, prefix, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _module(path: Path, prefix: str, modified: int, size: int) -> ModuleType:
    spec = spec_from_file_location(f"{prefix}{path}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # as dataclasses and the like want it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise ImportError(f"{path} cannot be loaded: {said(error)}") from error
    return module


def said(error: Exception) -> str:
    """An error with its kind."""
    return f"{type(error).__name__}: {error}"


def plugins(kind: str) -> dict[str, EntryPoint]:
    """What installed packages offer as `bayesbandit.<kind>` (models, studies or players), by name;
    not loaded."""
    return {point.name: point for point in entry_points(group=f"bayesbandit.{kind}")}
