"""A client answers in time, whatever the server does, and loses no reward."""

import json
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import bayesbandit as bb

for needed in ("sqlalchemy", "fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed)

from tests.service.servers import KEY, serving
from tests.service.test_server import begun


@contextmanager
def answering(*answers):
    """A server that gives these answers, (status, body), one after the other."""
    asked, told = [], iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = next(told)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


BODY = json.dumps(
    {
        "id": "a", "variant": "call", "propensity": 0.5, "probabilities": {"call": 0.5},
        "reason": "split", "version": "3",
    }
).encode()  # fmt: skip


def test_it_asks_again_with_the_same_id():
    with answering((503, b'{"detail": "full"}'), (200, BODY)) as (url, asked):
        told = bb.Client(url, KEY, timeout=5).decide([1.0])
    assert (told.arm, told.propensity, told.version, told.reason) == ("call", 0.5, "3", "split")
    assert asked[0] == asked[1]


def test_it_shows_its_default_in_time():
    with socket.create_server(("127.0.0.1", 0)) as hung:  # takes connections, and says nothing
        url = f"http://127.0.0.1:{hung.getsockname()[1]}"
        begin = time.perf_counter()
        told = bb.Client(url, KEY, timeout=0.2, default="mail").decide([1.0])
        assert time.perf_counter() - begin < 0.7
        assert (told.id, told.arm, told.reason) == (None, "mail", "default")
        assert bb.Client(url, KEY, default="mail").reward(told.id, 1.0) == "ignored"
        with pytest.raises(OSError, match="does not answer"):
            bb.Client(url, KEY, timeout=0.1).decide([1.0])


def test_what_is_refused_is_no_default():
    with (
        answering((422, b'{"detail": "contexts must have 2 features"}')) as (url, _),
        pytest.raises(ValueError, match="answers 422: contexts must have 2 features"),
    ):
        bb.Client(url, KEY, timeout=5, default="mail").decide([1.0])


def test_rewards_that_no_server_took_are_in_the_spool(tmp_path):
    spool = tmp_path / "spool.jsonl"
    with answering((503, b""), (503, b""), (200, b'{"status": "timely"}')) as (url, _):
        client = bb.Client(url, KEY, timeout=0.03, spool=spool)
        assert client.reward("a", 1.0) == "spooled"
        client.timeout = 5
        assert client.flush() == 0
        assert client.flush() == 0
    assert spool.read_text() == ""
    with pytest.raises(OSError, match=r"does not answer|503"):
        bb.Client(url, KEY, timeout=0.03).reward("a", 1.0)


def test_a_spooled_reward_keeps_the_time_at_which_it_came(tmp_path):
    """Sent later as of then, it would be late."""
    spool = tmp_path / "spool.jsonl"
    client = bb.Client("http://127.0.0.1:9", KEY, timeout=0.01, spool=spool)
    client.reward("a", 1.0)
    client.reward("b", 1.0, at="2026-11-22T18:00:00Z")
    now, told = (json.loads(line)["time"] for line in spool.read_text().splitlines())
    assert abs(datetime.fromisoformat(now) - datetime.now(UTC)) < timedelta(minutes=1)
    assert told == "2026-11-22T18:00:00Z"


def test_what_a_flush_cannot_send_stays_beside_what_comes_meanwhile(tmp_path):
    """Also if a process was killed while it sent."""
    spool = tmp_path / "spool.jsonl"
    down = bb.Client("http://127.0.0.1:9", KEY, timeout=0.01, spool=spool)
    for id in "abc":
        down.reward(id, 1.0)
    assert down.flush() == 3
    spool.rename(spool.with_name("spool.jsonl.sending"))  # killed here
    down.reward("d", 1.0)
    taken = b'{"status": "timely"}'
    answers = (200, taken), (422, b'{"detail": "no"}'), *[(200, taken)] * 3
    with answering(*answers) as (url, asked):
        client = bb.Client(url, KEY, timeout=5, spool=spool)
        assert client.flush() == 1
        assert [json.loads(line)["id"] for line in spool.read_text().splitlines()] == ["d", "b"]
        assert client.flush() == 0
    assert [json.loads(one)["id"] for one in asked] == ["a", "b", "c", "d", "b"]


@pytest.mark.parametrize("url", ["offers", "ftp://a", 7, "https://"])
def test_an_address_that_is_none(url):
    with pytest.raises(ValueError, match="url must be as"):
        bb.Client(url, KEY)


@pytest.mark.slow
def test_a_client_of_a_server(tmp_path):
    url, words = begun(tmp_path)
    with serving(url, *words) as known:
        client = bb.Client(str(known.base_url), KEY, timeout=20)
        told = client.decide([0.5, -1.0], id="order-1")
        assert client.decide([0.5, -1.0], id="order-1") == told
        client.activate(told.id)
        assert [client.reward(told.id, 1.0) for _ in range(2)] == ["timely", "again"]
        with pytest.raises(ValueError, match="409"):
            client.decide([0.0, 0.0], id="order-1")
        with pytest.raises(ValueError, match="401"):
            bb.Client(str(known.base_url), "wrong", timeout=20).decide([0.0, 0.0])
    with bb.DecisionLog(url) as log:
        assert log.verify().empty
