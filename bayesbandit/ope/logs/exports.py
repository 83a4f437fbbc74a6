"""Exports of Vowpal Wabbit and Azure AI Personalizer, read as tables with a row for each round."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import ROUNDING, one_of
from bayesbandit.tables.files import json_object
from bayesbandit.tables.words import ISO

if TYPE_CHECKING:
    import pandas as pd

DECIDED = "Timestamp"
EVENT = "probability of "  # prefix of the columns of probabilities
EXPORTED = ('"_label_cost"', '"rewardActionId"')  # keys by which an export is recognised
UNDECIDED = "without a decision"
HERE = (str(Path(__file__).parents[2]),)  # a warning is of the line that called the package


def of_lines(
    lines: Iterable[str],
    rewards: Mapping[str, float] | None = None,
    default: float = np.nan,
    errors: str = "raise",
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of an export, and the roles of its columns.

    Each line is a JSON object. It is a joined event, as written by `vw --dsjson` or in
    Personalizer's log; or an answer of Personalizer's Rank, with "eventId" and "ranking". Lines
    with _skipLearn, which Vowpal Wabbit does not learn, and lines without a decision are left out.
    A warning counts what is left out, by reason.

    rewards: those sent to Personalizer's Reward, by event id. default: the reward of other events.
    errors: "raise" raises ValueError at the first odd line; "skip" leaves it out.
    """
    skips = one_of(errors, "errors", ("raise", "skip")) == "skip"
    rounds, events = list[dict[str, Any]](), list[dict[str, Any]]()
    left = Counter[str]()
    n = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        n += 1
        try:
            event = json_object(line)
            if "ranking" in event:
                rounds.append(_ranked(event, rewards or {}, default))
            elif "_label_cost" not in event or "c" not in event:
                left[UNDECIDED] += 1
            elif event.get("_skipLearn"):
                left["with _skipLearn"] += 1
            else:
                rounds.append(_joined(event))
                events.append(event)
        except ValueError as odd:
            if not skips:
                raise ValueError(
                    f"line {number} is {odd}; errors='skip', or --errors skip, leaves out such "
                    "lines and counts them"
                ) from odd
            left[str(odd).partition(":")[0]] += 1
    if not rounds:
        raise ValueError(f"none of its {n} lines is a round to learn from{_counted(left)}")
    if 0 < len(events) < len(rounds):
        raise ValueError("it has answers of Rank and joined events, which are two kinds of logs")
    if rewards is not None and events:
        raise ValueError("rewards= belong to the answers of Rank, with a ranking; got none")
    if left:
        warnings.warn(
            f"left out {left.total()} of {n} lines{_counted(left)}", skip_file_prefixes=HERE
        )
    _check_drops(events)
    _check_actions(events)
    return _table(rounds)


class Odd(ValueError):
    """A line of an export that cannot be learned: what such lines have in common, and its value."""

    def __init__(self, reason: str, value: object) -> None:
        super().__init__(f"{reason}: {value}")


def _counted(left: Counter[str]) -> str:
    return "".join(
        f"{': ' if k == 0 else ', '}{n} {why}" for k, (why, n) in enumerate(left.items())
    )


def _joined(event: dict[str, Any]) -> dict[str, Any]:
    """Return one round from a line of --dsjson: reward, arm, chances, time and contexts."""
    try:
        actions = event["c"]["_multi"]
        order = event["a"]
        names = dict(enumerate((action_name(a, k) for k, a in enumerate(actions)), 1))
        if len(set(names.values())) < len(names):
            raise Odd("with an action offered twice", [*names.values()])
        if sorted(order) != list(names):
            raise Odd(f"with positions other than 1 to {len(names)}", order)
        chances = {names[a]: float(p) for a, p in zip(order, event["p"], strict=True)}
        place = event["_labelIndex"] + 1
        chosen = names[place]
        if event.get("_label_Action", place) != place:
            raise Odd("whose _label_Action is not _labelIndex + 1", event["_label_Action"])
        reward = 0.0 - float(event["_label_cost"])
        propensity = float(event["_label_probability"])
        shared = {name: value for name, value in event["c"].items() if name[:1] != "_"}
        float(event.get("pdrop", 0.0))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, Odd):
            raise
        raise Odd("no line of --dsjson", repr(error)) from error
    x = dict(features(shared))
    return _round(chosen, reward, propensity, chances, event.get(DECIDED), x)


