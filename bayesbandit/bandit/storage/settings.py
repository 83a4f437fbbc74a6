"""Settings as plain values: what a file holds of a bandit's model, policy and balance.

The toolkit's own, and classes that have been registered by `savable`, are stored as their name and
their fields. Of anything else a file holds the name alone, and `load` takes the object again. A
file's word is never enough to import or to run something.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from bayesbandit.model import RewardModel
from bayesbandit.runtime.fingerprints import fingerprint
from bayesbandit.runtime.savable import META, is_registered, kind_of, name_of
from bayesbandit.runtime.schema import PLAIN, OneOf, Row, Whole, brief, check

DECLARED = "Declared"  # the kind of a declared model, which is loaded with PyMC
NUMBERS = "biufU"  # kinds of arrays that a setting may be
LARGEST_ARRAY = 2**26  # bytes of an array of texts; each text has room for the longest


def setting(value: object, where: str) -> None:
    """Raise `Broken` unless a value is what `_stored` gives."""
    kind = value.get("kind") if type(value) is dict else None
    form = STORED.get(kind, PART) if isinstance(kind, str) else PART
    check(value, form if isinstance(value, dict) else OneOf(PLAIN, [setting]), where)


STORED: dict[str, Any] = {
    "list": {"kind": str, "values": [setting]},
    "dict": {"kind": str, "pairs": [Row(setting, setting)]},
    "array": {"kind": str, "dtype": str, "shape": [Whole()], "values": [PLAIN]},
}
PART = {
    "kind": str,
    "foreign?": True,
    "code?": str,
    ...: setting,
}  # a dataclass or an Enum's member


def encode(value: Any) -> dict[str, Any]:
    """A dataclass as its name and fields, an Enum's member as its value; of anything else the name
    alone."""
    kind = type(value)
    if kind.__name__ != DECLARED and not is_registered(kind):
        return {"kind": name_of(kind), "foreign": True}
    names = ["value"] if isinstance(value, Enum) else [f.name for f in fields(value) if f.init]
    stored = {name: _stored(getattr(value, name)) for name in names}
    name = DECLARED if kind.__name__ == DECLARED else name_of(kind)
    own = {"code": fingerprint(kind)} if ":" in name else {}
    return {"kind": name, **stored, **own}


def _stored(setting: Any) -> Any:
    """A setting as JSON holds it, tuples as lists; of a function, or of what is not savable, that
    it was one: a class of one's own that is also a number, text or tuple is no plain one."""
    if isinstance(setting, np.generic):
        setting = setting.item()
    kind = type(setting)
    if setting is None or kind in (bool, int, float, str):
        return setting
    if kind is tuple:
        return [_stored(one) for one in setting]
    if kind is list:
        return {"kind": "list", "values": [_stored(one) for one in setting]}
    if kind is dict:
        pairs = [[_stored(key), _stored(one)] for key, one in setting.items()]
        return {"kind": "dict", "pairs": pairs}
    if kind is np.ndarray and setting.dtype.kind in NUMBERS:
        values, shape = setting.ravel().tolist(), list(setting.shape)
        return {"kind": "array", "dtype": setting.dtype.str, "shape": shape, "values": values}
    if isinstance(setting, RewardModel):
        return setting.to_yaml()
    if isinstance(setting, Enum) or (is_dataclass(setting) and not isinstance(setting, type)):
        return encode(setting)
    return {"kind": "function" if callable(setting) else name_of(kind), "foreign": True}


