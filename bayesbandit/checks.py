"""Checks of what users pass: functions that return the value or raise an error.

An error names the value seen and the values allowed. Values are checked once, where they come in;
inner functions trust their arguments.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray
Name = str | int
Arms = int | Iterable[Name]  # how many, or their names
Seed = int | np.random.SeedSequence | None  # None: from the operating system
Alpha = float | Callable[[int], float]  # a policy's setting: a number, or a function of round t

FLOAT64 = np.dtype(np.float64)
LARGEST_FLOAT = int(sys.float_info.max)
MAX_COUNT = 2**53 - 1  # the largest counter: float64 holds it exactly
MAX_TICK = 2**52  # the latest tick to which a clock is put: it may count as many again
MAX_DRAWS = 2**20 - 1  # the most draws, replicates or trees of one belief
LARGEST_INTEGER = 2**4096 - 1  # the largest name or seed: Python does not write much longer numbers
# NumPy would convert these to numbers
NON_NUMERIC_TYPES = (
    str,
    bytes,
    np.datetime64,
    np.timedelta64,
)
FLOAT_EPSILON = float(np.finfo(np.float64).eps)
MAX_ABS_VALUE = 1e50  # the largest |context| or |reward|: products of four stay finite
PROBABILITY_TOLERANCE = 1e-4  # by how much rounded probabilities and their sums may be off
SILENT_TOLERANCE = 1e-6  # by how much they may be off without a word
PACKAGE_FOLDER = (str(Path(__file__).parent),)  # a warning is of the line that called the package
SETTING_BOUNDS = {
    "largest": 1e100,
    "smallest": 1e-100,
}  # of settings > 0; 1e100 = MAX_ABS_VALUE²


@runtime_checkable
class Table(Protocol):
    """A table with named columns: a DataFrame of any library."""

    @property
    def columns(self) -> Any: ...


@runtime_checkable
class Row(Protocol):
    """A row with named values: a pandas Series."""

    @property
    def index(self) -> Any: ...

    @property
    def ndim(self) -> int: ...

    def items(self) -> Iterable[tuple[Any, Any]]: ...


@runtime_checkable
class Sparse(Protocol):
    """A sparse matrix of any library."""

    def toarray(self) -> Array: ...


# Contexts are numbers. With an encoder they may be a table, or rows with names. None: no features.
Contexts = ArrayLike | Table | Row | Mapping[str, object] | Sequence[Mapping[str, object]] | None


def floats(values: object, what: str) -> Array:
    """Return `values` as a contiguous float64 array.

    Raise ValueError with the value that is no number, and its column in a table.
    """
    unmasked(values, what)
    array = None
    first = values[0] if isinstance(values, list | tuple) and values else values
    if isinstance(first, Sparse):
        raise ValueError(
            f"{what} must be numbers in a dense array; found a sparse {type(first).__name__}: "
            ".toarray() makes one, and scikit-learn's TruncatedSVD a small one"
        )
    try:
        array = _filled(values)
        strange = array.dtype == object and any(
            isinstance(v, NON_NUMERIC_TYPES) for v in array.flat
        )
        if array.dtype.kind not in "biufO" or strange:
            raise TypeError(f"found {array.ravel()[:3].tolist()}")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error)
        if "inhomogeneous" in why:
            why = "found rows of different lengths"
        if array is not None and array.ndim == 2:
            names = column_names(values) if isinstance(values, Table) else range(array.shape[1])
            why = _strange(np.asarray(values, dtype=object), names) or why
        if isinstance(values, Table):
            why += "; encoder=bb.Encoder.fit(frame) makes numbers of a table"
        raise ValueError(f"{what} must be numbers: {why}") from error


def column_names(table: Any) -> list[Any]:
    """Return the names of a table's columns; `columns` of one of Arrow are its data."""
    arrow = sys.modules.get("pyarrow")
    is_arrow = arrow is not None and isinstance(table, arrow.Table)
    return list(table.column_names if is_arrow else table.columns)


def by_arm(values: object, arms: Sequence[Name], what: str) -> Array:
    """Return numbers (n, K), the columns of a table in the order of the arms.

    Columns are found by the arms' names, or by their texts. Columns of a table that only count from
    0, and of an array, go by position. Raise ValueError for other names.
    """
    columns: list[Name] = column_names(values) if isinstance(values, Table) else []
    only_count = columns == [*range(len(columns))] and {*columns}.isdisjoint(arms)
    if only_count or not isinstance(values, Table):
        return floats(values, what)
    texts: list[Name] = [*map(str, columns)]
    for names, wanted in ((columns, [*arms]), (texts, [*map(str, arms)])):
        if len(names) == len({*names}) == len(wanted) and {*names} == {*wanted}:
            return np.take(floats(values, what), [*map(names.index, wanted)], axis=1)
    raise ValueError(
        f"the columns of {what} must be the arms {list(arms)!r}, in any order; got {columns!r}: "
        "an array of its values goes by position"
    )


