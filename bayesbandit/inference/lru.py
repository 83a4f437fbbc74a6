"""Things in memory, least recently used out first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class Kept[T]:
    """At most `most` things, of at most `room` bytes together; at least one."""

    def __init__(self, most: int, room: int, size: Callable[[T], int]) -> None:
        self.most, self.room, self.size = most, room, size
        self._things: OrderedDict[Any, T] = OrderedDict()
        self._sizes: dict[Any, int] = {}

    def get(self, key: Any) -> T | None:
        """The thing of this key."""
        return self._things.get(key)

    def keep(self, key: Any, thing: T) -> None:
        """Keep a thing, and forget those for which there is no room."""
        kept, sizes = self._things, self._sizes
        if kept.get(key) is not thing:
            kept[key], sizes[key] = thing, self.size(thing)
        kept.move_to_end(key)
        while len(kept) > 1 and (len(kept) > self.most or sum(sizes.values()) > self.room):
            del sizes[kept.popitem(last=False)[0]]

    def clear(self) -> None:
        """Forget all."""
        self._things.clear()
        self._sizes.clear()
