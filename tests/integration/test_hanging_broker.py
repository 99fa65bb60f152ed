"""Starting while one of three brokers hangs: it takes connections and answers nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from headroom.cluster.collector.collector import Collector, TickReport
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.schemas.config import ClusterSettings, Settings
from tests.integration.support import admin_of, create_topic, wait_until
from tests.integration.ticks import lacks_only, settings_of

# What waiting for the broker that hangs would cost, and what starting may cost on a busy machine.
REQUEST_TIMEOUT_MS = 60_000
START_S = 40.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three brokers of this module's own, each a replica of all partitions."""
    with EmbeddedCluster(tmp_path_factory.mktemp("hanging"), brokers=3) as started:
        create_topic(started, "orders", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
        yield started


@pytest.fixture(params=[1, 2, 3])
def paused(request: pytest.FixtureRequest, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Return the broker that hangs for the length of the test, and is tried first."""
    monkeypatch.setattr("headroom.cluster.connection.bootstrap.random.sample", lambda items, count: list(items)[:count])
    # Where the two others are late, the one that hangs would be asked first after all.
    monkeypatch.setattr("headroom.cluster.connection.admin_connection._GREETING_S", 5.0)
    cluster.pause(request.param)
    yield request.param
    cluster.resume(request.param)
    wait_until(lambda: set(_isr_sizes(cluster)) == {3}, 90, "all replicas in sync", lambda: _isr_sizes(cluster))


def _isr_sizes(cluster: EmbeddedCluster) -> list[int]:
    with admin_of(cluster) as admin:
        return [len(p["isr_nodes"]) for p in admin.describe_topics(["orders"])[0]["partitions"]]


def _settings(cluster: EmbeddedCluster, first: int) -> Settings:
    settings = settings_of(cluster, f"ticks.without.{first}")
    servers = [f"{b.host}:{b.port}" for b in sorted(cluster.brokers, key=lambda b: (b.broker_id != first, b.broker_id))]
    watched = ClusterSettings(name="test", bootstrap_servers=",".join(servers), request_timeout_ms=REQUEST_TIMEOUT_MS)
    return replace(settings, cluster=watched)


def test_a_broker_that_hangs_delays_neither_tools_nor_the_collector(cluster: EmbeddedCluster, paused: int) -> None:
    settings = _settings(cluster, paused)
    _asks_another(settings, paused)
    reports: list[TickReport] = []
    stop = threading.Event()
    thread = threading.Thread(target=Collector(settings, on_tick=reports.append).run, args=(stop,), daemon=True)
    thread.start()
    try:
        # Until the cluster sees after 9 s that the broker hangs, it may lead a partition of the ticks topic.
        # A busy machine may be late with the first answers of the others; none of them may be missing for long.
        wait_until(lambda: reports and lacks_only(reports[-1], paused), 90, "whole ticks", lambda: reports[-1:])
    finally:
        stop.set()
        wait_until(lambda: not thread.is_alive(), 30, "the collector stops")


def _asks_another(settings: Settings, paused: int) -> None:
    began, link = time.monotonic(), AdminConnection(settings.cluster)
    try:
        assert "orders" in link.client().list_topics()
        assert link.nodes()[0] != paused
    finally:
        link.close()
    assert time.monotonic() - began < START_S
