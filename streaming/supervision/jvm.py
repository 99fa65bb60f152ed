"""Errors of Spark and its JVM as Headroom's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from headroom.schemas.errors import HeadroomError
from headroom.streaming.supervision.failure import AGAIN, JvmEnded, cause_of


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
