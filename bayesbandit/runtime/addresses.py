"""Addresses of databases as people may see them: never with a user, a password or a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

# with one slash where it was taken for a path; a password may have a blank
ADDRESS = re.compile(r"[\w+.-]+:/+(?:[^/@\n]*@)?\S*")
PASSWORD = re.compile(r"""(?i)(password|passwd|pwd)(\s*[=:]\s*)('[^']*'|"[^"]*"|[^\s&'",;)]+)""")
# as user=postgres, or PostgreSQL's: role "postgres" does not exist
USER_OR_ROLE = re.compile(r"""(?i)\b(user(?:name)?=|(?:role|user)\s(?="))("[^"]*"|[^\s'",;)]+)""")
# of a socket, no host and its folder
HOST_AND_NAME = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[\w.-]+)(:\d{1,5})?(/[^@/:?]*)?|(/[^@:?]*)?")
CLOSING_MARKS = "'\")]}>,;"  # what may stand behind an address in a text
OF_DATABASES = "postgres", "postgresql", "mysql", "mariadb", "sqlite", "oracle", "mssql"


def shown(address: str) -> str:
    """Return an address as its kind of database, host and name; SQLite's as its file.

    Where it is not clear which part is the host, return the kind alone: the rest may be a password.
    """
    scheme, _, path = address.partition("://")
    kind = scheme.partition("+")[0]
    place, _, query = path.partition("?")
    if kind == "sqlite":
        return f"{kind}://{place if place.startswith('/') else '…'}"
    host_and_name = place.rpartition("@")[2]
    if "@" in query or not HOST_AND_NAME.fullmatch(host_and_name):
        return f"{kind}://…"
    hosts = parse_qs(query).get("host", []) if host_and_name.startswith("/") else []
    return f"{kind}://{','.join(hosts)}{host_and_name}"


def hidden(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text with addresses of databases as `shown`, and *** for users, passwords and
    secrets."""

    def hide(match: re.Match[str]) -> str:
        address = match[0].rstrip(CLOSING_MARKS)
        behind = match[0][len(address) :]
        kind = address.partition(":")[0].partition("+")[0]
        if kind.lower() not in OF_DATABASES and "@" not in address:
            return address + behind
        return (shown(address) if "://" in address else f"{kind}:/…") + behind

    text = USER_OR_ROLE.sub(r"\1***", PASSWORD.sub(r"\1\2***", ADDRESS.sub(hide, text)))
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def hide_secrets(error: BaseException, secrets: Iterable[str] = ()) -> None:
    """Make the texts of an error, and of the errors behind it, `hidden`.

    Python keeps the errors behind one (`__context__`) also where it does not print them.
    """
    secrets = [*secrets]
    seen = set[int]()
    waiting: list[BaseException] = [error]
    while waiting:
        one: Any = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.args = tuple(hidden(a, secrets) if isinstance(a, str) else a for a in one.args)
        behind = one.__cause__, one.__context__, getattr(one, "orig", None)
        waiting += [other for other in behind if isinstance(other, BaseException)]
