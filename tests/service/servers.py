"""Real servers for tests: `bayesbandit serve` in a process, and a client."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

from tests.ports import free_port

KEY = "a key that only the tests know"


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
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=20.0) as client:
            client.process = process
            _await(client)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.said = process.communicate(timeout=40)[0]


def _await(client):
    end = time.monotonic() + 600  # seconds: no kernel may be there, and others work
    while time.monotonic() < end:
        assert client.process.poll() is None, client.process.communicate()[0]
        try:
            return client.get("/healthz")
        except httpx.TransportError:
            time.sleep(0.05)
    raise TimeoutError("no server")
