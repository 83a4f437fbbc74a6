"""The four tables of a log, which is one bandit's.

A decision never changes, except that its context may be erased. Its state says whether it is open
and how it was closed. Rewards are kept as they came. A version is a change of the bandit, chained
to the one before it by a digest. Times are microseconds since 1970, UTC. Numbers (`row`, `x`,
`probabilities`) are float64, little-endian. Names of arms are JSON, since 1 and "1" differ.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()
NAME = 200  # characters of an id


decisions = Table(
    "bandit_decisions",
    metadata,
    Column("id", String(NAME), primary_key=True),  # its keyed hash seeds the random numbers
    Column("decided_at", BigInteger, nullable=False),
    Column("arm", Text, nullable=False),
    Column("propensity", Double, nullable=False),
    Column("version", BigInteger, nullable=False),  # of the bandit that decided
    Column("t", BigInteger, nullable=False),  # contexts that it had decided before
    Column("context", Text),  # as it was given; "" if it was erased
    Column("arms", Text, nullable=False),  # in the order of the columns
    Column("row", LargeBinary, nullable=False),  # context and moments: see kernels/row_layout.py
    Column("probabilities", LargeBinary, nullable=False),
    Column("x", LargeBinary),  # all arms' features, where arms have features
    Index("bandit_decisions_by_time", "decided_at", "id"),
    sqlite_with_rowid=False,  # a decision is one page less to write
)
states = Table(
    "bandit_states",
    metadata,
    Column("decision_id", String(NAME), primary_key=True),
    Column("due", BigInteger),  # when to learn it; none: when a reward comes
    Column("came", Integer, nullable=False),  # whether a reward came in time
    Column("shown", Integer, nullable=False),  # whether it was activated
    Column("outcome", String(20)),  # how it was closed; none: it is open
    Column("reward", Double),
    Column("reason", Text),
    Column("version", BigInteger),  # of the bandit that closed it
    Column("place", Integer),  # in what that version learned
    sqlite_with_rowid=False,
)
Index(
    "bandit_states_by_version", states.c.version, states.c.place,
    sqlite_where=states.c.version.is_not(None), postgresql_where=states.c.version.is_not(None),
)  # fmt: skip
Index(
    "bandit_states_open", states.c.due,
    sqlite_where=states.c.outcome.is_(None), postgresql_where=states.c.outcome.is_(None),
)  # fmt: skip
rewards = Table(
    "bandit_rewards",
    metadata,
    Column("decision_id", String(NAME), primary_key=True),
    Column("known", Integer, primary_key=True),  # whether the log had the decision
    Column("value", Double, nullable=False),
    Column("observed_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("status", String(20), nullable=False),  # timely, late or unknown
)
versions = Table(
    "bandit_versions",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("detail", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # of the change, and of the digest before it
    Column("snapshot", LargeBinary),  # the bandit's file, of some versions
    Column("release", Text, nullable=False),
)
