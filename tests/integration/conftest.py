"""Real clusters for tests: a shared one of four brokers, and others on request."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headroom.cli.config.load import load_settings
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, write_config
from headroom.schemas.config import Settings
from headroom.streaming.session_profile import QUICK_COMPILER
from headroom.streaming.tables.journal import ActionJournal
from tests.integration.last_seen import last_seen
from tests.integration.shared_cluster import SharedCluster
from tests.integration.support import add_group_topic, clear
from tests.support.by_module import ByModule
from tests.support.journal_specification import journal_violations

# kafka-python reports every refused connection as an error with a traceback, and tests kill brokers on purpose.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

# Started in the background by a shell, this process ignores Ctrl-C, and so would every process that a test sends it to.
signal.signal(signal.SIGINT, signal.default_int_handler)

StartCluster = Callable[..., EmbeddedCluster]
# A watch, or Spark in another way, beside brokers with traffic: it keeps two cores busy. Each runs alone: beside the
# brokers of other tests a slow machine took minutes for what they expect within seconds.
_HEAVY = (
    "test_watch",
    "test_demo",
    "test_demo_migration",
    "test_bands",
    "test_standalone",
    "test_readme",
    "test_zookeeper_mode",
    "test_canary",
    "test_changed_topic",
    "test_migration_watch",
)
# Modules that take longest begin first, so that no worker is left with one of them at the end.
_LONG = (*_HEAVY, "test_reassign", "test_collector", "test_hanging_broker", "test_balance", "test_demo_interrupted")
# Modules whose tests have nothing in common.
_SPREAD = frozenset({"test_embedded_cluster"})
BROKERS = (1, 2, 3, 4)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long modules begin first, unless the order is to be random."""
    if not config.getoption("random_order_enabled", False):
        items.sort(key=lambda item: _LONG.index(item.path.stem) if item.path.stem in _LONG else len(_LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    """Return the scheduler of several workers."""
    scheduler = ByModule(config, log)
    scheduler.spread, scheduler.heavy = _SPREAD, frozenset(_HEAVY)
    return scheduler


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure what brokers, watches and tables were last seen to do."""
    report = yield
    if report.failed:
        report.sections.append(("last seen", last_seen()))
    return report


@pytest.fixture(scope="package", autouse=True)
def quick_java() -> Iterator[None]:
    """Limit JVMs to the first compiler tier, because they run for only a minute or two per test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADROOM_SPARK__DRIVER_JAVA_OPTIONS", QUICK_COMPILER)
        # Of the other JVMs too: spark-submit, Spark's executors, the gateway of JMX, Kafka's tools.
        given = os.environ.get("JAVA_TOOL_OPTIONS", "")
        patch.setenv("JAVA_TOOL_OPTIONS", f"{given} -XX:TieredStopAtLevel=1".strip())
        # Beside other tests a history of low priority would get to run for a few seconds a minute.
        patch.setenv("HEADROOM_SPARK__HISTORY_NICE", "0")
        yield


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """Return a function that starts a cluster for this test alone: of so many brokers, with options if given."""
    started: list[EmbeddedCluster] = []

    def start(brokers: int = 3, options: BrokerOptions | None = None) -> EmbeddedCluster:
        cluster = EmbeddedCluster(tmp_path / f"kafka-{len(started)}", brokers, options=options)
        started.append(cluster)
        return cluster.start()

    yield start
    with ExitStack() as stack:
        for cluster in started:
            stack.callback(cluster.stop)


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCluster]:
    """Return the four brokers of this worker, each with two log directories. Modules get them as ``cluster``."""

    def start() -> EmbeddedCluster:
        folder = tmp_path_factory.mktemp("shared")
        own = {b: {"log.dirs": f"{folder}/broker-{b}/a,{folder}/broker-{b}/b"} for b in BROKERS}
        options = BrokerOptions(broker_properties=own)
        cluster = EmbeddedCluster(folder / "cluster", len(BROKERS), options=options).start()
        add_group_topic(cluster)
        return cluster

    shared = SharedCluster(start, clear)
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def cluster(shared_cluster: SharedCluster) -> Iterator[EmbeddedCluster]:
    """Return four brokers, which the next module gets as this one got them: nothing moves, and there are no topics.

    A module may freeze or kill a broker if it brings it back. One that needs a cluster to itself has its own fixture.
    """
    with shared_cluster.lent() as lent:
        yield lent


@pytest.fixture(scope="module")
def config_file(cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a settings file with a store of the module's own; the journal there is checked at the end of the module."""
    folder = tmp_path_factory.mktemp("settings")
    text = write_config(cluster).read_text(encoding="utf-8")
    file = folder / "headroom.toml"
    file.write_text(text.replace(str(cluster.folder / "headroom-data"), str(folder / "store")))
    yield file
    used = load_settings(str(file))
    assert journal_violations(ActionJournal(used.store.path).rows(used.cluster.name)) == []


@pytest.fixture(scope="module")
def settings(config_file: Path) -> Settings:
    return load_settings(str(config_file))
