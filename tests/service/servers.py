"""Servers for tests: `bayesbandit serve` in a process, and an application in this one.

Who imports this is skipped where no server is installed.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

for needed in ("sqlalchemy", "fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed)
httpx = pytest.importorskip("httpx")

from starlette.testclient import TestClient

from bayesbandit.service.server import application
from tests.ports import free_port

KEY = "a key that only the tests know"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


def command(*words, **settings):
    """A process of the command line."""
    known = {**os.environ, "BAYESBANDIT_API_KEY": KEY, **settings}
    return subprocess.Popen(
        [sys.executable, "-m", "bayesbandit", *map(str, words)],
        env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@contextmanager
def serving(url, *words, **settings):
    """A server, and a client that has its key; at the end it is asked to end."""
    port = free_port()
    process = command("serve", "--log", url, "--port", port, *words, **settings)
    address = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=address, headers=HEADERS, timeout=20.0) as client:
            client.process = process
            _await(client)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.said = process.communicate(timeout=40)[0]


def client_of(service, deadline=60):
    """A client of an application in this process. The first answer loads kernels."""
    app = application(service, KEY, deadline=deadline)
    return TestClient(app, headers=HEADERS, raise_server_exceptions=False)


def _await(client):
    end = time.monotonic() + 600  # seconds: no kernel may be there, and others work
    while time.monotonic() < end:
        assert client.process.poll() is None, client.process.communicate()[0]
        try:
            return client.get("/healthz")
        except httpx.TransportError:
            time.sleep(0.05)
    raise TimeoutError("no server")
