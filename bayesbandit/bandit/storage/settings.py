"""Settings as plain values: how a file holds a bandit's model, policy and balance.

The toolkit's classes and classes with `savable` are stored by name and fields. For any other class
a file holds only the name, and the user gives the object to `load` again. A file cannot cause an
import or run code.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from bayesbandit.forms import PLAIN_VALUE, check
from bayesbandit.model import RewardModel
from bayesbandit.runtime.savable import KINDS, META, kind_of, name_of

DECLARED = "Declared", "Sampled", "Laplace"  # whose classes are imported only with PyMC


def setting(value: object, where: str) -> None:
    """Raise `Broken` unless a value is what `_stored` gives."""
    check(value, PART_FORM if isinstance(value, dict) else (PLAIN_VALUE, [setting]), where)


PART_FORM = {"kind": str, "foreign?": True, ...: setting}  # a dataclass or an Enum's member


def encode(value: Any) -> dict[str, Any]:
    """Return a dataclass as its name and fields, or an Enum's member as its name and value.

    For any other object return only the class's name, marked as foreign.
    """
    kind = type(value)
    if kind.__name__ not in DECLARED and KINDS.get(name_of(kind)) is not kind:
        return {"kind": name_of(kind), "foreign": True}
    names = ["value"] if isinstance(value, Enum) else [f.name for f in fields(value) if f.init]
    stored = {name: _stored(getattr(value, name)) for name in names}
    name = kind.__name__ if kind.__name__ in DECLARED else name_of(kind)
    return {"kind": name, **stored}


def _stored(setting: Any) -> Any:
    """Return a setting as JSON holds it.

    A tuple becomes a list. A function or any other object that is neither plain nor savable becomes
    its kind, marked as foreign.
    """
    if isinstance(setting, np.generic):
        setting = setting.item()
    kind = type(setting)
    if setting is None or kind in (bool, int, float, str):
        return setting
    if kind is tuple:
        return [_stored(item) for item in setting]
    if isinstance(setting, RewardModel):
        return setting.to_yaml()
    if isinstance(setting, Enum) or (is_dataclass(setting) and not isinstance(setting, type)):
        return encode(setting)
    return {"kind": "function" if callable(setting) else name_of(kind), "foreign": True}


def decode(encoded: dict[str, Any], part: str, given: object = None, of: str = "") -> Any:
    """Return the object that `encode` stored as a bandit's `part`: model, policy or balance.

    given: the object itself, needed if the file does not hold it. Raise ValueError if it differs
    from what the file holds. of: how errors call a setting of the part.
    """
    kind = encoded["kind"]
    if given is not None:
        same = type(given).__name__ == kind.split(":")[-1].split(".")[-1]
        if not (same and _agree(encode(given), encoded)):
            raise ValueError(f"the file's {part} is a {kind} of other settings than {given!r}")
        return given
    if encoded.get("foreign"):
        raise ValueError(
            f"{of or f'the {part}'} was a {kind}, which a file does not hold: give the {part} "
            f"again, load(path, {part}=…); @bb.extend.savable before a dataclass or an Enum lets "
            "files hold it"
        )
    cls = kind_of(kind)
    if cls is None:
        raise ValueError(f"the {part} is a {kind}, whose module must be imported before")
    settings = {
        name: _restored(value, part, of or f"{name} of the {part} {kind}")
        for name, value in encoded.items()
        if name not in META
    }
    return made(cls, settings)


def made(kind: type[Any], settings: dict[str, Any]) -> Any:
    """Return a dataclass or an Enum's member with these settings; raise if one is unknown."""
    names = {"value"} if issubclass(kind, Enum) else {f.name for f in fields(kind) if f.init}
    if unknown := settings.keys() - names:
        raise ValueError(f"a {kind.__name__} has no setting {min(unknown)!r}")
    return kind(**settings)


def _restored(stored: object, part: str, of: str) -> object:
    """Return the setting that `_stored` encoded. part, of: as of `decode`."""
    if isinstance(stored, list):
        return tuple(_restored(item, part, of) for item in stored)
    return decode(stored, part, of=of) if isinstance(stored, dict) else stored


def _agree(a: object, b: object) -> bool:
    """Return whether two encoded settings are equal; foreign ones need only the same kind."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.get("foreign") or b.get("foreign"):
            return a.get("kind") == b.get("kind")
        return a.keys() == b.keys() and all(_agree(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_agree, a, b))
    return bool(a == b or (a != a and b != b))
