"""A service over HTTP: decide, reward, activate, and what to watch."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial, wraps
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic_core import to_json

from bayesbandit import checks
from bayesbandit.service.gate import Gate
from bayesbandit.service.messages import Asked, Came, Decided, Health, Problem, Rewarded, Shown
from bayesbandit.service.service import Service
from bayesbandit.store.database import request_deadline
from bayesbandit.store.reading import waiting
from bayesbandit.store.records import UNKNOWN, Conflict, NoDecision, Unavailable

logger = logging.getLogger("bayesbandit")
DEADLINE = 0.2  # seconds until a request is answered
REQUEST_THREADS = 24  # requests at work; each has a connection of its own to the log
READY_SECONDS = 1.0  # seconds for which /readyz gives the same answer
MAX_SENTENCE_LENGTH = 500  # characters of a sentence
UNAVAILABLE = (
    "the log cannot be read or written now, or not in time, so nothing was decided or stored; send "
    "the same request again with an id of yours, or show an arm of your choice and do not send its "
    "reward"
)
PATHS_OF_METRICS = (
    "/decide", "/reward", "/activate", "/healthz", "/readyz", "/metrics", "/openapi.json",
)  # fmt: skip
MAX_SECONDS_OF_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
GAUGES = {
    "version": "Version of the bandit that decides here.",
    "newest_version": "Newest version of the bandit in the log.",
    "open_decisions": "Decisions that are not closed.",
    "due_decisions": "Decisions that a learner could learn now.",
}
HTTP_ERRORS = {
    400: "The body is not JSON.",
    401: "The key is missing or wrong.",
    404: "The log has no such decision. A reward of it is stored, and not learned.",
    409: "The log has another decision of this id, or another reward of this decision.",
    413: "The body is too large.",
    422: "A value is wrong: the sentence names it.",
    503: "The log has not stored it within the deadline. Try again after Retry-After, or go on "
    "without: nothing was decided.",
}


def application(
    service: Service, key: str, sync_every: float = 1.0, deadline: float = DEADLINE
) -> FastAPI:
    """Return an application that decides and takes rewards through a service.

    key: clients send it as `Authorization: Bearer KEY`. sync_every: seconds between checks for a
    newer version of the bandit. deadline: seconds until a request is answered; one that the log has
    not stored by then is answered by 503.
    """
    server = Server(service, checks.number(deadline, "deadline", above=0))
    twice = len(service.arms) - len({str(arm) for arm in service.arms})
    if twice:
        raise ValueError(f"arms must differ as texts, since JSON names them; got {service.arms!r}")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(warm_up, service)  # before the port is bound
        following = asyncio.create_task(server.poll_versions(sync_every))
        yield
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await asyncio.to_thread(server.close)

    app = FastAPI(
        title="bayesbandit",
        description=__doc__,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        responses={
            code: {"model": Problem, "description": text} for code, text in HTTP_ERRORS.items()
        },
    )
    app.add_middleware(Gate, key=key, observe=server.metrics.observe)
    with_deadline = server.with_deadline
    keyed = [Security(HTTPBearer(auto_error=False, description="The server's key."))]
    post = partial(app.add_api_route, methods=["POST"], dependencies=keyed)
    post("/decide", with_deadline(server.decide))
    post("/reward", with_deadline(server.reward))
    post("/activate", with_deadline(server.activate), status_code=204, response_model=None)
    for method, shown in (("GET", True), ("HEAD", False)):
        add = partial(app.add_api_route, methods=[method], include_in_schema=shown)
        add("/healthz", server.health)
        add("/readyz", with_deadline(server.ready))
        add("/metrics", server.measure, response_class=Response, dependencies=keyed)
    for kind in (RequestValidationError, ValueError, TypeError, OSError):
        app.add_exception_handler(kind, _refused)
    return app


def warm_up(service: Service) -> None:
    """Compile what decides, and load what a wrong context needs: each is answered in time."""
    service.rehearse()
    if (encoder := service.bandit.encoder) is not None:
        with suppress(ValueError, TypeError):
            encoder.transform([0.0])


class Server:
    """The handlers of requests. `with_deadline` calls those that write in threads."""

    def __init__(self, service: Service, deadline: float = DEADLINE) -> None:
        self.service = service
        self.metrics = Metrics()
        self.deadline = deadline
        self.pool = ThreadPoolExecutor(REQUEST_THREADS, "request")
        self.probe_lock = Lock()
        self.probed_at = -READY_SECONDS
        self.failure = ""  # of the last probe

    def with_deadline(
        self, handle: Callable[..., Any]
    ) -> Callable[..., Coroutine[None, None, Any]]:
        """Return a handler that answers within the deadline; it raises Unavailable if it cannot.

        A thread that is late commits nothing after the deadline. A request that no thread has begun
        is dropped.
        """

        @wraps(handle)
        async def answer(*arguments: Any, **named: Any) -> Any:
            end = time.monotonic() + self.deadline

            def work() -> Any:
                with request_deadline(end):
                    return handle(*arguments, **named)

            begun = asyncio.get_running_loop().run_in_executor(self.pool, work)
            try:
                result = await asyncio.wait_for(begun, self.deadline)
            except TimeoutError as error:
                raise Unavailable(f"no answer within {self.deadline:g} seconds") from error
            if result is None:
                return Response(status_code=204)
            return Response(to_json(result, exclude_none=True), media_type="application/json")

        return answer

    def decide(self, asked: Asked) -> Decided:
        """Decide about a context. The decision is stored before you get it."""
        x = np.empty((1, 0)) if asked.context is None else [asked.context]  # one for no features
        ids = None if asked.id is None else [asked.id]
        (one,), _ = self.service.decide_stored(x, asked.arms, ids)
        self.metrics.decisions.labels(str(one.arm)).inc()
        return Decided(
            id=one.id,
            time=datetime.fromtimestamp(one.decided_at / 1e6, UTC),
            variant=one.arm,
            version=str(one.version),
            propensity=one.propensity,
            probabilities=dict(zip(map(str, one.arms), one.probabilities.tolist(), strict=True)),
        )

    def reward(self, rewarded: Rewarded) -> Came:
        """Store a reward. Sending the same reward again changes nothing."""
        status = self.service.reward(rewarded.id, rewarded.value, at=rewarded.time)
        self.metrics.rewards.labels(status).inc()
        if status == UNKNOWN:
            raise NoDecision(
                f"the log has no decision {rewarded.id!r}: the reward is kept, and not learned"
            )
        return Came(id=rewarded.id, status=status)

    def activate(self, shown: Shown) -> None:
        """Store that a decision was shown."""
        self.service.activate(shown.id)

    async def health(self) -> Health:
        """Say that the process is alive, whatever the log does. It needs no key."""
        return Health(status="ok", version=str(self.service.version))

    def ready(self) -> Health:
        """Say whether the log can store a decision now: it writes a row, and deletes it.

        It needs no key, so one write a second answers all.
        """
        with self.probe_lock:
            if time.monotonic() - self.probed_at >= READY_SECONDS:
                self.failure = ""
                try:
                    self.service.log.ledger.probe()
                except OSError as error:
                    self.failure = str(error)
                self.probed_at = time.monotonic()
            if self.failure:
                raise Unavailable(self.failure)
        return Health(status="ok", version=str(self.service.version))

    def measure(self) -> Response:
        """Return metrics in Prometheus's format. What the log does not say in time is NaN."""
        with request_deadline(time.monotonic() + self.deadline):
            text = self.metrics.text(self.service)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    # ---- the life of a server --------------------------------------------------------------------

    async def poll_versions(self, every: float) -> NoReturn:
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


