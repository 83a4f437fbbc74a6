"""A client of a server: it answers in time, if need be with a default decision of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from bayesbandit import checks
from bayesbandit.checks import Name
from bayesbandit.runtime.identifiers import id_text, new_ids

RETRY_SECONDS = 0.02  # seconds before the same request is sent again
SMALLEST_REFUSAL = 400
LARGEST_REFUSAL = 499  # from 400 on the request is wrong, from 500 on the server is


@dataclass(frozen=True)
class Answer:
    """A decision of a server, or the client's default.

    id: of the decision; None for the default, which is not logged, and whose reward does not count.
    reason: "split" (the bandit decided) or "default".
    """

    id: str | None
    arm: Name
    propensity: float
    probabilities: Mapping[str, float] = field(default_factory=dict)
    reason: str = "split"
    version: str = ""


class Client:
    """A client of `bayesbandit serve`, for any number of threads.

    url: "https://host" or "http://host:port". key: the server's. timeout: seconds of a call of
    `decide`, in which the same request, with the same id, is sent again if the server does not
    answer or is overloaded. default: the arm that is returned after that, and not logged; None:
    raise OSError.
    """

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float = 0.2,
        default: Name | None = None,
    ) -> None:
        place = urlsplit(url) if isinstance(url, str) else None
        if place is None or place.scheme not in ("http", "https") or place.hostname is None:
            raise ValueError(f'url must be as "https://host"; got {checks.shown(url)}')
        self.secure, self.host, self.port = place.scheme == "https", place.hostname, place.port
        self.path = place.path.rstrip("/")
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.timeout = checks.number(timeout, "timeout", above=0)
        self.default = default
        self.own = threading.local()

    def __repr__(self) -> str:
        return f"Client({self.host!r}, timeout={self.timeout:g}, default={self.default!r})"

    def decide(
        self, context: Any = None, arms: Sequence[Name] | None = None, id: str | None = None
    ) -> Answer:
        """Return a server's decision about one context, or the default if none comes in time.

        Raise ValueError if the server refuses the request.
        """
        one = id_text(new_ids(1)[0]) if id is None else id
        body = {"context": context, "arms": None if arms is None else [*arms], "id": one}
        try:
            answer = self._insist("/decide", body)
        except OSError:
            if self.default is None:
                raise
            return Answer(None, self.default, 1.0, reason="default")
        return Answer(
            answer["id"], answer["variant"], answer["propensity"], answer["probabilities"],
            answer["reason"], answer["version"],
        )  # fmt: skip

    def reward(self, id: str | None, value: float, at: str | None = None) -> str:
        """Send a reward, and return its status: see `Service.reward`; "ignored": of a default.

        at: when it was observed, as "2026-11-22T18:00:00Z"; None: now. Raise OSError if no server
        takes it. The same reward sent again later, with its time, counts once.
        """
        if id is None:
            return "ignored"
        return str(self._insist("/reward", {"id": id, "value": value, "time": at})["status"])

    def activate(self, id: str | None) -> None:
        """Say that a decision was shown; nothing of a default decision."""
        if id is not None:
            self._insist("/activate", {"id": id})

    def _insist(self, path: str, asked: Mapping[str, Any]) -> Any:
        """Return the answer to a request; send it again until `timeout` is over.

        Raise OSError if none came, and ValueError if the server refuses it.
        """
        body = json.dumps({name: one for name, one in asked.items() if one is not None})
        end = time.monotonic() + self.timeout
        while True:
            try:
                status, text = self._ask(path, body, max(end - time.monotonic(), 1e-3))
            except (OSError, HTTPException) as error:
                self.own.connection = None
                failure = f"{self.host} does not answer: {error or type(error).__name__}"
            else:
                if status < SMALLEST_REFUSAL:
                    return json.loads(text) if text else None
                detail = json.loads(text).get("detail", "") if text.startswith(b"{") else ""
                if status <= LARGEST_REFUSAL:
                    raise ValueError(f"{self.host} answers {status}: {detail}")
                failure = f"{self.host} answers {status}: {detail}"
            if time.monotonic() + RETRY_SECONDS >= end:
                raise ConnectionError(failure)
            time.sleep(RETRY_SECONDS)

    def _ask(self, path: str, body: str, seconds: float) -> tuple[int, bytes]:
        """Return the status and the text of one answer, by this thread's connection."""
        connection: HTTPConnection | None = getattr(self.own, "connection", None)
        if connection is None:
            kind = HTTPSConnection if self.secure else HTTPConnection
            connection = self.own.connection = kind(self.host, self.port, timeout=seconds)
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        connection.request("POST", self.path + path, body, self.headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
