"""Checks before a request reaches the server: the key, and the size and duration of the body."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1_000_000  # bytes
SLOWEST_BODY = 10.0  # seconds
OPEN = ("/healthz", "/readyz", "/openapi.json")  # need no key
SENTENCES = {
    401: "send the key of this server as the header Authorization: Bearer KEY",
    408: f"the body of a request must come within {SLOWEST_BODY:g} seconds",
    413: f"the body of a request has at most {LARGEST_BODY:,} bytes",
}
Observe = Callable[[str, int, float], None]  # a path, a status, seconds


class Gate:
    """An application that needs a key. Without the key, no byte of a body is read."""

    def __init__(self, app: ASGIApp, key: str, observe: Observe) -> None:
        self.app, self.key, self.observe = app, key.encode(), observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = time.perf_counter()
        status = 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._pass(scope, receive, note)
        except ClientDisconnect:
            return
        finally:
            self.observe(scope["path"], status, time.perf_counter() - begin)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["path"] not in OPEN and not self._knows(headers.get("authorization", "")):
            await _refuse(401, send)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > LARGEST_BODY:
            await _refuse(413, send)
            return
        try:
            body = await asyncio.wait_for(_read(receive), SLOWEST_BODY)
        except TimeoutError:
            await _refuse(408, send)
            return
        if body is None:
            await _refuse(413, send)
            return
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return parts.pop() if parts else await receive()

        await self.app(scope, replay, send)

    def _knows(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        right = secrets.compare_digest(given.encode("latin-1", "replace"), self.key)
        return right and scheme.lower() == "bearer"


async def _read(receive: Receive) -> bytes | None:
    """Return a body; None if it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _refuse(status: int, send: Send) -> None:
    """Answer with a status and its sentence, and close the connection."""
    body = json.dumps({"detail": SENTENCES[status]}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
