"""Settings as plain values: how a file holds a bandit's model, policy and balance.

The toolkit's classes and classes with `savable` are stored by name and fields. For any other class
a file holds only the name, and the user gives the object to `load` again. A file cannot cause an
import or run code.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from bayesbandit.forms import PLAIN, OneOf, Row, Whole, brief, check
from bayesbandit.model import RewardModel
from bayesbandit.runtime.fingerprints import fingerprint
from bayesbandit.runtime.savable import KINDS, META, is_registered, kind_of, name_of, with_new_names

DECLARED = "Declared", "Sampled", "Laplace"  # whose classes are imported only with PyMC
NUMBERS = "biufU"  # NumPy kinds of arrays that a setting may be
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
    """Return a dataclass as its name and fields, or an Enum's member as its name and value.

    For any other object return only the class's name, marked as foreign.
    """
    kind = type(value)
    if kind.__name__ not in DECLARED and not is_registered(kind):
        return {"kind": name_of(kind), "foreign": True}
    names = ["value"] if isinstance(value, Enum) else [f.name for f in fields(value) if f.init]
    stored = {name: _stored(getattr(value, name)) for name in names}
    name = kind.__name__ if kind.__name__ in DECLARED else name_of(kind)
    code = {"code": fingerprint(kind)} if ":" in name else {}
    return {"kind": name, **stored, **code}


def _stored(setting: Any) -> Any:
    """Return a setting as JSON holds it.

    A tuple becomes a list. A function or an object that is not savable becomes its kind, marked as
    foreign. So does an object of a user's subclass of a plain type, as int.
    """
    if isinstance(setting, np.generic):
        setting = setting.item()
    kind = type(setting)
    if setting is None or kind in (bool, int, float, str):
        return setting
    if kind is tuple:
        return [_stored(item) for item in setting]
    if kind is list:
        return {"kind": "list", "values": [_stored(item) for item in setting]}
    if kind is dict:
        pairs = [[_stored(key), _stored(value)] for key, value in setting.items()]
        return {"kind": "dict", "pairs": pairs}
    if kind is np.ndarray and setting.dtype.kind in NUMBERS:
        values = setting.ravel().tolist()
        shape = list(setting.shape)
        return {"kind": "array", "dtype": setting.dtype.str, "shape": shape, "values": values}
    if isinstance(setting, RewardModel):
        return setting.to_yaml()
    if isinstance(setting, Enum) or (is_dataclass(setting) and not isinstance(setting, type)):
        return encode(setting)
    return {"kind": "function" if callable(setting) else name_of(kind), "foreign": True}


def decode(encoded: dict[str, Any], part: str, given: object = None) -> Any:
    """Return the object that `encode` stored as a bandit's `part`: model, policy or balance.

    given: the object itself, needed if the file does not hold it. Raise ValueError if it differs
    from what the file holds.
    """
    kind = encoded["kind"]
    if kind in KINDS:
        encoded = with_new_names(KINDS[kind], encoded)
    if given is not None:
        same = type(given).__name__ == kind.split(":")[-1].split(".")[-1]
        now = encode(given)
        if not (same and _agree(now, encoded)):
            raise ValueError(f"the file's {part} is a {kind} of other settings than {given!r}")
        _warn_of_change(encoded, now, part)
        return given
    if encoded.get("foreign"):
        raise ValueError(
            f"the file does not hold the {part}, a {kind} of your own: give it again, "
            f"load(path, {part}=…); @bb.extend.savable before its class lets files hold it"
        )
    cls = kind_of(kind)
    if cls is None:
        raise ValueError(f"the {part} is a {kind}, whose module must be imported before")
    if "code" in encoded:
        _warn_of_change(encoded, {"code": fingerprint(cls)}, part)
    foreign = {name: v for name, v in encoded.items() if isinstance(v, dict) and _is_foreign(v)}
    for name, setting in foreign.items():
        raise ValueError(
            f"{name} of the {part} {kind} was a {setting['kind']}, which a file does not hold: "
            f"give the {part} again, load(path, {part}={kind.split(':')[-1]}(…)); "
            "@bb.extend.savable before a dataclass or an Enum lets files hold it"
        )
    settings = {name: _restored(v, part) for name, v in encoded.items() if name not in META}
    return made(cls, settings)


def made(kind: type[Any], settings: dict[str, Any]) -> Any:
    """Return a dataclass or an Enum's member with these settings; raise if one is unknown."""
    known = {"value"} if issubclass(kind, Enum) else {f.name for f in fields(kind) if f.init}
    if unknown := settings.keys() - known:
        raise ValueError(f"a {kind.__name__} has no setting {min(unknown)!r}")
    return kind(**settings)


def _warn_of_change(saved: object, now: object, part: str) -> None:
    """Warn if the code of a user's class has changed since its settings were saved."""
    if isinstance(saved, list) and isinstance(now, list):
        for then, new in zip(saved, now, strict=True):
            _warn_of_change(then, new, part)
    if not (isinstance(saved, dict) and isinstance(now, dict)):
        return
    if saved.get("code", now.get("code")) != now.get("code"):
        warnings.warn(
            f"the code of the {part}, a {saved['kind']}, has changed since the file was saved, or "
            "the Python that compiles it: it goes on by the new one",
            stacklevel=4,
        )
    for name in saved.keys() & now.keys():
        _warn_of_change(saved[name], now[name], part)


def _restored(stored: object, part: str) -> object:
    """Return the setting that `_stored` encoded."""
    if isinstance(stored, list):
        return tuple(_restored(item, part) for item in stored)
    if not isinstance(stored, dict):
        return stored
    kind = stored["kind"]
    if kind == "list":
        return [_restored(item, part) for item in stored["values"]]
    if kind == "dict":
        return {_restored(k, part): _restored(v, part) for k, v in stored["pairs"]}
    if kind == "array":
        return _array(stored, part)
    return decode(stored, part)


def _array(stored: dict[str, Any], part: str) -> np.ndarray:
    values, name = stored["values"], stored["dtype"]
    if not re.fullmatch(r"[<>|][biufU]\d{1,9}", name):
        raise ValueError(f"the {part} has an array of {brief(name)}")
    if (dtype := np.dtype(name)).kind == "U" and dtype.itemsize * len(values) > LARGEST_ARRAY:
        raise ValueError(f"the {part} has an array of {len(values)} texts that is too large")
    try:
        return np.array(values, dtype=dtype).reshape(stored["shape"])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the {part} has an array that is none: {error}") from error


def _is_foreign(stored: dict[str, Any]) -> bool:
    """Return whether a file holds only the name of this setting, or of one inside it."""
    inner = [v for v in stored.values() if isinstance(v, dict)]
    return bool(stored.get("foreign")) or any(map(_is_foreign, inner))


def _agree(a: object, b: object) -> bool:
    """Return whether two encoded settings are equal; foreign ones need only the same kind."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.get("foreign") or b.get("foreign"):
            return a.get("kind") == b.get("kind")
        names = a.keys() - {"code"}
        return names == b.keys() - {"code"} and all(_agree(a[k], b[k]) for k in names)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_agree, a, b))
    return bool(a == b or (a != a and b != b))
