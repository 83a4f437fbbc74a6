"""A service over HTTP: decide, reward, activate, and what to watch."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial, wraps
from threading import Lock
from typing import Any, Literal, NoReturn

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic_core import to_json

from bayesbandit import checks
from bayesbandit.checks import Name
from bayesbandit.service.apprentice import Apprentice
from bayesbandit.service.gate import Gate
from bayesbandit.service.messages import (
    Advice,
    Asked,
    AskedOnce,
    Came,
    Decided,
    Health,
    Problem,
    Rewarded,
    RewardedOnce,
    ShownOnce,
)
from bayesbandit.service.metrics import Metrics
from bayesbandit.service.service import Service
from bayesbandit.store.deadlines import before
from bayesbandit.store.records import BANDIT, SYSTEM, UNKNOWN, Conflict, Stored, Unavailable

logger = logging.getLogger("bayesbandit")
DEADLINE = 0.2  # seconds until a request is answered
FURTHER = 0.001  # seconds more for each further one of a list
THREADS = 24  # requests at work; each has a connection of its own to the log
PROBED = 1.0  # seconds for which /readyz gives the same answer
LONGEST = 500  # characters of a sentence
UNAVAILABLE = (
    "the log cannot be read or written now, so nothing was decided or stored; send the same "
    "request again with an id of yours, or show an arm of your choice and send no reward of it"
)
SAID = {
    400: "The body is not JSON.",
    401: "The key is missing or wrong.",
    404: "The log has no such decision. A reward of it is stored, and not learned.",
    408: "The body came too slowly.",
    409: "The log has another decision of this id, or another reward of this decision.",
    413: "The body is too large.",
    422: "A value is wrong: the sentence names it.",
    503: "The log has not stored it within the deadline. Try again after Retry-After, or go on "
    "without: nothing was decided.",
}
Reason = Literal["split", "default", "static"]
REASONS: dict[str, Reason] = {BANDIT: "split", SYSTEM: "static"}


def application(
    service: Service, key: str, sync_every: float = 1.0, deadline: float = DEADLINE
) -> FastAPI:
    """Return an application that decides and takes rewards through a service.

    key: clients send it as `Authorization: Bearer KEY`. sync_every: seconds between checks for a
    newer version of the bandit. deadline: seconds until a request is answered; one that the log has
    not stored by then is answered by 503. If the service is an `Apprentice`, it follows another
    system's decisions.
    """
    server = Server(service, checks.number(deadline, "deadline", above=0))
    twice = len(service.arms) - len({str(arm) for arm in service.arms})
    if twice:
        raise ValueError(f"arms must differ as texts, since JSON names them; got {service.arms!r}")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.rehearse)  # before the port is bound
        following = asyncio.create_task(server.keep_up(sync_every))
        yield
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await asyncio.to_thread(server.close)

    app = FastAPI(
        title="bayesbandit",
        description=__doc__,
        lifespan=life,
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        dependencies=[Security(HTTPBearer(auto_error=False, description="The server's key."))],
        responses={code: {"model": Problem, "description": said} for code, said in SAID.items()},
    )
    app.router.route_class = Strict
    app.add_middleware(Gate, key=key, observe=server.metrics.observe)
    soon = server.soon
    post = partial(app.add_api_route, methods=["POST"])
    post("/decide", soon(server.decide))
    post("/reward", soon(server.reward))
    post("/activate", soon(server.activate), status_code=204, response_model=None)
    for method, shown in (("GET", True), ("HEAD", False)):
        add = partial(app.add_api_route, methods=[method], include_in_schema=shown)
        add("/healthz", server.health)
        add("/readyz", soon(server.ready))
        add("/metrics", server.measure, response_class=Response)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Conflict, _wrong)
    app.add_exception_handler(ValueError, _wrong)
    app.add_exception_handler(TypeError, _wrong)
    app.add_exception_handler(OSError, _unavailable)
    return app


class Server:
    """The handlers of requests. `soon` calls those that write in threads."""

    def __init__(self, service: Service, deadline: float = DEADLINE) -> None:
        self.service, self.metrics, self.deadline = service, Metrics(), deadline
        self.pool = ThreadPoolExecutor(THREADS, "request")
        self.probing, self.probed = Lock(), -PROBED
        self.failure = ""  # of the last probe
        self.deep = 1 + service.bandit.of_arms  # how deeply lists are nested in a context
        self.follows = service if isinstance(service, Apprentice) else None

    def soon(self, handle: Callable[..., Any]) -> Callable[..., Coroutine[None, None, Any]]:
        """Return a handler that answers within the deadline; it raises Unavailable if it cannot.

        A thread that is late commits nothing after the deadline. A request that no thread has begun
        is dropped. A list has more time, by a millisecond for each further context, reward or id.
        """

        @wraps(handle)
        async def answer(*given: Any, **named: Any) -> Any:
            sizes = (len(one) for one in (*given, *named.values()) if isinstance(one, list))
            span = self.deadline + FURTHER * (max(sizes, default=1) - 1)
            end = time.monotonic() + span

            def work() -> Any:
                with before(end):
                    return handle(*given, **named)

            begun = asyncio.get_running_loop().run_in_executor(self.pool, work)
            try:
                found = await asyncio.wait_for(begun, span)
            except TimeoutError as error:
                raise Unavailable(f"no answer within {span:g} seconds") from error
            if found is None:
                return Response(status_code=204)
            return Response(to_json(found, exclude_none=True), media_type="application/json")

        return answer

    def decide(self, asked: AskedOnce) -> Decided | list[Decided]:
        """Decide about a context, or a list of them. Decisions are stored before you get them."""
        several = asked if isinstance(asked, list) else [asked]
        found = self._followed(several, self.follows) if self.follows else self._decided(several)
        for one in found:
            self.metrics.decisions.labels(str(one.variant), one.reason).inc()
            if one.advice is not None:
                self.metrics.advice.labels(str(one.advice.agrees).lower()).inc()
        return found if isinstance(asked, list) else found[0]

    def reward(self, rewarded: RewardedOnce, response: Response) -> Came | list[Came]:
        """Store a reward, or a list of them. Sending the same reward again changes nothing."""
        told = rewarded if isinstance(rewarded, list) else [rewarded]
        if isinstance(rewarded, Rewarded):
            one = rewarded
            found = [self.service.reward(one.id, one.value, at=one.time, key=one.key)]
        else:
            keys = [one.key for one in told]
            at = [one.time for one in told]
            ids, values = [one.id for one in told], [one.value for one in told]
            found = self.service.reward(ids, values, at=at, key=keys)
        for status in found:
            self.metrics.rewards.labels(status).inc()
        if isinstance(rewarded, Rewarded) and found == [UNKNOWN]:
            raise HTTPException(
                404, f"the log has no decision {rewarded.id!r}: the reward is kept, and not learned"
            )
        came = [Came(id=one.id, status=how) for one, how in zip(told, found, strict=True)]
        return came if isinstance(rewarded, list) else came[0]

    def activate(self, shown: ShownOnce) -> None:
        """Store that a decision, or a list of them, was shown."""
        ids = [one.id for one in (shown if isinstance(shown, list) else [shown])]
        known = {row.id for row in self.service.log.ledger.stored(ids)}
        if lost := [one for one in ids if one not in known]:
            raise HTTPException(404, f"the log has no decision {lost[0]!r}")
        self.service.activate(ids)

    async def health(self) -> Health:
        """Say that the process is alive, whatever the log does. It needs no key."""
        return Health(status="ok", version=str(self.service.version))

    def ready(self) -> Health:
        """Say whether the log can store a decision now: it writes a row, and deletes it.

        It needs no key, so one write a second answers all.
        """
        with self.probing:
            if time.monotonic() - self.probed >= PROBED:
                self.failure = ""
                try:
                    self.service.log.ledger.probe()
                except OSError as error:
                    self.failure = str(error)
                self.probed = time.monotonic()
            if self.failure:
                raise Unavailable(self.failure)
        return Health(status="ok", version=str(self.service.version))

    def measure(self) -> Response:
        """Return metrics in Prometheus's format. What the log does not say in time is NaN."""
        with before(time.monotonic() + self.deadline):
            text = self.metrics.text(self.service)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    # ---- the life of a server --------------------------------------------------------------------

    async def keep_up(self, every: float) -> NoReturn:
        """Get newer versions of the bandit, forever."""
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self.service.sync)
            except (OSError, ValueError) as error:  # the version here goes on
                logger.warning("%s", error)
            except Exception:  # also a defect: a task that has ended would never look again
                logger.exception("looking for a newer version has failed; the version here goes on")

    def close(self) -> None:
        """End the threads, and close the log."""
        self.pool.shutdown(cancel_futures=True)
        self.service.log.close()

    # ---- decisions -------------------------------------------------------------------------------

    def _decided(self, asked: Sequence[Asked]) -> list[Decided]:
        first = asked[0]
        n = len(asked)
        if any(_depth(one.context) > self.deep for one in asked):
            raise ValueError(
                "context must be one: columns by name, or numbers; for several send a list of "
                '{"context": …}'
            )
        if any(one.variant is not None or one.probabilities is not None for one in asked):
            raise ValueError("variant and probabilities belong to a server in apprentice mode")
        if any(one.arms != first.arms for one in asked):
            raise ValueError("all contexts of a list must have the same arms")
        ids = [one.id for one in asked]
        if any(one is None for one in ids) and any(one is not None for one in ids):
            raise ValueError("of a list, either every context has an id or none has")
        given = None if first.id is None else ids
        if n == 1:
            made, _ = self.service.decide_stored(first.context, first.arms, first.id)
        else:
            rows = [one.context for one in asked]
            none = all(one is None for one in rows)  # as for a bandit without features
            x = np.empty((n, 0)) if none else rows
            made, _ = self.service.decide_stored(x, first.arms, given)
        return [_message(one) for one in made]

    def _followed(self, asked: Sequence[Asked], system: Apprentice) -> list[Decided]:
        """Return the answers about another system's decisions; store none if one is refused."""
        named = {str(arm): arm for arm in system.arms}
        told = []
        for one in asked:
            if one.variant is None or one.probabilities is None:
                raise ValueError(
                    "this server is an apprentice: give the system's variant and probabilities"
                )
            given = one.probabilities.items()  # also of arms that have gone
            p: dict[Name, float] = {named.get(name, name): value for name, value in given}
            told.append((one.context, one.variant, p, one.arms))
        if len(told) > 1:
            first = {one.id: one for one in reversed(asked)}
            for each, one in zip(told, asked, strict=True):
                if one.id is not None and first[one.id] != one:
                    raise Conflict(f"this list has two decisions {one.id!r}, which differ")
                if one.id is not None and system.log.ledger.stored([one.id]):
                    system.follow(*each, one.id)  # which stores nothing, or refuses
                else:
                    system.check(*each)
        found = [system.follow(*each, one.id) for each, one in zip(told, asked, strict=True)]
        return [
            _message(
                one.stored,
                Advice(variant=one.arm, probability=one.probability, agrees=one.agrees),
            )
            for one in found
        ]


