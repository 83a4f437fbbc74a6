"""Logs from files: Parquet, CSV and JSON lines. Columns are recognised, or named by the user."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, name_array
from bayesbandit.environments.csv_files import read
from bayesbandit.environments.encoding import classes
from bayesbandit.ope.logs.exports import of_lines
from bayesbandit.ope.logs.log import Log
from bayesbandit.ope.logs.readers import ROLES, check_columns
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.learning import NoFeatures

if TYPE_CHECKING:
    import pandas as pd

KNOWN = {  # names of columns by role; the first that exists is used
    "arm": ("arm", "action", "treatment", "variant", "item_id"),
    "reward": ("reward", "outcome", "click", "clicked", "conversion", "converted"),
    "propensity": ("propensity", "propensity_score", "pscore", "action_prob", "probability", "p"),
    "time": ("timestamp", "time", "decided_at"),
    "batch": ("batch",),
}
EACH = ("probability_", "propensity_", "prob_", "p_")  # prefixes of columns by arm
NEVER = ("weight",)  # not a context: in a saved history it depends on the arm
NUMBERS, TIMES = ("reward", "propensity", "batch"), ("time", "reward_time")
PARQUET, LINES = (".parquet", ".pq"), (".json", ".jsonl", ".ndjson", ".dsjson")


@dataclass(frozen=True, eq=False)
class LoggedTable:
    """A table of rounds, with the roles of its columns.

    roles: columns by role. probabilities: columns by arm. x: the columns of contexts.
    """

    frame: pd.DataFrame
    name: str
    roles: Mapping[str, str]
    probabilities: Mapping[Name, str]
    x: tuple[str, ...]

    def log(self, x: pd.DataFrame | None) -> Log:
        """Return the log. x: contexts (n, d) as numbers; None: without contexts."""
        f, roles = self.frame, self.roles
        k, arms = arms_of(f[roles["arm"]], roles["arm"], self.probabilities)
        p, available, rows = None, None, np.arange(len(k))
        if self.probabilities:
            p = np.column_stack([numbers(f[self.probabilities[a]], f"P({a})") for a in arms])
            if (p == 0).any() and (p[rows, k] > 0).all():  # else a sentence says what is wrong
                available = p > 0
        parts = {name: numbers(f[roles[name]], name) for name in NUMBERS if name in roles}
        parts |= {name: moments(f[roles[name]], name) for name in TIMES if name in roles}
        names = name_array(arms)[k]
        return Log(x, names, probabilities=p, arms=arms, available=available, **parts)

    @property
    def contexts(self) -> pd.DataFrame | None:
        """The columns of contexts, not encoded; None if there are none."""
        return self.frame[list(self.x)] if self.x else None

    def encoder(
        self, rows: slice = slice(None), drop: Collection[Name] = (), keep: Collection[Name] = ()
    ) -> Encoder | None:
        """Return an encoder fitted to the contexts of `rows`; None without usable contexts."""
        if self.contexts is None:
            return None
        try:
            return Encoder.fit(self.contexts.iloc[rows], drop=drop, keep=keep)
        except NoFeatures as error:
            warnings.warn(f"the log is read without contexts: {error}", stacklevel=3)
            return None

    def encoded(self, encoder: Encoder | None) -> pd.DataFrame | None:
        """Return the contexts as numbers; None without an encoder."""
        import pandas as pd

        if encoder is None:
            return None
        x = encoder.transform(self.frame[list(encoder.columns)])
        return pd.DataFrame(x, columns=list(encoder.features))


def read_log(
    path: str | Path,
    *,
    encoder: Encoder | None = None,
    rewards: Mapping[str, float] | None = None,
    default: float = np.nan,
    **columns: Any,
) -> Log:
    """Read a log from a file: Parquet, CSV, or JSON lines of `vw --dsjson` or Personalizer.

    Columns are recognised by their names. You can name them: arm, reward, propensity, time,
    reward_time, batch; probabilities={arm: column}; and x, the columns of contexts (default: all
    others). Contexts become numbers by `encoder`, or by an encoder fitted to the file.
    rewards, default: for answers of Personalizer's Rank, by event id: see `of_lines`.
    """
    table = read_table(path, rewards, default, **columns)
    return table.log(table.encoded(table.encoder() if encoder is None else encoder))


def read_table(
    path: str | Path,
    rewards: Mapping[str, float] | None = None,
    default: float = np.nan,
    **columns: Any,
) -> LoggedTable:
    """Read a log from a file as a table, with contexts not encoded: see `read_log`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() in LINES:
        try:
            frame, roles = of_lines(path.read_text("utf-8-sig").split("\n"), rewards, default)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as a log: {error}") from error
        vectors, x = roles.pop("probabilities"), columns.pop("x", roles.pop("x"))
        if columns:
            raise ValueError(f"{path} is an export, whose columns are known; got {columns!r}")
        return LoggedTable(frame, path.name, roles, vectors, tuple(x))
    if rewards is not None:
        raise ValueError(f"rewards= belong to answers of Rank, lines of JSON; got {path}")
    return recognised(frame_of(path), path.name, **columns)


