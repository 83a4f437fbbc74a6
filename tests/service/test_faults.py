"""Whatever the database does, a server answers within its deadline: what it has stored, or 503."""

import select
import sqlite3
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import numpy as np
import pytest

import bayesbandit as bb
from tests.service.servers import client_of, serving
from tests.service.test_server import begun
from tests.store.databases import KINDS, fresh, frozen

DEADLINE = 0.2  # seconds
NEAR = 0.05  # seconds more, for the median answer
SLACK = 0.5  # seconds more at most, on a machine at work
PATIENCE = 10.0  # seconds until a wait has no end


@contextmanager
def locked(url):
    """Another process writes, and does not end."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def hung(url):
    return locked(url) if url.startswith("sqlite") else frozen()


def decides(url):
    """A service of a new log."""
    return bb.Service(bb.LinTS(["mail", "call"], 2, seed=0), bb.DecisionLog(url))


@pytest.fixture
def service(tmp_path):
    return decides(f"sqlite:///{tmp_path}/log.db")


def timed(call):
    begin = time.perf_counter()
    return call(), time.perf_counter() - begin


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_that_hangs_does_not_hang_the_server(kind, tmp_path):
    url, (_, words) = fresh(kind, tmp_path), begun(tmp_path)
    with serving(url, *words, "--wait", "1d", "--default-reward", "0") as client:
        ask = {"context": [0.5, -1.0]}
        first = insist(client, ask | {"id": "order-0"})
        _await_ready(client)
        with hung(url):
            end, n, all_took = time.monotonic() + 3.0, 0, []
            while time.monotonic() < end:
                n += 1
                for path, body in (
                    ("/decide", ask | {"id": f"order-{n}"}),
                    ("/reward", {"id": "order-0", "value": 1.0}),
                    ("/activate", {"id": "order-0"}),
                ):
                    answer, took = timed(lambda path=path, body=body: client.post(path, json=body))
                    assert answer.status_code == 503
                    assert answer.headers["Retry-After"] == "1"
                    assert "show an arm of your choice" in answer.json()["detail"]
                    assert took < DEADLINE + SLACK
                    all_took.append(took)
                answer, took = timed(lambda: client.get("/healthz"))
                assert (answer.status_code, took < SLACK) == (200, True)
                assert timed(lambda: client.get("/readyz"))[1] < DEADLINE + SLACK
            assert statistics.median(all_took) < DEADLINE + NEAR
            assert client.get("/readyz").status_code == 503
            metrics, took = timed(lambda: client.get("/metrics"))
            assert took < 2 * DEADLINE + SLACK
            assert 'status="503"' in metrics.text
            with ThreadPoolExecutor(40) as pool:  # more than the server has threads
                many = [
                    pool.submit(timed, lambda: client.post("/decide", json=ask)) for _ in range(80)
                ]
                assert {one.result()[0].status_code for one in many} == {503}
                assert timed(lambda: client.get("/healthz"))[1] < SLACK
        _await_ready(client)
        assert insist(client, ask | {"id": "order-0"}) == first
        answers = []
        for one in ("order-1", "order-0"):
            told = {"id": one, "value": 1.0}
            while (answer := client.post("/reward", json=told)).status_code == 503:
                pass
            answers.append(answer)
        assert answers[0].status_code == 404  # it was not stored, and no reward of it counts
        assert answers[1].json()["status"] in ("timely", "again")
    with bb.DecisionLog(url) as log:
        assert log.frame()["decision_id"].tolist() == ["order-0"]
        assert log.verify().empty


def insist(client, asked):
    """The answer to a request, which a machine at work may not give in time at first."""
    end = time.monotonic() + 20
    while (answer := client.post("/decide", json=asked)).status_code == 503:
        assert time.monotonic() < end
    return answer.json()


def _await_ready(client):
    end = time.monotonic() + 10
    while client.get("/readyz").status_code != 200 and time.monotonic() < end:
        time.sleep(0.1)


def ready_each_time(gen, fileno, interval=None, **_):
    """Wait as the compiled psycopg 3.2.2 to 3.2.9 do: also a look that saw nothing says "ready"."""
    end = time.monotonic() + PATIENCE
    try:
        wanted = next(gen)
        while True:
            assert time.monotonic() < end, "it waits without end"
            select.select([fileno] * (wanted & 1), [fileno] * (wanted >> 1), [], interval)
            wanted = gen.send(wanted)
    except StopIteration as done:
        return done.value


@pytest.mark.slow
@pytest.mark.parametrize("wait", [None, ready_each_time])
def test_a_service_does_not_wait_for_a_server_that_hangs(wait, tmp_path, monkeypatch):
    if wait is not None:
        monkeypatch.setattr("psycopg.waiting.wait", wait)
    url = fresh("postgresql", tmp_path)
    service = decides(url + "&timeout=0.3")
    service.decide([0.0, 0.0])
    with frozen():
        for call in (
            lambda: service.decide([0.0, 0.0]),
            lambda: service.reward("order-1", 1.0),
            service.sync,
            service.learn,
        ):
            begin = time.perf_counter()
            with pytest.raises(OSError, match="cannot be read or written now"):
                call()
            assert time.perf_counter() - begin < 2.0
    service.decide([0.0, 0.0])
    assert len(service.log.frame()) == 2
    assert service.log.verify().empty


def test_a_locked_log_is_refused_after_its_timeout(tmp_path):
    url = fresh("sqlite", tmp_path)
    service = decides(url + "?timeout=.1")
    service.decide([0.0, 0.0])  # loads kernels, which takes longer than the timeout
    with locked(url):
        begin = time.perf_counter()
        with pytest.raises(OSError, match="database is locked"):
            service.decide([0.0, 0.0])
    assert 0.1 <= time.perf_counter() - begin < 0.1 + SLACK
    service.decide([0.0, 0.0])
    assert len(service.log.frame()) == 2


def copied(source, target):
    """Copy a database of SQLite into another one that processes have open."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@pytest.mark.parametrize("later", [0, 3])  # versions that others have made of the backup
