"""Checks before a request reaches the server: the key, and the size of the body."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1_000_000  # bytes
PATHS_WITHOUT_KEY = ("/healthz", "/readyz", "/openapi.json")  # need no key
SENTENCES = {
    401: "send the key of this server as the header Authorization: Bearer KEY",
    413: f"a body has at most {LARGEST_BODY:,} bytes, and the header Content-Length",
}
Observe = Callable[[str, int, float], None]  # a path, a status, seconds


class Gate:
    """An application that needs a key. Without the key, no byte of a body is read."""

    def __init__(self, app: ASGIApp, key: str, observe: Observe) -> None:
        self.app = app
        self.key = key.encode()
        self.observe = observe

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

        refused = self._refusal(scope["path"], Headers(scope=scope))
        try:
            if refused:
                answer = JSONResponse(
                    {"detail": SENTENCES[refused]}, refused, {"Connection": "close"}
                )
                await answer(scope, receive, note)
            else:
                await self.app(scope, receive, note)
        finally:
            self.observe(scope["path"], status, time.perf_counter() - begin)

    def _refusal(self, path: str, headers: Headers) -> int:
        """Return the status by which a request is refused; 0 if it is not."""
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        same = secrets.compare_digest(sent.strip().encode("latin-1", "replace"), self.key)
        if path not in PATHS_WITHOUT_KEY and not (same and scheme.lower() == "bearer"):
            return 401
        length = headers.get("content-length", "0")[:20]
        too_large = not length.isdecimal() or int(length) > LARGEST_BODY
        return 413 if too_large or "transfer-encoding" in headers else 0