def decode(encoded: dict[str, Any], part: str, given: object = None) -> Any:
    """What `encode` stored as this part of a bandit, its model, policy or balance; `given` again,
    where a file does not hold it."""
    kind = encoded["kind"]
    if given is not None:
        same, now = type(given).__name__ == kind.split(":")[-1].split(".")[-1], encode(given)
        if not (same and _agree(now, encoded)):
            raise ValueError(f"the file's {part} is a {kind} of other settings than {given!r}")
        _unchanged(encoded, now, part)
        return given
    if encoded.get("foreign"):
        raise ValueError(
            f"the file does not hold the {part}, a {kind} of your own: give it again, "
            f"load(path, {part}=…); @bb.savable before its class lets files hold it"
        )
    own = kind_of(kind)
    if own is None:
        raise ValueError(f"the {part} is a {kind}, whose module must be imported before")
    if "code" in encoded:
        _unchanged(encoded, {"code": fingerprint(own)}, part)
    lost = {name: v for name, v in encoded.items() if isinstance(v, dict) and _is_foreign(v)}
    for name, setting in lost.items():
        raise ValueError(
            f"{name} of the {part} {kind} was a {setting['kind']}, which a file does not hold: "
            f"give the {part} again, load(path, {part}={kind.split(':')[-1]}(…)); @bb.savable "
            "before a dataclass or an Enum lets files hold it"
        )
    settings = {name: _restored(v, part) for name, v in encoded.items() if name not in META}
    return made(own, settings)


def made(kind: type[Any], settings: dict[str, Any]) -> Any:
    """A dataclass, or an Enum's member, of these settings."""
    known = {"value"} if issubclass(kind, Enum) else {f.name for f in fields(kind) if f.init}
    if unknown := settings.keys() - known:
        raise ValueError(f"a {kind.__name__} has no setting {min(unknown)!r}")
    return kind(**settings)


def _unchanged(saved: object, now: object, part: str) -> None:
    """Warns where a class of one's own does something else than when its settings were saved."""
    if isinstance(saved, list) and isinstance(now, list):
        for one, other in zip(saved, now, strict=True):
            _unchanged(one, other, part)
    if not (isinstance(saved, dict) and isinstance(now, dict)):
        return
    if saved.get("code", now.get("code")) != now.get("code"):
        warnings.warn(
            f"the code of the {part}, a {saved['kind']}, has changed since the file was saved, or "
            "the Python that compiles it: it goes on by the new one",
            stacklevel=4,
        )
    for name in saved.keys() & now.keys():
        _unchanged(saved[name], now[name], part)


def _restored(stored: object, part: str) -> object:
    """The setting of `_stored`."""
    if isinstance(stored, list):
        return tuple(_restored(one, part) for one in stored)
    if not isinstance(stored, dict):
        return stored
    kind = stored["kind"]
    if kind == "list":
        return [_restored(one, part) for one in stored["values"]]
    if kind == "dict":
        return {_restored(k, part): _restored(v, part) for k, v in stored["pairs"]}
    if kind == "array":
        return _array(stored, part)
    return decode(stored, part)


def _array(stored: dict[str, Any], part: str) -> np.ndarray:
    values, dtype = stored["values"], stored["dtype"]
    if not re.fullmatch(r"[<>|][biufU]\d{1,9}", dtype):
        raise ValueError(f"the {part} has an array of {brief(dtype)}")
    if (own := np.dtype(dtype)).kind == "U" and own.itemsize * len(values) > LARGEST_ARRAY:
        raise ValueError(f"the {part} has an array of {len(values)} texts that is too large")
    try:
        return np.array(values, dtype=own).reshape(stored["shape"])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the {part} has an array that is none: {error}") from error


def _is_foreign(stored: dict[str, Any]) -> bool:
    """Whether a file holds but the name of this, or of something in it."""
    inner = [v for v in stored.values() if isinstance(v, dict)]
    return bool(stored.get("foreign")) or any(map(_is_foreign, inner))


def _agree(one: object, other: object) -> bool:
    """Whether two encoded settings are the same, where a file holds them."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.get("foreign") or other.get("foreign"):
            return one.get("kind") == other.get("kind")
        names = one.keys() - {"code"}
        return names == other.keys() - {"code"} and all(_agree(one[k], other[k]) for k in names)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    return bool(one == other or (one != one and other != other))
