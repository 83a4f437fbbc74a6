"""Logs from files: Parquet, CSV and JSON lines."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, name_array, one_of
from bayesbandit.environments.encoding import classes
from bayesbandit.ope.logs.exports import EXPORTED, of_lines
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.logs.readers import TIMES, encoded, not_stored
from bayesbandit.tables.dates import moments
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.files import LINES, kind_of, read, text_of
from bayesbandit.tables.learning import NoFeatures
from bayesbandit.tables.role_names import DEFAULTS
from bayesbandit.tables.roles import Roles, blamed, names_in, roles_of
from bayesbandit.tables.words import with_remedy

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("reward", "propensity", "batch")
DSJSON = ".dsjson"


@dataclass(frozen=True, eq=False)
class LoggedTable:
    """A table of rounds, with the roles of its columns.

    keep: contexts that the encoder uses although they look like dates or an identifier.
    """

    frame: pd.DataFrame
    name: str
    columns: Roles
    keep: tuple[Name, ...] = ()

    def log(self, x: pd.DataFrame | None, encoder: Encoder | None = None) -> Log:
        """Return the log.

        x: contexts (n, d) as numbers; None: without contexts. encoder: the one that made them.
        """
        f, roles, each = self.frame, self.columns.named, self.columns.probabilities
        k, arms = arms_of(f[roles["arm"]], str(roles["arm"]), each)
        p, available, rows = None, None, np.arange(len(k))
        if each:
            p = np.column_stack([numbers(f[each[a]], f"P({a})") for a in arms])
            if (p == 0).any() and (p[rows, k] > 0).all():  # else a sentence says what is wrong
                available = p > 0
        parts: dict[str, Any] = {"x": x, "arm": name_array(arms)[k], "arms": arms}
        parts |= {"probabilities": p, "available": available}
        with blamed(self.columns):
            parts |= {name: numbers(f[roles[name]], name) for name in NUMBERS if name in roles}
            parts |= {name: moments(f[roles[name]], name) for name in TIMES if name in roles}
        return Log.made(parts | {"roles": self.columns, "encoder": encoder})

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
    that is fitted to the file: `log.encoder`.
    rewards, default: for answers of Personalizer's Rank, by event id: see `of_lines`.
    errors: "skip" leaves out odd lines of an export, and a warning counts them by reason; "raise"
        raises ValueError at the first.
    sep, decimal, dates: how a CSV file is written: its separator (None: the one that splits the
        rows evenly, if only one does), its decimal mark (None: "."), and the format of its dates,
        such as "%d/%m/%Y" (dates of ISO 8601 need none).
    """
    form: dict[str, Any] = {"sep": sep, "decimal": decimal, "dates": dates, **columns}
    table = read_table(
        path, rewards, default, errors, drop=drop, keep=keep, encoder=encoder, **form
    )
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
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
    encoder: Encoder | None = None,
    **columns: Any,
) -> LoggedTable:
    """Read a log from a file as a table, with contexts not encoded: see `read_log`.

    drop: columns that are not used, and may be written in any way.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    form = {"sep": sep, "decimal": decimal, "dates": dates}
    try:
        text = text_of(path) if kind_of(path) in LINES else ""
        export = kind_of(path) == DSJSON or any(key in text for key in EXPORTED)
        if export:
            frame, roles = of_lines(text.split("\n"), rewards, default, errors)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a log: {error}") from error
    if export:
        if given := [name for name, value in form.items() if value is not None]:
            raise ValueError(f"{given[0]}={form[given[0]]!r} is for CSV files; got {path}")
        x = columns.pop("x", None)
        if columns:
            raise ValueError(f"{path} is an export, whose columns are known; got {columns!r}")
        contexts = roles.pop("x")
        if x is None:
            x = contexts if encoder is None else encoder.columns
        x = [name for name in x if name not in names_in(drop)]
        drop = [name for name in contexts if name not in x]
        columns = {**roles, "x": x}
    elif rewards is not None:
        raise ValueError(f"rewards= belong to answers of Rank, lines of JSON; got {path}")
    elif one_of(errors, "errors", ("raise", "skip")) == "skip":
        raise ValueError(f"errors='skip' is for lines of --dsjson and of Rank; got {path}")
    else:
        named = columns.get("arm")
        arm = DEFAULTS["arm"] if named is None else [named]
        frame = read(path, **form, text=arm, drop=names_in(drop))
    return recognised(frame, path.name, drop=drop, keep=keep, encoder=encoder, **columns)


def recognised(
    frame: pd.DataFrame, name: str, keep: Collection[Name] = (), **columns: Any
) -> LoggedTable:
    """Return a table with the role of each column. columns: arguments of `roles_of`."""
    if len(frame) < 2:
        raise ValueError(f"a log needs at least two rounds; got {len(frame)} in {name}")
    not_stored(frame, name)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    return LoggedTable(frame, name, roles_of(frame, name, keep=keep, **columns), (*names_in(keep),))


def arms_of(
    column: pd.Series, name: str, given: Iterable[Name] = ()
) -> tuple[np.ndarray, tuple[Name, ...]]:
    """Return the numbers (n,) of the chosen arms, and the arms' names."""
    import pandas as pd

    if pd.api.types.is_float_dtype(column) and (column % 1 == 0).all():
        column = column.astype(np.int64)
    try:
        number, found = classes(column) if column.nunique() > 1 else one_arm(column)
    except ValueError as error:
        raise ValueError(f"column {name!r} (arm): {error}") from error
    arms = tuple(given) or found
    spoken = {str(arm): k for k, arm in enumerate(arms)}
    if unknown := [arm for arm in found if str(arm) not in spoken]:
        raise ValueError(
            f"column {name!r} (arm) has {unknown[0]!r}, without a column of its probability; arms "
            f"with one are {list(arms)!r}"
        )
    return np.array([spoken[str(arm)] for arm in found])[number], arms


def one_arm(column: pd.Series) -> tuple[np.ndarray, tuple[Name, ...]]:
    """Return the numbers (n,) and the name of the arm in a column with one value."""
    if column.isna().any():
        raise ValueError(f"{int(column.isna().sum())} of {len(column)} values are missing")
    value = column.iloc[0]
    return np.zeros(len(column), dtype=int), (int(value) if isinstance(value, int) else str(value),)


def numbers(column: pd.Series, what: str) -> np.ndarray:
    """Return a column as numbers (n,), NaN if a value is missing."""
    import pandas as pd

    try:
        found = pd.to_numeric(column, errors="coerce")
    except OverflowError as error:
        raise ValueError(f"column {column.name!r} ({what}) must be numbers: {error}") from error
    if (strange := found.isna() & column.notna()).any():
        t = int(np.argmax(strange.to_numpy()))
        seen = column.iloc[t]
        raise ValueError(
            with_remedy(
                f"column {column.name!r} ({what}) must be numbers; got {seen!r} in round {t}", seen
            )
        )
    return found.to_numpy(np.float64, na_value=np.nan)
