"""Files that are written whole or not at all, even if processes are killed or write at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

BEGINNING = 35  # characters, of up to four bytes each, of a file's name


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a file to write beside `path`; it replaces `path` at the end.

    If anything fails, the old file stays. A link is followed, and permissions are kept. Raise
    FileExistsError if `path` is a folder, a pipe or a device. An OSError names `path`. A process
    that is killed may leave a hidden file that ends in `.tmp`.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is there and is no file; give the name of a file")
    beside = path.with_name(f".{path.name[:BEGINNING]}.{uuid4().hex[:8]}.tmp")
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        beside.touch(mode or 0o666, exist_ok=False)
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
