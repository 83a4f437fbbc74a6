"""The role of each column of a log: given by the user, or by one of a few exact names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, cast

from bayesbandit.checks import Name, without_none
from bayesbandit.tables.inputs import listed
from bayesbandit.tables.role_names import (
    COLUMN_ROLES,
    DECISION_LOG_COLUMNS,
    DEFAULTS,
    HISTORY,
    MARK,
    OF_EACH_ARM,
    PROBABILITY_PREFIX,
    RENAME,
)
from bayesbandit.tables.words import whole

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.tables.encoder import Encoder

OUTCOME_ROLES = ("arm", "reward", "propensity")  # roles that say what was decided and earned
EXCLUSIVE_USES = {*OUTCOME_ROLES, "drop"}  # a column that has one of them has no other use


@dataclass(frozen=True)
class Roles:
    """The roles of a table's columns.

    named: columns by role. probabilities: columns by arm. contexts: columns in their order. left:
    columns that are left out, with reasons. of_history: whether `history.to_frame()` made it.
    """

    named: Mapping[str, Name]
    probabilities: Mapping[Name, Name]
    contexts: tuple[Name, ...]
    left: Mapping[Name, str]
    of_history: bool = False

    def __str__(self) -> str:
        """The roles in one line, as --column takes them."""
        lines = [", ".join(f"{role}={column}" for role, column in self.named.items())]
        if self.probabilities:
            lines.append(f"probabilities: {listed([*self.probabilities.values()])}")
        lines.append(f"contexts: {listed(self.contexts) or 'none'}")
        if self.left:
            left = [f"{column} ({why})" for column, why in self.left.items()]
            lines.append(f"left out: {listed(left)}")
        return f"Columns: {'; '.join(lines)}."


@contextmanager
def blamed(roles: Roles | None) -> Iterator[None]:
    """Add to a ValueError which column has which role, and how to change it."""
    try:
        yield
    except ValueError as error:
        if roles is None:
            raise
        raise ValueError(f"{error}. {roles} {RENAME}") from error


def roles_of(
    frame: pd.DataFrame,
    table: str,
    *,
    probabilities: Mapping[Name, Name] | None = None,
    x: Iterable[Name] | None = None,
    drop: Collection[Name] = (),
    keep: Collection[Name] = (),
    encoder: Encoder | None = None,
    arms: Iterable[Name] | None = None,
    needs_propensity: bool = True,
    **given: Name | None,
) -> Roles:
    """Return the role of each column of a log.

    table: what errors call it. given: columns by role. x: the columns of contexts; default: those
    of the encoder, or all that have no role. drop: columns to leave out. keep: contexts, whatever
    their names. arms: the arms' names, if they are known.

    A role that is not given belongs to the column with its exact name (`DEFAULTS`). Each arm's
    probability is in `probability_ARM` or `p_ARM`, if every arm that was chosen has such a column.
    Then each column with the prefix is of an arm, or of one of `arms`; keep= names those that are
    contexts. A table of `history.to_frame()` has known columns. Raise ValueError for a column that
    is not there or has two roles, for a role that has no column, and where the names may be read in
    two ways.
    """
    if unknown := [role for role in given if role not in COLUMN_ROLES]:
        raise TypeError(f"a column must be one of {list(COLUMN_ROLES)}; got {unknown[0]!r}")
    columns: list[Name] = list(frame.columns)
    if {*map(str, columns)} >= DECISION_LOG_COLUMNS:
        raise ValueError(
            f"{table} is one of DecisionLog.frame(), which does not say which rewards are settled: "
            "bb.ope.Log.of(log) reads the log itself, and bandit.update learns it (a command: "
            "bayesbandit evaluate DATABASE)"
        )
    named: dict[str, Name] = without_none(given)
    probability_columns = dict(probabilities or {})
    to_keep = names_in(keep)
    contexts = None if x is None else names_in(x)
    if encoder is not None:
        if lost := [c for c in encoder.columns if c not in (contexts or encoder.columns)]:
            raise ValueError(
                f"x has no column {lost[0]!r}, which the encoder needs; got {contexts!r}"
            )
        contexts = list(encoder.columns)
    chosen = [*(contexts or ()), *to_keep]
    left: dict[Name, str] = dict.fromkeys(names_in(drop), "dropped")
    uses = [(c, role) for role, c in named.items()]
    uses += [(c, f"probability of {arm!r}") for arm, c in probability_columns.items()]
    uses += [(c, "context") for c in chosen]
    uses += [(c, "drop") for c in left]
    _check_uses(uses, table, columns)
    free = [c for c in columns if c not in dict(uses)]
    of_history = _features_of_history(frame, free, table, contexts)
    features = [] if of_history is None else of_history
    free = [c for c in free if c not in features]
    for role, names in DEFAULTS.items():
        usual = [name for name in names if name in free]
        if role not in named and usual:
            named[role] = usual[0]
        if role not in named and role in ("arm", "reward"):
            raise ValueError(
                f"{table} has no column that is recognised as {role} ({', '.join(names)}): name "
                f"it, {role}=COLUMN (a command: --column {role}=COLUMN); the columns are "
                f"{columns!r}"
            )
    if not probability_columns:
        unnamed = [c for c in free if c not in named.values()]
        probability_columns = _of_each_arm(unnamed, frame[named["arm"]], arms)
    if needs_propensity and "propensity" not in named and not probability_columns:
        raise ValueError(
            f"{table} has no probabilities: propensity= must name the column of the chosen arms' "
            "probabilities, or probabilities= a column for each arm (a command: --column "
            f"propensity=COLUMN, or --column {PROBABILITY_PREFIX}ARM=COLUMN for each); the columns "
            f"are {columns!r}"
        )
    if of_history is not None and "weight" in free:
        left["weight"] = "the weights of a bandit's history; keep makes it a context"
    taken = {*named.values(), *probability_columns.values(), *left}
    if contexts is None:
        for role in OUTCOME_ROLES:
            others = [c for c in DEFAULTS[role] if c in free and c not in taken]
            left |= dict.fromkeys(others, f"the {role} is {named.get(role)!r}; keep uses this one")
        contexts = [c for c in columns if c not in {*taken, *left} or c in to_keep]
    why = "not in x" if x is not None else "the encoder does not use it"
    reasons = {} if encoder is None else encoder.left
    left |= {c: reasons.get(c, why) for c in columns if c not in {*taken, *left, *contexts}}
    named = {role: named[role] for role in COLUMN_ROLES if role in named}
    return Roles(named, probability_columns, tuple(contexts), left, of_history is not None)


def names_in(names: object, what: str = "columns") -> list[Name]:
    """Return columns' names as a list; a single name is a list of one. what: the argument."""
    if isinstance(names, str | Integral):
        return [cast(Name, names)]
    if not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a list of columns' names; got {names!r}")
    return list(names)


