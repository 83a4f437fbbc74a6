"""The most recently kept things, as many as there is room for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable


class Cache[T]:
    """The most recently kept things: at most `most`, of at most `room` bytes; at least one."""

    def __init__(self, most: int, room: int, size: Callable[[T], int]) -> None:
        self.most, self.room, self.size = most, room, size
        self._things: OrderedDict[Hashable, T] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}

    def get(self, key: Hashable) -> T | None:
        """Return the thing with this key; None if there is none."""
        return self._things.get(key)

    def keep(self, key: Hashable, thing: T) -> None:
        """Keep a thing, and drop the oldest ones for which there is no room."""
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
