"""A bandit that learns a log of any size: each part by its sums, and the sums in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np

from bayesbandit import checks
from bayesbandit.bandit import fast_path, learning, ticks
from bayesbandit.bandit.bandit import Bandit
from bayesbandit.beliefs.base import BeliefModel, Mergeable, Postponable, needed
from bayesbandit.checks import Arms, Contexts, Name
from bayesbandit.model import RewardModel
from bayesbandit.policies import Policy, Thompson
from bayesbandit.runtime.one_thread import one_thread
from bayesbandit.scale.parts import Parts, parts_of
from bayesbandit.tables.dates import moments
from bayesbandit.tables.encoder import Encoder
from bayesbandit.tables.fitting import check_no_identifier
from bayesbandit.tables.role_names import HISTORY
from bayesbandit.tables.words import whole
from bayesbandit.weighting.base import Balance

if TYPE_CHECKING:
    import pandas as pd

WHEN = "parts of a log are put together"


class BanditSettings(TypedDict, total=False):
    """Settings of a new `Bandit`."""

    seed: int | np.random.SeedSequence
    history: int | None


@dataclass(frozen=True)
class Columns:
    """Which columns of a log are what. features: those of the contexts."""

    arm: Name
    reward: Name
    propensity: Name | None
    time: Name | None
    features: tuple[Name, ...]

    @property
    def all(self) -> list[Name]:
        """All columns that are read."""
        roles = self.arm, self.reward, self.propensity, self.time
        return [*dict.fromkeys([*self.features, *(name for name in roles if name is not None)])]


def learn(
    source: object,
    model: RewardModel | BeliefModel | Bandit,
    policy: Policy | None = None,
    balance: Balance | None = None,
    *,
    arm: Name = "arm",
    reward: Name = "reward",
    propensity: Name | None = None,
    time: Name | None = None,
    features: Sequence[Name] | None = None,
    arms: Arms | None = None,
    encoder: Encoder | None = None,
    jobs: int = 1,
    deterministic: bool = False,
    **settings: Unpack[BanditSettings],
) -> Bandit:
    """Return a bandit that has learned a log of any size.

    The log is learned in parts, which may be on many machines. Only sums leave them, and add up in
    a tree. The bandit is that of one `Bandit.update` with all rows in their order, to rounding,
    whatever the parts are. Cross-validation has the same folds, and `history` the same rounds. With
    a half-life each row counts by its age: by its number in the log, or by its time.

    source: a table (pandas, or another that narwhals reads), a dask.dataframe, or Parquet files: a
        path, a folder, a pattern as "log/*.parquet", or an address as "s3://…"; or the path of
        a CSV file or of JSON lines, which is read whole.
    model: the reward model of a new bandit; or a bandit, as bb.BLTS(arms, d), that has learned
        before or not. A copy of it learns. Its policy, balance, arms, encoder and settings stay.
    policy, balance, encoder, settings: those of a new bandit: see `Bandit`. Without a policy, it is
        `Thompson()`.
    arm, reward, propensity: names of columns. Without a propensity, it is "propensity" if there is
        such a column. Inverse propensity weights need it.
    time: the column of the rows' times (dates, or seconds since 1970), in any order, for a
        half-life with clock="time".
    features: the columns of the contexts, in order. Without it, those of the encoder, or all other
        columns, which must then be numbers.
    arms: the arms' names, or a number. Without it, they are looked up in the log first.
    jobs: how many processes learn a table or files (−1: all cores). A dask.dataframe is learned by
        its cluster.
    deterministic: whether the same parts give the same bits on any number of workers. Each worker
        then runs linear algebra on one thread.

    Raise ValueError for a row that cannot be learned, with the number of its part; for an empty
    log; and for a bandit that must learn rounds in their order (drift, half_life="auto"), or whose
    belief keeps no sums, as one by draws.
    """
    checks.processes(jobs)
    parts = parts_of(source, text=[arm])
    own = {"policy": policy, "balance": balance, "arms": arms, "encoder": encoder, **settings}
    if isinstance(model, Bandit):
        if given := [name for name, value in own.items() if value is not None]:
            raise TypeError(f"a bandit has its own {', '.join(given)}: give the bandit alone")
        bandit = model.copy()
        encoder = model.encoder
    columns = _columns(parts, arm, reward, propensity, time, features, encoder)
    parts.check(columns.all)
    if not isinstance(model, Bandit):
        names = arms_in(parts, arm, jobs) if arms is None else arms
        policy = policy or Thompson()
        d = None if encoder else len(columns.features)
        bandit = Bandit(names, model, policy, balance, n_features=d, encoder=encoder, **settings)
    empty = _beginner(bandit, columns)
    with one_thread() if deterministic else nullcontext():
        learned = parts.each(partial(_taught, empty, columns, deterministic), columns.all, jobs)
        whole = in_tree(_of_one_clock(learned, columns.time))
        if whole is None or not whole.history.total:
            raise ValueError("a log needs at least one round; got none")
        return _join(bandit, whole)


def _columns(
    parts: Parts,
    arm: Name,
    reward: Name,
    propensity: Name | None,
    time: Name | None,
    features: Sequence[Name] | None,
    encoder: Encoder | None,
) -> Columns:
    """Return the columns by role. Raise ValueError for one that is not there."""
    if propensity is None and "propensity" in parts.columns:
        propensity = "propensity"
    roles = {"arm": arm, "reward": reward, "propensity": propensity, "time": time}
    if features is not None:
        chosen = list(features)
    elif encoder is not None:
        chosen = list(encoder.columns)
    else:
        chosen = [name for name in parts.columns if name not in roles.values()]
        if tuple(parts.columns[-len(HISTORY) :]) == HISTORY and "weight" in chosen:
            raise ValueError(
                "features= must name the contexts: the columns end as those of history.to_frame(), "
                f"whose weight tells the arm; got {chosen!r}"
            )
        check_no_identifier(chosen, "features")
    for role, name in (*roles.items(), *(("feature", name) for name in chosen)):
        if name is not None and name not in parts.columns:
            raise ValueError(f"the log has no column {name!r} ({role}); it has {parts.columns!r}")
    return Columns(arm, reward, propensity, time, tuple(chosen))


def _beginner(bandit: Bandit, columns: Columns) -> Bandit:
    """Return a bandit that is like this one, but has learned nothing.

    Raise ValueError if rounds cannot be weighted one by one, or need times, or the number of
    features is wrong, or the belief cannot absorb another.
    """
    if not isinstance(bandit.belief, Mergeable):
        raise ValueError(
            f"{checks.shown(bandit.model)} keeps no sums, as models by draws, and what the parts "
            "of a log teach does not add up: let one bandit learn the log by bandit.update"
        )
    if bandit.reweighting is not None:
        raise ValueError(
            f"{bandit.balance} changes the weights of past rounds, which the parts of a log do not "
            "know; balance must be Unweighted() or InversePropensity(propensity='decision')"
        )
    clock = bandit.belief.clock
    if (clock == "time") != (columns.time is not None):
        raise ValueError(
            'time= must name the column of the rows\' times for a half_life with clock="time", and '
            f"be None for others; got time={columns.time!r}, and {checks.shown(bandit.model)}"
        )
    if columns.propensity is None and learning.weighs_by_propensity(bandit):
        raise ValueError(
            f"{bandit.balance} needs the logged propensities: propensity= must name their column"
        )
    if bandit.encoder is None and len(columns.features) != bandit.n_features:
        raise ValueError(
            f"features must name {bandit.n_features} columns; got {list(columns.features)!r}"
        )
    empty = Bandit(
        bandit.arms, bandit.spec, bandit.policy, bandit.balance, n_features=bandit.n_features,
        encoder=bandit.encoder, seed=bandit.seed, history=bandit.history.limit,
    )  # fmt: skip
    trial = empty.copy().belief
    needed(trial, Mergeable, WHEN).absorb(empty.belief)
    if clock is not None:
        needed(trial, Postponable, WHEN).postpone(0.0)
    if clock == "time":
        empty.ahead, empty.now = bandit.ahead, bandit.now
    return empty


class Taught(NamedTuple):
    """A bandit that has learned a part of a log. type: of its times; None: of none. dated: whether
    they are dates."""

    bandit: Bandit
    type: str | None = None
    dated: bool = False


def _taught(
    empty: Bandit, columns: Columns, deterministic: bool, frame: pd.DataFrame, number: int
) -> Taught:
    """Return a copy of an empty bandit that has learned a part of a log."""
    bandit = empty.copy()
    if frame.empty:
        return Taught(bandit)
    arm, reward = whole(frame[columns.arm]), _numbers(frame[columns.reward])
    if missing := int(frame[columns.reward].isna().sum()):
        raise ValueError(
            f"part {number} of the log: {missing} of {len(frame)} rewards are missing, and no "
            "bandit can learn them: leave these rows out, or fill in what no reward means"
        )
    p = None if columns.propensity is None else _numbers(frame[columns.propensity])
    try:
        time = None if columns.time is None else moments(frame[columns.time], "time")
        with one_thread() if deterministic else nullcontext():
            bandit.update(contexts(bandit, frame, columns.features), arm, reward, p, time=time)
    except ValueError as error:
        raise ValueError(f"part {number} of the log: {error}") from error
    if time is None:
        return Taught(bandit)
    return Taught(bandit, str(frame[columns.time].dtype), dated=time.dtype.kind == "M")


def _numbers(column: pd.Series) -> Any:
    """Return a column with NaN where a number is missing; one of no numbers is unchanged."""
    numeric = column.dtype.kind in "biuf"
    return column.to_numpy(np.float64, na_value=np.nan) if numeric else column


def _of_one_clock(learned: Iterable[Taught], time: Name | None) -> Iterator[Bandit]:
    """Yield what parts have taught; raise ValueError if some times are dates and others numbers."""
    first: tuple[int, Taught] | None = None
    for number, taught in enumerate(learned):
        if taught.type is not None:
            where, one = first = first or (number, taught)
            if taught.dated != one.dated:
                raise ValueError(
                    f"part {number} of the log: column {time!r} is {taught.type}, and "
                    f"{one.type} in part {where}: give all times as dates, or as seconds"
                )
        yield taught.bandit


def contexts(bandit: Bandit, frame: pd.DataFrame, features: Sequence[Name]) -> Contexts:
    """Return the contexts in the columns `features` of a table, as the bandit's methods take them.

    They are a table for a bandit with an encoder, else numbers (n, d).
    """
    x = frame[list(features)]
    if bandit.encoder is not None:
        return x
    return checks.floats(x, "features") if features else np.empty((len(x), 0))


def in_tree(parts: Iterable[Bandit]) -> Bandit | None:
    """Return one bandit that has learned what all parts have, in their order; None without parts.

    Parts are joined in pairs, pairs of pairs, and so on. The tree depends only on their number.
    """
    held: list[tuple[Bandit, int]] = []  # with the height of each one's tree
    for part in parts:
        tree = part
        height = 0
        while held and held[-1][1] == height:
            tree = _join(held.pop()[0], tree)
            height = height + 1
        held.append((tree, height))
    while len(held) > 1:
        later, _ = held.pop()
        held[-1] = _join(held[-1][0], later), 0
    return held[0][0] if held else None


def _join(bandit: Bandit, later: Bandit) -> Bandit:
    """Return the bandit after it has learned what another has, as if that had come next."""
    if bandit.belief.clock == "rounds":
        needed(later.belief, Postponable, WHEN).postpone(ticks.tick(bandit))
        bandit.ahead += ticks.tick(later)
    needed(bandit.belief, Mergeable, WHEN).absorb(later.belief)
    bandit.history.extend(later.history.ordered(), later.history.total)
    fast_path.publish(bandit)
    return bandit


def arms_in(parts: Parts, arm: Name, jobs: int) -> list[Name]:
    """Return the names in the column of arms, sorted, whole numbers first."""
    if arm not in parts.columns:
        raise ValueError(f"the log has no column {arm!r} (arm); it has {parts.columns!r}")
    found = {name for names in parts.each(partial(_names_in, arm), [arm], jobs) for name in names}
    if not found:
        raise ValueError("a log needs at least one round; got none")
    return sorted(found, key=lambda name: (isinstance(name, str), name))


def _names_in(arm: Name, frame: pd.DataFrame, number: int) -> list[Name]:
    """Return the different arms of a part of a log."""
    where = f"part {number} of the log, column {arm!r}"
    if missing := int(frame[arm].isna().sum()):
        raise ValueError(f"{where}: {missing} of {len(frame)} arms are missing")
    try:
        return [checks.arm_name(value) for value in whole(frame[arm]).unique().tolist()]
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
