"""Logs from files: Parquet, CSV and JSON lines."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, arm_names, one_of
from bayesbandit.ope.logs.columns import numbers_of
from bayesbandit.ope.logs.exports import EXPORTED, of_lines
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.logs.readers import encoded, not_stored, of_rounds
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.files import LINES, kind_of, only_of_csv, read, text_of
from bayesbandit.tables.fitting import NoFeatures
from bayesbandit.tables.role_names import DEFAULTS
from bayesbandit.tables.roles import Roles, names_in, roles_of

if TYPE_CHECKING:
    import pandas as pd

DSJSON = ".dsjson"


@dataclass(frozen=True, eq=False)
class LoggedTable:
    """A table of rounds, with the roles of its columns.

    keep: contexts that the encoder uses although they look like dates or an identifier. arms: the
    arms' names; None: those with a probability, or those that were chosen.
    """

    frame: pd.DataFrame
    name: str
    columns: Roles
    keep: tuple[Name, ...] = ()
    arms: tuple[Name, ...] | None = None

    def log(self, x: pd.DataFrame | None, encoder: Encoder | None = None) -> Log:
        """Return the log. An arm with probability 0 was not available.

        x: contexts (n, d) as numbers; None: without contexts. encoder: the one that made them.
        """
        parts = of_rounds(self.frame, self.columns, self.arms)
        p = parts.get("probabilities")
        if p is not None and (p == 0).any():
            played = numbers_of(parts["arm"], parts["arms"])
            if (p[np.arange(len(p)), played] > 0).all():  # else a sentence says what is wrong
                parts["available"] = p > 0
        left = {} if encoder is None else encoder.left
        if x is None:
            left = dict.fromkeys(self.x, "it tells no rows apart")
        roles = self.columns.without(left)
        return Log.made(parts | {"x": x, "roles": roles, "encoder": encoder})

    @property
    def x(self) -> tuple[Name, ...]:
        """The names of the columns of contexts."""
        return self.columns.contexts

    @property
    def contexts(self) -> pd.DataFrame | None:
        """The columns of contexts, not encoded; None if there are none."""
        return self.frame[list(self.x)] if self.x else None

    def encoder(self, rows: slice = slice(None)) -> Encoder | None:
        """Return an encoder fitted to the contexts of `rows`; None without usable contexts."""
        if self.contexts is None:
            return None
        try:
            return Encoder.fit(self.contexts.iloc[rows], keep=[c for c in self.keep if c in self.x])
        except NoFeatures as error:
            warnings.warn(f"the log is read without contexts: {error}", stacklevel=3)
            return None

    def encoded(self, encoder: Encoder | None) -> Log:
        """Return the log with the contexts that an encoder makes; without contexts if it is
        None."""
        return self.log(None if encoder is None else encoded(self.frame, encoder), encoder)


def read_log(
    path: str | Path,
    *,
    encoder: Encoder | None = None,
    drop: Collection[str] = (),
    keep: Collection[str] = (),
    rewards: Mapping[str, float] | None = None,
    default: float = np.nan,
    errors: str = "raise",
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    **columns: Any,
) -> Log:
    """Read a log from a file: Parquet, CSV, JSON lines, or lines of `vw --dsjson` or Personalizer.

    You can name the columns: arm, reward, propensity, time, reward_time, batch and weight;
    probabilities={arm: column}; and x, the columns of contexts. A role that you do not name belongs
    to the column with its name: arm, reward, propensity, time, reward_time, batch; else action or
    item_id, click, pscore, timestamp. `probability_ARM` or `p_ARM` are the arms' probabilities if
    each arm that was chosen has such a column. All other columns are contexts. `print(log.roles)`
    says which column is what.

    drop: columns to leave out. keep: columns that are contexts although their names, or values that
    look like dates or identifiers, say otherwise. Contexts become numbers by `encoder`, or by one
    that is fitted to the file: `log.encoder`. arms: the arms' names, if not only those that were
    chosen.
    rewards, default: for answers of Personalizer's Rank, by event id: see `of_lines`.
    errors: "skip" leaves out odd lines of an export, and a warning counts them by reason; "raise"
        raises ValueError at the first.
    sep, decimal, dates: how a CSV file is written: its separator (None: a comma; a tab for .tsv),
        its decimal mark (None: "."), and the format of its dates, such as "%d/%m/%Y" (dates of
        ISO 8601 need none).
    """
    table = read_table(
        path, rewards, default, errors, sep=sep, decimal=decimal, dates=dates,
        drop=drop, keep=keep, encoder=encoder, **columns,
    )  # fmt: skip
    return table.encoded(table.encoder() if encoder is None else encoder)


def read_table(
    path: str | Path,
    rewards: Mapping[str, float] | None = None,
    default: float = np.nan,
    errors: str = "raise",
    *,
    sep: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    **columns: Any,
) -> LoggedTable:
    """Read a log from a file as a table, with contexts not encoded: see `read_log`."""
    form = {"sep": sep, "decimal": decimal, "dates": dates}
    frame, columns = read_rounds(path, rewards, default, errors, form, columns)
    return recognised(frame, Path(path).name, **columns)


def read_rounds(
    path: str | Path,
    rewards: Mapping[str, float] | None,
    default: float,
    errors: str,
    form: Mapping[str, str | None],
    columns: Mapping[str, Any],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of a file with a row for each round, and arguments of `recognised`.

    columns: the user's arguments. form: sep, decimal and dates of a CSV file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        text = text_of(path) if kind_of(path) in LINES else ""
        if kind_of(path) == DSJSON or any(key in text for key in EXPORTED):
            only_of_csv(form)
            frame, roles = of_lines(text.split("\n"), rewards, default, errors)
            return frame, _of_export(roles, columns)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a log: {error}") from error
    if rewards is not None:
        raise ValueError(f"rewards= belong to answers of Rank, lines of JSON; got {path}")
    if one_of(errors, "errors", ("raise", "skip")) == "skip":
        raise ValueError(f"errors='skip' is for lines of --dsjson and of Rank; got {path}")
    arm = columns.get("arm")
    names = DEFAULTS["arm"] if arm is None else [arm]
    return read(path, **form, text=names), dict(columns)


def _of_export(roles: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `recognised` for an export. roles: those of its columns."""
    chosen = {name: columns[name] for name in ("drop", "keep", "encoder", "x") if name in columns}
    if given := {name: columns[name] for name in columns if name not in chosen}:
        raise ValueError(f"it is an export, whose columns are known; got {given!r}")
    if chosen.get("x") is None and chosen.get("encoder") is None:
        dropped = names_in(chosen.get("drop", ()))
        chosen["x"] = [name for name in roles["x"] if name not in dropped]
    return {**roles, "x": None, **chosen}


def recognised(
    frame: pd.DataFrame,
    name: str,
    keep: Collection[Name] = (),
    arms: Any = None,
    **columns: Any,
) -> LoggedTable:
    """Return a table with the role of each column. columns: arguments of `roles_of`."""
    if len(frame) < 2:
        raise ValueError(f"a log needs at least two rounds; got {len(frame)} in {name}")
    not_stored(frame, name)
    arms = None if arms is None else arm_names(arms)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    roles = roles_of(frame, name, keep=keep, arms=arms, **columns)
    return LoggedTable(frame, name, roles, (*names_in(keep),), arms)