def frame_of(path: Path, target: str | None = None) -> pd.DataFrame:
    """Return the table of a Parquet or a CSV file. target: as in `csv_files.read`."""
    import pandas as pd

    if path.suffix.lower() not in PARQUET:
        return read(path, target)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    from pyarrow import ArrowException

    try:
        return pd.read_parquet(path)
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a whole Parquet file: {error}") from error


def recognised(
    frame: pd.DataFrame,
    name: str,
    probabilities: Mapping[Name, str] | None = None,
    x: Iterable[str] | None = None,
    **named: str | None,
) -> LoggedTable:
    """Return a table with the role of each column: as named, or else recognised by its name.

    probabilities, x, named: the columns that the user names, as in `read_log`.
    """
    there = [str(column) for column in frame.columns]
    if len(frame) < 2:
        raise ValueError(f"a log needs at least two rounds; got {len(frame)} in {name}")
    frame = frame.set_axis(there, axis=1)
    if unknown := sorted(set(named) - set(ROLES)):
        raise TypeError(f"a column must be one of {list(ROLES)}; got {unknown[0]!r}")
    roles = {role: column for role, column in named.items() if column is not None}
    vectors = dict(probabilities or {})
    check_columns(name, there, roles, vectors)
    taken = {*roles.values(), *vectors.values()}
    for role in KNOWN:
        if role not in roles and (found := guess(role, [c for c in there if c not in taken])):
            roles[role] = found
    for role in ("arm", "reward"):
        if role not in roles:
            raise ValueError(
                f"{name} has no column that is recognised as {role} ({', '.join(KNOWN[role])}): "
                f"name it; the columns are {there!r}"
            )
    if not vectors:
        vectors = each_arm(frame, roles)
    if "propensity" not in roles and not vectors:
        raise ValueError(
            f"{name} has no probabilities: name the column of the chosen arm's (propensity), or "
            f"one for each arm; the columns are {there!r}"
        )
    taken = {*roles.values(), *vectors.values(), *NEVER}
    contexts = [c for c in there if c not in taken] if x is None else list(x)
    if lost := [column for column in contexts if column not in there]:
        raise ValueError(f"{name} has no column {lost[0]!r} (context); it has {there!r}")
    return LoggedTable(frame, name, roles, vectors, tuple(contexts))


def guess(role: str, columns: Iterable[str]) -> str | None:
    """Return the column whose name is usual for this role in logs, or None."""
    lower = {column.lower(): column for column in columns}
    return next((lower[name] for name in KNOWN[role] if name in lower), None)


def is_log(columns: Iterable[Any]) -> bool:
    """Return whether a table has the columns of a bandit's log."""
    there = [str(column) for column in columns]
    return all(guess(role, there) for role in ("arm", "reward", "propensity"))


def each_arm(frame: pd.DataFrame, roles: Mapping[str, str]) -> dict[Name, str]:
    """Return the columns of the arms' probabilities, by arm; {} unless each arm has one."""
    used = set(roles.values())
    column = frame[roles["arm"]]
    if column.isna().any():
        return {}
    arms = {str(arm): arm for arm in arms_of(column, roles["arm"])[1]}
    for prefix in EACH:
        found = {
            c[len(prefix) :]: c for c in frame.columns if c.startswith(prefix) and c not in used
        }
        if found and set(arms) <= set(found):
            whole = all(isinstance(arm, int) for arm in arms.values())
            return {int(a) if whole and a.isdecimal() else a: c for a, c in found.items()}
    return {}


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
            f"column {column.name!r} ({what}) must be numbers; got {seen!r} in round {t}"
        )
    return found.to_numpy(np.float64, na_value=np.nan)


def moments(column: pd.Series, what: str) -> np.ndarray:
    """Return a column of times (n,): numbers unchanged, dates in UTC."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return numbers(column, what)
    try:
        with warnings.catch_warnings(action="ignore"):  # about guessed formats
            found = pd.to_datetime(column, utc=True)
    except (ValueError, TypeError) as error:
        said = str(error).splitlines()[0]
        raise ValueError(f"column {column.name!r} ({what}) must be times: {said}") from error
    return found.dt.tz_localize(None).to_numpy()
