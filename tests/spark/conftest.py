"""One Spark session for all tests of this tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from schemas.config import SparkSettings
from streaming.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", shuffle_partitions=1)
    session = build_session(settings, "headroom-tests")
    yield session
    session.stop()
