"""`bayesbandit serve` and `bayesbandit learn`: a bandit over HTTP, and its learner."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesbandit.cli import logs
from bayesbandit.cli.report import clear_errors, counted
from bayesbandit.runtime.plugins import module_of

if TYPE_CHECKING:
    from bayesbandit.store.log import DecisionLog

KEY = "BAYESBANDIT_API_KEY"
FROM_FILE = "bayesbandit.cli.serving:"  # prefix of the module names of files with parts of a bandit
SHORTEST_KEY = 16  # characters
CONNECTIONS = 500  # at most
GRACE = 30  # seconds for requests at hand, when the server ends
CHUNK = 5000  # decisions that are learned before a learner looks whether it is to end

LOG = typer.Option(
    envvar="BAYESBANDIT_LOG",
    help='The log, as "sqlite:///offers.db". An address with a password is best given by the '
    "environment: a command line can be seen by others.",
)
LogUrl = Annotated[str, LOG]
LogFormat = Annotated[
    logs.Format,
    typer.Option(
        envvar="BAYESBANDIT_LOG_FORMAT",
        help="The lines on stderr: text (time, level, sentence), or JSON objects.",
    ),
]

BanditName = Annotated[
    str, typer.Option(help="The bandit's name in the log, which may hold several bandits.")
]
OwnPolicy = Annotated[
    str | None,
    typer.Option(help="The policy, FILE.py:NAME, where a saved bandit does not hold its own."),
]
OwnModel = Annotated[
    str | None,
    typer.Option(help="The reward model, likewise: a name of the gallery, FILE.py, FILE.py:NAME."),
]
OwnBalance = Annotated[str | None, typer.Option(help="The balance, likewise: FILE.py:NAME.")]


def serve(
    log: LogUrl,
    name: BanditName = "default",
    bandit: Annotated[
        Path | None,
        typer.Option(help="A saved bandit, with which the log begins. Later the log has its own."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    key_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the key of clients; else {KEY} of the environment."),
    ] = None,
    wait: Annotated[
        str | None, typer.Option(help='How long rewards count, as "1d" or "12h"; without: for ever')
    ] = None,
    default_reward: Annotated[
        float | None, typer.Option(help="That of decisions without one after --wait.")
    ] = None,
    aggregate: Annotated[
        str, typer.Option(help="Of several rewards of a decision: first, sum or last.")
    ] = "first",
    activation: Annotated[
        bool, typer.Option(help="Decisions count only after /activate says that they were shown.")
    ] = False,
    deadline: Annotated[
        float, typer.Option(help="Seconds until a request is answered: by 503, if not stored.")
    ] = 0.2,
    fallback: Annotated[str | None, typer.Option(hidden=True)] = None,
    apprentice: Annotated[
        bool, typer.Option(help="Another system decides, and the bandit learns from it.")
    ] = False,
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
    log_format: LogFormat = logs.Format.text,
) -> None:
    """Let a bandit decide over HTTP: /decide, /reward, /activate, /readyz, /metrics.

    Every decision is in the log before it is answered. `bayesbandit learn` learns the rewards,
    in a process of its own; this one takes over what was learned each second.
    """
    with clear_errors():
        try:
            import uvicorn

            from bayesbandit.bandit.bandit import Bandit
            from bayesbandit.service.apprentice import Apprentice
            from bayesbandit.service.beginning import refuse_fallback
            from bayesbandit.service.server import application
            from bayesbandit.service.service import Service
            from bayesbandit.store.log import DecisionLog
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] == "bayesbandit":
                raise
            raise ModuleNotFoundError(
                f"a server needs {error.name}: pip install 'bayesbandit[serve]'", name=error.name
            ) from error
        refuse_fallback(fallback)
        key, kind = _key(key_file), Apprentice if apprentice else Service
        parts = parts_of(policy, model, balance)
        if bandit is None:
            if (wait, default_reward, aggregate, activation) != (None, None, "first", False):
                raise ValueError(
                    "--wait, --default-reward, --aggregate and --activation need --bandit: the log "
                    "has those with which it began"
                )
            opened = begun_log(log, name)
            service = kind.open(opened, **parts)
        else:
            loaded, opened = Bandit.load(bandit, **parts), DecisionLog(log, name)
            service = kind(
                loaded, opened, wait, default_reward, aggregate=aggregate,
                activation=activation,
            )  # fmt: skip
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
        limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=GRACE,
    )  # fmt: skip
    server = Server(config)
    with logs.lines(log_format) as logger:
        server.run()
    if not server.started:
        raise typer.Exit(1)


def begun_log(url: str, name: str) -> DecisionLog:
    """Return a log that has begun; raise FileNotFoundError if there is no file, and make none."""
    from bayesbandit.store.log import DecisionLog

    scheme, _, place = url.partition("://")
    file = place.partition("?")[0].removeprefix("/")
    is_path = scheme.startswith("sqlite") and not file.startswith("file:")
    if is_path and file and not Path(file).is_file():
        raise FileNotFoundError(f"there is no log {file}")
    return DecisionLog(url, name)


def parts_of(policy: str | None, model: str | None, balance: str | None) -> dict[str, Any]:
    """Return the parts of a bandit that its file does not hold, as `Bandit.load` takes them."""
    return {
        "policy": None if policy is None else _object(policy, "--policy"),
        "model": None if model is None else _model(model),
        "balance": None if balance is None else _object(balance, "--balance"),
    }


def _model(text: str) -> Any:
    """Return a model of the gallery, of a file, or any object of a file, as bb.Sampled(…)."""
    from bayesbandit.model import load_model

    return _object(text, "--model") if ".py:" in text else load_model(text)


def _object(text: str, option: str) -> Any:
    """Return the object of a file that `FILE.py:NAME` names."""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py"):
        raise ValueError(f"{option} must be FILE.py:NAME; got {text!r}")
    found = vars(module_of(Path(file), FROM_FILE)).get(name)
    if found is None or isinstance(found, type):
        raise ValueError(f"{option}: {file} has no object {name!r}, as {name} = bb.Thompson(…)")
    return found


def _key(file: Path | None) -> str:
    """Return the key of clients. Raise ValueError where there is none, or a short one."""
    key = (file.read_text(encoding="utf-8") if file else os.environ.get(KEY, "")).strip()
    if not key:
        raise ValueError(
            f"a server needs a key: set {KEY}, or give --key-file FILE; "
            "`openssl rand -hex 32` makes one"
        )
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()):
        raise ValueError(f"the key must have {SHORTEST_KEY} ASCII characters or more")
    return key


def learn(
    log: LogUrl,
    name: BanditName = "default",
    every: Annotated[float, typer.Option(min=0.01, help="Seconds between two looks.")] = 10.0,
    once: Annotated[bool, typer.Option(help="Learn what there is, and end.")] = False,
    policy: OwnPolicy = None,
    model: OwnModel = None,
    balance: OwnBalance = None,
    log_format: LogFormat = logs.Format.text,
) -> None:
    """Learn the rewards of a service's log, until it is stopped.

    Any number of learners may run: a lock of the database elects one at a time. One that was
    killed has lost nothing. `bayesbandit train` learns files.
    """
    with clear_errors():
        from bayesbandit.service.service import Service

        service = Service.open(begun_log(log, name), **parts_of(policy, model, balance))
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with logs.lines(log_format) as logger:
            begun = service.version
            while not stop.is_set():
                before = service.version
                try:
                    learned = service.learn(limit=CHUNK)
                except OSError as error:
                    if once:
                        raise
                    logger.warning("%s", error)
                    stop.wait(every)
                    continue
                if service.version > before:
                    rewards = counted(learned, "reward")
                    logger.info("version %s: %s learned", service.version, rewards)
                elif once:
                    break
                else:
                    stop.wait(every)
            if service.version > begun:
                service.snapshot()  # from which others start at once
        service.log.close()
