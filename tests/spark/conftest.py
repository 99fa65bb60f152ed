"""One Spark session for all tests of this tier, and one plan for each query of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headroom.schemas.config import SparkSettings
from headroom.streaming.session import INTERPRETED, build_session, configure
from headroom.streaming.session_profile import QUICK_COMPILER
from tests.spark.shared_plans import shared_plans
from tests.support.by_module import ByModule

# A heap of one size, half of it for new objects: by default the JVM would collect garbage often to keep the heap small.
_JAVA = f"{QUICK_COMPILER} -XX:-UseG1GC -XX:+UseSerialGC -Xms2g -Xmn1g"
# Modules that take longest, in this order. Each is run by one process, and the short ones come
# last, so that both processes end at about the same time.
_FIRST = ("test_alert_path_gold", "test_edges", "test_maintenance", "test_balance_job", "test_jobs", "test_broker_load")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules that take longest first; a random order, if one is asked for, comes after this."""
    places = {name: place for place, name in enumerate(_FIRST)}
    mine = [n for n, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted((items[n] for n in mine), key=lambda item: places.get(item.path.stem, len(_FIRST)))
    for n, item in zip(mine, ordered, strict=True):
        items[n] = item


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    """Return the scheduler of several workers."""
    return ByModule(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SparkSettings(master="local[2]", shuffle_partitions=1, driver_memory="2g", driver_java_options=_JAVA)
    session = build_session(settings, "headroom-tests")
    with shared_plans():
        yield session
    session.stop()


@pytest.fixture(autouse=True)
def settings_of_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test that uses the session the settings that it has at its start.

    The history's job changes them for its batches. In a watch each of its queries has a session of its own.
    """
    yield
    if "spark" in request.fixturenames:
        configure(request.getfixturevalue("spark"), INTERPRETED)
