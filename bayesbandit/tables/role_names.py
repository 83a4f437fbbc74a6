"""The names of the roles of a log's columns, and of the columns that have them by default."""

from __future__ import annotations

from collections.abc import Iterable

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
HISTORY = ("arm", "reward", "propensity", "weight")  # the last columns of `history.to_frame()`
MARK = "features"  # the attribute of such a table that names its other columns
CONTEXT = " (context)"  # ends the name of a feature that is called as one of these columns
CHOICES = {"propensity", "pscore", "reward", "rewards"}  # words of a log: first or last in a name
EARNED = {  # a name of one of these words alone, or with some of BESIDE
    "click", "clicked", "clicks", "conversion", "converted", "payoff", "payout", "profit",
    "revenue", "ips", "p", "prob", "probability",
}  # fmt: skip
BESIDE = {
    "action", "arm", "chosen", "eur", "has", "is", "logged", "logging", "usd", "was", "weight",
}  # fmt: skip


def signs_of_a_log(columns: Iterable[str | int], classes: Iterable[object] = ()) -> list[str | int]:
    """Return the columns whose names say that a table is a bandit's log, not a data set.

    A data set has no probability of a choice, and no reward of one arm alone. classes: those of the
    target, which a log calls arms.
    """
    from bayesbandit.tables.words import words_in

    names = list(columns)
    signs = list[str | int]()
    for name in names:
        words = words_in(name)
        if CHOICES.intersection(words[:1] + words[-1:]) or (
            len(EARNED.intersection(words)) == 1 and {*words} - BESIDE <= EARNED
        ):
            signs.append(name)
    for prefix in OF_EACH_ARM:
        each = [f"{prefix}{one}" for one in classes]
        if each and {*each} <= {*map(str, names)}:
            signs += each
    return signs
