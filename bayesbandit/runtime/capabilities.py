"""What a class declares that its objects can do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def declares(value: object, capability: str, methods: Iterable[str]) -> Any:
    """Return the capability that an object's class declares for these methods; None if it declares
    none.

    It is also None if a subclass, or the object itself, replaces one of the methods. The function
    uses no generators, because Python may crash as it makes one without memory.
    """
    names = frozenset(methods)
    if not names.isdisjoint(getattr(value, "__dict__", ())):
        return None
    for owner in type(value).__mro__:
        if capability in owner.__dict__:
            return owner.__dict__[capability]
        if not names.isdisjoint(owner.__dict__):
            return None
    return None