def feature_names(d: int) -> list[str]:
    """Return the names of d features that have none: x0, x1, …"""
    return [f"x{j}" for j in range(d)]


def _strange(array: Array, columns: Iterable[Any]) -> str | None:
    """Return the column and value of an array (n, d) that is no number; None if all are numbers.

    A text that looks like a number is returned only if nothing else is wrong.
    """
    texts = None
    for name, column in zip(columns, array.T.tolist(), strict=True):
        for value in column:
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                return f"column {name!r} has {value!r}"
            if texts is None and isinstance(value, str | bytes):
                texts = f"column {name!r} has {value!r}"
    return texts


def same_rows(log: pd.Index | None = None, **values: object) -> pd.Index | None:
    """Return the labels of the rows of pandas objects; None where there is none.

    log: the labels of the rows of a log, beside which the values stand. Raise ValueError where two
    have the same labels in another order. Rows go by their position. A sorted series would then be
    paired with the rows of others.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    kinds = pandas.DataFrame, pandas.Series
    indexes = {} if log is None else {"log": log}
    indexes |= {name: value.index for name, value in values.items() if isinstance(value, kinds)}
    for (first, a), (second, b) in combinations(indexes.items(), 2):
        if len(a) == len(b) and not a.equals(b) and _are_permuted(a, b):
            raise ValueError(
                f"{first} and {second} have the same index in different orders, and rows go by "
                f"position: pass {second}.loc[{first}.index], or {second}.to_numpy() if the "
                "positions are right"
            )
    return next(iter(indexes.values()), None)


def _are_permuted(a: pd.Index, b: pd.Index) -> bool:
    """Return whether two indexes have the same labels."""
    try:
        return a.sort_values().equals(b.sort_values())
    except TypeError:  # labels of several types have no order
        return set(a) == set(b)


def _filled(values: object) -> Array:
    """Return values as an array, with NaN for pandas' NA in a column."""
    array = np.asarray(values)
    if array.dtype != object or array.ndim > 1 or "pandas" not in sys.modules:
        return array
    missing = np.array([v is sys.modules["pandas"].NA for v in array.flat], dtype=bool)
    return np.where(missing.reshape(array.shape), np.nan, array)


def unmasked(values: object, what: str) -> None:
    """Raise ValueError for a masked array, or a list of such: NumPy would drop the mask."""
    each = values if isinstance(values, list | tuple) else [values]
    if any(map(np.ma.isMaskedArray, each)):
        raise ValueError(
            f"{what} must be an array without a mask: fill it, .filled(np.nan); got {values!r}"
        )


def arm_column(values: object) -> Array:
    """Return the names of arms as an array of objects, or of integers as it was."""
    unmasked(values, "arm")
    if type(values) is np.ndarray and values.dtype.kind in "iu":
        return np.atleast_1d(values)
    return np.atleast_1d(np.asarray(values, dtype=object))


def finite(array: Array, what: str, most: float = sys.float_info.max) -> Array:
    """Return the array itself; raise ValueError unless all |values| are finite and ≤ `most`."""
    if array.size and not (-most <= array.min() and array.max() <= most):
        at = np.argwhere(~(np.abs(array) <= most))[0]
        size = "" if most == sys.float_info.max else f", at most {most:g} in size"
        raise ValueError(f"{what} must be finite{size}; found {array[tuple(at)]} at {at.tolist()}")
    return array


def contexts(x: object, n_features: int, n: int = 1) -> Array:
    """Return finite contexts (n, d); one context (d,) becomes one row.

    None stands for n contexts without features.
    """
    if x is None and n_features == 0:
        return np.empty((n, 0))
    if x is None:
        raise ValueError(f"contexts must have {n_features} features; got none")
    x = floats(x, "contexts")
    if x.ndim not in (1, 2) or x.shape[-1] != n_features:
        raise ValueError(
            f"contexts must have shape ({n_features},) or (n, {n_features}); got {x.shape}"
        )
    return finite(np.atleast_2d(x), "contexts", MAX_ABS_VALUE)


def column(values: object, n: int, what: str) -> Array:
    """Return one finite number for each row, (n,); a single number is one row."""
    return finite(one_a_row(values, n, what), what, MAX_ABS_VALUE)


def one_a_row(values: object, n: int, what: str) -> Array:
    """Return values as floats (n,), one for each row; NaN and infinity are allowed.

    A single number is one row. Raise ValueError for another shape.
    """
    array = np.atleast_1d(floats(values, what))
    if array.shape != (n,):
        raise ValueError(f"{what} must have one value for each of {n} rows; got {array.shape}")
    return array