def _message(one: Stored, advice: Advice | None = None) -> Decided:
    """Return the answer with a decision."""
    return Decided(
        id=one.id,
        time=datetime.fromtimestamp(one.decided_at / 1e6, UTC),
        variant=one.arm,
        reason=REASONS[one.mode],
        version=str(one.version),
        propensity=one.propensity,
        probabilities=dict(zip(map(str, one.arms), one.probabilities.tolist(), strict=True)),
        advice=advice,
    )


def _depth(context: object) -> int:
    """Return how deeply lists are nested; an object with columns by name counts as a list."""
    if isinstance(context, list):
        return 1 + max(map(_depth, context), default=0)
    return int(isinstance(context, dict))


class Strict(APIRoute):
    """A route that takes standard JSON only, without NaN and Infinity."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """Return the function that answers a request."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return answer


class StrictRequest(Request):
    """A request with standard JSON: without NaN and Infinity, and each name once in an object."""

    async def json(self) -> object:
        """Return the body as plain values; raise JSONDecodeError if it is not JSON."""
        return json.loads(
            await self.body(), parse_constant=_no_constant, object_pairs_hook=_named_once
        )


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:  # readers of JSON differ in which one they take
            raise json.JSONDecodeError(f"an object has {name!r} twice", name, 0)
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _invalid(request: Request, error: Exception) -> Response:
    """Answer a request that the schema refuses."""
    assert isinstance(error, RequestValidationError)
    first, *more = error.errors()
    if first["type"] == "json_invalid":
        said = first.get("ctx", {}).get("error", "it cannot be read")
        return _problem(400, f"the body is not JSON: {said}")
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "one", "several"))
    said = f"{place or 'the body'}: {first['msg']}"
    return _problem(422, said + (f"; and {len(more)} more" if more else ""))


def _wrong(request: Request, error: Exception) -> Response:
    return _problem(409 if isinstance(error, Conflict) else 422, str(error))


def _unavailable(request: Request, error: Exception) -> Response:
    logger.error("%s", error)
    return _problem(503, UNAVAILABLE)


def _problem(status: int, said: str) -> Response:
    text = said if len(said) <= LONGEST else said[:LONGEST] + "…"
    safe = text.encode("utf-8", "backslashreplace").decode()
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"detail": safe}, status, headers)
