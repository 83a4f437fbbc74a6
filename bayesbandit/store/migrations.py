"""Steps that bring the tables of an older release up to date: one for each version, forward only.

A step names tables and columns as they were then. It imports nothing from `tables.py`, which
changes.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

KEYS = {  # the keys of version 1
    "bandit_decisions": ["PRIMARY KEY (id)", "UNIQUE (stream, position, place)"],
    "bandit_open": ["PRIMARY KEY (decision_id)"],
    "bandit_rewards": ['PRIMARY KEY (decision_id, "key")'],
    "bandit_outcomes": ["PRIMARY KEY (decision_id)", "UNIQUE (version, position)"],
    "bandit_events": ["UNIQUE (kind, decision_id)", "UNIQUE (version)"],
    "bandit_snapshots": ["PRIMARY KEY (version)"],
    "bandit_streams": ['PRIMARY KEY ("key")'],
}
COLUMN, ONLY = "bandit VARCHAR(200) NOT NULL", "'default'"


def several_bandits(connection: Connection) -> None:
    """Change tables of version 1 to version 2: each row, and each key, names its bandit.

    Rows of version 1 are about the bandit "default". It is one transaction: all changes, or none.
    """
    change = _made_again if connection.dialect.name == "sqlite" else _altered
    for table, column in (("decisions", "decided_at"), ("open", "due"), ("rewards", "received_at")):
        connection.exec_driver_sql(f"DROP INDEX IF EXISTS ix_bandit_{table}_{column}")
    for table, keys in KEYS.items():
        change(connection, table, keys)
    for table, column in (("decisions", "decided_at"), ("open", "due")):
        connection.exec_driver_sql(
            f"CREATE INDEX bandit_{table}_by_time ON bandit_{table} (bandit, {column})"
        )


def _of_bandit(key: str) -> str:
    """Return a key that begins with the bandit."""
    return key.replace("(", "(bandit, ")


def _made_again(connection: Connection, table: str, keys: list[str]) -> None:
    """Make a table again and copy its rows, because SQLite changes no key of a table.

    Views of it stay as they are. Indexes and triggers that others have added are made again.
    """
    known = connection.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")
    made: str = known.scalar_one()
    described = connection.exec_driver_sql(f"PRAGMA table_info({table})")
    columns = ", ".join(f'"{row.name}"' for row in described)
    for key in keys:
        if key not in made:
            raise ValueError(f"the table {table} has no {key}: the log is not of this package")
        made = made.replace(key, _of_bandit(key))
    made = made.replace("(", f"({COLUMN}, ", 1)
    added = connection.exec_driver_sql(
        f"SELECT sql FROM sqlite_master WHERE tbl_name = '{table}' AND type != 'table' AND sql > ''"
    )
    others = added.scalars().all()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")  # views keep the table's name
    connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO {table}_before")
    connection.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    connection.exec_driver_sql(made)
    connection.exec_driver_sql(
        f"INSERT INTO {table} (bandit, {columns}) SELECT {ONLY}, {columns} FROM {table}_before"
    )
    connection.exec_driver_sql(f"DROP TABLE {table}_before")
    for other in others:
        connection.exec_driver_sql(other)


def _altered(connection: Connection, table: str, keys: list[str]) -> None:
    """Add the column without a copy, and make the keys again, in PostgreSQL."""
    changes = [f"ADD COLUMN {COLUMN} DEFAULT {ONLY}"]
    for key in keys:
        kind, _, columns = key.rstrip(")").partition(" (")
        name = "pkey" if kind == "PRIMARY KEY" else f"{columns.replace(', ', '_')}_key"
        changes += [f"DROP CONSTRAINT {table}_{name}", f"ADD {_of_bandit(key)}"]
    connection.exec_driver_sql(f"ALTER TABLE {table} {', '.join(changes)}")
    connection.exec_driver_sql(f"ALTER TABLE {table} ALTER COLUMN bandit DROP DEFAULT")


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: several_bandits}
