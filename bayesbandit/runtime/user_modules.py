"""The user's own modules: which they are, the text of their files, and their imports."""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from traceback import walk_tb
from typing import Any

INSTALLED = ("purelib", "platlib", "stdlib", "platstdlib")  # "data" is the whole environment
SHARED = {"site-packages", "dist-packages"}  # of another Python that this one takes packages from
_texts: dict[str, tuple[Any, bytes]] = {}  # by module, its spec and what its file said then


class ChangedCode(ValueError):
    """An error: code changed since a run began."""


@cache
def installed(module: str) -> bool:
    """Return whether a module is a part of Python or of an installed package, and not the
    user's."""
    top = module.partition(".")[0]
    if top == "bayesbandit" and ":" not in module:  # which a file of the user's has: `source.py`
        return True
    file = _file(module)
    if file is None:
        return top in sys.stdlib_module_names
    paths = {Path(sysconfig.get_paths()[key]).resolve() for key in INSTALLED}
    found = Path(file).resolve()
    return bool(SHARED & set(found.parts)) or any(p in paths for p in found.parents)


def place(error: Exception) -> str:
    """Return where in the user's code an error was raised, or the name that the code called.

    It is "" if the user's code took no part.
    """
    own = [
        f" (line {line} of {frame.f_code.co_filename})"
        for frame, line in walk_tb(error.__traceback__)
        if not installed(frame.f_globals.get("__name__", ""))
    ]
    return own[-1] if own else ""


def packages(names: Iterable[str]) -> list[str]:
    """Return names and versions of the installed packages of these modules, without the toolkit and
    Python."""
    tops = {n.partition(".")[0] for n in names if installed(n)} - {"bayesbandit"}
    found = {d for top in tops - sys.stdlib_module_names for d in _distributions().get(top, [])}
    return [f"{name} {version(name)}" for name in sorted(found)]


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def keep(module: str, text: bytes) -> None:
    """Remember the text from which a module was made."""
    _texts[module] = _spec(module), text


def text(module: str) -> bytes:
    """Return the text of a user's module when it was loaded, or else when it was first seen.

    It is empty if there is no file, as in a notebook.
    """
    is_loaded = module in sys.modules
    spec = _spec(module) if is_loaded else _found(module)
    if is_loaded and module in _texts and _texts[module][0] is spec:  # one reloaded has a new spec
        return _texts[module][1]
    file = Path("" if spec is None else spec.origin or "")
    read = file.read_bytes() if file.is_file() else b""
    if is_loaded:
        keep(module, read)
    return read


def says(module: str) -> str:
    """Return the meaning of a module's text: comments and spaces are ignored."""
    tree = _tree(module)
    return ast.dump(tree) if tree.body else _digest(module)


def imports(module: str) -> Iterator[str]:
    """Return the user's modules that a user's module imports, anywhere in its text."""
    package = _attribute(module, "__package__") or ""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from own(alias.name)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            within = resolve_name("." * node.level + (node.module or ""), package)
            for part in (within, *(f"{within}.{alias.name}" for alias in node.names)):
                yield from own(part)


def own(name: str) -> Iterator[str]:
    """Return a module by name; None unless it is the user's and has a file."""
    if name in sys.modules:
        mine = name != "__main__" and not installed(name)
    else:  # one that a function imports when it is called
        spec = _found(name)
        mine = not SHARED & set(Path("" if spec is None else spec.origin or "").parts)
    if mine and text(name):
        yield name


def _attribute(module: str, name: str) -> Any:
    """Return an attribute of a module that is loaded; None where there is none."""
    loaded = sys.modules.get(module)
    return None if loaded is None else vars(loaded).get(name)


def _file(module: str) -> str | None:
    """Return the file of a module that is loaded."""
    file: str | None = _attribute(module, "__file__")
    return file


def _spec(module: str) -> ModuleSpec | None:
    """Return where a module was loaded from."""
    spec: ModuleSpec | None = _attribute(module, "__spec__")
    return spec


def _tree(module: str) -> ast.Module:
    try:
        return ast.parse(text(module))
    except (SyntaxError, ValueError):  # compiled, or so broken that it is not loaded
        return ast.Module([], [])


def _found(name: str) -> ModuleSpec | None:
    """Return where a module would be loaded from; nothing is imported to find out."""
    top, *parts = name.split(".")
    if top in sys.stdlib_module_names or not top:
        return None
    try:
        spec = find_spec(top)
        for i in range(len(parts)):
            if spec is None or spec.submodule_search_locations is None:
                return None
            within = spec.submodule_search_locations
            spec = PathFinder.find_spec(".".join([top, *parts[: i + 1]]), within)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec


def reached(names: Iterable[str]) -> dict[str, str]:
    """Return digests of the user's modules, and of all that these import."""
    found: dict[str, str] = {}
    left = [name for given in names for name in own(given)]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = _digest(name)
            left += imports(name)
    return found


def unchanged(digests: Mapping[str, str]) -> None:
    """Raise `ChangedCode` if a module was loaded from another text than `reached` saw."""
    for name, then in digests.items():
        if name in sys.modules and _digest(name) != then:
            file = _file(name) or name
            raise ChangedCode(
                f"{file} changed while the run was going, or since its processes loaded it: start "
                "it again, in a new Python process. What was finished before is kept, and goes on "
                "with the same code only; for other code, give another folder"
            )


def _digest(name: str) -> str:
    return hashlib.sha256(text(name)).hexdigest()
