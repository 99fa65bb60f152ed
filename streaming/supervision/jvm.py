"""Errors of Spark and its JVM as Headroom's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from schemas.errors import HeadroomError
from streaming.supervision.failure import cause_of

AGAIN = "Start it again: it goes on where it stopped. If it stops again, the log says more."


class JvmEnded(HeadroomError):
    """Spark's JVM has ended; the process needs a new one."""

    def __init__(self) -> None:
        super().__init__("Spark", "its JVM has ended", AGAIN)


@contextmanager
def spark_failures() -> Iterator[None]:
    """Convert errors of Spark in the block to one error that names the cause.

    Raises:
        HeadroomError: Spark reported an error.
        JvmEnded: Spark's JVM has ended. Different calls into it raise different errors then.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise HeadroomError("Spark", f"it failed: {cause_of(error)}", AGAIN) from error
    except (Py4JError, ConnectionError) as error:
        raise JvmEnded from error