def instants(values: object) -> Any:
    """Return dates as seconds since 1970, NaN where one is missing; anything else unchanged.

    A date without a time zone is taken as UTC.
    """
    unmasked(values, "times")
    array = np.asarray(values)
    if array.dtype.kind == "O" and all(isinstance(v, date | None) for v in array.flat):
        import pandas as pd

        array = pd.to_datetime(array.ravel(), utc=True).tz_localize(None).to_numpy()
    if array.dtype.kind != "M":
        return values
    seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6  # ns end in the year 2262
    return np.where(np.isnat(array), np.nan, seconds)


def same_length(arm: Array, n: int) -> None:
    """Raise ValueError unless there are n ≥ 1 rows and one arm (n,) for each."""
    if n == 0:
        raise ValueError("an update needs at least one round; got none")
    if arm.shape != (n,):
        raise ValueError(f"arm must have one name for each of {n} rows; got {arm.shape}")


def propensities(values: object, n: int) -> Array:
    """Return propensities (n,), each in (0, 1]; a single number stands for all rows.

    One that rounding made a little larger than 1 is 1.
    """
    single = isinstance(values, Real) or (isinstance(values, np.ndarray) and values.ndim == 0)
    each = np.repeat(floats(values, "propensities"), n) if single else values
    p = one_a_row(each, n, "propensities")
    present(p, "propensities")
    if not ((p > 0) & (p <= 1 + PROBABILITY_TOLERANCE)).all():
        t = int(np.flatnonzero((p <= 0) | (p > 1 + PROBABILITY_TOLERANCE))[0])
        raise ValueError(f"propensities must be in (0, 1]; got {p[t]} in round {t}")
    if p.max() > 1 + SILENT_TOLERANCE:
        warnings.warn(
            f"propensities up to {p.max():g} are 1 up to rounding",
            skip_file_prefixes=PACKAGE_FOLDER,
        )
    return np.minimum(p, 1.0)


def present(p: Array, what: str) -> None:
    """Raise ValueError if some probabilities (n,) are missing, with their number and a remedy."""
    if missing := int(np.isnan(p).sum()):
        raise ValueError(
            f"{what} are missing in {missing:,} of {len(p):,} rounds, first in round "
            f"{int(np.argmax(np.isnan(p)))}: fill them with the probabilities at the decisions, or "
            "leave these rounds out if they are missing whatever was chosen and earned"
        )


def rescaled(p: Array, what: str) -> Array:
    """Return probabilities (n, K) with rows that sum to 1. Raise ValueError for other rows.

    Rows whose sum is off by rounding, by 1e-6 to 1e-4, are divided by it, and a warning says so.
    """
    total = p.sum(axis=1)
    if (off := np.flatnonzero(~(np.abs(total - 1) <= PROBABILITY_TOLERANCE))).size:
        t = int(off[0])
        raise ValueError(
            f"{what} must sum to 1 in every round; they sum to {total[t]:.6g} in round {t}, and "
            f"not to 1 in {off.size} of {len(p)}"
        )
    rounded = np.abs(total - 1) > SILENT_TOLERANCE
    if not rounded.any():
        return p
    warnings.warn(
        f"{what} of {int(rounded.sum()):,} of {len(p):,} rounds sum to 1 only up to rounding, and "
        "are divided by their sum",
        skip_file_prefixes=PACKAGE_FOLDER,
    )
    return np.where(rounded[:, None], p / total[:, None], p)


def seconds(span: str | float | timedelta | None, what: str) -> float | None:
    """Return a span of time, "1d", "12h", "30min", "45s" or seconds, as seconds; None is none."""
    if span is None:
        return None
    text = str(span)  # of NumPy's and pandas' spans too, whose numbers count their own units
    try:
        value = float(text)  # pandas takes "3600" for nanoseconds
    except ValueError:
        import pandas as pd

        try:
            value = pd.Timedelta(re.sub(r"(?<=[0-9 ])d$", "D", text)).total_seconds()
        except ValueError as error:
            raise ValueError(
                f'{what} must be seconds, or text as "1d", "12h" or "30min"; got {span!r}'
            ) from error
    if not 0 <= value < math.inf:
        raise ValueError(f"{what} must be a span of time ≥ 0; got {span!r}")
    return value


