"""One Spark session for all tests of this tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from schemas.config import SparkSettings
from streaming.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Plans are many and each runs once or twice: to compile them well would take longer than to run them.
    settings = SparkSettings(
        master="local[2]",
        shuffle_partitions=1,
        driver_java_options="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    )
    session = build_session(settings, "headroom-tests")
    yield session
    session.stop()
