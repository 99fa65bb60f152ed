"""One Spark session for all tests of this tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cli.demo.quick_java import QUICK_JAVA
from schemas.config import SparkSettings
from streaming.session import build_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", shuffle_partitions=1, driver_java_options=QUICK_JAVA)
    session = build_session(settings, "headroom-tests")
    yield session
    session.stop()
