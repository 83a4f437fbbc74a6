"""Lines of a process that runs for long: time, level and sentence, as text or as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum

from bayesbandit.runtime.addresses import hidden

LEVELS = {  # of the loggers whose records become lines
    "bayesbandit": logging.INFO,
    "uvicorn": logging.WARNING,
    "py.warnings": logging.WARNING,
}


class Format(StrEnum):
    """How a line is written."""

    text = "text"
    json = "json"


class Lines(logging.Formatter):
    """Records as lines without passwords: `TIME LEVEL sentence`, or JSON objects."""

    def __init__(self, kind: Format) -> None:
        super().__init__()
        self.kind = kind

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line; a traceback follows in text, and is a field in JSON."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        at = at.replace("+00:00", "Z")
        said = hidden(record.getMessage())
        trace = hidden(self.formatException(record.exc_info)) if record.exc_info else ""
        if self.kind is Format.json:
            found = {"time": at, "level": record.levelname, "logger": record.name, "message": said}
            return json.dumps(found | ({"exception": trace} if trace else {}))
        line = f"{at} {record.levelname} {' '.join(said.splitlines())}"
        return f"{line}\n{trace}" if trace else line


@contextmanager
def lines(kind: Format) -> Iterator[logging.Logger]:
    """Send records and warnings to stderr as lines; yield the logger of the toolkit."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(kind))
    loggers = {name: logging.getLogger(name) for name in LEVELS}
    before = {name: (one.handlers, one.level, one.propagate) for name, one in loggers.items()}
    logging.captureWarnings(True)
    for name, logger in loggers.items():
        logger.handlers = [handler]
        logger.setLevel(LEVELS[name])
        logger.propagate = False
    try:
        yield loggers["bayesbandit"]
    finally:
        logging.captureWarnings(False)
        for name, logger in loggers.items():
            logger.handlers, level, logger.propagate = before[name]
            logger.setLevel(level)
