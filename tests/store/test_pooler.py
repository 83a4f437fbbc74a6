"""A pooler that gives each transaction another session, as PgBouncer does, breaks nothing."""

import getpass
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import bayesbandit as bb

sa = pytest.importorskip("sqlalchemy")

from tests.ports import free_port
from tests.store.databases import fresh, server

SETTINGS = """
[databases]
* = host={folder} port=5432 user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
"""


@contextmanager
def pooled(url):
    """The address of a database through PgBouncer, which has four sessions for all clients."""
    psutil = pytest.importorskip("psutil")
    program, port = shutil.which("pgbouncer") or pytest.skip("there is no pgbouncer"), free_port()
    [folder], name = parse_qs(urlsplit(url).query)["host"], urlsplit(url).path.strip("/")
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        file = Path(place) / "pgbouncer.ini"
        file.write_text(SETTINGS.format(folder=folder, port=port))
        owner = psutil.Process(server().get_pid()).username()  # who may use the server's socket
        user = [] if owner == getpass.getuser() else ["-u", owner]
        process = subprocess.Popen([program, *user, file], stderr=subprocess.DEVNULL)
        try:
            yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/{name}"
        finally:
            process.terminate()
            process.wait()


def opened(url):
    end = monotonic() + 10
    while True:
        try:
            return bb.DecisionLog(url)
        except OSError:
            if monotonic() > end:
                raise
            sleep(0.1)


@pytest.mark.slow
def test_a_log_behind_a_pooler(tmp_path):
    with pooled(fresh("postgresql", tmp_path)) as url:
        service = bb.Service(bb.LinTS(["mail", "call"], 2, seed=0), opened(url))
        workers = [service, *(bb.Service.open(bb.DecisionLog(url)) for _ in range(3))]

        def lived(worker):
            for i in range(30):
                one = worker.decide(np.array([0.1 * i, 1.0])).id
                assert worker.reward(one, 1.0) == "timely"
                worker.learn()
                worker.sync()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lived, workers))
        service.learn()
        assert service.log.frame()["status"].tolist() == ["reward"] * 120
        assert service.log.verify().empty
        with workers[1].log.ledger.learner() as elected:  # no lock has stayed in a session
            assert elected
        for worker in workers:
            worker.log.close()


@pytest.mark.slow
def test_nothing_stays_in_a_session(tmp_path):
    """No prepared statement, no lock and no setting: the next transaction may have another one."""
    service = bb.Service(
        bb.LinTS(["mail", "call"], 2, seed=0), bb.DecisionLog(fresh("postgresql", tmp_path))
    )
    for _ in range(20):
        service.reward(service.decide([0.0, 1.0]).id, 1.0)
    with service.log.ledger.learner() as elected, service.log.ledger.database.read() as connection:
        assert elected
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND virtualtransaction "
        assert connection.exec_driver_sql(held + "!~ '/0$'").scalar() == 1  # in a transaction
        assert connection.exec_driver_sql(held + "~ '/0$'").scalar() == 0
    service.learn()
    with service.log.ledger.database.read(patient=True) as connection:
        for query in (
            "SELECT count(*) FROM pg_prepared_statements",
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
            "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name ~ 'timeout'",
        ):
            assert connection.exec_driver_sql(query).scalar() == 0, query
