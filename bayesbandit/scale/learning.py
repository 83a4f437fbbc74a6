"""A bandit that learns a log of any size: each partition by its sums, and the sums in a tree."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import fast_path, learning, logged, ticks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.beliefs.base import Mergeable, Postponable, needed
from bayesbandit.checks import Contexts, Name
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.tables import inputs
from bayesbandit.tables.files import is_parquet, only_of_csv, read, read_rounds
from bayesbandit.tables.fitting import check_no_identifier
from bayesbandit.tables.roles import roles_of
from bayesbandit.tables.samples import reduced
from bayesbandit.tables.words import moments, numbers, whole

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

    from bayesbandit.tables.encoder import Encoder

WHEN = "parts of a log are put together"
NUMERIC_ROLES = ("reward", "propensity")  # of columns of numbers
UNNAMED_INDEX = "__index_level_"  # how the columns begin that pandas makes of it
RUNS_BACK = (
    'runs back, and a half-life counts the rows that follow: sort them, or take clock="time"'
)
LEARNED_ROLES = ("arm", *NUMERIC_ROLES, "time")  # of columns that are learned


def learn(
    source: object,
    bandit: Bandit,
    *,
    arm: Name | None = None,
    reward: Name | None = None,
    propensity: Name | None = None,
    time: Name | None = None,
    features: Sequence[Name] | None = None,
) -> Bandit:
    """Return a copy of a bandit that has learned a log of any size.

    The log is learned in partitions, which may be on many machines. Only sums leave them, and add
    up in a tree. The bandit is that of one `Bandit.update` with all rows in their order, to
    rounding, whatever the partitions are; the same partitions give the same bits.
    Cross-validation has the same folds, and `history` the same rounds. With a half-life each row
    counts by its age: by its number in the log, or by its time.

    source: a table (pandas, or another that narwhals reads), which is one partition; a
        dask.dataframe; or Parquet files, which Dask reads: a path, a folder, a pattern as
        "log/*.parquet", or an address as "s3://…"; or the path of a CSV file or of JSON lines,
        which is read whole.
    bandit: a new one, as bb.BLTS(arms, d), or one that has learned before.
    arm, reward, propensity: names of columns. Without them, those with the usual names, as of
        `bb.ope.Log.of`. Inverse propensity weights need the propensity.
    time: the column of the rows' times (dates, or seconds since 1970), in any order, for a
        half-life with clock="time"; for one that counts rows they must not run back.
    features: the columns of the contexts, in order. Without it, those of the encoder, or all
        columns without a role; for a bandit that has learned they must be x0 … x(d − 1), or a
        single one, since it knows no names.

    Raise ValueError for a row that cannot be learned, with the number of its partition; for an
    empty log; and for a bandit that must learn rounds in their order (drift, half_life="auto"), or
    whose belief keeps no sums, as one by draws.
    """
    if not isinstance(bandit, Bandit):
        raise TypeError(
            "a bandit learns the log, as bb.BLTS(arms, n_features) or "
            f"bb.Bandit(arms, model, policy, n_features=d); got {checks.shown(bandit)}"
        )
    import pandas as pd

    table = table_of(source, arm, bandit.encoder)
    named = table if isinstance(table, pd.DataFrame) else pd.DataFrame(columns=table.columns)
    roles = roles_of(
        named, "the log", x=features, encoder=bandit.encoder, arms=bandit.arms,
        needs_propensity=False, arm=arm, reward=reward, propensity=propensity, time=time,
    )  # fmt: skip
    if features is None and bandit.encoder is None:
        check_no_identifier(roles.contexts, "features")
        roles = replace(roles, contexts=tuple(logged.columns_in_order(bandit, roles.contexts)))
    columns = {role: roles.named[role] for role in LEARNED_ROLES if role in roles.named}
    if time is None and bandit.belief.clock is None:
        columns.pop("time", None)
    empty = _beginner(bandit, columns, roles.contexts)
    used = [*dict.fromkeys([*roles.contexts, *columns.values()])]
    learned = reduced(table, used, partial(_taught, empty, columns, roles.contexts), _follow)
    if not learned.bandit.history.total:
        raise ValueError("a log needs at least one round; got none")
    return _join(bandit, learned.bandit)


class Part(NamedTuple):
    """What partitions of a log teach: a bandit that learned them, and the times of their first and
    last row; None if times do not count, or there is no row."""

    bandit: Bandit
    times: tuple[Any, Any] | None = None


def _beginner(bandit: Bandit, columns: Mapping[str, Name], features: Sequence[Name]) -> Bandit:
    """Return a bandit that is like this one, but has learned nothing.

    columns: those of the log by role. features: those of its contexts. Raise ValueError if rounds
    cannot be weighted one by one, or need times, or the number of features is wrong, or the belief
    cannot absorb another.
    """
    if not isinstance(bandit.belief, Mergeable):
        raise ValueError(
            f"{checks.shown(bandit.model)} keeps no sums, as models by draws, and what partitions "
            "teach does not add up: let one bandit learn the log by bandit.update"
        )
    if bandit.reweighting is not None:
        raise ValueError(
            f"{bandit.balance} changes the weights of past rounds, which the parts of a log do not "
            "know; balance must be Unweighted() or InversePropensity(propensity='decision')"
        )
    clock = bandit.belief.clock
    is_timed = "time" in columns
    if (clock == "time" and not is_timed) or (clock is None and is_timed):
        raise ValueError(
            'time= must name the column of the rows\' times for a half_life with clock="time", and '
            f"be None for what does not forget; got time={columns.get('time')!r}, and "
            f"{checks.shown(bandit.model)}"
        )
    if "propensity" not in columns and learning.weighs_by_propensity(bandit):
        raise ValueError(
            f"{bandit.balance} needs the logged propensities: propensity= must name their column"
        )
    if bandit.encoder is None and len(features) != bandit.n_features:
        raise ValueError(f"features must name {bandit.n_features} columns; got {list(features)!r}")
    empty = Bandit(
        bandit.arms, bandit.spec, bandit.policy, bandit.balance, n_features=bandit.n_features,
        encoder=bandit.encoder, seed=bandit.seed, history=bandit.history.limit,
    )  # fmt: skip
    trial = empty.copy().belief
    needed(trial, Mergeable, WHEN).absorb(empty.belief)
    if clock is not None:
        needed(trial, Postponable, WHEN).postpone(0.0)
    if clock == "time":
        empty.ahead = bandit.ahead
        empty.now = bandit.now
    return empty


def _taught(
    empty: Bandit,
    columns: Mapping[str, Name],
    features: Sequence[Name],
    frame: pd.DataFrame,
    number: int,
) -> Part:
    """Return what a partition of a log teaches a copy of an empty bandit."""
    bandit = empty.copy()
    if frame.empty:
        return Part(bandit)
    ends = None
    arm = whole(frame[columns["arm"]])
    if missing := int(frame[columns["reward"]].isna().sum()):
        raise ValueError(
            f"partition {number} of the log: {missing} of {len(frame)} rewards are missing, and no "
            "bandit can learn them: leave these rows out, or fill in what no reward means"
        )
    try:
        numeric = [role for role in NUMERIC_ROLES if role in columns]
        read = {role: numbers(frame[columns[role]], role) for role in numeric}
        if "time" in columns:
            times = moments(frame[columns["time"]], "time")
            if bandit.belief.clock == "time":
                read["time"] = times
            elif (times[1:] < times[:-1]).any():
                raise ValueError(f"{columns['time']!r} {RUNS_BACK}")
            else:
                ends = times[0], times[-1]
        with one_thread():
            x: Contexts = frame[list(features)]
            if bandit.encoder is None:
                x = checks.floats(x, "features") if features else np.empty((len(frame), 0))
            bandit.update(x, arm, **read)
    except ValueError as error:
        raise ValueError(f"partition {number} of the log: {error}") from error
    return Part(bandit, ends)


def _follow(before: Part, later: Part) -> Part:
    """Return what neighbours teach together. Raise ValueError if `later` has earlier times."""
    ends = before.times or later.times
    if before.times and later.times:
        if later.times[0] < before.times[1]:
            raise ValueError(f"from a partition of the log to the next its time {RUNS_BACK}")
        ends = before.times[0], later.times[1]
    return Part(_join(before.bandit, later.bandit), ends)


def _join(before: Bandit, later: Bandit) -> Bandit:
    """Return a bandit that has learned what two have, `later` after `before`.

    Both stay as they are: Dask may use them again, if a machine is lost.
    """
    bandit = before.copy()
    if bandit.belief.clock == "rounds":
        needed(later.belief, Postponable, WHEN).postpone(ticks.tick(bandit))
        bandit.ahead += ticks.tick(later)
    needed(bandit.belief, Mergeable, WHEN).absorb(later.belief)
    bandit.history.extend(later.history.ordered(), later.history.total)
    fast_path.publish(bandit)
    return bandit


def arms_in(table: pd.DataFrame | dd.DataFrame, arm: Name) -> list[Name]:
    """Return the names in the column of arms, sorted, whole numbers first."""
    if arm not in table.columns:
        raise ValueError(f"the log has no column {arm!r} (arm); it has {list(table.columns)!r}")
    arms = reduced(table, [arm], partial(_names_in, arm), operator.or_)
    if not arms:
        raise ValueError("a log needs at least one round; got none")
    both = [name for name in arms if isinstance(name, int) and str(name) in arms]
    if both:
        raise ValueError(
            f"the log has arms {both[0]!r} and '{both[0]}' (column {arm!r}): write them alike"
        )
    return sorted(arms, key=lambda name: (isinstance(name, str), name))


def _names_in(arm: Name, frame: pd.DataFrame, number: int) -> set[Name]:
    """Return the different arms of a partition of a log."""
    where = f"partition {number} of the log, column {arm!r}"
    if missing := int(frame[arm].isna().sum()):
        raise ValueError(f"{where}: {missing} of {len(frame)} arms are missing")
    try:
        return {checks.arm_name(value) for value in whole(frame[arm]).unique().tolist()}
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error


def table_of(
    source: object, arm: Name | None, encoder: Encoder | None, **form: str | None
) -> pd.DataFrame | dd.DataFrame:
    """Return a table in memory, or a dask.dataframe, which computes nothing yet.

    source: a table; or the path of a file, or Parquet files by a folder, a pattern with * or an
    address as s3://…, which Dask reads. One Parquet file is read whole where there is no Dask;
    another file, CSV or JSON lines, always: see `read_rounds`. Raise
    FileNotFoundError if there are none, and TypeError for a table whose columns have no names.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.is_file() and not is_parquet(path):
            return read_rounds(path, arm, encoder, **form)
        only_of_csv(form)
        if path.is_file() and find_spec("dask") is None:
            return read(path)
        return _parquet(fspath(source))
    if inputs.is_dask(source):
        return source
    return inputs.table(source)


def _parquet(path: str) -> dd.DataFrame:
    try:
        import dask.dataframe as dd
    except ImportError as error:
        raise ImportError(
            "Dask reads several Parquet files: pip install 'bayesbandit[dask]', or give one "
            "file, or the table that pandas.read_parquet reads"
        ) from error
    try:
        frame = dd.read_parquet(path, index=False)  # what was an index in pandas is a column
    except ValueError as error:  # of Dask, and of pyarrow for a file that is none
        raise ValueError(f"{path} cannot be read as Parquet files: {error}") from error
    except FileNotFoundError:
        frame = None
    if frame is None or not len(frame.columns):
        raise FileNotFoundError(f"there are no Parquet files, and no other file, {path!r}")
    return frame[[c for c in frame.columns if not str(c).startswith(UNNAMED_INDEX)]]
