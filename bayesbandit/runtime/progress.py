"""A progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    what: str, total: int, done: int = 0, shown: bool = True
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on standard error, and yield a function that advances it by a number of
    pieces.

    what: the name of the pieces, in the plural. done: how many were finished before.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = *Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task(what, total=total, completed=done)
        yield lambda pieces: progress.advance(task, pieces)
