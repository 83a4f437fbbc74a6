"""The gallery: finds declared reward models by name or by path.

A model's name is that of its function. Names are looked up in the folders of the environment
variable BAYESBANDIT_MODELS, then in the copy inside the wheel or else the checkout's models/; an
earlier folder hides a later one. Listing reads the files without running them.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from bayesbandit.model import FROM_FILE, RewardModel, register

VARIABLE = "BAYESBANDIT_MODELS"
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Entry:
    """One model of the gallery, as read from its file."""

    name: str
    title: str
    path: Path


def folders() -> list[Path]:
    """Where models are looked for, in this order."""
    named = [Path(f).expanduser() for f in os.environ.get(VARIABLE, "").split(os.pathsep) if f]
    for folder in named:
        if not folder.is_dir():
            raise FileNotFoundError(f"{VARIABLE} names {folder}, which is not a folder")
    wheel, checkout = _HERE / "_models", _HERE.parent / "models"
    if wheel.is_dir():
        return [*named, wheel]
    return [*named, checkout] if (_HERE.parent / "pyproject.toml").is_file() else named


def list_models() -> dict[str, str]:
    """The gallery's models: titles by name. PyMC is not imported."""
    return {name: found[0].title for name, found in sorted(_entries().items())}


def load_model(name: str | os.PathLike[str]) -> RewardModel:
    """A model by its name, or from a file: "FILE.py", or "FILE.py:NAME" where it has several."""
    text = os.fspath(name)
    in_file = re.fullmatch(r"(.+\.py)(?::(\w+))?", text)
    if in_file:
        model = _one(Path(in_file[1]).expanduser(), in_file[2])
        register(model)
        return model
    if os.path.isdir(text) or Path(text).name != text:
        raise FileNotFoundError(f"{text} is not a model's file; give FILE.py or FILE.py:NAME")
    entries = _entries()
    found = entries.get(text) or [
        e for entry in entries.values() for e in entry if e.path.stem == text
    ]
    if not found:
        raise ValueError(f"there is no model {text!r}; there are: {', '.join(sorted(entries))}")
    first = [e for e in found if e.path.parent == found[0].path.parent]
    if len(first) > 1:
        choices = " or ".join(f"'{e.path}:{e.name}'" for e in first)
        raise ValueError(f"{text!r} may be several models; load one by {choices}")
    return _one(first[0].path, first[0].name)


def declared_in(path: str | os.PathLike[str]) -> dict[str, RewardModel]:
    """The reward models of a file by the names that it gives them."""
    path = Path(path).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    stat = path.stat()
    found = vars(_module(path, stat.st_mtime_ns, stat.st_size)).items()
    return {k: v for k, v in found if isinstance(v, RewardModel)}


def _one(path: Path, name: str | None) -> RewardModel:
    models = {k: v for k, v in declared_in(path).items() if k == name or not k.startswith("_")}
    if not models:
        raise ValueError(f"{path} declares no reward model; decorate one by @bb.reward_model(…)")
    if name is None and len(models) > 1:
        raise ValueError(f"{path} has several models: {_choices(path, models)}")
    if name is not None and name not in models:
        raise ValueError(f"{path} has no model {name!r}; it has {_choices(path, models)}")
    return models[name] if name is not None else next(iter(models.values()))


def _choices(path: Path, names: dict[str, RewardModel]) -> str:
    return ", ".join(f"'{path}:{name}'" for name in names)


@lru_cache(maxsize=256)
def _module(path: Path, modified: int, size: int) -> ModuleType:
    """The file as a module; run once, and again after a change, so that a declaration is one."""
    spec = spec_from_file_location(f"{FROM_FILE}{path}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # as dataclasses and the like want it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise ImportError(f"{path} cannot be loaded: {_said(error)}") from error
    return module


def _entries() -> dict[str, list[Entry]]:
    """All models by name; several of one name where the folders or files have several."""
    entries: dict[str, list[Entry]] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.py")):
            for entry in _read(path):
                entries.setdefault(entry.name, []).append(entry)
    return entries


def _read(path: Path) -> Iterator[Entry]:
    """The models that a file declares, by its syntax."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (SyntaxError, ValueError) as error:
        warnings.warn(f"{path} cannot be read: {_said(error)}", stacklevel=4)
        return
    decorators = {"reward_model"} | {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "reward_model"
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            calls = [d.func for d in node.decorator_list if isinstance(d, ast.Call)]
            names = {getattr(call, "attr", getattr(call, "id", None)) for call in calls}
            if names & decorators:
                doc = ast.get_docstring(node) or ast.get_docstring(tree) or ""
                yield Entry(node.name, doc.partition("\n")[0], path)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
