"""`bayesbandit serve` and `bayesbandit learn`: a bandit over HTTP, and its learner."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesbandit.cli.output import clear_errors, counted
from bayesbandit.runtime.addresses import hidden, shown

if TYPE_CHECKING:
    from bayesbandit.store.log import DecisionLog

KEY_VARIABLE = "BAYESBANDIT_API_KEY"
SHORTEST_KEY = 16  # characters
MAX_CONNECTIONS = 500
SHUTDOWN_SECONDS = 30  # seconds for requests at hand, when the server ends
SECONDS_BETWEEN_LOOKS = 2.0  # of a learner that has found no reward
DECISIONS_PER_CHUNK = 5000  # decisions that are learned before a learner looks whether it is to end

LogUrl = Annotated[
    str,
    typer.Option(
        envvar="BAYESBANDIT_LOG",
        help='The log, as "sqlite:///offers.db". An address with a password is best given by the '
        "environment: a command line can be seen by others.",
    ),
]


def serve(
    log: LogUrl,
    bandit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A saved bandit, with which the log begins. Later the log has its own.",
        ),
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(help='How long rewards count, as "1d" or "12h"; without: for ever.'),
    ] = None,
    default_reward: Annotated[
        float | None,
        typer.Option(help="That of decisions without one after --wait."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    deadline: Annotated[
        float,
        typer.Option(help="Seconds until a request is answered: by 503, if not stored."),
    ] = 0.2,
) -> None:
    """Let a bandit decide over HTTP: /decide, /reward, /activate, /readyz, /metrics.

    Every decision is in the log before it is answered. `bayesbandit learn` learns the rewards,
    in a process of its own; this one takes over what was learned each second. The environment has
    the key of clients, BAYESBANDIT_API_KEY.
    """
    with clear_errors():
        try:
            import uvicorn

            from bayesbandit.bandit.bandit import Bandit
            from bayesbandit.checks import number
            from bayesbandit.service.server import application
            from bayesbandit.service.service import Service
            from bayesbandit.store.log import DecisionLog
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] == "bayesbandit":
                raise
            raise ModuleNotFoundError(
                f"a server needs {error.name}: pip install 'bayesbandit[serve]'", name=error.name
            ) from error
        key = api_key()
        number(deadline, "--deadline", above=0)  # before a log begins
        if bandit is None:
            if (wait, default_reward) != (None, None):
                raise ValueError(
                    "--wait and --default-reward need --bandit: the log has those with which it "
                    "began"
                )
            opened = begun_log(log)
            service = Service.open(opened)
        else:
            loaded = Bandit.load(bandit)
            opened = DecisionLog(log)
            service = Service(loaded, opened, wait, default_reward)
        opened.ledger.probe()  # on a disk that cannot be written no decision would be stored
        app = application(service, key, deadline=deadline)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Listen, and say where; uvicorn ends the process if the port is taken."""
            await super().startup(sockets)
            if self.started:
                bound = self.servers[0].sockets[0].getsockname()[1]  # of port 0, that chosen
                place = f"[{host}]" if ":" in host else host
                logger.info("version %s of %r decides at http://%s:%s",
                            service.version, opened, place, bound)  # fmt: skip

    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False,
        limit_concurrency=MAX_CONNECTIONS, timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )  # fmt: skip
    server = Server(config)
    logger = lines()
    server.run()
    if not server.started:
        raise typer.Exit(1)


def begun_log(url: str) -> DecisionLog:
    """Return a log that has begun, and make none.

    Raise FileNotFoundError if there is no file, and ValueError if the log has no bandit.
    """
    from bayesbandit.store.log import DecisionLog

    scheme, _, place = url.partition("://")
    file = place.partition("?")[0].removeprefix("/")
    is_path = scheme.startswith("sqlite") and not file.startswith("file:")
    if is_path and file and not Path(file).is_file():
        raise FileNotFoundError(f"there is no log {shown(url)}")
    opened = DecisionLog(url)
    try:
        opened.ledger.begun()
    except BaseException:
        opened.close()
        raise
    return opened


def api_key() -> str:
    """Return the key of clients. Raise ValueError where there is none, or a short one."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise ValueError(
            f"a server needs a key: set {KEY_VARIABLE}; `openssl rand -hex 32` makes one"
        )
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()):
        raise ValueError(f"the key must have {SHORTEST_KEY} ASCII characters or more")
    return key


def learn(
    log: LogUrl,
    once: Annotated[bool, typer.Option("--once", help="Learn what there is, and end.")] = False,
) -> None:
    """Learn the rewards of a service's log, until it is stopped.

    Any number of learners may run: a lock of the database elects one at a time. One that was
    killed has lost nothing. `bayesbandit train` learns files.
    """
    with clear_errors():
        from bayesbandit.service.service import Service

        service = Service.open(begun_log(log))
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        logger = lines()
        begun = service.version
        while not stop.is_set():
            before = service.version
            try:
                learned = service.learn(limit=DECISIONS_PER_CHUNK)
            except OSError as error:
                if once:
                    raise
                logger.warning("%s", error)
                stop.wait(SECONDS_BETWEEN_LOOKS)
                continue
            if service.version > before:
                rewards = counted(learned, "reward")
                logger.info("version %s: %s learned", service.version, rewards)
            elif once:
                break
            else:
                stop.wait(SECONDS_BETWEEN_LOOKS)
        if service.version > begun:
            service.snapshot()  # from which others start at once
        service.log.close()


class Lines(logging.Formatter):
    """Records as lines without passwords: `TIME LEVEL sentence`. A traceback follows its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = " ".join(record.getMessage().splitlines())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return hidden(f"{at.replace('+00:00', 'Z')} {record.levelname} {message}{trace}")


def lines() -> logging.Logger:
    """Send warnings of the process, and all that the toolkit says, to stderr as lines.

    Return the logger of the toolkit.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    logger = logging.getLogger("bayesbandit")
    logger.setLevel(logging.INFO)
    return logger
