"""Lines of a process that runs for long: time, level and sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bayesbandit.runtime.addresses import hidden

LOG_LEVELS = {  # of the loggers whose records become lines
    "bayesbandit": logging.INFO,
    "uvicorn": logging.WARNING,
    "py.warnings": logging.WARNING,
}


class Lines(logging.Formatter):
    """Records as lines without passwords: `TIME LEVEL sentence`. A traceback follows its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = " ".join(record.getMessage().splitlines())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return hidden(f"{at.replace('+00:00', 'Z')} {record.levelname} {said}{trace}")


@contextmanager
def lines() -> Iterator[logging.Logger]:
    """Send records and warnings to stderr as lines; yield the logger of the toolkit."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    loggers = {name: logging.getLogger(name) for name in LOG_LEVELS}
    before = {name: (one.handlers, one.level, one.propagate) for name, one in loggers.items()}
    logging.captureWarnings(True)
    for name, logger in loggers.items():
        logger.handlers = [handler]
        logger.setLevel(LOG_LEVELS[name])
        logger.propagate = False
    try:
        yield loggers["bayesbandit"]
    finally:
        logging.captureWarnings(False)
        for name, logger in loggers.items():
            logger.handlers, level, logger.propagate = before[name]
            logger.setLevel(level)
