"""Files that are written whole or not at all, even if processes are killed or write at once."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

HOST = socket.gethostname().replace(".", "-")[:64] or "here"
BEGINNING = 35  # characters, of up to four bytes each, of a file's name


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a file to write beside `path`; it replaces `path` at the end.

    If anything fails, the old file stays. A link is followed, and permissions are kept. Files that
    killed processes of this machine left behind are removed. Raise FileExistsError if `path` is a
    folder, a pipe or a device. An OSError names `path`.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is there and is no file; give the name of a file")
    clear(path)
    beside = path.with_name(f"{_start(path)}{os.getpid()}.{uuid4().hex[:8]}.tmp")
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode or 0o666))
        if mode is not None:
            beside.chmod(mode)
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(beside)):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            beside.unlink()


def clear(path: Path) -> None:
    """Remove the files that killed processes of this machine left beside `path`."""
    start = _start(path)
    for file in path.parent.glob(".*.tmp"):
        pid = file.name.removeprefix(start).partition(".")[0]
        if file.name.startswith(start) and pid.isdigit() and not is_alive(int(pid)):
            file.unlink(missing_ok=True)


def _start(path: Path) -> str:
    """Return how the names of files beside `path` begin; not longer than names may be."""
    return f".{path.name[:BEGINNING]}.{HOST}."


def is_alive(pid: int) -> bool:
    """Return whether a process with this number exists, or may exist."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
