"""The cause of a failure, from what Spark 4.2, Py4J and the Delta library raised when they were made to fail."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.schemas.errors import HeadroomError
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.restarting_job import RestartingJob

# How every failure in a function that Spark calls begins, and what follows it.
_BEGINS = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""
_ENDS = """

=== Streaming Query ===
Identifier: alert_path [id = c47ce771, runId = 8cefa1d2]
Current State: ACTIVE
Caused by: nothing.of.this.Exception: is looked at
"""
_JAVA = """py4j.protocol.Py4JJavaError: An error occurred while calling o128.save.
: org.apache.spark.sql.delta.DeltaIOException: [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create file:/tmp/file/x/_delta_log
\tat org.apache.spark.sql.delta.DeltaErrorsBase.cannotCreateLogPathException(DeltaErrors.scala:1547)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/tmp/file
\tat org.apache.hadoop.fs.FileSystem.mkdirs(FileSystem.java:1)
\t... 58 more
"""
_SPARK = """  File "pyspark/errors/exceptions/captured.py", line 257, in deco
    raise converted from None
pyspark.errors.exceptions.captured.SparkRuntimeException: [USER_RAISED_EXCEPTION] never SQLSTATE: P0001
"""
_CHAINED = """KeyError: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "job.py", line 3, in batch
    raise RuntimeError("line one") from e
RuntimeError: line one
line two of it
"""
_DELTA = """_internal.TableNotFoundError: Local path "/tmp/none" does not exist or you don't have access!
Error: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            _BEGINS + "headroom.schemas.errors.HeadroomError: broker 1: is down. Start it.\n",
            "broker 1: is down. Start it",
        ),
        (
            _BEGINS + "Exception: External error: Parquet error: Failed to fetch metadata for file x.parquet\n",
            "External error: Parquet error: Failed to fetch metadata for file x.parquet",
        ),
        (_BEGINS + "Exception\n", "Exception"),
        (_BEGINS + _JAVA, "ParentNotDirectoryException: Parent path is not a directory: file:/tmp/file"),
        (_BEGINS + _SPARK, "SparkRuntimeException: [USER_RAISED_EXCEPTION] never SQLSTATE: P0001"),
        (_BEGINS + _CHAINED, "RuntimeError: line one"),
        (
            _BEGINS + _DELTA,
            'TableNotFoundError: Local path "/tmp/none" does not exist or you don\'t have access!: '
            'Error: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }',
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment.\n",
            "TimeoutException: Timed out waiting for a node assignment",
        ),
        (
            "An error occurred while calling z:io.delta.tables.DeltaTable.isDeltaTable.\n"
            ': org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "foo"\n\tat a.b(C.java:1)',
            'UnsupportedFileSystemException: No FileSystem for scheme "foo"',
        ),
        ("java.lang.NullPointerException\n\tat a.b(C.java:1)", "NullPointerException"),
        ("something else\nof two lines", "something else"),
        ("", "unknown"),
    ],
)
def test_the_cause_is_found_below_two_tracebacks(text: str, cause: str) -> None:
    assert cause_of(text + _ENDS if text else text) == cause


def test_the_cause_of_an_error_of_the_delta_library_is_shown_without_colours() -> None:
    error = OSError(
        "Kernel error -> Generic LocalFileSystem error\n"
        "          \x1b[31m↳\x1b[0m Unable to open file /t/_delta_log/00000000000000000001.json\n"
        "           \x1b[31m↳\x1b[0m Permission denied (os error 13)\n\n"
    )
    assert cause_of(error) == (
        "Kernel error -> Generic LocalFileSystem error: Unable to open file /t/_delta_log/00000000000000000001.json: "
        "Permission denied (os error 13)"
    )


def test_an_exception_without_a_text_is_named_and_a_long_one_is_bounded() -> None:
    assert cause_of(TimeoutError()) == "TimeoutError"
    assert len(cause_of("x" * 5000)) == 300


class Failed:
    """A query that has failed."""

    isActive = False

    def exception(self) -> Exception:
        return Exception(_BEGINS + _JAVA + _ENDS)

    def stop(self) -> None:
        """It has stopped already."""


def test_a_job_that_stops_repeatedly_is_an_error_with_its_cause() -> None:
    now_s = [0.0]
    query: Any = Failed()
    job = RestartingJob("alert_path", lambda: [query], now_s=lambda: now_s[0])
    job.start()

    def wait(seconds: int) -> None:
        for _ in range(seconds):
            job.check()
            job.restart_if_due()
            now_s[0] += 1

    with pytest.raises(HeadroomError) as caught:
        wait(100)
    cause = "ParentNotDirectoryException: Parent path is not a directory: file:/tmp/file"
    rule = f"has stopped 6 times within 10 min: {cause}"
    assert (caught.value.subject, caught.value.rule) == ("job alert_path", rule)