def test_a_service_goes_back_with_its_log(service, tmp_path, caplog, later):
    """A backup is restored while it runs. What it knows is not in the log any more."""

    def learn_one(service, reward):
        service.reward(service.decide([0.5, 1.0]).id, reward)
        service.learn()

    learn_one(service, 1.0)
    copied(tmp_path / "log.db", tmp_path / "backup.db")
    for _ in range(3):
        learn_one(service, 2.0)
    copied(tmp_path / "backup.db", tmp_path / "log.db")
    other = bb.Service.open(bb.DecisionLog(f"sqlite:///{tmp_path}/log.db"))
    for _ in range(later):
        learn_one(other, 3.0)
    assert service.sync() == 1 + later
    assert "went back: its version 4 is not the one that decided here" in caplog.text
    learn_one(service, 1.0)
    assert service.bandit.history.reward.tolist() == [1.0, *[3.0] * later, 1.0]
    assert service.log.verify().empty
    caplog.clear()
    service.sync()
    assert not caplog.text


def test_a_service_whose_log_is_empty_decides_nothing(service, tmp_path):
    service.decide([0.5, 1.0])
    bb.DecisionLog(f"sqlite:///{tmp_path}/empty.db").close()
    copied(tmp_path / "empty.db", tmp_path / "log.db")
    with pytest.raises(ValueError, match="has no bandit yet"):
        service.sync()
    with pytest.raises(OSError, match="has no bandit any more"):
        service.decide([0.5, 1.0])
    assert service.log.counts()["decisions"] == 0


def full(service, pages=1):
    """Leave no room on the disk of this service's one connection."""
    engine = service.log.ledger.database.engine
    with engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_is_not_ready(service, monkeypatch):
    """Alive, though; and what cannot be stored is not decided. It goes on when there is room."""
    monkeypatch.setattr("bayesbandit.service.server.READY_SECONDS", 0.0)
    client, ask = client_of(service), {"context": [0.5, -1.0]}
    assert client.get("/readyz", headers={"Authorization": ""}).status_code == 200
    full(service)
    while (answer := client.post("/decide", json=ask)).status_code == 200:
        pass
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    with pytest.raises(OSError, match=r"could not be stored, so there is none: .*full"):
        service.decide(np.zeros((500, 2)))
    for method in ("GET", "HEAD"):
        assert client.request(method, "/readyz").status_code == 503
        assert client.request(method, "/healthz").status_code == 200
    full(service, 10**6)
    assert client.head("/readyz").status_code == 200
    stored = len(service.log.frame())
    assert client.post("/decide", json=ask).status_code == 200
    assert len(service.log.frame()) == stored + 1
    assert service.log.verify().empty


def test_a_probe_leaves_nothing_and_is_made_once_a_second(service, monkeypatch):
    probe, probes = service.log.ledger.probe, []
    monkeypatch.setattr(service.log.ledger, "probe", lambda: probes.append(probe()))
    client = client_of(service)
    assert {client.get("/readyz").status_code for _ in range(20)} == {200}
    assert len(probes) <= 2
    with service.log.ledger.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM bandit_versions").scalar() == 1
    assert service.log.verify().empty


def test_a_scrape_reads_numbers(service):
    """It computes nothing: no history is followed, nothing is imported, and it is quick."""
    rng = np.random.default_rng(0)
    ids = service.decide(rng.normal(size=(5000, 2))).id.tolist()
    service.reward(ids, 1.0 * (np.arange(5000) > 2500))  # rewards have changed
    service.learn()
    server = bb.Service.open(service.log)  # another process
    client = client_of(server)
    client.get("/metrics")
    modules, spent = {*sys.modules}, []
    for _ in range(5):
        begin = time.process_time()
        text = client.get("/metrics").text
        spent.append(time.process_time() - begin)
    assert {*sys.modules} == modules
    assert min(spent) < 0.02
    assert f"bayesbandit_newest_version {server.version}.0" in text
