"""The user's own modules: which they are, and the text of their files."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
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
    file = _said(module, "__file__")
    if file is None:
        return top in sys.stdlib_module_names
    paths = {Path(sysconfig.get_paths()[key]).resolve() for key in INSTALLED}
    path = Path(file).resolve()
    return bool(SHARED & set(path.parts)) or any(p in paths for p in path.parents)


def place(error: Exception) -> str:
    """Return where in the user's code an error was raised, or the name that the code called.

    It is "" if the user's code took no part.
    """
    folders = [
        f" (line {line} of {frame.f_code.co_filename})"
        for frame, line in walk_tb(error.__traceback__)
        if not installed(frame.f_globals.get("__name__", ""))
    ]
    return folders[-1] if folders else ""


def keep(module: str, text: bytes) -> None:
    """Remember the text from which a module was made."""
    _texts[module] = _said(module, "__spec__"), text


def text(module: str) -> bytes:
    """Return the text of a user's module when it was loaded, or else when it was first seen.

    It is empty if there is no file, as in a notebook.
    """
    spec = _said(module, "__spec__")
    if module in _texts and _texts[module][0] is spec:  # one that is reloaded has a new spec
        return _texts[module][1]
    file = Path("" if spec is None else spec.origin or "")
    keep(module, file.read_bytes() if file.is_file() else b"")
    return _texts[module][1]


def _said(module: str, what: str) -> Any:
    """Return what a module says of itself, __file__ or __spec__; None if it is not loaded."""
    return vars(sys.modules.get(module) or ModuleType(module)).get(what)


def unchanged(digests: Mapping[str, str]) -> None:
    """Raise `ChangedCode` if a module was loaded from another text than `digests` saw."""
    for name, then in digests.items():
        if name in sys.modules and digest(name) != then:
            file = _said(name, "__file__") or name
            raise ChangedCode(
                f"{file} changed while the run was going, or since its processes loaded it: start "
                "it again, in a new Python process. What was finished before is kept for the code "
                "that made it"
            )


def digest(name: str) -> str:
    """Return a digest of the text of a user's module."""
    return hashlib.sha256(text(name)).hexdigest()
