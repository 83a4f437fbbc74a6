"""A database as version 1 of the tables wrote it: one bandit, and no column that names it."""

import sqlalchemy as sa

TABLES = [
    """CREATE TABLE bandit_decisions (
    id VARCHAR(200) NOT NULL, decided_at BIGINT NOT NULL, arm TEXT NOT NULL,
    propensity DOUBLE NOT NULL, mode VARCHAR(20) NOT NULL, version BIGINT NOT NULL,
    t BIGINT NOT NULL, stream VARCHAR(36) NOT NULL, position BIGINT NOT NULL,
    place INTEGER NOT NULL, size INTEGER NOT NULL, context TEXT, arms TEXT NOT NULL,
    "row" BLOB NOT NULL, probabilities BLOB NOT NULL, x BLOB,
    PRIMARY KEY (id), UNIQUE (stream, position, place))""",
    "CREATE INDEX ix_bandit_decisions_decided_at ON bandit_decisions (decided_at)",
    """CREATE TABLE bandit_events (
    id INTEGER NOT NULL, at BIGINT NOT NULL, kind VARCHAR(20) NOT NULL, version BIGINT,
    decision_id VARCHAR(200), detail TEXT,
    PRIMARY KEY (id), UNIQUE (kind, decision_id), UNIQUE (version))""",
    """CREATE TABLE bandit_open (
    decision_id VARCHAR(200) NOT NULL, due BIGINT, touched INTEGER NOT NULL,
    PRIMARY KEY (decision_id))""",
    "CREATE INDEX ix_bandit_open_due ON bandit_open (due)",
    """CREATE TABLE bandit_outcomes (
    decision_id VARCHAR(200) NOT NULL, version BIGINT NOT NULL, position INTEGER NOT NULL,
    outcome VARCHAR(20) NOT NULL, reward DOUBLE, reason TEXT,
    PRIMARY KEY (decision_id), UNIQUE (version, position))""",
    """CREATE TABLE bandit_rewards (
    decision_id VARCHAR(200) NOT NULL, "key" VARCHAR(200) NOT NULL, value DOUBLE NOT NULL,
    observed_at BIGINT NOT NULL, received_at BIGINT NOT NULL, status VARCHAR(20) NOT NULL,
    PRIMARY KEY (decision_id, "key"))""",
    "CREATE INDEX ix_bandit_rewards_received_at ON bandit_rewards (received_at)",
    """CREATE TABLE bandit_schema (
    version INTEGER NOT NULL, at BIGINT NOT NULL, release TEXT NOT NULL, PRIMARY KEY (version))""",
    """CREATE TABLE bandit_snapshots (
    version BIGINT NOT NULL, at BIGINT NOT NULL, data BLOB NOT NULL, release TEXT NOT NULL,
    PRIMARY KEY (version))""",
    """CREATE TABLE bandit_streams (
    "key" VARCHAR(36) NOT NULL, entropy TEXT NOT NULL, opened_at BIGINT NOT NULL,
    host TEXT NOT NULL, pid BIGINT NOT NULL, release TEXT NOT NULL, PRIMARY KEY ("key"))""",
]
POSTGRESQL = [("id INTEGER", "id BIGSERIAL"), ("BLOB", "BYTEA"), ("DOUBLE", "DOUBLE PRECISION")]


def write_as_version_1(url, log):
    """Write what a log has of its bandit to a new database, in the tables of version 1."""
    engine = sa.create_engine(url)
    with engine.begin() as connection, log.ledger.database.read() as source:
        for made in TABLES:
            for lite, other in POSTGRESQL if connection.dialect.name == "postgresql" else ():
                made = made.replace(lite, other)
            connection.exec_driver_sql(made)
        found = sa.MetaData()
        found.reflect(connection)
        for table in found.tables.values():
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = source.execute(sa.text(f"SELECT {columns} FROM {table.name}")).mappings().all()
            if table.name == "bandit_schema":
                rows = [{**rows[0], "version": 1}]
            if rows:
                connection.execute(table.insert(), [dict(row) for row in rows])
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(
                "SELECT setval(pg_get_serial_sequence('bandit_events', 'id'), "
                "(SELECT max(id) FROM bandit_events))"
            )
    engine.dispose()
