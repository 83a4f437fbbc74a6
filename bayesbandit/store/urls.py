"""The address of a log's database: which are allowed, and what it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from bayesbandit.runtime.addresses import hide_secrets, shown

DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
ADDRESS_EXAMPLES = '"sqlite:///offers.db" or "postgresql+psycopg://user@host/name"'
TIMEOUT = 10.0  # seconds that a statement or a lock may take, if the address has no ?timeout=


def parsed(url: object) -> URL:
    """Return an address that SQLAlchemy can open; raise an error that does not show it."""
    if not isinstance(url, str):
        raise TypeError(f'url must be text, as "sqlite:///offers.db"; got {type(url).__name__}')
    url = url.strip()
    scheme, has_scheme, place = url.partition("://")
    driver = DRIVERS.get(scheme.lower(), scheme.lower())
    try:
        address = make_url(f"{driver}://{place}" if has_scheme else "")
    except (ArgumentError, ValueError) as error:  # ValueError: of a port that is no number
        error.args = ("the address cannot be read",)  # SQLAlchemy's text may quote it
        got = shown(url) if has_scheme else "a text without ://"
        raise ValueError(f"url must be as {ADDRESS_EXAMPLES}; got {got}") from error
    backend = address.get_backend_name()
    if backend != "sqlite" and address.drivername != "postgresql+psycopg":
        raise ValueError(
            f"a log lives in SQLite or PostgreSQL, as {ADDRESS_EXAMPLES}; got "
            f"{address.drivername!r}"
        )
    if backend == "sqlite":
        if address.database in (None, "", ":memory:") or "mode=memory" in url:
            raise ValueError('a log that lasts needs a file, as "sqlite:///offers.db"')
        folder = Path(str(address.database)).parent
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {str(folder)!r} for the log {shown(url)}")
    elif "@" in f"{address.host}{address.database}{place.partition('?')[2]}":
        raise ValueError(
            "url is not clear: in its user, password and options write @ as %40, / as %2F, : as "
            f"%3A, ? as %3F and % as %25; got {shown(url)}"
        )
    return address


def engine(url: URL, **options: Any) -> Engine:
    """Return SQLAlchemy's engine; raise ImportError or ValueError where its driver is missing."""
    try:
        return create_engine(url, hide_parameters=True, **options)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the driver {url.drivername!r} needs {error.name}; the usual one is that of "
            "\"postgresql+psycopg://user@host/name\": pip install 'bayesbandit[postgresql]'",
            name=error.name,
        ) from error
    except (ArgumentError, NoSuchModuleError, TypeError) as error:
        hide_secrets(error, secrets(url))
        raise ValueError(
            f"url must be as {ADDRESS_EXAMPLES}; got {shown(str(url))}: {error}"
        ) from error


def secrets(url: URL) -> set[str]:
    """Return the texts of an address that nobody may see: its passwords, as given and decoded."""
    options = url.normalized_query.items()
    passwords = {one for name, each in options if "pass" in name.lower() for one in each}
    if url.password is not None:
        passwords.add(str(url.password))
    return passwords | {quote(one, safe=safe) for one in passwords for safe in ("", "/")}


def without_timeout(url: URL) -> tuple[URL, float]:
    """Return the address without its `timeout`, which is ours, and the seconds."""
    timeout = url.query.get("timeout")
    if timeout is None:
        return url, TIMEOUT
    try:
        seconds = float(str(timeout))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"timeout must be seconds > 0, as ?timeout=10; got {timeout!r}")
    return url.difference_update_query(["timeout"]), seconds
