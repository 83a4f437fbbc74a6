"""A log of an older release goes on: its tables become those of now, whole or not at all."""

import os
import signal
import sqlite3
from contextlib import closing

import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from bayesbandit.store import database, migrations
from tests.service.killing import FORK
from tests.service.test_service import begun, linear, live, same
from tests.store.databases import KINDS, fresh
from tests.store.old_tables import write_as_version_1

posix = pytest.mark.skipif(os.name != "posix", reason="forks")


@pytest.fixture(params=KINDS)
def old(request, tmp_path):
    """The address of a log of version 1, and a service of now that has the same log."""
    service, clock = begun(fresh("sqlite", tmp_path), snapshot_every=25)
    live(service, clock)
    service.add_arm("fax")
    service.reward([service.decide([0.0, 1.0]).id, "nobody"], [1.0, 2.0])
    url = fresh(request.param, tmp_path)
    write_as_version_1(url, service.log)
    yield url, service, clock
    service.log.close()


def migrated(url):
    return bb.DecisionLog(url, migrate=True)


def tables(log):
    """Columns, keys and indexes of all tables."""
    with log.ledger.database.read() as connection:
        seen, found = sa.inspect(connection), {}
        for name in seen.get_table_names():
            columns = {
                (one["name"], str(one["type"]), one["nullable"], one["default"])
                for one in seen.get_columns(name)
            }
            keys = {tuple(seen.get_pk_constraint(name)["constrained_columns"])}
            unique = {tuple(one["column_names"]) for one in seen.get_unique_constraints(name)}
            indexes = {(one["name"], *one["column_names"]) for one in seen.get_indexes(name)}
            found[name] = columns, keys, unique, indexes
        return found


@pytest.mark.slow
def test_an_old_log_is_one_of_now_and_goes_on(old, tmp_path):
    url, before, clock = old
    with migrated(url) as log, bb.DecisionLog(fresh(log_kind(url), tmp_path)) as new:
        assert tables(log) == tables(new)
        assert log.names() == ["default"]
        assert log.frame().equals(before.log.frame())
        assert log.counts() == before.log.counts()
        assert log.verify()["kind"].tolist() == ["reward without decision"]
        assert same(log.replay(), before.log.replay())
        service = bb.Service.open(log, clock=clock)
        assert service.reward(service.decide([1.0, 1.0]).id, 0.5) == "timely"
        service.learn()
        service.remove_arm("fax")
        assert same(log.replay(), service.bandit)
        other, _ = begun(log_url(log), linear(), name="other")  # beside it
        other.decide([0.0, 0.0])
        assert log.verify()["kind"].tolist() == ["reward without decision"]
    with bb.DecisionLog(url) as log, log.ledger.database.read() as connection:
        found = connection.execute(sa.text("SELECT version FROM bandit_schema ORDER BY version"))
        assert found.scalars().all() == [1, 2]


READERS = {
    "a log": lambda url, folder: bb.DecisionLog(url),
    "report": lambda url, folder: command("report", "--log", url, "--out", folder / "r.html"),
}


def command(*words):
    from typer.testing import CliRunner

    from bayesbandit.cli.app import app

    run = CliRunner().invoke(app, [*map(str, words)])
    assert run.exit_code == 2, run.output
    raise ValueError(" ".join(run.output.split()))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_reading_never_migrates(old, tmp_path, reader):
    """The older server goes on: its tables are what they were."""
    url, *_ = old
    before = dump(url)
    with pytest.raises(ValueError, match=r"tables of version 1.*migrate=True"):
        READERS[reader](url, tmp_path)
    assert dump(url) == before


def dump(url):
    """All rows of all tables, with their columns."""
    engine, found = sa.create_engine(url), sa.MetaData()
    found.reflect(engine)
    with engine.connect() as connection:
        rows = {
            name: (table.columns.keys(), connection.execute(sa.select(table)).all())
            for name, table in found.tables.items()
        }
    engine.dispose()
    return rows


@pytest.mark.slow
def test_a_migrated_log_has_statistics(old):
    """Without those of the new columns PostgreSQL plans `verify` as if a bandit had few rows."""
    url, *_ = old
    with migrated(url) as log, log.ledger.database.read() as connection:
        if log_kind(url) == "sqlite":
            found = connection.exec_driver_sql("SELECT DISTINCT tbl FROM sqlite_stat1")
        else:
            found = connection.exec_driver_sql(
                "SELECT tablename FROM pg_stats WHERE attname = 'bandit'"
            )
        full = {"bandit_decisions", "bandit_rewards", "bandit_outcomes", "bandit_events"}
        assert {*found.scalars()} >= full


def log_kind(url):
    return url.partition(":")[0].partition("+")[0]


def log_url(log):
    return log.ledger.database.url.render_as_string(hide_password=False)


