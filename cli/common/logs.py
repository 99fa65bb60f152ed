"""The log on standard error: a printable line for each record, so that nothing that is logged forges one."""

from __future__ import annotations

import logging
import sys
from types import TracebackType

from schemas.text import printable

_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class LineFormatter(logging.Formatter):
    """Formats a record as one printable line; the lines of a traceback follow, each indented."""

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
        level: the lowest that is shown.
        kafka_level: the same of Kafka's clients, which log every attempt on a broker that is down.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)
    logging.getLogger("kafka").setLevel(kafka_level)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


def show_warnings() -> None:
    """Let what is logged before, or without, ``log_to_stderr`` be printable too; of that only warnings are shown."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(LineFormatter("%(message)s"))
