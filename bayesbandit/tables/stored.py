"""Encoders as plain values that JSON can hold, and back; a digest finds what was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bayesbandit.checks import shown
from bayesbandit.forms import demand
from bayesbandit.tables.columns import Column, Date, LeftOut, Levels, Number

if TYPE_CHECKING:
    from bayesbandit.tables.encoder import Encoder
    from bayesbandit.tables.formula import Formula

FILE_FORMAT, FILE_VERSION = "bayesbandit.Encoder", 3
COLUMN_KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Number, Date, Levels, LeftOut)}


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
    try:
        is_whole = plain.get("digest") == digest(plain)
        demand(is_whole, "its values are not those that were saved (digest)")
        columns = tuple(_column_of(**one) for one in plain["columns"])
        formula = None
        if plain["formula"] is not None:
            from bayesbandit.tables import formula as formulas

            used = tuple(column for column in columns if not isinstance(column, LeftOut))
            formula = formulas.restored(plain["formula"], used)
        return columns, formula, plain["constant"]
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"it is no whole encoder: {error!r}") from error


def _column_of(kind: str, **fields: Any) -> Column:
    if kind == Levels.kind:
        fields["levels"] = tuple(fields["levels"])
    column: Column = COLUMN_KINDS[kind](**fields)
    return column
