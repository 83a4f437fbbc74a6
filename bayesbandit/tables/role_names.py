"""The names of the roles of a log's columns, and of the columns that have them by default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ROLES = ("arm", "reward", "propensity", "time", "reward_time", "batch", "weight")
RENAME = (  # ends an error about a column
    'A role can be given, as time="decided" (a command: --column time=decided); keep=["time"] '
    "(--column context=time) makes a context of a column."
)
DEFAULTS = {  # exact names; the first that a table has is its column of the role
    "arm": ("arm", "action", "item_id"),
    "reward": ("reward", "click"),
    "propensity": ("propensity", "pscore"),
    "time": ("time", "timestamp"),
    "reward_time": ("reward_time",),
    "batch": ("batch",),
}
OF_EACH_ARM = ("probability_", "p_")  # with an arm's name: the column of its probability
PROBABILITY_PREFIX = "probability:"  # with an arm's name: its role in a command
HISTORY = ("arm", "reward", "propensity", "weight")  # columns of `history.to_frame()`
CONTEXT = " (context)"  # ends the name of a feature in it that would have a role


def without_role(name: str) -> str:
    """Return a feature's name so that no log reads it as a role."""
    usual = {name for names in DEFAULTS.values() for name in names}
    has_role = name in usual or name in HISTORY or name.startswith(OF_EACH_ARM)
    return f"{name}{CONTEXT}" if has_role else name


def has_history(columns: Sequence[object]) -> bool:
    """Return whether a table has the columns of `history.to_frame()`, side by side."""
    places = range(len(columns) - len(HISTORY) + 1)
    return any(tuple(columns[i : i + len(HISTORY)]) == HISTORY for i in places)


def signs_of_a_log(columns: Iterable[str | int], classes: Iterable[object] = ()) -> list[str | int]:
    """Return the columns whose names say that a table is a bandit's log, not a data set.

    They are those of a reward, of a propensity, and of a probability for each class, as a log has
    them by default. classes: those of the target, which a log calls arms.
    """
    names = list(columns)
    usual = {*DEFAULTS["reward"], *DEFAULTS["propensity"]}
    signs = [name for name in names if str(name).lower() in usual]
    for prefix in OF_EACH_ARM:
        each = [f"{prefix}{one}" for one in classes]
        if each and {*each} <= {*map(str, names)}:
            signs += each
    return signs
