"""The log on standard error: one printable line per record, so that logged text cannot forge a line."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import TracebackType

from headroom.schemas.text import printable

_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
# Loggers of clients of Kafka and of Spark's JVM, and of Headroom's own reads.
CLIENTS = ("kafka", "py4j", "headroom.cluster")


class LineFormatter(logging.Formatter):
    """Formats a record as one printable line, followed by the indented lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Return the lines of a traceback."""
        return "\n".join(f"  {printable(line)}" for line in super().formatException(ei).split("\n"))


def log_to_stderr(level: int = logging.WARNING, kafka_level: int = logging.CRITICAL) -> None:
    """Send the log to standard error.

    Args:
        level: lowest level that is shown.
        kafka_level: lowest level for Kafka's clients, which log every connection attempt to a broker that is down.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(_FORMAT))
    handler.addFilter(is_not_py4j)
    logging.basicConfig(handlers=[handler], level=level)
    logging.getLogger("kafka").setLevel(kafka_level)


def is_not_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record is not of py4j, which logs every failed call, also on the root logger.

    What a failure means is logged by its caller.
    """
    return Path(record.pathname).parent.name != "py4j"


def silence_clients() -> None:
    """Suppress the clients' logs of every attempt, for a command whose output names what could not be read."""
    for name in CLIENTS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def show_warnings() -> None:
    """Make records printable that are logged without ``log_to_stderr``; only warnings and errors are shown."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("%(message)s"))
