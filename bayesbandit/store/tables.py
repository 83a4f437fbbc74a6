"""The tables of a log. They hold several bandits: each row says which one, in `bandit`.

Rows of `bandit_open` and `bandit_snapshots` may be changed or deleted; all other tables only grow.
`bandit_open` is the learner's queue. Both can be computed again from the other tables. Old
snapshots are deleted, and an event says which. Times are microseconds since 1970, UTC. Numbers
(`row`, `x`, `probabilities`) are float64, little-endian. Names of arms are JSON, since 1 and "1"
differ. A change here needs a step in `migrations.py`.
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
    UniqueConstraint,
)

SCHEMA = 2

metadata = MetaData()
NAME = 200  # characters of an id
COUNTED = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only an INTEGER key


def of_bandit(key: bool = True) -> Column[str]:
    """Return the column that says which bandit a row is about.

    key: whether it belongs to the primary key.
    """
    return Column("bandit", String(NAME), primary_key=key, nullable=False)


schema = Table(
    "bandit_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("release", Text, nullable=False),
)
decisions = Table(
    "bandit_decisions",
    metadata,
    of_bandit(),
    Column("id", String(NAME), primary_key=True),
    Column("decided_at", BigInteger, nullable=False),
    Column("arm", Text, nullable=False),
    Column("propensity", Double, nullable=False),
    Column("mode", String(20), nullable=False),  # bandit or another system
    Column("version", BigInteger, nullable=False),  # of the bandit that decided
    Column("t", BigInteger, nullable=False),  # contexts that it had decided before
    Column("stream", String(36), nullable=False),  # of random numbers
    Column("position", BigInteger, nullable=False),  # of the call in its stream
    Column("place", Integer, nullable=False),  # of the decision in its call
    Column("size", Integer, nullable=False),  # decisions of the call
    Column("context", Text),  # as it was given
    Column("arms", Text, nullable=False),  # in the order of the columns
    Column("row", LargeBinary, nullable=False),  # context and moments: see kernels/row_layout.py
    Column("probabilities", LargeBinary, nullable=False),
    Column("x", LargeBinary),  # all arms' features, where arms have features
    UniqueConstraint("bandit", "stream", "position", "place"),
    Index("bandit_decisions_by_time", "bandit", "decided_at"),
)
opened = Table(
    "bandit_open",
    metadata,
    of_bandit(),
    Column("decision_id", String(NAME), primary_key=True),
    Column("due", BigInteger),  # when to learn it; none: when a reward comes
    Column("touched", Integer, nullable=False),  # how often something came: see `Due`
    Index("bandit_open_by_time", "bandit", "due"),
)
rewards = Table(
    "bandit_rewards",
    metadata,
    of_bandit(),
    Column("decision_id", String(NAME), primary_key=True),
    Column("key", String(NAME), primary_key=True),  # tells one of several rewards from another
    Column("value", Double, nullable=False),
    Column("observed_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("status", String(20), nullable=False),  # timely, late or unknown
)
outcomes = Table(
    "bandit_outcomes",
    metadata,
    of_bandit(),
    Column("decision_id", String(NAME), primary_key=True),  # a decision is learned once
    Column("version", BigInteger, nullable=False),  # of the bandit that has learned it
    Column("position", Integer, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reward", Double),
    Column("reason", Text),
    UniqueConstraint("bandit", "version", "position"),
)
events = Table(
    "bandit_events",
    metadata,
    Column("id", COUNTED, primary_key=True),
    of_bandit(key=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("version", BigInteger),  # of the bandit after it, where it has changed
    Column("decision_id", String(NAME)),
    Column("detail", Text),
    UniqueConstraint("bandit", "kind", "decision_id"),
    UniqueConstraint("bandit", "version"),
)
snapshots = Table(
    "bandit_snapshots",
    metadata,
    of_bandit(),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("release", Text, nullable=False),
)
streams = Table(
    "bandit_streams",
    metadata,
    of_bandit(),
    Column("key", String(36), primary_key=True),
    Column("entropy", Text, nullable=False),  # of the random numbers, an integer
    Column("opened_at", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("release", Text, nullable=False),
)