def _round(
    chosen: Any,
    reward: float,
    propensity: float,
    chances: Mapping[Any, float],
    time: Any,
    x: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a round.

    Raise `Odd` for an infinite reward, for what is no time, and unless probabilities sum to 1 and
    that of the chosen action is `propensity`.
    """
    if isinf(reward):
        raise Odd("with an infinite reward", reward)
    if time is not None and not (isinstance(time, str) and re.fullmatch(ISO, time)):
        raise Odd("with a time that is not of ISO 8601", time)
    total = sum(chances.values())
    if not (min(chances.values()) >= 0 and abs(total - 1) <= ROUNDING):
        raise Odd("with probabilities that do not sum to 1", list(chances.values()))
    if not (propensity > 0 and abs(chances[chosen] - propensity) <= ROUNDING):
        raise Odd("whose action has another probability than the logged one", propensity)
    return {
        "arm": chosen, "reward": reward, "propensity": propensity, "chances": chances,
        "time": time, "x": x,
    }  # fmt: skip


def _ranked(event: dict[str, Any], rewards: Mapping[str, float], default: float) -> dict[str, Any]:
    """Return one round from an answer of Rank."""
    try:
        chances = {action["id"]: float(action["probability"]) for action in event["ranking"]}
        chosen, key = event["rewardActionId"], event["eventId"]
        propensity = chances[chosen]
        reward = float(rewards.get(key, default))
        contexts = event.get("contextFeatures", [])
        x = {name: value for part in contexts for name, value in features(part)}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Odd("an answer of Rank that cannot be read", repr(error)) from error
    return _round(chosen, reward, propensity, chances, event.get("timestamp"), x)


def action_name(action: Any, place: int) -> str | int:
    """Return an action's _tag, else its id, else its position from 1."""
    if not isinstance(action, dict):
        return place + 1
    parts = [action, *(part for part in action.values() if isinstance(part, dict))]
    for key in ("_tag", "id"):
        for part in parts:
            if isinstance(part.get(key), str | int):
                return part[key]
    return place + 1


def _check_actions(events: list[dict[str, Any]]) -> None:
    """Warn if actions without a name change from round to round."""
    first: dict[str | int, str] = {}
    for event in events:
        for k, action in enumerate(event["c"].get("_multi", ())):
            if action_name(action, k) == k + 1:
                text = json.dumps(action, sort_keys=True)
                if first.setdefault(k + 1, text) != text:
                    warnings.warn(
                        f"action {k + 1} has neither a _tag nor an id, and changes: arms go by "
                        "their places",
                        stacklevel=3,
                    )
                    return


def _check_drops(events: list[dict[str, Any]]) -> None:
    """Raise ValueError if lines were dropped at random at different rates."""
    rates = {float(event.get("pdrop", 0.0)) for event in events}
    if len(rates) > 1:
        raise ValueError(
            f"lines were dropped at different rates (pdrop from {min(rates):g} to "
            f"{max(rates):g}): rounds that were kept are no fair sample of all"
        )


def features(part: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the features of a JSON object.

    Nested names are joined by dots: "user.age". A number in a list is named by its position:
    "scores[0]". A text in a list becomes an indicator: "likes=tea" with value 1.
    """
    for name, value in part.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from features(value, f"{before}{name}.")
        elif isinstance(value, list):
            for k, one in enumerate(value):
                if isinstance(one, dict):
                    yield from features(one, f"{before}{name}.")
                elif isinstance(one, str):
                    yield f"{before}{name}={one}", 1.0
                else:
                    yield f"{before}{name}[{k}]", one
        else:
            yield f"{before}{name}", value


def _table(rounds: list[dict[str, Any]]) -> tuple[pd.DataFrame, dict[str, Any]]:
    import pandas as pd

    arms = list(dict.fromkeys(arm for one in rounds for arm in one["chances"]))
    x = pd.DataFrame([one["x"] for one in rounds])
    for name in x.columns[x.isna().any()]:
        if pd.api.types.is_numeric_dtype(x[name]):
            x[name] = x[name].fillna(0.0)  # a missing feature is 0
    found = {name: [one[name] for one in rounds] for name in ("arm", "reward", "propensity")}
    roles: dict[str, Any] = {name: f"logged {name}" for name in found}
    roles["probabilities"] = {arm: f"{EVENT}{arm}" for arm in arms}
    table: dict[str, Any] = {roles[name]: values for name, values in found.items()}
    for arm, column in roles["probabilities"].items():
        table[column] = [one["chances"].get(arm, 0.0) for one in rounds]
    times = [one["time"] for one in rounds]
    unknown = times.count(None)
    if unknown == 0:
        roles["time"] = "logged time"
        table["logged time"] = times
    elif unknown < len(times):
        warnings.warn(
            f"{unknown} of {len(times)} rounds have no time: the log is read without times",
            skip_file_prefixes=HERE,
        )
    roles["x"] = x.columns.tolist()
    return pd.concat([pd.DataFrame(table), x], axis=1), roles