def _check_uses(uses: Iterable[tuple[Name, str]], table: str, columns: Sequence[Name]) -> None:
    """Raise ValueError for a column that a table does not have, or whose uses exclude each other.

    uses: each column with its role, "context" or "drop".
    """
    first: dict[Name, str] = {}
    for column, use in uses:
        if column not in columns:
            raise ValueError(f"{table} has no column {column!r} ({use}); it has {columns!r}")
        before = first.setdefault(column, use)
        if use != before and EXCLUSIVE_USES.intersection((before, use)):
            raise ValueError(
                f"column {column!r} is given as {before} and as {use}, which exclude each other"
            )


def _features_of_history(
    frame: pd.DataFrame, free: Sequence[Name], table: str, contexts: Sequence[Name] | None
) -> list[Name] | None:
    """Return the columns of features of a table of `history.to_frame()`; None of another table.

    Such a table says so itself, also in a Parquet file. Raise ValueError if only its columns do,
    unless the contexts are given.
    """
    if MARK in frame.attrs:
        return list(frame.attrs[MARK])
    is_alike = tuple(frame.columns[-len(HISTORY) :]) == HISTORY and "weight" in free
    if contexts is not None or not is_alike:
        return None
    raise ValueError(
        f"the columns of {table} end as those of history.to_frame(), whose weight tells the arm: "
        'is "weight" a context, keep=["weight"], or not, drop=["weight"] (a command: '
        "--column context=weight, --column drop=weight)?"
    )


def _of_each_arm(
    free: Sequence[Name], chosen: pd.Series, arms: Iterable[Name] | None
) -> dict[Name, Name]:
    """Return the columns of the arms' probabilities, by arm; {} unless each arm has one.

    chosen: the arm of each round. arms: the arms' names. None: those with such a column.
    """
    names = whole(chosen.dropna()).unique().tolist() if arms is None else arms
    named = {str(name): name if type(name) is int else str(name) for name in names}
    are_whole = all(isinstance(name, int) for name in named.values())
    for prefix in OF_EACH_ARM:
        every = {str(c)[len(prefix) :]: c for c in free if str(c).startswith(prefix)}
        if named and {*named} <= {*every}:
            return {
                named.get(text, int(text) if are_whole and text.isdecimal() else text): column
                for text, column in every.items()
                if arms is None or text in named
            }
    return {}
