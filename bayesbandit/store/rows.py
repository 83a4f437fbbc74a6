"""Convert decisions, contexts and bandits to the values that a database holds, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.bandit.decision import Decision
from bayesbandit.bandit.storage import saving
from bayesbandit.beliefs.base import Refits
from bayesbandit.checks import Array, Name, Table, arm_names, is_real, json_text
from bayesbandit.history import Layout
from bayesbandit.kernels.row_layout import TAIL
from bayesbandit.store.records import DECISION_COLUMNS, Stored
from bayesbandit.tables.words import datetimes

if TYPE_CHECKING:
    from sqlalchemy import Row

    from bayesbandit.policies import Policy
    from bayesbandit.weighting.base import Balance

LONGEST_ID = 200  # characters
MAX_MICROSECONDS = 2**62  # microseconds since 1970


class Parts(TypedDict, total=False):
    """The parts of a bandit that a snapshot may not hold: see the arguments of `Bandit.load`."""

    policy: Policy | None
    model: Any
    balance: Balance | None


def check_id(value: object) -> str:
    """Return an id: text that every database can hold."""
    if not isinstance(value, str):
        raise TypeError(f"id must be text; got {value!r}")
    if not 0 < len(value) <= LONGEST_ID or not value.isprintable():
        raise ValueError(f"id must have 1 to {LONGEST_ID} printable characters; got {value[:50]!r}")
    return str(value)


def seeds_of(secret: bytes, ids: Sequence[str]) -> list[bytes]:
    """Return the 32 bytes that seed the random numbers of each decision: a keyed hash of its id."""
    return [blake2b(one.encode(), key=secret, digest_size=32).digest() for one in ids]


@lru_cache(maxsize=4096)
def arms_named(text: str) -> tuple[Name, ...]:
    """Return the arms' names of a JSON text."""
    return arm_names(json.loads(text))


def from_bytes(data: bytes) -> Array:
    """Return the numbers (n,) that a column holds as bytes."""
    return np.frombuffer(data, dtype="<f8")


def to_bytes(values: Array) -> bytes:
    """Return numbers as the bytes of a column."""
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def row_of(one: Stored) -> dict[str, Any]:
    """Return the columns of a decision in its table."""
    return {
        **vars(one),
        "arm": json.dumps(one.arm),
        "arms": json.dumps(one.arms),
        "row": to_bytes(one.row),
        "probabilities": to_bytes(one.probabilities),
        "x": None if one.x is None else to_bytes(one.x),
    }


def stored_of(row: Row[Any]) -> Stored:
    """Return the decision of a row of its table; raise ValueError if it is broken."""
    columns = row._mapping
    fields = {name: columns[name] for name in DECISION_COLUMNS}
    try:
        [fields["arm"]] = arms_named(f"[{fields['arm']}]")
        fields["arms"] = arms_named(fields["arms"])
        for name in ("row", "probabilities", "x"):
            fields[name] = None if fields[name] is None else from_bytes(fields[name])
        K = len(fields["arms"])
        if len(fields["row"]) < TAIL + 3 * K or len(fields["probabilities"]) != K:
            raise ValueError(f"it has {len(fields['row'])} numbers for {K} arms")
        return Stored(**fields)
    except (ValueError, TypeError) as error:
        raise ValueError(f"decision {fields['id']!r} cannot be read: {error}") from error


def context_texts(x: object, n: int, one: bool) -> list[str | None]:
    """Return each of n contexts as JSON, as it was given: a dict, a row of a table, or numbers."""
    if x is None or (isinstance(x, np.ndarray) and x.size == 0):
        return [None] * n
    if isinstance(x, np.ndarray):
        x = x.tolist()
    elif isinstance(x, Table):
        import narwhals as nw

        table: Any = x
        x = nw.from_native(table).rows(named=True)
    if one:
        return [json_text(x)]
    assert isinstance(x, Sequence)
    return [json_text(each) for each in x]


def same_json(one: str | None, other: str | None) -> bool:
    """Return whether two texts of JSON have the same values, in any order of their keys."""
    if one is None or other is None or one == other:
        return one == other
    # NaN as a text, so that equal contexts are equal
    first, second = (json.loads(text, parse_constant=str) for text in (one, other))
    return bool(first == second)


def layout_of(bandit: Bandit, arms: tuple[Name, ...]) -> Layout:
    """Return the layout of the bandit's rows at the time when it had these arms."""
    now = bandit.layout
    return now if now.arms == arms else replace(now, arms=arms)


def decision_of(layout: Layout, stored: Sequence[Stored], one: bool = False) -> Decision:
    """Return stored decisions, all about the same arms, as one `Decision`.

    one: whether it is about a single context, and not about a batch.
    """
    for row in stored:
        if row.row.shape != (layout.width,):
            raise ValueError(
                f"decision {row.id!r} has {len(row.row)} numbers, and this bandit's have "
                f"{layout.width}: the log is another bandit's"
            )
    rows = np.array([row.row for row in stored])
    ids = np.array([row.id for row in stored])
    return Decision(layout, rows[0], ids=ids[0]) if one else Decision(layout, rows, ids=ids)


def saved(bandit: Bandit) -> bytes:
    """Return a bandit as the bytes of its file."""
    file = BytesIO()
    saving.write(file, *saving.checked(bandit))
    return file.getvalue()


def loaded(data: bytes, parts: Parts, version: int) -> Bandit:
    """Return the bandit whose file has these bytes.

    It never refits in the background: decisions must not depend on how long a refit takes.
    """
    name = f"the snapshot of version {version}"
    bandit: Bandit = saving.load(Bandit, BytesIO(data), name, **parts)
    if isinstance(bandit.belief, Refits):
        bandit.belief.refit_when_asked()
    return bandit


def to_microseconds(at: object, what: str) -> int | None:
    """Return a time in microseconds since 1970; a date without a zone is of UTC."""
    if at is None:
        return None
    try:
        if is_real(at):
            moment = round(float(at) * 1e6)
        else:
            moment = int(datetimes([at], what).astype(np.int64)[0])
        if abs(moment) > MAX_MICROSECONDS:  # NaT too
            raise ValueError("no database holds this time")
        return moment
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f'{what} must be a date as "2026-11-22 18:00", a datetime or seconds; got {at!r}'
        ) from error
