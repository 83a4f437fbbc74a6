"""What keeps a log small: backups, checkpoints before which rows may go, erased contexts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import batched
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from bayesbandit.runtime.files import replacing
from bayesbandit.store.database import Database
from bayesbandit.store.ledger import Ledger, of_ids
from bayesbandit.store.records import CHECKPOINT, ERASED
from bayesbandit.store.rows import Parts, from_bytes, to_bytes
from bayesbandit.store.tables import decisions, metadata, rewards, states, versions
from bayesbandit.store.versions import change, newest

COPIED_ROWS = 1000  # that are copied or deleted at a time
CHANGE_DECISION = update(decisions).where(decisions.c.id == bindparam("one"))


def backup(ledger: Ledger, path: Path) -> None:
    """Copy all tables, as they are at one moment, to a new file of SQLite."""
    if path.exists():
        raise FileExistsError(f"there is a file {path} already; a backup needs a new one")
    with replacing(path) as beside, closing(Database(f"sqlite:///{beside}")) as copy:
        with ledger.database.read(patient=True) as source, copy.write() as target:
            rows = source.execution_options(yield_per=COPIED_ROWS)
            for table in metadata.sorted_tables:
                for part in rows.execute(select(table)).mappings().partitions():
                    target.execute(insert(table), [dict(row) for row in part])
        copy.pragmas("journal_mode=DELETE")  # all in one file


def checkpoint(ledger: Ledger, parts: Parts) -> int:
    """Store a version with a full snapshot, so that earlier rows may go; return its number."""
    return change(ledger, partial(newest, ledger, parts), CHECKPOINT, {}).number


def prune(ledger: Ledger) -> int:
    """Delete what came before the newest checkpoint; return how many decisions went."""
    column = versions.c
    newest = select(func.max(column.number)).where(column.kind == CHECKPOINT)
    last = ledger.one(newest)
    if last is None:
        raise ValueError(f"the log {ledger} has no checkpoint: make one first")
    gone = 0
    closed = states.c.outcome.is_not(None)
    old = (
        select(states.c.decision_id)
        .where(
            closed,
            or_(states.c.version < last, states.c.version.is_(None)),
        )
        .limit(COPIED_ROWS)
    )
    first = update(versions).where(column.number == 0).values(snapshot=None)
    between = delete(versions).where(column.number.between(1, last - 1))
    while True:  # a transaction for some of them, so that decisions need not wait for all
        with ledger.database.write(patient=True) as connection:
            if last > 1:
                connection.execute(first)
                connection.execute(between)
            ids = connection.execute(old).scalars().all()
            for table in (rewards, states, decisions):
                connection.execute(delete(table).where(of_ids(table, ids)))
        if not ids:
            ledger.database.empty_wal()
            return gone
        gone += len(ids)


def erase(ledger: Ledger, ids: Sequence[str], parts: Parts) -> int:
    """Erase the contexts of decisions and make a checkpoint; return how many were erased.

    Both in one transaction: no version after the checkpoint learns a context that is erased.
    """
    n_features = ledger.begun().n_features
    erased = 0

    def without_contexts(connection: Connection) -> None:
        nonlocal erased
        blanks = []
        for part in batched(ids, COPIED_ROWS):
            rows = select(decisions.c.id, decisions.c.row).where(of_ids(decisions, part))
            for row in connection.execute(rows):
                numbers = from_bytes(row.row).copy()
                numbers[:n_features] = np.nan
                blank = {"one": row.id, "context": ERASED, "x": None, "row": to_bytes(numbers)}
                blanks.append(blank)
        if blanks:
            connection.execute(CHANGE_DECISION, blanks)
        erased = len(blanks)

    change(ledger, partial(newest, ledger, parts), CHECKPOINT, {}, without_contexts)
    ledger.database.empty_wal()
    return erased
