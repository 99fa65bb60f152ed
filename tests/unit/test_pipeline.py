"""Spark's JVM that ends under the jobs, as when spark-submit is ended: told in one line, and no stop hangs on it."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from schemas.config import KafkaSettings, Settings
from schemas.errors import HeadroomError
from streaming.pipeline import Inputs, Pipeline


class Gone:
    """A query, and a session, of a JVM that has ended: whatever is asked of it fails."""

    name = "gold"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o9.isActive"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_a_jvm_that_has_ended_is_told(error: Exception) -> None:
    gone: Any = Gone(error)
    pipeline = Pipeline(gone, Inputs(Settings(), KafkaSettings()))
    pipeline._queries.append(gone)
    for call in (pipeline.check, pipeline.stop):
        with pytest.raises(HeadroomError) as told:
            call()
        assert (told.value.subject, told.value.rule) == ("Spark", "its JVM has ended")