def number(
    value: object,
    what: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
    largest: float = math.inf,
    smallest: float = 0.0,
) -> float:
    """Return a finite real number within the bounds; `above` and `below` are strict.

    `largest` and `smallest` bound its absolute value, so that computations stay finite.
    """
    allowed = [
        f"{sign} {bound:g}"
        for sign, bound in ((">", above), ("≥", least), ("<", below), ("≤", most))
        if math.isfinite(bound)
    ]
    # the strict bounds refuse infinity, too
    if not (is_real(value) and above < value < below and least <= value <= most):
        raise ValueError(
            f"{what} must be a finite number {' and '.join(allowed)}".rstrip() + f"; got {value!r}"
        )
    size = abs(float(value))
    if size > largest:
        raise ValueError(f"{what} must be at most {largest:g}; got {value!r}")
    if size < smallest:
        raise ValueError(f"{what} must be at least {smallest:g}; got {value!r}")
    return float(value)


def probabilities(values: object) -> Array:
    """Return probabilities (m,) strictly between 0 and 1."""
    p = floats(values, "probabilities")
    if p.ndim != 1 or not p.size or not ((p > 0.0) & (p < 1.0)).all():
        raise ValueError(f"probabilities must be (m,), each above 0 and below 1; got {p!r}")
    return p


def is_real(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number that a float can hold, and not a bool."""
    if isinstance(value, int) and abs(value) > LARGEST_FLOAT:
        return False
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def integer(value: object, what: str, least: int = 0, most: int = LARGEST_INTEGER) -> int:
    """Return an integer from `least` to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what} must be an integer ≥ {least}; got {value!r}")
    if int(value) > most:
        raise ValueError(f"{what} must be an integer < 2**{most.bit_length()}; got {value!r}")
    return int(value)


def one_of[T](value: object, what: str, allowed: Sequence[T]) -> T:
    """Return the allowed value that equals this one and has its type."""
    for choice in allowed:  # Python 3.13.0 crashes where there is no memory for a generator
        if type(value) is type(choice) and value == choice:
            return choice
    raise ValueError(f"{what} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


def arm_name(value: object) -> Name:
    """Return an arm's name: a string or an integer."""
    if isinstance(value, str):
        return str.__str__(value)  # an Enum may print itself in another way
    if isinstance(value, int | Integral) and not isinstance(value, bool):  # int is quick to see
        if abs(int(value)) > LARGEST_INTEGER:
            raise ValueError(f"an arm's name must be within ±2**{LARGEST_INTEGER.bit_length()}")
        return int(value)
    raise TypeError(f"an arm's name must be a string or an integer; got {value!r}")


def arm_names(arms: object) -> tuple[Name, ...]:
    """Return the arms' names, all different; a number K stands for 0 … K − 1."""
    if isinstance(arms, Integral) and not isinstance(arms, bool):
        arms = range(int(arms))
    if isinstance(arms, str | bytes | set | frozenset) or not isinstance(arms, Iterable):
        raise TypeError(f"arms must be a number or an ordered sequence of names; got {arms!r}")
    names = tuple(arm_name(a) for a in arms)
    if not names:
        raise ValueError("a bandit needs at least one arm; got none")
    if len(set(names)) < len(names):
        twice = next(a for a in names if names.count(a) > 1)
        raise ValueError(f"arms must have different names; got {twice!r} more than once")
    return names


def without_none[K, V](values: Mapping[K, V | None]) -> dict[K, V]:
    """Return the entries that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def json_text(value: object) -> str:
    """Return values as JSON, those of NumPy too; a row with names is an object, dates are as `str`
    shows them, and NaT and NA are null."""
    return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, np.datetime64):  # `tolist` makes integers of nanoseconds
        return None if np.isnat(value) else str(value.astype("datetime64[us]"))
    if is_real(value) or isinstance(value, Decimal):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping | Row):
        return dict(value.items())
    pandas = sys.modules.get("pandas")
    is_missing = pandas is not None and pandas.isna(value) is True
    return None if is_missing else str(value)


def shown(value: object) -> str:
    """Return the repr of a value without memory addresses."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


class Names(np.ndarray):
    """Arms' names (n,), as an array with elements of Python's own types.

    A single name is a Python string or integer, so that JSON accepts it. Results of computations
    are plain arrays.
    """

    def __getitem__(self, which: Any) -> Any:
        names = super().__getitem__(which)
        return names.item() if isinstance(names, np.generic) else names

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __array_wrap__(
        self, array: object, context: object = None, return_scalar: bool = False
    ) -> Any:
        return np.asarray(array)[()] if return_scalar else np.asarray(array)


def name_array(names: tuple[Name, ...]) -> Array:
    """Return names as an array of int64, str or (both mixed) object, so that they keep types."""
    kinds = {type(name) for name in names}
    if kinds == {int} and all(abs(int(n)) < 2**63 for n in names):
        return np.array(names, dtype=np.int64)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    plain = kinds == {str} and not any(str(name).endswith("\0") for name in names)
    return array.astype(str) if plain else array  # a NumPy string would drop a final NUL
