"""Folders for compiled code, on machines where neither the package nor the home can be written.

Numba keeps compiled code beside the source or in the home's cache, PyTensor in the home. Without
either they refuse to start, as in a read-only container. A folder among the temporary files then
takes their place. If there is none, nothing is kept.

A folder of compiled code that came with an image and cannot be written is read (`Shipped`). Numba
alone would look elsewhere and compile again. A process says only once that code cannot be kept.

Numba writes a file for each signature of a function, and an index of their names. Two processes
that save at once may write one file for two signatures, so here they take turns.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

from bayesbandit.runtime import locks

PACKAGE = Path(__file__).parents[1]
OWN = "UserProvidedCacheLocator"  # of NUMBA_CACHE_DIR
READ = OWN, "InTreeCacheLocator"  # which is beside the source


def settle() -> None:
    """Make sure that numba can start, and PyTensor if it is used."""
    take_turns()
    extend_places()
    start_without_places()
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    stuck = "compiledir" not in flags and not is_writable(Path("~/.pytensor").expanduser())
    if stuck and (folder := temporary()) is not None:
        own = f"base_compiledir={folder / 'pytensor'}"
        os.environ["PYTENSOR_FLAGS"] = f"{flags},{own}" if flags else own


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which may have to be made first."""
    while not folder.exists():
        if folder == folder.parent:
            return False
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def temporary() -> Path | None:
    """Return a folder among the temporary files that only this user can write.

    It holds code that will be run, so others must not be able to change it.
    """
    user = os.getuid() if os.name == "posix" else "user"
    try:
        folder = Path(tempfile.gettempdir()) / f"bayesbandit-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    private = os.name != "posix" or (
        found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) & 0o077 == 0
    )
    return folder if private and stat.S_ISDIR(found.st_mode) and is_writable(folder) else None


def take_turns() -> None:
    """Let one process at a time save the code of a function."""
    from numba.core.caching import IndexDataCacheFile

    if "__wrapped__" in vars(IndexDataCacheFile.save):
        return
    kind: Any = IndexDataCacheFile
    save = kind.save

    @wraps(save)
    def alone(self: IndexDataCacheFile, key: object, data: object) -> None:
        with locks.turn(Path(self._index_path).parent):
            save(self, key, data)

    kind.save = alone


def extend_places() -> None:
    """Let numba look in two more kinds of places for the code of a function.

    First come folders that it cannot write, if they have the code of our kernels. Last comes a
    folder among the temporary files, where no other place can be written: also if NUMBA_CACHE_DIR
    names one that cannot.
    """
    from numba.core import caching

    kinds = caching.FunctionCache._impl_class._locator_classes  # PyTensor adds to it, too
    if not any("shipped" in vars(one) for one in kinds):
        kinds[:0] = [shipped(one) for one in kinds if one.__name__.lstrip("_") in READ]
        own = next(one for one in kinds if one.__name__.lstrip("_") == OWN)
        kinds.append(among_temporary_files(own))


def among_temporary_files(base: type[Any]) -> type[Any]:
    """Return a subclass of a numba cache locator that takes a folder among the temporary files."""

    class Temporary(base):
        @classmethod
        def from_function(cls, function: FunctionType, file: str) -> Temporary | None:
            folder = temporary()
            if folder is None or not Path(file).exists():
                return None
            found = cls(function, file)
            found._cache_path = str(folder / "numba" / cls.get_suitable_cache_subpath(file))
            try:
                found.ensure_cache_path()
            except OSError:
                return None
            return found

    return Temporary


def start_without_places() -> None:
    """Let a function whose code can be kept nowhere be compiled in each process."""
    from numba.core import dispatcher
    from numba.np.ufunc import ufuncbuilder

    kinds: tuple[Any, ...] = dispatcher.Dispatcher, ufuncbuilder.UFuncDispatcher
    for kind in kinds:
        if "__wrapped__" not in vars(kind.enable_caching):
            kind.enable_caching = starting(kind.enable_caching)


def starting(enable: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function that keeps compiled code, and goes on where there is no place for it."""

    from numba.core.caching import NullCache

    class Nowhere(NullCache):
        def save_overload(self, signature: object, data: object) -> None:
            """Say that what was compiled now is lost."""
            complain("no folder can be written")

    @wraps(enable)
    def enabled(self: Any) -> None:
        try:
            enable(self)
        except RuntimeError as error:  # "cannot cache function …: no locator available"
            if "cannot cache" not in str(error):
                raise
            vars(self)["_cache" if hasattr(self, "_cache") else "cache"] = Nowhere()

    return enabled


def shipped(base: type[Any]) -> type[Any]:
    """Return a subclass of a numba cache locator that also takes folders without write access."""

    import numba

    class Shipped(base):
        shipped = True

        @classmethod
        def from_function(cls, function: FunctionType, file: str) -> Shipped | None:
            config: Any = numba.config
            asked = config.CACHE_DIR or "User" not in base.__name__
            if not asked or PACKAGE not in Path(file).parents:
                return None
            found = cls(function, file)
            folder = Path(found.get_cache_path())
            if not folder.is_dir() or is_writable(folder):
                return None
            names = folder.glob(f"{Path(file).stem}.{function.__qualname__}-*.nbi")
            return found if any(names) else None

        def ensure_cache_path(self) -> None:
            """Do nothing: the folder is there."""

    return Shipped


def forgiving(save: Callable[..., None]) -> Callable[..., None]:
    """Return a function that saves compiled code, and says it once where that is not possible."""

    def saved(signature: object, data: object) -> None:
        try:
            save(signature, data)
        except OSError as error:
            complain(str(error))

    return saved


told: list[str] = []  # why code is not kept, where that has been said


def complain(why: str) -> None:
    """Warn once in a process that compiled code is not kept."""
    if not told:
        told.append(why)
        logging.getLogger("bayesbandit").warning(
            "compiled kernels are not kept, and each process compiles its own (%s): set "
            "NUMBA_CACHE_DIR to a folder that can be written",
            why,
        )
