"""One Spark session for all tests of this tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from schemas.config import SparkSettings
from streaming.session import build_session
from streaming.session_profile import SessionProfile

# Tests wait for their own work only: no pauses matter, and room for a test's objects saves collections.
_HEAP = "-Xms1g -Xmn640m"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", shuffle_partitions=1, driver_java_options=_HEAP)
    session = build_session(settings, "headroom-tests", SessionProfile.THROUGHPUT)
    yield session
    session.stop()
