"""Encoders as plain values that JSON can hold, and back; incomplete values are refused."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesbandit.checks import Name, shown
from bayesbandit.tables.columns import LARGEST_VALUE, ZEROS, Column, LeftOut, Levels, Number
from bayesbandit.tables.dates import Date
from bayesbandit.tables.learning import Components
from bayesbandit.tables.words import UNITS

if TYPE_CHECKING:
    from bayesbandit.tables.encoder import Encoder
    from bayesbandit.tables.formulas.formula import Formula

FORMAT, VERSION = "bayesbandit.Encoder", 1
KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Number, Date, Levels, LeftOut)}
FAR = 2**62  # microseconds that an origin may be from 1970


def stored(encoder: Encoder) -> dict[str, Any]:
    """Return format, version, columns, components, formula, and a digest of them all."""
    parts = encoder.components
    plain: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "named": encoder.named,
        "columns": [_column(column) for column in encoder.fitted],
        "components": None
        if parts is None
        else {
            "vectors": parts.vectors.tolist(),
            "center": parts.center.tolist(),
            "size": parts.size,
        },
        "formula": None if encoder.spec is None else encoder.spec.stored(),
    }
    return {**plain, "digest": digest(plain)}


def _column(column: Column) -> dict[str, Any]:
    plain = {field.name: vars(column)[field.name] for field in fields(column)}
    lists = {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}
    return {"kind": column.kind, **lists}


def digest(plain: Mapping[str, Any]) -> str:
    """Return a digest by which these values differ from all others."""
    text = json.dumps({k: v for k, v in plain.items() if k != "digest"}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def restored(
    plain: Mapping[str, Any],
) -> tuple[tuple[Column, ...], bool, Components | None, Formula | None]:
    """Return the arguments of an `Encoder` from stored values; raise ValueError if wrong."""
    try:
        return _restored(plain)
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"not an encoder, or a broken one: {lacks}") from error


def _restored(
    plain: Mapping[str, Any],
) -> tuple[tuple[Column, ...], bool, Components | None, Formula | None]:
    demand(isinstance(plain, Mapping), f"not a dict but {shown(plain)[:80]}")
    kind, version = plain.get("format"), plain.get("version")
    demand(
        kind == FORMAT and version == VERSION and type(version) is int,
        f"format {kind!r} version {version!r}; this release reads {FORMAT!r} version {VERSION}",
    )
    parts = {"format", "version", "named", "columns", "components", "formula", "digest"}
    demand(plain.keys() == parts, f"its parts are {sorted(map(str, plain))}")
    demand(type(plain["columns"]) is list and plain["columns"], "it has no columns")
    columns = tuple(_column_of(one) for one in plain["columns"])
    names = [column.name for column in columns]
    demand(len(set(names)) == len(names), "its columns repeat a name")
    named = plain["named"]
    demand(type(named) is bool, f"named is {named!r}")
    demand(named or names == list(range(len(names))), "its columns are not in order")
    used = [column for column in columns if not isinstance(column, LeftOut)]
    demand(used, "it uses no column")
    formula, components = None, None
    if plain["formula"] is not None:
        from bayesbandit.tables.formulas.formula import formula_of

        demand(named and plain["components"] is None, "a formula has names and no components")
        formula = formula_of(plain["formula"], used, names)
    elif plain["components"] is not None:
        width = sum(column.width if isinstance(column, Levels) else 1 for column in used)
        components = _components(plain["components"], width)
    found = digest(plain)
    demand(plain["digest"] == found, "its values are not those that were saved (digest)")
    return columns, named, components, formula


def demand(truth: object, what: str) -> None:
    if not truth:
        raise ValueError(f"not an encoder, or a broken one: {what}")


def _column_of(plain: Mapping[str, Any]) -> Column:
    demand(type(plain) is dict, f"a column is {shown(plain)[:80]}")
    kind = KINDS.get(plain["kind"]) if isinstance(plain["kind"], str) else None
    demand(kind is not None, f"a column's kind is {plain['kind']!r}")
    assert kind is not None
    if issubclass(kind, Number):
        plain = {"unit": "", **plain}  # which files of before lack
    name = plain["name"]
    demand(type(name) in (str, int), f"a column's name is {name!r}")
    expected = {"kind", *(field.name for field in fields(kind))}
    demand(plain.keys() == expected, f"column {name!r} has the parts {sorted(map(str, plain))}")
    if kind is LeftOut:
        demand(type(plain["why"]) is str, f"column {name!r} is left out for {plain['why']!r}")
    elif kind is Levels:
        _check_levels(plain, name)
        lists = {"levels": tuple(plain["levels"]), "codes": tuple(plain["codes"])}
        plain = {**plain, **lists}
    else:
        _check_number(plain, name, kind)
    column: Column = kind(**{k: v for k, v in plain.items() if k != "kind"})
    return column


def _check_number(plain: Mapping[str, Any], name: Name, kind: type) -> None:
    for part in ("median", "mean", "scale"):
        demand(is_number(plain[part]), f"{part} of column {name!r} is {plain[part]!r}")
    demand(plain["scale"] > 0, f"scale of column {name!r} is {plain['scale']!r}")
    written, unit = plain["written"], plain["unit"]
    demand(type(written) is bool, f"written of column {name!r} is {written!r}")
    whole = type(unit) is str and (not unit or (written and len(unit) == 1 and unit in UNITS))
    demand(whole, f"unit of column {name!r} is {unit!r}")
    if kind is Date:
        origin = plain["origin"]
        demand(type(origin) is int and abs(origin) < FAR, f"column {name!r} begins at {origin!r}")


def _check_levels(plain: Mapping[str, Any], name: Name) -> None:
    levels, codes = plain["levels"], plain["codes"]
    whole = type(levels) is list and type(codes) is list and len(levels) == len(codes)
    demand(whole, f"levels of column {name!r} have no codes")
    demand(all(type(level) is str for level in levels), f"levels of column {name!r} are no texts")
    demand(len(set(levels)) == len(levels), f"column {name!r} repeats a level")
    others = [plain[part] for part in ("missing", "pooled") if plain[part] is not None]
    every = [*codes, *others]
    whole = all(type(code) is int and code >= ZEROS for code in every)
    demand(whole, f"codes of column {name!r} are {every}")
    width = 1 + max(every, default=ZEROS)
    demand(width > 0 and len(every) >= width, f"codes of column {name!r} are {every}")
    demand(set(range(width)) <= set(every), f"codes of column {name!r} leave features out")
    alone = [code for code in codes if code != ZEROS]
    demand(len(set(codes)) == len(codes), f"codes of column {name!r} repeat")
    demand(plain["pooled"] not in alone, f"pooled levels of column {name!r} have a level")
    demand(plain["missing"] not in alone, f"missing values of column {name!r} have a level")


def _components(plain: Mapping[str, Any], width: int) -> Components:
    demand(type(plain) is dict and plain.keys() == {"vectors", "center", "size"}, "its components")
    vectors, center, size = plain["vectors"], plain["center"], plain["size"]
    whole = type(vectors) is list and vectors and type(center) is list and len(center) == width
    demand(whole and len(vectors) <= width, f"its components are not of {width} features")
    for row in (*vectors, center):
        whole = type(row) is list and len(row) == width and all(map(is_number, row))
        demand(whole, f"its components are not of {width} features")
    demand(is_number(size) and size > 0, f"the size of its components is {size!r}")
    return Components(np.array(vectors, dtype=np.float64), np.array(center), float(size))


def is_number(value: object) -> bool:
    """Return whether a value is a float or an integer, finite and small enough."""
    if not (type(value) is float or type(value) is int):
        return False
    return abs(value) <= LARGEST_VALUE and math.isfinite(value)
