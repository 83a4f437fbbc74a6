"""The user's Python files and packages: files loaded by path, packages found by entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import RLock
from types import ModuleType

from bayesbandit.runtime import user_modules


class Failed(RuntimeError):
    """An error in a run, which names the player and the environment."""


_loading = RLock()  # held while a file runs: another thread waits for its module to be whole
ERRORS_OF_SETTINGS = Failed, ValueError, TypeError, OSError, ImportError


def module_of(path: Path, prefix: str) -> ModuleType:
    """Return a file as a module, named by its path after a prefix.

    It runs once, and again after a change of the file.
    """
    path = path.expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"{prefix}{path}"
    with _loading:
        text = path.read_bytes()
        if name in sys.modules and user_modules.text(name) == text:
            return sys.modules[name]
        spec = spec_from_file_location(name, path)
        if spec is None:
            raise ImportError(f"{path} cannot be loaded as Python")
        module = module_from_spec(spec)
        sys.modules[name] = module  # as dataclasses and the like want it
        user_modules.keep(name, text)
        try:
            exec(compile(text, str(path), "exec"), vars(module))
        except (Exception, SystemExit) as error:  # a file's own code raises what it likes
            del sys.modules[name]
            raise ImportError(f"{path} cannot be loaded: {said(error)}") from error
        return module


@contextmanager
def blamed(
    what: str, passing: tuple[type[Exception], ...] = ERRORS_OF_SETTINGS, after: str = ""
) -> Iterator[None]:
    """Raise `Failed` for an error in the user's code: what failed, the error, and its line.

    passing: errors that are raised as they are. after: ends the sentence.
    """
    try:
        yield
    except passing:
        raise
    except Exception as error:  # a user's own code raises what it likes
        raise Failed(f"{what}: {said(error)}{user_modules.place(error)}{after}") from error


def said(error: BaseException) -> str:
    """Return an error's message with the name of its class."""
    return f"{type(error).__name__}: {error}"


def plugins(kind: str) -> dict[str, list[EntryPoint]]:
    """Return what installed packages offer as `bayesbandit.<kind>`, by name, without loading it.

    kind: models, studies, players or savable. A name has several entries if several packages offer
    it.
    """
    by_name: dict[str, list[EntryPoint]] = {}
    points = entry_points(group=f"bayesbandit.{kind}")
    for point in sorted(points, key=lambda point: (point.name, offer(point))):
        by_name.setdefault(point.name, []).append(point)
    return by_name


def plugin(kind: str, name: str) -> object:
    """Return the object that a package offers under this name, loaded. kind: see `plugins`.

    Raise ValueError if no package offers it, or several, and ImportError if it cannot be loaded.
    """
    points = plugins(kind).get(name, [])
    if not points:
        raise ValueError(f"no installed package offers {name!r} as one of bayesbandit.{kind}")
    by = " and by ".join(map(offer, points))
    if len(points) > 1:
        raise ValueError(
            f"{name!r} of bayesbandit.{kind} is offered by {by}: which is meant cannot be told "
            "while both are installed"
        )
    return loaded(points[0], kind)


def loaded(point: EntryPoint, kind: str) -> object:
    """Return the object that an entry point names; its package is imported."""
    try:
        return point.load()
    except Exception as error:  # a package's own code raises what it likes
        raise ImportError(
            f"{point.name!r} of bayesbandit.{kind}, offered by {offer(point)}, cannot be loaded: "
            f"{said(error)}"
        ) from error


def refused(kind: str, name: str, offered: object, wanted: str) -> TypeError:
    """Return the error for an offer that is not what its entry point promises."""
    by = offer(plugins(kind)[name][0])
    return TypeError(f"{name!r}, offered by {by}, must be {wanted}; it is {offered!r}")


def offer(point: EntryPoint) -> str:
    """Return an entry point as text for messages: `package version (module:object)`."""
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    return f"{package} ({point.value})"
