"""Exports of Vowpal Wabbit and Azure AI Personalizer, read as tables with a row for each round."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

DECIDED = "Timestamp"
EVENT = "probability of "  # prefix of the columns of probabilities
SINGLE = 1e-4  # by how much a sum of single-precision probabilities may differ from 1


def of_lines(
    lines: Iterable[str], rewards: Mapping[str, float] | None = None, default: float = np.nan
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table of an export, and the roles of its columns.

    Each line is a JSON object. It is a joined event, as written by `vw --dsjson` or in
    Personalizer's log; or an answer of Personalizer's Rank, with "eventId" and "ranking". rewards:
    those sent to Personalizer's Reward, by event id. default: the reward of other events.
    """
    events = list(_objects(lines))
    if not events:
        raise ValueError("there is no event in it")
    if any("ranking" in event for event in events):
        rounds = [_ranked(event, rewards or {}, default) for event in events]
    else:
        if rewards is not None:
            raise ValueError("rewards= belong to the answers of Rank, with a ranking; got none")
        joined = [event for event in events if "_label_cost" in event and "c" in event]
        if left := len(events) - len(joined):
            warnings.warn(f"{left} of {len(events)} lines are no decided rounds", stacklevel=2)
        if not joined:
            raise ValueError('no line has a decision ("_label_cost" and "c")')
        rounds = [_joined(event, t) for t, event in enumerate(joined)]
        _check_drops(joined)
        _check_actions(joined)
    return _table(rounds)


def _objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error
        if not isinstance(event, dict):
            raise ValueError(f"line {number} is no JSON object; got {line[:30]!r}")
        yield event


def _joined(event: dict[str, Any], t: int) -> dict[str, Any]:
    """Return one round from a line of --dsjson: reward, arm, chances, time and contexts."""
    try:
        actions, order = event["c"]["_multi"], event["a"]
        names = dict(enumerate((action_name(a, k) for k, a in enumerate(actions)), 1))
        chances = {names[a]: float(p) for a, p in zip(order, event["p"], strict=True)}
        chosen = names[event["_labelIndex"] + 1]
        reward = 0.0 - float(event["_label_cost"])
        propensity = float(event["_label_probability"])
        shared = {name: value for name, value in event["c"].items() if name[:1] != "_"}
        float(event.get("pdrop", 0.0))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"round {t} is no line of --dsjson: {error!r}") from error
    if len(chances) < len(names):
        raise ValueError(f"round {t} has two actions of one name, or none: {[*names.values()]!r}")
    return {
        "arm": chosen, "reward": reward, "propensity": propensity, "chances": chances,
        "time": event.get(DECIDED), "x": dict(features(shared)),
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
        raise ValueError(f"an answer of Rank cannot be read: {error!r}") from error
    return {
        "arm": chosen, "reward": reward, "propensity": propensity,
        "chances": chances, "time": event.get("timestamp"), "x": x,
    }  # fmt: skip


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
    chances = np.array([[one["chances"].get(arm, 0.0) for arm in arms] for one in rounds])
    total = chances.sum(axis=1)
    scale = np.where(np.abs(total - 1) < SINGLE, total, 1.0)
    table["logged propensity"] = np.array(found["propensity"]) / scale
    for k, column in enumerate(roles["probabilities"].values()):
        table[column] = chances[:, k] / scale
    times = [one["time"] for one in rounds]
    if all(time is not None for time in times):
        roles["time"] = "logged time"
        table["logged time"] = times
    roles["x"] = x.columns.tolist()
    return pd.concat([pd.DataFrame(table), x], axis=1), roles
