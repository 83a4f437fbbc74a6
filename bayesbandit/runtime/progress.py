"""How far pieces of work are that other processes do: numbers in a file that all have mapped.

A piece of work stores one number in its own place, so that none waits for another. Where the file
cannot be had (a process on another machine, a full disk), nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

Place = tuple[str | None, int]  # a file, and the place of a piece of work in it
Tell = Callable[[float], None]
PAUSE = 0.2  # seconds between two looks


@dataclass(frozen=True)
class Board:
    """What n pieces of work have done (n,), in units of their own, and the file that holds it."""

    done: np.ndarray
    file: str | None = None

    def place(self, i: int) -> Place:
        """What the i-th piece of work needs to `tell`."""
        return self.file, i


def tell(place: Place) -> Tell:
    """A function that stores how much is done by now."""
    file, i = place
    if file is None:
        return _nothing
    try:
        done = np.memmap(file, np.float64, "r+")
    except OSError:
        return _nothing

    def store(much: float) -> None:
        done[i] = much

    return store


@contextmanager
def followed(n: int, before: int, total: int, what: str, show: bool) -> Iterator[Board]:
    """A board of n pieces of work, and a bar on stderr that follows it.

    before: what was done already, of the total. show: without it, there is neither file nor bar.
    """
    if not show:
        yield Board(np.zeros(n))
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TimeRemainingColumn,
    )

    columns = (
        "{task.description}", BarColumn(), TaskProgressColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with (
        TemporaryDirectory(prefix="bayesbandit-", ignore_cleanup_errors=True) as folder,
        Progress(*columns, console=Console(stderr=True)) as bar,
    ):
        board, over = _board(n, Path(folder) / "done"), Event()
        task = bar.add_task(what, total=total, completed=before)

        def follow() -> None:
            while not over.wait(PAUSE):
                bar.update(task, completed=before + float(board.done.sum()))

        thread = Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield board
        finally:
            over.set()
            thread.join()
            bar.update(task, completed=before + float(board.done.sum()))


def _board(n: int, file: Path) -> Board:
    try:
        file.write_bytes(bytes(8 * n))  # all of it: a hole in a file may find the disk full later
        return Board(np.memmap(file, np.float64, "r+"), str(file)) if n else Board(np.zeros(0))
    except OSError:
        return Board(np.zeros(n))


def _nothing(much: float) -> None:
    """Stores nothing."""
