"""Forms of plain values: a schema says once what a file may hold, before anything reads it.

A form is
    a type: values of this very type (a bool is no int), and all of `object`;
    None, a text, a bool or a number: this value alone;
    Whole(least, most): an integer;
    (form, …): a value of any of these forms;
    [form]: a list of such values; Row(form, …): a list with one value for each form;
    {key: form}: a dict with these keys, "key?" where it may lack; ...: the form of all other keys;
    Real(least, most): a float;
    Numbers(shape, least, most): a NumPy array of finite numbers within these bounds;
    Records(row, n): a NumPy array of rows whose parts have names;
    a function (value, where): it calls `check`, or raises `Broken`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import numpy as np

from bayesbandit.checks import LARGEST_FLOAT, LARGEST_INTEGER, MAX_COUNT, Array

Arrays = dict[str, Array]  # by name: rows by their role, the arrays of a file
State = dict[str, Any]  # arrays and plain values by name: what a file holds of a part
Form = dict[Any, Any]  # the forms of a state by name


class Broken(ValueError):
    """An error: a file does not hold a whole bandit, because a value does not have its form."""


def demand(truth: object, what: str) -> None:
    """Raise `Broken` unless this is true."""
    if not truth:
        raise Broken(what)


@dataclass(frozen=True)
class Whole:
    least: int = 0
    most: int = MAX_COUNT


@dataclass(frozen=True)
class Real:
    least: float
    most: float


@dataclass(frozen=True)
class Numbers:
    """shape: None stands for any; in a shape, for any length. whole: whether they are integers.
    nan: whether NaN is allowed. dtype: float64 or int64; None: either."""

    shape: tuple[int | None, ...] | None = None
    least: float = -LARGEST_FLOAT
    most: float = LARGEST_FLOAT
    whole: bool = False
    nan: bool = False
    dtype: str | None = "<f8"

    def check(self, value: object, where: str) -> None:
        """Raise `Broken`, with the shape or the number seen, unless the array is of this form."""
        kind = value.dtype.str if isinstance(value, np.ndarray) else brief(value)
        allowed = ("<f8", "<i8") if self.dtype is None else (self.dtype,)
        if not isinstance(value, np.ndarray) or kind not in allowed:
            raise Broken(f"{where} must be an array of {' or '.join(allowed)}; got {kind}")
        shape = value.shape if self.shape is None else self.shape
        fits = len(shape) == value.ndim
        if not (fits and all(m in (None, n) for m, n in zip(shape, value.shape, strict=True))):
            raise Broken(f"{where} must be numbers {shape}; got {value.shape}")
        good = (self.least <= value) & (value <= self.most)
        if self.whole:
            good &= value == np.floor(value)
        if self.nan:
            good |= np.isnan(value)
        if not good.all():
            what = "integers" if self.whole else "finite numbers"
            least = self.least
            most = self.most
            wrong = value[~good][0]
            raise Broken(f"{where} must be {what} from {least:g} to {most:g}; got {wrong}")


@dataclass(frozen=True)
class Records:
    """row: the type of a record, of float64. n: how many rows; None: any. parts: the forms of its
    fields by name; the others are finite numbers."""

    row: np.dtype
    n: int | None = None
    parts: Mapping[str, object] = field(default_factory=dict)

    def check(self, value: object, where: str) -> None:
        """Raise `Broken` unless the array has such rows."""
        Numbers((self.n, self.row.itemsize // 8), -np.inf, np.inf, nan=True).check(value, where)
        assert isinstance(value, np.ndarray)
        for name in self.row.names or ():
            part = records(value, self.row)[name]
            if part.ndim < 3:  # short rows are read faster, and more than once, from a copy
                part = np.ascontiguousarray(part)
            check(part, self.parts.get(name, FINITE_NUMBERS), f"{where}[{name!r}]")


def records(rows: Array, row: np.dtype) -> Array:
    """Return a view of rows (n, width) of numbers as records (n,)."""
    if row.itemsize == 0:
        return np.zeros(len(rows), row)
    return np.ascontiguousarray(rows).view(row)[:, 0]


class Row(tuple[object, ...]):
    def __new__(cls, *forms: object) -> Row:
        return super().__new__(cls, forms)


ARM_NAME = (str, Whole(-LARGEST_INTEGER, LARGEST_INTEGER))  # of an arm
FINITE_NUMBERS = Numbers()
AT_LEAST_ZERO = Numbers(least=0.0)


def check(value: object, form: object, where: str = "it") -> None:
    """Raise `Broken`, with the place and the value seen, unless the value is of this form."""
    if isinstance(form, list | Row):
        demand(type(value) is list, f"{where} is {brief(value)}")
        assert isinstance(value, list)
        forms = form if isinstance(form, Row) else form * len(value)
        demand(len(value) == len(forms), f"{where} is {brief(value)}")
        for i, (one, form_of_item) in enumerate(zip(value, forms, strict=True)):
            check(one, form_of_item, f"{where}[{i}]")
    elif isinstance(form, tuple):
        if not any(fits(value, one) for one in form):
            raise Broken(f"{where} is {brief(value)}")
    elif isinstance(form, dict):
        _check_keys(value, form, where)
    elif isinstance(form, Numbers | Records):
        form.check(value, where)
    elif callable(form) and not isinstance(form, type):
        form(value, where)
    elif not _is(value, form):
        raise Broken(f"{where} is {brief(value)}")


def fits(value: object, form: object) -> bool:
    """Return whether a value has this form."""
    try:
        check(value, form)
    except Broken:
        return False
    return True


def _is(value: object, form: object) -> bool:
    if isinstance(form, type):
        return form is object or type(value) is form
    if isinstance(form, Whole | Real):
        kind = int if isinstance(form, Whole) else float
        return type(value) is kind and form.least <= value <= form.most
    return type(value) is type(form) and bool(value == form)


def _check_keys(value: object, form: Mapping[str | EllipsisType, object], where: str) -> None:
    if type(value) is not dict:
        raise Broken(f"{where} is {brief(value)}")
    keys = {key.removesuffix("?"): key for key in form if isinstance(key, str)}
    for name, key in keys.items():  # in this order: a later one may rely on earlier ones
        if name in value:
            check(value[name], form[key], _place(where, name))
        elif not key.endswith("?"):
            raise Broken(f"{where} lacks {name!r}")
    for name in [name for name in value if name not in keys]:
        if ... not in form:
            raise Broken(f"{where} has the unknown key {brief(name)}")
        check(value[name], form[...], _place(where, name))


def _place(where: str, key: object) -> str:
    return str(key) if where == "it" else f"{where}[{brief(key)}]"


def nodes_form(state: State, most: int, ends: Callable[[], Array]) -> Form:
    """Return the forms of `feature`, `threshold`, `left` and `right` (N,), by name.

    A leaf has feature −1. most: the largest feature. ends: returns where the tree of each node ends
    (N,); children are behind their parents, and in the same tree.
    """
    N = len(state["feature"])

    def children(value: object, where: str) -> None:
        check(value, Numbers((N,), dtype="<i8"), where)
        [split] = np.nonzero(state["feature"] >= 0)
        child = np.asarray(value)[split]
        behind = (child > split) & (child < ends()[split])
        demand(N > 0 and behind.all(), f"{where}: a node must be in its parent's tree, behind it")

    return {
        "feature": Numbers((N,), -1, most, dtype="<i8"),
        "threshold": Numbers((N,)),
        "left": children,
        "right": children,
    }


def picked(arrays: Mapping[str, Array], at: int | slice | Array | list[int] | None) -> Arrays:
    """Return the values of each array at these places of its first axis; None: a new first axis."""
    return {name: array[at] for name, array in arrays.items()}


def prefixed(prefix: str, form: Mapping[Any, object]) -> Form:
    """Return the form of a dict whose keys begin with a prefix."""
    return {key if key is ... else prefix + key: one for key, one in form.items()}


def unprefixed(state: State, prefix: str) -> State:
    """Return the entries whose keys begin with a prefix, by the rest of the key."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def brief(value: object) -> str:
    """Return a value in a few words."""
    if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) > LARGEST_INTEGER):
        return f"a {type(value).__name__}"
    return repr(value)[:80]


PLAIN_VALUE = (None, bool, float, str, Whole(-LARGEST_INTEGER, LARGEST_INTEGER))