def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that cannot be done by a status and a sentence."""
    status = 422
    sentence = str(error)
    match error:
        case RequestValidationError():
            first, *more = error.errors()
            place = ".".join(str(part) for part in first["loc"] if part != "body")
            sentence = f"{place or 'the body'}: {first['msg']}"
            sentence += f"; and {len(more)} more" if more else ""
            if not place and "json" not in request.headers.get("content-type", ""):
                sentence += "; send it with the header Content-Type: application/json"
            if first["type"] == "json_invalid":
                why = first.get("ctx", {}).get("error", "it cannot be read")
                status = 400
                sentence = f"the body is not JSON: {why}"
        case NoDecision():
            status = 404
        case Conflict():
            status = 409
        case OSError():
            logger.error("%s", error)
            status = 503
            sentence = UNAVAILABLE
    text = (
        sentence if len(sentence) <= MAX_SENTENCE_LENGTH else sentence[:MAX_SENTENCE_LENGTH] + "…"
    )
    safe = text.encode("utf-8", "backslashreplace").decode()
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"detail": safe}, status, headers)


class Metrics:
    """The counters of one process, and the state of its log."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.decisions = Counter(
            "bayesbandit_decisions",
            "Answers with a decision, also again by its id, by arm.",
            ["variant"],
            registry=registry,
        )
        self.rewards = Counter(
            "bayesbandit_rewards", "Rewards, by how they came.", ["status"], registry=registry
        )
        self.requests = Histogram(
            "bayesbandit_request_seconds",
            "Time from a request's headers to its answer.",
            ["path", "status"],
            registry=registry,
            buckets=MAX_SECONDS_OF_BUCKETS,
        )
        self.gauges = {
            name: Gauge(f"bayesbandit_{name}", text, registry=registry)
            for name, text in GAUGES.items()
        }

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request. status 0: the client disconnected."""
        self.requests.labels(path if path in PATHS_OF_METRICS else "other", str(status)).observe(
            seconds
        )

    def text(self, service: Service) -> bytes:
        """Return all metrics in Prometheus's format; NaN for what the log cannot say now."""
        ledger = service.log.ledger
        of_log: tuple[float, ...]
        try:
            of_log = (ledger.newest(), *waiting(ledger))
        except OSError:
            of_log = (math.nan,) * 3
        for gauge, value in zip(self.gauges.values(), (service.version, *of_log), strict=True):
            gauge.set(value)
        return generate_latest(self.registry)
