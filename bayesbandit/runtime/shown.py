"""How settings and results are shown: in one line, and as a small table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields
from typing import Any

MAX_ROWS = 20  # of a table in a notebook

_in_full = ContextVar("in_full", default=False)


@contextmanager
def in_full() -> Iterator[None]:
    """Show all settings meanwhile: for texts that are kept and compared, defaults count too.

    Settings that can only be given by name are left out if they have their defaults.
    """
    token = _in_full.set(True)
    try:
        yield
    finally:
        _in_full.reset(token)


def shows_all() -> bool:
    """Return whether settings that have their defaults are shown, too."""
    return _in_full.get()


def settings_repr(settings: Any) -> str:
    """Return a dataclass in one line: what has no default, and settings that differ from theirs."""
    parts = []
    for field in sorted(fields(settings), key=lambda field: bool(field.kw_only)):
        value = getattr(settings, field.name)
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        if default is MISSING and not shows_all():
            parts.append(repr(value))
        elif (shows_all() and not field.kw_only) or (
            value is not default and (type(value) is not type(default) or value != default)
        ):
            parts.append(f"{field.name}={value!r}")
    return f"{type(settings).__name__}({', '.join(parts)})"


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a small HTML table; all texts are escaped, and of many rows the first are shown.

    columns: the heads; none: the first column has the names of the second.
    """
    lines = [f"<table><caption>{html.escape(title)}</caption>"]
    if columns:
        lines.append(_row(columns, ["th"] * len(columns)))
    rows = list(rows)
    lines += [_row(row, ["th", *["td"] * (len(row) - 1)]) for row in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        lines.append(_row([f"… and {len(rows) - MAX_ROWS} more"], ["td"]))
    return "\n".join([*lines, "</table>"])


def _row(values: Sequence[object], tags: Sequence[str]) -> str:
    texts = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    cells = zip(texts, tags, strict=True)
    return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text, tag in cells) + "</tr>"
