"""Folders for compiled code, on machines where neither the package nor the home can be written.

Numba keeps compiled code beside the source or in the home's cache, PyTensor in the home. Without
either they refuse to start, as in a read-only container. A folder among the temporary files then
takes their place. If there is none, nothing is kept, and a process says so once.

A folder of compiled code that came with an image and cannot be written is read. Numba alone would
look elsewhere and compile again.

Numba reads the code of a function as long as its own file is the same. Ours have in them what they
call, so that none is read after any file of kernels has changed.

Numba writes a file for each signature of a function, and an index of their names. Two processes
that save at once may write one file for two signatures, so here they take turns.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from multiprocessing import current_process
from pathlib import Path
from types import FunctionType
from typing import Any

fcntl = import_module("fcntl") if os.name == "posix" else None  # Windows has no such locks
PACKAGE = Path(__file__).parents[1]
COMPILING_TAKES_SECONDS = (
    "bayesbandit compiles its kernels, once on this machine: the first decision and the first "
    "reward take seconds"
)
NOT_KEPT = (
    "compiled kernels are not kept, and each process compiles its own (%s): set NUMBA_CACHE_DIR "
    "to a folder that can be written"
)
told: list[str] = []  # what this process has said
USER_CACHE_LOCATOR = "UserProvidedCacheLocator"  # numba's class of NUMBA_CACHE_DIR


def settle() -> None:
    """Make sure that numba can start, and PyTensor if it is used.

    Numba looks for the code of our kernels where `place_of` says, and then where it would.
    """
    from numba.core import caching

    # PyTensor adds to it, too
    kinds: list[type[object]] = caching.FunctionCache._impl_class._locator_classes
    if Place not in kinds:
        kinds.insert(0, Place)
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    stuck = "compiledir" not in flags and not is_writable(Path("~/.pytensor").expanduser())
    if stuck and (folder := temporary()) is not None:
        flag = f"base_compiledir={folder / 'pytensor'}"
        os.environ["PYTENSOR_FLAGS"] = f"{flags},{flag}" if flags else flag


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
        status = folder.lstat()
    except OSError:
        return None
    private = os.name != "posix" or (
        status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) & 0o077 == 0
    )
    return folder if private and stat.S_ISDIR(status.st_mode) and is_writable(folder) else None


class Place:
    """What numba asks where it keeps the code of a function, before it asks its own classes."""

    @staticmethod
    def from_function(function: FunctionType, file: str) -> Any:
        """Return numba's locator of the folder that `place_of` says; None: numba looks itself."""
        from numba.core import caching

        kinds = caching.FunctionCache._impl_class._locator_classes
        base: Any = next(kind for kind in kinds if kind.__name__.lstrip("_") == USER_CACHE_LOCATOR)
        folder = place_of(function, Path(file), base.get_suitable_cache_subpath(file))
        if folder is None:
            return None
        locator = base(function, file)
        locator._cache_path = str(folder)
        own = locator.get_source_stamp()
        locator.get_source_stamp = lambda: (own, digest_of_kernels())
        return locator


@cache
def digest_of_kernels() -> str:
    """Return a digest of all files of kernels."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.glob("kernels/**/*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def place_of(function: FunctionType, file: Path, subfolder: str) -> Path | None:
    """Return the first folder that has the code of a kernel of ours, or can be written.

    None: there is none, or the function is not ours. subfolder: of the file, in folders for many.
    """
    import numba
    from numba.misc.appdirs import AppDirs

    if PACKAGE not in file.parents:
        return None
    config: Any = numba.config
    folders = [Path(config.CACHE_DIR) / subfolder] if config.CACHE_DIR else []
    folders.append(file.parent / "__pycache__")
    folders.append(Path(AppDirs("numba", False).user_cache_dir) / subfolder)
    if (private := temporary()) is not None:
        folders.append(private / "numba" / subfolder)
    for folder in folders:
        has_code = any(folder.glob(f"{file.stem}.{function.__qualname__}-*.nbi"))
        if has_code or is_writable(folder):
            return folder
    return None


def announced(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that loads compiled code, and tells a user who waits where there is none.

    That is once on a machine, and is said once in a process.
    """

    def loaded(signature: object, target: object) -> Any:
        code = load(signature, target)
        if code is None and COMPILING_TAKES_SECONDS not in told:
            told.append(COMPILING_TAKES_SECONDS)
            if is_watched():
                print(COMPILING_TAKES_SECONDS, file=sys.stderr, flush=True)
        return code

    return loaded


def is_watched() -> bool:
    """Return whether a user can see the messages of this process: a terminal or a notebook."""
    if current_process().name != "MainProcess" or sys.stderr is None:
        return False
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def forgiving(save: Callable[..., None], folder: Path) -> Callable[..., None]:
    """Return a function that saves compiled code in a folder while no other process does, and says
    it once where that is not possible."""

    def saved(signature: object, data: object) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with turn(folder):
                save(signature, data)
        except OSError as error:
            complain(str(error))

    return saved


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one process at a time run a block; on a disk without locks, any number of them."""
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def complain(why: str) -> None:
    """Warn once in a process that compiled code is not kept."""
    if NOT_KEPT not in told:
        told.append(NOT_KEPT)
        logging.getLogger("bayesbandit").warning(NOT_KEPT, why)
