"""The names of the roles of a log's columns, and of the columns that have them by default."""

from __future__ import annotations

from collections.abc import Iterable

COLUMN_ROLES = ("arm", "reward", "propensity", "time", "reward_time", "batch")
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
HISTORY = ("arm", "reward", "propensity", "weight")  # the last columns of `history.to_frame()`
MARK = "features"  # the attribute of such a table that names its other columns
CONTEXT = " (context)"  # ends the name of a feature that is called as one of these columns


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
