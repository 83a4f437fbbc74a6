"""`DecisionLog`: every decision and reward of a bandit, in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bayesbandit.bandit.bandit import Bandit
from bayesbandit.checks import integer
from bayesbandit.store.rows import Parts, check_id

if TYPE_CHECKING:
    import pandas as pd

    from bayesbandit.store.ledger import Ledger

# decisions in a part of a table: databases take so many ids in a query
DECISIONS_PER_PART = 2**14 - 1
Time = str | float | datetime  # a date as text, seconds since 1970, or a datetime


class DecisionLog:
    """The decisions, rewards and versions of one bandit, in SQLite or PostgreSQL.

    url: "sqlite:///offers.db", or "postgresql+psycopg://user:password@host/name". The tables are
    made on first use. Their names begin with `bandit_`. `?timeout=5` in the address says how many
    seconds a statement, a lock or a free connection may take (10); then a call raises OSError.
    PostgreSQL takes the parameters of libpq, too, as `connect_timeout` (2) and `tcp_user_timeout`.
    Each bandit has a database of its own: a file, or in PostgreSQL a database or a schema
    ("…/name?options=-csearch_path=offers").

    A `Service` writes the log; any number of threads and processes may do so. Close the log, or use
    it in a `with` statement.
    """

    def __init__(self, url: str) -> None:
        try:
            from bayesbandit.store.database import Database
            from bayesbandit.store.ledger import Ledger
        except ModuleNotFoundError as error:
            if error.name != "sqlalchemy":
                raise
            raise ModuleNotFoundError(
                "a DecisionLog needs SQLAlchemy: pip install 'bayesbandit[log]'", name=error.name
            ) from error
        self.ledger: Ledger = Ledger(Database(url))

    def __repr__(self) -> str:
        return f"DecisionLog({self.ledger})"

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Later calls raise ValueError."""
        self.ledger.database.close()

    def replay(
        self,
        until: Time | None = None,
        *,
        version: int | None = None,
        **parts: Unpack[Parts],
    ) -> Bandit:
        """Compute the bandit again, from the first version and every later change, and return it.

        It equals the bandit that served, bit for bit on the machine where that one learned, and to
        1e-12 on others. until: leave out changes after this time. version: stop at this version.
        parts: the policy, model or balance that the snapshot does not hold; see `Bandit.load`.
        """
        from bayesbandit.store.reading import rebuilt

        return rebuilt(self.ledger, parts, until, version).bandit.copy()

    def verify(self, **parts: Unpack[Parts]) -> pd.DataFrame:
        """Check the log, and return one row for each violation: kind, id, expected, found, said.

        Every version is computed again, and each version makes its decisions again. A log without
        violations gives an empty table. parts: see `replay`.
        """
        from bayesbandit.store.verification import violations

        return violations(self.ledger, parts)

    def frame(self, since: Time | None = None, until: Time | None = None) -> pd.DataFrame:
        """Return one row for each decision with since ≤ decided_at < until, in order of time.

        All rows are in memory, about 2 kB each: 100,000 decisions take 200 MB. For a larger log use
        `frames`.

        The columns are decision_id, decided_at; arm, propensity; arms, and their probabilities,
        mean and sd (K,); x, the context as numbers (d,), and context, as it was given, in JSON;
        reward, NaN if there is none, and of an open decision what has come so far; rewarded_at;
        status: open, or how the decision was closed (reward, default, expired, inactive, retired,
        refused); activated; and version.
        """
        import pandas as pd

        from bayesbandit.store.reading import frames, table

        parts = [*frames(self.ledger, since, until)]
        return pd.concat(parts, ignore_index=True) if parts else table([], 0)

    def frames(
        self, since: Time | None = None, until: Time | None = None, size: int = 2_000
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows of `frame` in tables of at most `size` rows, in bounded memory."""
        from bayesbandit.store.reading import frames

        integer(size, "size", least=1, most=DECISIONS_PER_PART)
        return frames(self.ledger, since, until, size)

    def counts(self) -> dict[str, int]:
        """Return counts: decisions, open ones, those closed in each way, rewards in time, late or
        for unknown decisions, versions and snapshots."""
        from bayesbandit.store.reading import counts

        return counts(self.ledger)

    # ---- keeping, and forgetting -----------------------------------------------------------------

    def backup(self, path: str | Path) -> None:
        """Copy the whole database, as it is at one moment, to a new file of SQLite.

        Processes may go on meanwhile. `DecisionLog("sqlite:///PATH")` opens the copy.
        """
        from bayesbandit.store.keeping import backup

        backup(self.ledger, Path(path))

    def checkpoint(self, **parts: Unpack[Parts]) -> int:
        """Store a version that changes nothing, with a snapshot: it vouches for all before it.

        Return its number. parts: see `replay`.
        """
        from bayesbandit.store.keeping import checkpoint

        return checkpoint(self.ledger, parts)

    def prune(self) -> int:
        """Delete what the newest checkpoint vouches for, and return how many decisions went.

        These are the decisions that were closed before it, with their rewards, and the versions.
        Open decisions stay. `replay` and `verify` begin at the checkpoint from then on.
        """
        from bayesbandit.store.keeping import prune

        return prune(self.ledger)

    def erase(self, ids: str | Iterable[str], **parts: Unpack[Parts]) -> int:
        """Erase the contexts of decisions, make a checkpoint, and return how many were erased.

        `replay` and `verify` pass over the versions that learned them, and go on from the next
        snapshot. Snapshots keep the rounds of the bandit's `history`: `prune` deletes the older
        ones, and a bandit with `history=0` keeps none. An open decision is not learned any more.
        """
        from bayesbandit.store.keeping import erase

        names = [ids] if isinstance(ids, str) else list(ids)
        return erase(self.ledger, [check_id(one) for one in names], parts)
