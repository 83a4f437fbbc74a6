"""Lines of a process that runs for long: time, level and sentence."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from bayesbandit.runtime.addresses import hidden


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
