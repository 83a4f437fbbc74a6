"""A client of a server: it answers in time, if need be with a default decision of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from bayesbandit import checks
from bayesbandit.checks import Name, json_text
from bayesbandit.runtime.identifiers import id_text, new_ids

RETRY_SECONDS = 0.02  # seconds before the same request is sent again
STATUS_WHEN_DONE = {"/decide": 200, "/reward": 200, "/activate": 204}
NAMES_WHEN_DONE = {
    "/decide": {"id", "variant", "propensity", "probabilities", "reason", "version"},
    "/reward": {"status"},
    "/activate": set[str](),
}
# the request is wrong; of 408, 425 and 429 it came too late, too soon or too often
REFUSAL_STATUSES = {*range(400, 500)} - {408, 425, 429}


@dataclass(frozen=True)
class Answer:
    """A decision of a server, or the client's default.

    id: of the decision; None for the default, which is not logged, and whose reward does not count.
    probabilities: by the text of each arm. reason: "split" (the bandit decided) or "default".
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
    answer, or a proxy before it does. default: the arm that is returned after that, and not logged,
    if it may be chosen; None: raise OSError.
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
        if not (isinstance(key, str) and key.isascii() and key.isprintable()):
            raise ValueError("key must be printable ASCII text; got one that is not")
        self.arguments = url, key, timeout, default
        self.secure = place.scheme == "https"
        self.host = place.hostname
        self.port = place.port
        self.path = place.path.rstrip("/")
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.timeout = checks.number(timeout, "timeout", above=0)
        self.default = default
        self.own = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return Client, self.arguments

    def __repr__(self) -> str:
        return f"Client({self.host!r}, timeout={self.timeout:g}, default={self.default!r})"

    def decide(
        self, context: Any = None, arms: Sequence[Name] | Name | None = None, id: str | None = None
    ) -> Answer:
        """Return a server's decision about one context, or the default if none comes in time.

        context: as for `Bandit.choose`, in JSON's types. arms: those that may be chosen, or a
        single name; None: all. id: one of yours, so that a repeated request is one decision; None:
        a new one. Raise ValueError if the server refuses the request, OSError if no answer comes
        and there is no default among `arms`.
        """
        one = id_text(new_ids(1)[0]) if id is None else id
        among = [arms] if isinstance(arms, str | int) else arms
        body = {"context": context, "arms": None if among is None else [*among], "id": one}
        try:
            answer = self._insist("/decide", body)
        except OSError:
            if self.default is None or (among is not None and self.default not in among):
                raise
            return Answer(None, self.default, 1.0, reason="default")
        return Answer(
            answer["id"], answer["variant"], answer["propensity"], answer["probabilities"],
            answer["reason"], answer["version"],
        )  # fmt: skip

    def reward(self, id: str | None, value: float, at: datetime | str | None = None) -> str:
        """Send a reward, and return its status: see `Service.reward`; "ignored": of a default.

        at: when it was observed, with its zone, as "2026-11-22T18:00:00Z"; None: now. Raise OSError
        if no server takes it. The same reward sent again later, with its time, counts once.
        """
        if id is None:
            return "ignored"
        [number] = checks.column([value], 1, "rewards").tolist()
        when = None if at is None else str(at)  # of NaT a text, which the server refuses
        return str(self._insist("/reward", {"id": id, "value": number, "time": when})["status"])

    def activate(self, id: str | None) -> None:
        """Say that a decision was shown; nothing of a default decision."""
        if id is not None:
            self._insist("/activate", {"id": id})

    def _insist(self, path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; send it again until `timeout` is over.

        Raise OSError if none came, and ValueError if the server refuses it.
        """
        body = json_text(checks.without_none(asked))
        end = time.monotonic() + self.timeout
        before = ""
        while True:
            try:
                status, answer = self._ask(path, body, end)
            except (OSError, HTTPException) as error:
                self.own.connection = None
                failure = f"{self.host} does not answer: {error or type(error).__name__}{before}"
            else:
                done = status == STATUS_WHEN_DONE[path]
                if answer is not None and done and NAMES_WHEN_DONE[path] <= answer.keys():
                    return answer
                detail = (answer or {}).get("detail")
                failure = f"{self.host} answers {status}: {detail or 'no sentence'}"
                before = f"; before, it answered {status}: {detail or 'no sentence'}"
                if detail and status in REFUSAL_STATUSES:
                    raise ValueError(failure)
            if time.monotonic() + RETRY_SECONDS >= end:
                raise ConnectionError(failure)
            time.sleep(RETRY_SECONDS)

    def _ask(self, path: str, body: str, end: float) -> tuple[int, dict[str, Any] | None]:
        """Return the status and the object of an answer before `end`, by this thread's connection.

        It is {} where the answer is empty, and None where a proxy's is no object.
        """
        connection: HTTPConnection | None = getattr(self.own, "connection", None)
        if connection is None:
            kind = HTTPSConnection if self.secure else HTTPConnection
            connection = self.own.connection = kind(self.host, self.port)
        connection.timeout = seconds_until(end)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        connection.request("POST", self.path + path, body, self.headers)
        socket = connection.sock
        answer = connection.getresponse()
        text = b""
        while not answer.isclosed():  # by what has come: the whole may come a byte at a time
            socket.settimeout(seconds_until(end))
            text += answer.read1()
        try:
            said = json.loads(text) if text else {}
        except ValueError:
            said = None
        return answer.status, said if isinstance(said, dict) else None


def seconds_until(end: float) -> float:
    """Return the seconds until a time of the monotonic clock; raise TimeoutError if it is over."""
    left = end - time.monotonic()
    if left <= 0.0:
        raise TimeoutError("timed out")
    return left