def killed_midway(url):
    """Upgrade, and die when all but the last step is done."""
    whole = migrations.several_bandits

    def half(connection):
        whole(connection)
        os.kill(os.getpid(), signal.SIGKILL)

    database.MIGRATIONS = {1: half}
    migrated(url)


@pytest.mark.slow
@posix
def test_an_upgrade_that_is_killed_has_changed_nothing(old):
    url, before, _ = old
    process = FORK.Process(target=killed_midway, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with sa.create_engine(url).connect() as connection:
        names = [one["name"] for one in sa.inspect(connection).get_columns("bandit_decisions")]
        assert "bandit" not in names
    with migrated(url) as log:
        assert log.frame().equals(before.log.frame())
        assert same(log.replay(), before.log.replay())


def opened(url, together, said):
    together.wait()
    with migrated(url) as log:
        said.put(log.counts())


@pytest.mark.slow
@posix
def test_processes_that_upgrade_at_once(old):
    url, before, _ = old
    together, said = FORK.Barrier(4), FORK.Queue()
    processes = [FORK.Process(target=opened, args=(url, together, said)) for _ in range(4)]
    for process in processes:
        process.start()
    assert [said.get(timeout=60) for _ in processes] == [before.log.counts()] * 4
    for process in processes:
        process.join()


def test_a_mode_that_another_process_is_setting_is_set_later(tmp_path):
    refusals = [sqlite3.SQLITE_BUSY] * 3

    class Refused(sqlite3.Connection):
        def execute(self, statement):
            if "journal_mode" in statement and refusals:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = refusals.pop()
                raise error
            return super().execute(statement)

    with closing(sqlite3.connect(tmp_path / "log.db", factory=Refused)) as connection:
        database._durable(connection, None)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        refusals.append(sqlite3.SQLITE_CORRUPT)
        with pytest.raises(sqlite3.OperationalError):
            database._durable(connection, None)


@pytest.mark.slow
def test_what_others_have_added_stays(old):
    """Views, indexes, triggers and columns, which a dashboard may need."""
    url, *_ = old
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for made in (
            "CREATE VIEW shares AS SELECT arm, count(*) AS n FROM bandit_decisions GROUP BY arm",
            "CREATE INDEX by_arm ON bandit_decisions (arm)",
            "ALTER TABLE bandit_decisions ADD COLUMN note TEXT",
        ):
            connection.exec_driver_sql(made)
        shares = connection.exec_driver_sql("SELECT * FROM shares ORDER BY arm").all()
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("CREATE TABLE seen (id TEXT)")
            connection.exec_driver_sql(
                "CREATE TRIGGER see AFTER INSERT ON bandit_rewards "
                "BEGIN INSERT INTO seen VALUES (new.decision_id); END"
            )
    with migrated(url) as log:
        bb.Service.open(log).reward("nobody", 3.0)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT * FROM shares ORDER BY arm").all() == shares
        names = {one["name"] for one in sa.inspect(connection).get_indexes("bandit_decisions")}
        assert names >= {"by_arm", "bandit_decisions_by_time"}
        if engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("SELECT * FROM seen").all() == [("nobody",)]
    engine.dispose()


def test_tables_of_others_are_left_alone(tmp_path):
    """A table of ours by its name, and not by its keys."""
    url = fresh("sqlite", tmp_path)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for made in (
            "CREATE TABLE bandit_schema (version INTEGER, at BIGINT, release TEXT)",
            "INSERT INTO bandit_schema VALUES (1, 0, '0')",
            "CREATE TABLE bandit_decisions (id INTEGER PRIMARY KEY, mine TEXT)",
            "INSERT INTO bandit_decisions VALUES (7, 'mine')",
        ):
            connection.exec_driver_sql(made)
    with pytest.raises(ValueError, match=r"bandit_decisions has no PRIMARY KEY \(id\)"):
        migrated(url)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT * FROM bandit_decisions").all()
        assert found == [(7, "mine")]


def test_a_step_after_a_step(tmp_path, monkeypatch):
    url = fresh("sqlite", tmp_path)
    bb.DecisionLog(url).close()
    monkeypatch.setattr(database, "SCHEMA", 4)
    steps = {
        2: lambda connection: connection.exec_driver_sql("ALTER TABLE bandit_streams ADD a INT"),
        3: lambda connection: connection.exec_driver_sql("ALTER TABLE bandit_streams ADD b INT"),
    }
    monkeypatch.setattr(database, "MIGRATIONS", steps)
    with migrated(url) as log, log.ledger.database.read() as connection:
        assert connection.execute(sa.text("SELECT a, b FROM bandit_streams")).all() == []
        found = connection.execute(sa.text("SELECT version FROM bandit_schema")).scalars().all()
        assert found == [2, 3, 4]
