"""Output of commands: tables and sentences in the terminal, and files in a folder."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayesbandit.runtime.addresses import hidden
from bayesbandit.runtime.caches import is_writable
from bayesbandit.runtime.files import replacing
from bayesbandit.runtime.plugins import Failed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PNG_SOFTWARE = "bayesbandit"  # the software that our PNG files name
FOR_AUTHORS = DeprecationWarning, PendingDeprecationWarning, FutureWarning
EXIT_INTERRUPTED = 130  # the status of a command that Ctrl-C ended
SPREADSHEET_FORMULA = re.compile(r"[=+\-@\t\r]")  # how a text begins that a spreadsheet computes

console = Console()


def show(frame: pd.DataFrame, title: str) -> None:
    """Print a table in the terminal, with the same texts as in its file."""
    from bayesbandit.evaluation.text import is_numeric, texts

    table = Table(title=title, title_justify="left")
    for name, values in frame.items():
        heading = str(name).removeprefix("normalised_").replace("_", " ")
        right = is_numeric(values)
        if right:
            table.add_column(Text(heading), justify="right")
        else:
            table.add_column(Text(heading), overflow="fold")  # no name is cut short
    for row in zip(*(texts(values) for _, values in frame.items()), strict=True):
        table.add_row(*map(Text, row))
    console.print(table)


def save(
    folder: Path,
    table: pd.DataFrame,
    titled: dict[str, pd.DataFrame],
    figures: dict[str, Figure],
    *,
    title: str,
    answer: str,
) -> None:
    """Write a run's table.csv, table.md, pictures and report.html to a folder that has run.json.

    report.html has all tables, pictures and the answer.
    """
    from bayesbandit import evaluation
    from bayesbandit.evaluation.page import page
    from bayesbandit.evaluation.text import escaped

    pictures = {name: (figure.get_suptitle() or name, png(figure))
                for name, figure in figures.items()}  # fmt: skip
    with clear_errors():
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        parts = (
            f"## {escaped(heading)}\n\n{evaluation.markdown(frame)}\n"
            for heading, frame in titled.items()
        )
        files = {
            "table.csv": without_formulas(table).to_csv(index=False).encode(),
            "table.md": "\n".join(parts).encode(),
            **{f"{name}.png": content for name, (_, content) in pictures.items()},
            "report.html": page(title, answer, pictures, titled, record).encode(),
        }
        for name, content in files.items():
            with replacing(folder / name) as beside:
                beside.write_bytes(content)
    say(f"Results, tables and pictures are in {folder}, all on one page in report.html")


def png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    file = BytesIO()
    with warnings.catch_warnings():
        # a letter that no font has is a box: tables have the names
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(file, format="png", dpi=150, metadata={"Software": PNG_SOFTWARE})
    return file.getvalue()


def check_folder(folder: Path) -> None:
    """Raise OSError, before any work, if a folder cannot be made, or may not be changed."""
    if not is_writable(folder.absolute()):
        raise PermissionError(
            f"{folder} cannot be written: it is in no folder, or in one that may not be changed"
        )


def check_file(path: Path) -> None:
    """Raise OSError, before any work, if a file cannot be made or replaced."""
    folder = path.absolute().parent
    if not folder.exists():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {folder}")
    check_folder(folder)
    if path.is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder; name a file in it")


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a spreadsheet: an apostrophe before each text that it would compute.

    Such texts are names of arms, columns and files that others chose. Numbers stay as they are.
    """

    def safe(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and SPREADSHEET_FORMULA.match(value) else value

    return table.rename(columns=safe).map(safe)


def say(*parts: str | tuple[str, str]) -> None:
    """Print a sentence made of texts or (text, style). Markup in the texts is not interpreted."""
    console.print(Text.assemble(*parts))


def counted(n: int, what: str) -> str:
    """Return a number and what is counted, as "1 decision" or "2 decisions"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def warn(text: str) -> None:
    """Print a warning as one line on stderr, without the passwords of databases."""
    line = Text.assemble(("Warning:", "bold"), f" {hidden(text)}")
    Console(stderr=True, soft_wrap=True).print(line)


@contextmanager
def clear_errors() -> Iterator[None]:
    """End the command with one line, without a traceback, for bad input.

    Print each warning as a line, once: every bandit of a run may give it. Those for the authors of
    libraries are not for the user.
    """
    shown: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            warn(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        for category in FOR_AUTHORS:
            warnings.simplefilter("ignore", category)
        try:
            yield
        except (Failed, ValueError, OSError, TypeError, ImportError) as error:
            line = Text.assemble(("Error:", "bold red"), f" {hidden(str(error))}")
            Console(stderr=True).print(line)
            raise typer.Exit(1 if isinstance(error, Failed) else 2) from error
        except KeyboardInterrupt as error:
            Console(stderr=True).print("Interrupted.")
            raise typer.Exit(EXIT_INTERRUPTED) from error
