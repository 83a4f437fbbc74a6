"""What the functions of a formula learned: its form, and as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesbandit.checks import shown
from bayesbandit.tables.formulas.expressions import (
    SETTINGS,
    SPLINES,
    Call,
    constraints_of,
    inner_knots,
    inside,
    parts,
)
from bayesbandit.tables.formulas.terms import Terms

NUMBER = float  # in the form of a state: a number


def check_state(text: str, terms: Terms, state: Mapping[str, Any]) -> None:
    """Raise a ValueError for a state that no fit of these terms has."""
    calls = (one for factor in terms.factors.values() for one in inside(factor))
    learn = (one for one in calls if isinstance(one, Call) and one.function in SETTINGS)
    forms = {one.text: form for one in learn if (form := form_of(one))}
    if not has_form(dict(state), forms):
        raise ValueError(f"the formula {text!r} is broken: its state is not whole")


def form_of(call: Call) -> dict[Any, Any]:
    """Return what the state of a call looks like: NUMBER for a number, a tuple for an array's
    shape."""
    settings, bounds = call.settings, {"lower_bound": NUMBER, "upper_bound": NUMBER}
    match call.function:
        case "bs":
            knots = inner_knots(call) + 2 + 2 * settings.get("degree", 3)
            return {**bounds, "knots": [NUMBER] * knots}
        case "cr" | "cs" | "cc" as function:
            knots, m = inner_knots(call) + 2, constraints_of(call)
            constraints = (m, knots - (function == "cc")) if m else None
            cyclic = {"cyclic": function == "cc", "constraints": constraints}
            return {**bounds, **cyclic, "knots": [NUMBER] * knots}
        case "poly":
            if settings.get("raw"):
                return {}
            degree = settings.get("degree", 1)
            alpha, norms = range(degree), range(degree + 1)
            return {"alpha": dict.fromkeys(alpha, NUMBER), "norms2": dict.fromkeys(norms, NUMBER)}
    several, array = parts(call.data), False
    if several is not None:
        array = all(one.function not in SPLINES for one in inside(call) if isinstance(one, Call))
    learned = (len(several),) if several is not None and array else NUMBER
    form: dict[Any, Any] = {"ddof": NUMBER}
    scales = False if call.function == "center" else settings.get(SETTINGS[call.function][1], True)
    for name, setting in (("center", settings.get("center", True)), ("scale", scales)):
        form[name] = (learned if setting else None) if isinstance(setting, bool) else ()
    return form if several is None or array else dict.fromkeys(several, form)


def has_form(state: object, form: object) -> bool:
    """Return whether a state is of this form, and all its numbers are finite."""
    if form is NUMBER:
        return (type(state) is int or type(state) is float) and math.isfinite(state)
    if isinstance(form, tuple):
        whole = isinstance(state, np.ndarray) and state.shape == form and np.isfinite(state).all()
        return bool(whole)
    if isinstance(form, list):
        if type(state) is not list or len(state) != len(form):
            return False
        return all(map(has_form, state, form))
    if isinstance(form, dict):
        if type(state) is not dict or state.keys() != form.keys():
            return False
        return all(has_form(state[key], form[key]) for key in form)
    return type(state) is type(form) and bool(state == form)


def plain(value: object) -> Any:
    """Return a state as values that JSON holds."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": value.ravel().tolist(), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {"pairs": [[plain(key), plain(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    raise TypeError(f"a formula's state has {shown(value)}, which cannot be stored")


def restored(stored: object) -> Any:
    """Return what `plain` stored."""
    if type(stored) is list:
        return [restored(one) for one in stored]
    if type(stored) is dict and stored.keys() == {"array", "shape"}:
        array = np.array([float(one) for one in stored["array"]])
        return array.reshape(stored["shape"])
    if type(stored) is dict and stored.keys() == {"pairs"}:
        return {restored(key): restored(one) for key, one in stored["pairs"]}
    if stored is None or type(stored) in (bool, int, float, str):
        return stored
    raise ValueError(f"a formula's state has {shown(stored)[:80]}")
