"""Encoders as plain values that JSON can hold, and back; incomplete values are refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import shown
from bayesbandit.forms import ARM_NAME, Broken, Real, Whole, brief, check, demand
from bayesbandit.tables.columns import LARGEST_VALUE, Column, Date, LeftOut, Levels, Number

if TYPE_CHECKING:
    from bayesbandit.tables.encoder import Encoder
    from bayesbandit.tables.formula import Formula

FILE_FORMAT, FILE_VERSION = "bayesbandit.Encoder", 3
COLUMN_KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Number, Date, Levels, LeftOut)}
MAX_ORIGIN = 2**62  # microseconds from 1970


MAX_LEARNED = 250  # numbers of one kind that a function of a formula learns

LARGEST_INTEGER = int(LARGEST_VALUE)
ANY_NUMBER = (Real(-LARGEST_VALUE, LARGEST_VALUE), Whole(-LARGEST_INTEGER, LARGEST_INTEGER))
POSITIVE_NUMBER = (Real(5e-324, LARGEST_VALUE), Whole(1, LARGEST_INTEGER))
OF_ALL = {"kind": str, "name": ARM_NAME}
NUMBER_FIELDS = {**OF_ALL, "median": ANY_NUMBER, "mean": ANY_NUMBER, "scale": POSITIVE_NUMBER}
FORMS = {
    Number.kind: NUMBER_FIELDS,
    Date.kind: {**NUMBER_FIELDS, "origin": Whole(-MAX_ORIGIN, MAX_ORIGIN)},
    Levels.kind: {
        **OF_ALL, "levels": [str], "missing": bool, "pooled": bool,
    },
    LeftOut.kind: {**OF_ALL, "why": str},
}  # fmt: skip


def _column(plain: object, where: str) -> None:
    if not isinstance(plain, dict):
        raise Broken(f"a column is {brief(plain)}")
    kind = plain.get("kind")
    if not isinstance(kind, str) or kind not in FORMS:
        raise Broken(f"a column's kind is {brief(kind)}")
    check(plain.get("name"), ARM_NAME, "a column's name")
    where = f"column {plain['name']!r}"
    check(plain, FORMS[kind], where)
    if kind == Levels.kind:
        levels = plain["levels"]
        demand(len(set(levels)) == len(levels), f"{where} repeats a level")
        demand(levels or plain["missing"] or plain["pooled"], f"{where} has no level")


def _learned(value: object, where: str) -> None:
    check(value, (None, bool, ANY_NUMBER, [ANY_NUMBER], {...: ANY_NUMBER}), where)
    demand(not isinstance(value, list) or len(value) <= MAX_LEARNED, f"{where} is too long")


FORMULA = {"text": str, "state": {...: {...: _learned}}, "features": [str]}
ENCODER = {
    "format": str, "version": int, "named": bool, "columns": [_column],
    "formula": (None, FORMULA), "constant": bool, "digest": str,
}  # fmt: skip


def stored(encoder: Encoder) -> dict[str, Any]:
    """Return format, version, columns, formula, constant, and a digest of them all."""
    plain = {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "named": True,
        "columns": [{"kind": column.kind, **asdict(column)} for column in encoder.fitted],
        "formula": None if encoder.spec is None else encoder.spec.stored(),
        "constant": encoder.constant,
    }
    plain = json.loads(json.dumps(plain))  # with lists for tuples
    return {**plain, "digest": digest(plain)}


def digest(plain: Mapping[str, Any]) -> str:
    """Return a digest by which these values differ from all others."""
    text = json.dumps({k: v for k, v in plain.items() if k != "digest"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def restored(plain: Mapping[str, Any]) -> tuple[tuple[Column, ...], Formula | None, bool]:
    """Return the arguments of an `Encoder` from stored values; raise ValueError if wrong."""
    demand(isinstance(plain, Mapping), f"not a dict but {shown(plain)[:80]}")
    kind = plain.get("format")
    version = plain.get("version")
    demand(
        kind == FILE_FORMAT and version == FILE_VERSION,
        f"format {kind!r} version {version!r}; this release reads {FILE_FORMAT!r} version "
        f"{FILE_VERSION}: fit the encoder again",
    )
    check(dict(plain), ENCODER)
    columns = tuple(_column_of(**one) for one in plain["columns"])
    names = [column.name for column in columns]
    demand(plain["named"], "it was fitted to an array: fit it to a table with names")
    demand(len(set(names)) == len(names), "its columns repeat a name")
    used = tuple(column for column in columns if not isinstance(column, LeftOut))
    demand(used, "it has no columns that it uses")
    formula = None
    if plain["formula"] is not None:
        from bayesbandit.tables import formula as formulas

        formula = formulas.restored(plain["formula"], used)
        demand(formula.constant == plain["constant"], "its formula says another constant")
    demand(plain["digest"] == digest(plain), "its values are not those that were saved (digest)")
    return columns, formula, plain["constant"]


def _column_of(kind: str, **fields: Any) -> Column:
    if kind == Levels.kind:
        fields["levels"] = tuple(fields["levels"])
    column: Column = COLUMN_KINDS[kind](**fields)
    return column
