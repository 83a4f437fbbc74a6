"""The most recently kept things, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Cache[T]:
    """The most recently kept things: at most `most`, of at most `room` bytes; at least one."""

    def __init__(self, most: int, room: int, size: Callable[[T], int]) -> None:
        self.most = most
        self.room = room
        self.size = size
        self._things: dict[Hashable, T] = {}  # the oldest first

    def get(self, key: Hashable) -> T | None:
        """Return the thing with this key; None if there is none."""
        return self._things.get(key)

    def keep(self, key: Hashable, thing: T) -> None:
        """Keep a thing, and drop the oldest ones for which there is no room."""
        things = self._things
        things.pop(key, None)
        things[key] = thing
        while len(things) > 1 and (
            len(things) > self.most or sum(map(self.size, things.values())) > self.room
        ):
            del things[next(iter(things))]

    def clear(self) -> None:
        """Forget all."""
        self._things.clear()
