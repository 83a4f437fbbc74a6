"""Where compiled code is kept, on machines where neither the package nor the home can be written.

Numba keeps it beside the source or in the home's cache, PyTensor in the home; without either they
refuse to start, as in a container that is read-only. A folder of our own among the temporary files
takes their place, and if there is none, nothing is kept.

Numba gives the code of each signature of a function a file, and keeps their names in an index. Two
processes that save at once may write the same file under two signatures: here they take turns.
"""

from __future__ import annotations

import os
import stat
import tempfile
from functools import wraps
from pathlib import Path
from typing import Any

from bayesbandit.machine import locks


def settle() -> None:
    """See to it that numba can start, and PyTensor, should it be used."""
    import numba
    from numba.misc.appdirs import AppDirs

    take_turns()
    package, home = (
        Path(__file__).parents[1] / "kernels",
        Path(AppDirs("numba", False).user_cache_dir),
    )
    config: Any = numba.config
    if not (config.CACHE_DIR or is_writable(package / "__pycache__") or is_writable(home)):
        folder = temporary()
        if folder is None:
            keep_nothing()
        else:
            config.CACHE_DIR = str(folder / "numba")
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    stuck = "compiledir" not in flags and not is_writable(Path("~/.pytensor").expanduser())
    if stuck and (folder := temporary()) is not None:
        own = f"base_compiledir={folder / 'pytensor'}"
        os.environ["PYTENSOR_FLAGS"] = f"{flags},{own}" if flags else own


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or it with those above it."""
    while not folder.exists():
        if folder == folder.parent:
            return False
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def temporary() -> Path | None:
    """A folder among the temporary files that is ours alone: code that is kept there is run."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = Path(tempfile.gettempdir()) / f"bayesbandit-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) & 0o077 == 0
    )
    return folder if own and stat.S_ISDIR(found.st_mode) and is_writable(folder) else None


def take_turns() -> None:
    """One process at a time saves the code of a function."""
    from numba.core.caching import IndexDataCacheFile

    if hasattr(IndexDataCacheFile.save, "__wrapped__"):
        return
    kind: Any = IndexDataCacheFile
    save = kind.save

    @wraps(save)
    def alone(self: Any, key: Any, data: Any) -> None:
        with locks.turn(Path(self._index_path).parent):
            save(self, key, data)

    kind.save = alone


def keep_nothing() -> None:
    """Compile anew in each process."""
    from numba.core import dispatcher
    from numba.np.ufunc import ufuncbuilder

    kinds: tuple[Any, ...] = dispatcher.Dispatcher, ufuncbuilder.UFuncDispatcher
    for kind in kinds:
        kind.enable_caching = lambda self: None
