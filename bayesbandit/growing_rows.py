"""Rows of numbers in one array that grows, and that forks share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bayesbandit.checks import Array

FIRST_ROOM = 32  # rows that are allocated at first, after which a bandit looks at its contexts
MIN_GROWTH = 256  # rows that are allocated next, at least


def unheld[N: (int, float)](count: N) -> N:
    """Return a count whether it is locked or not: a locked count c is stored as −1 − c.

    See `bandit/transactions.py`.
    """
    return count if count >= 0 else -1 - count


class GrowingRows:
    """The last `limit` rows that were added (None: all of them), in order of arrival.

    `rows` (…, width) has old rows beyond the limit first, then the kept rows, then free rows. New
    rows are only written into free rows, so a `fork` can share the array. Other threads may add
    rows at the same time: each read sees one moment, and a `fork` always sees the same one.

    `count` is an array, so that compiled functions can add rows. It has three numbers: the rows in
    use (locked: see `unheld`), the rows added so far, and the limit (−1: none).

    `row_type` is the NumPy type of a row as a record with named fields.
    """

    def __init__(self, row_type: np.dtype, limit: int | None = None) -> None:
        self.row_type = row_type
        self.rows = np.empty((0, row_type.itemsize // 8))
        self.count = np.array([0, 0, -1 if limit is None else limit], dtype=np.int64)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state, with a copy of rows that are read-only, as another process lends them."""
        vars(self).update(state)
        if not self.rows.flags.writeable:
            self._replace(np.array(self.ordered()))

    @property
    def limit(self) -> int | None:
        """How many rows are kept at most."""
        return None if self.count[2] < 0 else int(self.count[2])

    @property
    def total(self) -> int:
        """Rows added so far, kept or not."""
        return int(self.count[1])

    def __len__(self) -> int:
        return self.kept(self.total)

    def fork(self) -> Self:
        """Return an object with the same rows, which may grow in the place of this one."""
        # rows and count of one moment
        twin = object.__new__(type(self))
        fields = dict(vars(self))
        count = fields["count"].copy()
        count[0] = unheld(count[0])
        vars(twin).update(fields, count=count)
        return twin

    @property
    def end(self) -> int:
        """The number of rows in use; later rows are free."""
        return int(unheld(self.count[0]))

    def detach(self) -> None:
        """Copy the rows, so that past rows can be changed without changing those of a fork."""
        self._replace(self.ordered().copy())

    def _replace(self, rows: Array, kept: int | None = None, total: int | None = None) -> None:
        """Take these rows in one step; the first `kept` are in use (None: all).

        total: the rows added so far (None: as before).
        """
        kept = len(rows) if kept is None else kept
        total = self.total if total is None else total
        count = np.array([kept, total, self.count[2]], dtype=np.int64)
        vars(self).update(rows=rows, count=count)

    def kept(self, n: int) -> int:
        """Return how many of n more rows are kept: the last ones."""
        return n if self.limit is None else min(n, self.limit)

    def has_room(self, n: int) -> bool:
        """Return whether n more rows, or `limit` if that is less, fit into the free rows."""
        return self.end + self.kept(n) <= len(self.rows)

    def reserve(self, n: int) -> None:
        """Make room for n more rows, or for `limit` if that is less."""
        if not self.has_room(n):
            past = self.ordered()
            least = MIN_GROWTH if len(past) else FIRST_ROOM
            size = max(len(past) + self.kept(n), 2 * len(past), least)
            rows = np.empty((size, self.rows.shape[1]))
            rows[: len(past)] = past
            self._replace(rows, len(past))

    def room(self, n: int) -> Array:
        """Return free rows for n more rows; `count_in(n)` then adds what was written there.

        If the limit is less than n, they are a ring of `limit` rows: row i goes to i % limit.
        """
        self.reserve(n)
        return self.rows[self.end : self.end + self.kept(n)]

    def count_in(self, n: int) -> None:
        """Add the n rows that were written into `room(n)`; a ring is put in order first."""
        ring = self.room(n)
        if len(ring) < n and len(ring):
            ring[:] = np.roll(ring, -(n % len(ring)), axis=0)
        self.count += len(ring), n, 0

    def extend(self, rows: Array, n: int | None = None) -> None:
        """Add rows (n, width), or the last of n rows: at least those that are kept."""
        n = len(rows) if n is None else n
        self.room(n)[:] = rows[len(rows) - self.kept(n) :]
        self.count += self.kept(n), n, 0

    def ordered(self) -> Array:
        """Return a view of the kept rows (n, width), oldest first."""
        fields = dict(vars(self))  # rows and count of one moment
        end, total, limit = fields["count"].tolist()
        end = unheld(end)
        return fields["rows"][end - (total if limit < 0 else min(total, limit)) : end]

    @property
    def records(self) -> Array:
        """The kept rows as records (n,), oldest first, with fields as `records["reward"]`."""
        return self.ordered().view(self.row_type)[:, 0]
