"""Forms of plain values: a schema says once what a file may hold, before anything reads it.

A form is
    a type: values of this very type (a bool is no int), and all of `object`;
    None, a text, a bool or a number: this value alone;
    Whole(least, most): an integer;
    OneOf(form, …): a value of any of these forms;
    [form]: a list of such values; Row(form, …): a list with one value for each form;
    {key: form}: a dict with these keys, "key?" where it may lack; ...: the form of all other keys;
    Array(dtype, n): a NumPy array of this dtype and of n dimensions;
    Numbers(shape, least, most): a NumPy array of finite numbers; None in a shape: any length;
    a function (value, where): it calls `check`, or raises `Broken`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeGuard

import numpy as np

from bayesbandit.checks import COUNT, LONGEST

DEPTH = 100  # levels of lists and dicts in each other


class Broken(ValueError):
    """An error: a file does not hold a whole bandit, because a value does not have its form."""


def demand(truth: object, what: str) -> None:
    """Raise `Broken` unless this is true."""
    if not truth:
        raise Broken(what)


@dataclass(frozen=True)
class Whole:
    least: int = 0
    most: int = COUNT


@dataclass(frozen=True)
class Array:
    dtype: str = "<f8"
    ndim: int = 1


@dataclass(frozen=True)
class Numbers:
    """whole: whether they are integers. dtype: theirs; None: any of numbers."""

    shape: tuple[int | None, ...]
    least: float = -np.inf
    most: float = np.inf
    whole: bool = False
    dtype: str | None = None

    def check(self, value: object, where: str) -> None:
        """Raise `Broken`, with the shape or the number seen, unless the array is of this form."""
        array = np.asarray(value)
        fits = array.ndim == len(self.shape) and array.dtype.kind in "iuf"
        fits = fits and all(m in (None, n) for m, n in zip(self.shape, array.shape, strict=True))
        if not fits or self.dtype not in (None, array.dtype.str):
            raise Broken(f"{where} must be numbers {self.shape}; got {array.dtype} {array.shape}")
        good = np.isfinite(array) & (self.least <= array) & (array <= self.most)
        if self.whole:
            good &= array == np.floor(array)
        if not good.all():
            what = "integers" if self.whole else "finite numbers"
            least, most, wrong = self.least, self.most, array[~good][0]
            raise Broken(f"{where} must be {what} from {least:g} to {most:g}; got {wrong}")


class OneOf(tuple[object, ...]):
    def __new__(cls, *forms: object) -> OneOf:
        return super().__new__(cls, forms)


class Row(tuple[object, ...]):
    def __new__(cls, *forms: object) -> Row:
        return super().__new__(cls, forms)


NAME = OneOf(str, Whole(-LONGEST, LONGEST))  # of an arm


def check(value: object, form: object, where: str = "it") -> None:
    """Raise `Broken`, with the place and the value seen, unless the value is of this form."""
    if isinstance(form, OneOf):
        if not any(fits(value, one) for one in form):
            raise Broken(f"{where} is {brief(value)}")
    elif isinstance(form, list | Row):
        if type(value) is not list or (isinstance(form, Row) and len(value) != len(form)):
            raise Broken(f"{where} is {brief(value)}")
        forms = form if isinstance(form, Row) else form * len(value)
        for i, (one, its) in enumerate(zip(value, forms, strict=True)):
            check(one, its, f"{where}[{i}]")
    elif isinstance(form, dict):
        _check_keys(value, form, where)
    elif isinstance(form, Array):
        own = isinstance(value, np.ndarray) and (value.dtype.str, value.ndim)
        if own != (form.dtype, form.ndim):
            raise Broken(f"{where} is no array {form.dtype} of {form.ndim} dimensions")
    elif isinstance(form, Numbers):
        form.check(value, where)
    elif callable(form) and not isinstance(form, type):
        form(value, where)
    elif not _is(value, form):
        raise Broken(f"{where} is {brief(value)}")


def fits(value: object, form: object) -> bool:
    """Return whether a value has this form."""
    if isinstance(form, type | Whole) or form is None:
        return _is(value, form)
    try:
        check(value, form)
    except Broken:
        return False
    return True


def _is(value: object, form: object) -> bool:
    if isinstance(form, type):
        return form is object or type(value) is form
    if isinstance(form, Whole):
        return type(value) is int and form.least <= value <= form.most
    return type(value) is type(form) and bool(value == form)


def _check_keys(value: object, form: Mapping[str | EllipsisType, object], where: str) -> None:
    if type(value) is not dict:
        raise Broken(f"{where} is {brief(value)}")
    of = {key.removesuffix("?"): its for key, its in form.items() if isinstance(key, str)}
    for key in form:
        if isinstance(key, str) and not key.endswith("?") and key not in value:
            raise Broken(f"{where} lacks {key!r}")
    for key, one in value.items():
        if key not in of and ... not in form:
            raise Broken(f"{where} has the unknown key {brief(key)}")
        check(one, of.get(key, form.get(...)), key if where == "it" else f"{where}[{brief(key)}]")


def brief(value: object) -> str:
    """Return a value in a few words."""
    if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) > LONGEST):
        return f"a {type(value).__name__}"
    return repr(value)[:80]


def check_plain(value: object) -> None:
    """Raise `Broken` unless a value is one that JSON can hold.

    That is plain types and text keys, not nested too deeply, without integers that are too large to
    read.
    """
    level = [value]
    for _ in range(DEPTH):
        if any(type(one) is dict and any(type(k) is not str for k in one) for one in level):
            raise Broken("it has a key that is no text")
        inner = [list(one.values()) if type(one) is dict else one for one in level if _holds(one)]
        if odd := [one for one in level if not _holds(one) and not fits(one, PLAIN)]:
            raise Broken(f"it has {brief(odd[0])[:40]}, which is no plain value")
        level = [one for many in inner for one in many]
        if not level:
            return
    raise Broken(f"its lists are more than {DEPTH} levels deep")


def _holds(value: object) -> TypeGuard[list[object] | dict[str, object]]:
    return type(value) in (list, dict)


PLAIN = OneOf(None, bool, float, str, Whole(-LONGEST, LONGEST))
