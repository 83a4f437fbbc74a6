"""Whatever the database does, a server answers within its deadline: what it has stored, or 503."""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

import bayesbandit as bb

for needed in ("sqlalchemy", "fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed)

from tests.service.servers import serving
from tests.store.databases import KINDS, fresh, frozen

DEADLINE = 0.2  # seconds
SLACK = 0.6  # seconds for a machine at work


@contextmanager
def locked(url):
    """Another process writes, and does not end."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def hung(url):
    return locked(url) if url.startswith("sqlite") else frozen()


def begun(folder, url):
    """The words of a server on a new log."""
    bb.LinTS(["mail", "call"], 2, seed=0).save(folder / "bandit.npz")
    return "--bandit", folder / "bandit.npz", "--wait", "1d", "--default-reward", "0"


def timed(call):
    begin = time.perf_counter()
    return call(), time.perf_counter() - begin


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_that_hangs_does_not_hang_the_server(kind, tmp_path):
    url = fresh(kind, tmp_path)
    with serving(url, *begun(tmp_path, url)) as client:
        ask = {"context": [0.5, -1.0]}
        first = client.post("/decide", json=ask | {"id": "order-0"}).json()
        assert client.get("/readyz").status_code == 200
        with hung(url):
            end, n = time.monotonic() + 3.0, 0
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
                answer, took = timed(lambda: client.get("/healthz"))
                assert (answer.status_code, took < SLACK) == (200, True)
                assert timed(lambda: client.get("/readyz"))[1] < DEADLINE + SLACK
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
        assert client.post("/decide", json=ask | {"id": "order-0"}).json() == first
        late = client.post("/reward", json={"id": "order-1", "value": 1.0})
        assert late.status_code == 404  # it was not stored, and no reward of it counts
        assert client.post("/reward", json={"id": "order-0", "value": 1.0}).status_code == 200
    with bb.DecisionLog(url) as log:
        assert log.frame()["decision_id"].tolist() == ["order-0"]
        assert log.verify()["kind"].tolist() == ["reward without decision"]


def _await_ready(client):
    end = time.monotonic() + 10
    while client.get("/readyz").status_code != 200 and time.monotonic() < end:
        time.sleep(0.1)


@pytest.mark.slow
def test_a_service_does_not_wait_for_a_server_that_hangs(tmp_path):
    url = fresh("postgresql", tmp_path)
    log = bb.DecisionLog(url + "&timeout=0.3")
    service = bb.Service(bb.LinTS(["mail", "call"], 2, seed=0), log)
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
    assert len(log.frame()) == 2
    assert log.verify().empty


@pytest.mark.parametrize("address", ["?timeout=0", "?timeout=soon", "?timeout=-1", "?timeout=inf"])
def test_a_timeout_is_seconds(tmp_path, address):
    with pytest.raises(ValueError, match=r"timeout must be seconds > 0, as \?timeout=10; got '"):
        bb.DecisionLog(f"sqlite:///{tmp_path}/log.db{address}")


def test_a_locked_log_is_refused_after_its_timeout(tmp_path):
    url = fresh("sqlite", tmp_path)
    service = bb.Service(bb.LinTS(["mail", "call"], 2, seed=0), bb.DecisionLog(url + "?timeout=.1"))
    with locked(url):
        _, took = timed(lambda: pytest.raises(OSError, service.decide, [0.0, 0.0]))
    assert 0.1 <= took < 0.1 + SLACK
    service.decide([0.0, 0.0])
    assert len(service.log.frame()) == 1
