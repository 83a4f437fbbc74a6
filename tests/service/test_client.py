"""A client answers in time, whatever the server does, and loses no reward."""

import json
import pickle
import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb
from tests.service.servers import KEY, serving
from tests.service.test_server import begun


@contextmanager
def posting(answer):
    """The address of a server that answers each request so, given its handler."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            answer(self)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def send_head(handler, status, body=b""):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()


@contextmanager
def answering(*answers):
    """A server that gives these answers, (status, body), one after the other."""
    asked, told = [], iter(answers)

    def answer(handler):
        asked.append(handler.rfile.read(int(handler.headers["Content-Length"])))
        status, body = next(told)
        send_head(handler, status, body)
        handler.wfile.write(body)

    with posting(answer) as url:
        yield url, asked


BODY = json.dumps(
    {
        "id": "a", "variant": "call", "propensity": 0.5, "probabilities": {"call": 0.5},
        "reason": "split", "version": "3",
    }
).encode()  # fmt: skip


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


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        *((url, KEY, "url must be as") for url in ("offers", "ftp://a", 7, "https://")),
        *(("https://a", key, "key must be printable ASCII") for key in ("ключ", "a\nb", None)),
    ],
)
def test_an_address_or_a_key_that_is_none(url, key, said):
    with pytest.raises(ValueError, match=said):
        bb.Client(url, key)


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


NO_ANSWERS = [
    (200, b"<html>"), (200, b'{"id": "a"}'), (204, b""), (301, b""), (404, b"<html>"), (429, b""),
    (503, b'{"detail'),
]  # fmt: skip


@pytest.mark.parametrize("answer", NO_ANSWERS, ids=str)
def test_what_a_proxy_says_is_no_answer(answer):
    """The client asks again, with the same id."""
    with answering(answer, (200, BODY)) as (url, asked):
        told = bb.Client(url, KEY, timeout=5).decide([1.0])
    assert (told.arm, told.propensity, told.version, told.reason) == ("call", 0.5, "3", "split")
    assert asked[0] == asked[1]
    with answering(*[answer] * 50) as (url, _):
        assert bb.Client(url, KEY, timeout=0.1, default="mail").decide([1.0]).arm == "mail"


def test_a_server_that_answers_and_then_hangs_is_quoted():
    asked = []

    def answer(handler):
        time.sleep(0.5 if asked else 0.0)
        asked.append(handler)
        send_head(handler, 502)

    said = "timed out; before, it answered 502: no sentence"
    with posting(answer) as url, pytest.raises(OSError, match=said):
        bb.Client(url, KEY, timeout=0.2).decide([1.0])


def test_an_answer_that_comes_a_byte_at_a_time_is_waited_for_no_longer():
    def answer(handler):
        send_head(handler, 200, BODY)
        with suppress(OSError):
            for byte in BODY:
                handler.wfile.write(bytes([byte]))
                time.sleep(0.05)

    with posting(answer) as url:
        begin = time.perf_counter()
        assert bb.Client(url, KEY, default="mail").decide([1.0]).reason == "default"
        assert time.perf_counter() - begin < 1.0


def test_a_default_is_never_an_arm_that_may_not_be_chosen():
    client = bb.Client("http://127.0.0.1:1", KEY, timeout=0.05, default="mail")
    assert client.decide([1.0], arms="mail").arm == client.decide([1.0]).arm == "mail"
    with pytest.raises(OSError, match="does not answer"):
        client.decide([1.0], arms=["call"])


def test_numpy_pandas_and_times_are_sent():
    days = {"on": date(2026, 1, 2), "at": np.datetime64("2026-01-02", "ns"), "no": pd.NA}
    row = pd.Series({"age": np.int64(3), **days}, dtype=object)
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    came = b'{"status": "timely", "id": "a"}'
    with answering((200, BODY), (200, BODY), (200, came)) as (url, asked):
        client = pickle.loads(pickle.dumps(bb.Client(url, KEY, timeout=5)))
        client.decide(row)
        client.decide(np.float32([0.5, 1.0]))
        assert client.reward("a", np.bool_(True), at=moment) == "timely"
    first, second, third = map(json.loads, asked)
    told = {"on": "2026-01-02", "at": "2026-01-02T00:00:00.000000", "no": None}
    assert first["context"] == {"age": 3, **told}
    assert second["context"] == [0.5, 1.0]
    assert third == {"id": "a", "value": 1.0, "time": "2026-01-02 00:00:00+00:00"}
