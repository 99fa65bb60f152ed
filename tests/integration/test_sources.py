"""JMX, Jolokia and jmx_exporter on real brokers with the real agents: the same tick, and access control."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import NewPartitions

from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, endpoint
from headroom.cluster.embedded.agents import EXPORTER_CONFIG, exporter_option, jolokia_option
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.metrics.factory import metrics_source
from headroom.cluster.metrics.load_meters import (
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_DIRS_TOTAL,
    LOG_DIRS_USABLE,
    LOG_DIRS_USED,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    produce_requests,
    topic_consumed,
)
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.throttles.rates import apply_rates
from headroom.cluster.throttles.replica_lists import apply_lists
from headroom.operations.check.brokers import broker_checks
from headroom.operations.check.result import Check, CheckStatus
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import CollectSettings, Settings, Source
from tests.integration.conftest import StartCluster
from tests.integration.support import admin_of, create_topic, wait_until
from tests.integration.ticks import Running, Tick, collecting, settings_of
from tests.support.certificates import Certificate, key_store, make_certificate
from tests.support.ports import own_port

RATE_BYTES_PER_S = 400_000.0
THROTTLE = 50_000_000
PASSWORD = "secret-of-the-test"
WINDOW_S = 10.0


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Two brokers with agents, a load on each, and a topic whose listed replicas make the quotas count."""
    with EmbeddedCluster(tmp_path_factory.mktemp("agents"), 2, options=BrokerOptions(agents=True)) as cluster:
        create_topic(cluster, "orders", {0: [1, 2], 1: [2, 1]})
        create_topic(cluster, "Pay.v2", {0: [2, 1]})
        apply_rates(settings_of(cluster), dict.fromkeys((1, 2), THROTTLE))
        apply_lists(settings_of(cluster), {"orders": TopicLists("*", "*")})
        rates = {("orders", 0): RATE_BYTES_PER_S, ("orders", 1): RATE_BYTES_PER_S, ("Pay.v2", 0): RATE_BYTES_PER_S / 2}
        with PacedProducer(cluster.bootstrap_servers, rates, record_bytes=2_000):
            yield cluster


# Meters that are read apart from the ticks.
LOADS = {
    *(f"BrokerTopicMetrics.{name}" for name in ("TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec")),
    *(meter.meter for meter in (PRODUCE_P99, FOLLOWER_FETCH_P99, LOG_FLUSH_P999, HANDLER_IDLE)),
    *(meter.meter for meter in (LOG_DIRS_USED, LOG_DIRS_USABLE, LOG_DIRS_TOTAL)),
}


def is_load(row: dict[str, Any]) -> bool:
    """Return whether a meter is read apart from the ticks."""
    consumed = row["meter"] == topic_consumed().meter and row["topic"] is not None
    return consumed or row["meter"] in LOADS


def loads(tick: Tick) -> set[tuple[Any, ...]]:
    """Return which loads a tick has, without those of internal topics."""
    return {
        (row["broker"], row["meter"], row["topic"], row["gauge_value"] is None)
        for row in tick.rows("meters")
        if is_load(row) and row["topic"] in (None, "orders", "Pay.v2")
    }


def loaded(tick: Tick) -> bool:
    """Return whether a tick has rates of requests of all topics, and of both brokers."""
    requested = {
        (row["broker"], row["topic"])
        for row in tick.rows("meters")
        if row["meter"] == produce_requests().meter and row["prev_count_total"] is not None
    }
    rated = {row["broker"] for row in tick.rows("broker_performance") if row["prev_handler_idle_ns"] is not None}
    return requested >= {(1, None), (2, None), (1, "orders"), (2, "orders"), (2, "Pay.v2")} and rated == {1, 2}


def performance(tick: Tick) -> dict[int, set[str]]:
    """Return what is known of each broker's performance."""
    return {
        row["broker"]: {name for name, value in row.items() if value is not None}
        for row in tick.rows("broker_performance")
    }


def names(tick: Tick) -> dict[str, set[Any]]:
    """Return what a tick tells of, without its values; meters of topics that the collectors themselves make aside."""
    return {
        "meters": {
            (row["broker"], row["meter"], row["topic"], row["fetcher"], row["gauge_value"] is None)
            for row in tick.rows("meters")
            if not is_load(row)
        },
        "lags": {(row["broker"], row["topic"], row["partition"], row["fetcher"]) for row in tick.rows("lags")},
        "logs": {
            (row["broker"], row["topic"], row["partition"], row["is_leader"], row["size_bytes"] is None)
            for row in tick.rows("logs")
        },
        "moves": {(row["topic"], row["partition"], len(row["logs"])) for row in tick.rows("moves")},
        "silent": {(row["broker"], row["error"]) for row in tick.rows("brokers")},
    }


def grown(of: tuple[Any, ...], row: dict[str, Any], value: str) -> dict[tuple[Any, ...], tuple[float, int]]:
    """Return the growth of a value per second and the window that it was taken over, ms; nothing without a window."""
    if row["prev_read_ms"] is None or row[f"prev_{value}"] is None:
        return {}
    window_ms = row["read_ms"] - row["prev_read_ms"]
    return {of: ((row[value] - row[f"prev_{value}"]) / window_ms * 1000, window_ms)}


def growths(tick: Tick) -> dict[tuple[Any, ...], tuple[float, int]]:
    """Return growth per second and window of every count, and of every watched log's bytes and offsets."""
    found = {}
    for row in tick.rows("meters"):
        if is_load(row):
            continue
        found |= grown((row["broker"], row["meter"], row["topic"], row["fetcher"]), row, "count_total")
    for move in tick.rows("moves"):
        for log in move["logs"]:
            for value in ("size_bytes", "log_end_offset"):
                found |= grown((log["broker"], value, move["topic"], move["partition"]), log, value)
    return found


def rates(tick: Tick) -> dict[tuple[Any, ...], float]:
    """Return the growth of everything per second, and what the brokers say that counts against their quotas."""
    quotas = [row for row in tick.rows("meters") if row["meter"].endswith(".byte-rate")]
    text = {(row["broker"], row["meter"]): row["gauge_value"] for row in quotas}
    return text | {of: per_s for of, (per_s, _) in growths(tick).items()}


# Must be among the rates: the topics on their leaders, the watched logs, and the quotas.
EXPECTED = {
    *((1, f"BrokerTopicMetrics.{meter}", "orders", None) for meter in ("BytesInPerSec", "MessagesInPerSec")),
    *(
        (2, f"BrokerTopicMetrics.{meter}", topic, None)
        for meter in ("BytesInPerSec", "MessagesInPerSec")
        for topic in ("orders", "Pay.v2")
    ),
    *((broker, "size_bytes", "orders", partition) for broker in (1, 2) for partition in (0, 1)),
    *((broker, f"{quota}.byte-rate") for broker in (1, 2) for quota in ("LeaderReplication", "FollowerReplication")),
}


def settled(tick: Tick) -> bool:
    """Return whether a tick has a whole window of everything, the quotas too."""
    windows = [window_ms for _, window_ms in growths(tick).values()]
    silent = [row for row in tick.rows("brokers") if row["error"] is not None]
    return not silent and rates(tick).keys() >= EXPECTED and min(windows) >= WINDOW_S * 980


def ticks_that_agree(running: dict[Source, Running]) -> dict[Source, Tick] | None:
    """Return the newest settled ticks of all sources if they tell the same; None otherwise.

    Their windows begin up to some seconds apart: the rates differ while the load stalls.
    """
    newest = {source: next(filter(settled, reversed([*each.ticks])), None) for source, each in running.items()}
    ticks = {source: tick for source, tick in newest.items() if tick is not None}
    if len(ticks) < len(Source):
        return None
    shown, measured = names(ticks[Source.JMX]), rates(ticks[Source.JMX])
    agree = (names(t) == shown and rates(t) == pytest.approx(measured, rel=0.15) for t in ticks.values())
    return ticks if all(agree) else None


def test_all_sources_return_the_same_tick(agents: EmbeddedCluster) -> None:
    with ExitStack() as stack:
        running: dict[Source, Running] = {
            source: stack.enter_context(collecting(with_loads(settings_of(agents, window_s=WINDOW_S, source=source))))
            for source in Source
        }
        ticks = wait_until(lambda: ticks_that_agree(running), 180, "ticks of one moment that agree")
        carried = {source: each.tick_with(loaded, f"loads by {source.value}") for source, each in running.items()}
        sized = {(1, "orders", 0), (2, "orders", 0), (2, "Pay.v2", 0)}
        each = running.values()
        wait_until(lambda: all(replicas(one.ticks) >= sized for one in each), 60, "the sizes of replicas by all")
    shown = names(ticks[Source.JMX])
    assert shown["silent"] == {(1, None), (2, None)}
    assert (1, "LeaderReplication.byte-rate", None, None, False) in shown["meters"]
    assert (2, "FetcherStats.BytesPerSec", None, "ReplicaFetcherThread-0-1", True) in shown["meters"]
    for source in (Source.JOLOKIA, Source.PROMETHEUS):
        assert loads(carried[source]) == loads(carried[Source.JMX]), source
        assert performance(carried[source]) == performance(carried[Source.JMX]), source
    whole = {"produce_p99_ms", "follower_fetch_p99_ms", "log_flush_p999_ms", "handler_idle_ns", "prev_produce_requests"}
    assert all(found >= whole for found in performance(carried[Source.JMX]).values())


def with_loads(settings: Settings) -> Settings:
    """Return the settings with loads read every other second."""
    return replace(settings, collect=replace(settings.collect, load_interval_s=2.0))


def replicas(ticks: list[Tick]) -> set[tuple[int, str, int]]:
    """Return the replicas whose sizes ticks have."""
    rows = (row for tick in [*ticks] for row in tick.rows("replica_sizes") if row["size_bytes"])
    return {(row["broker"], row["topic"], row["partition"]) for row in rows}


@pytest.mark.parametrize("source", Source)
def test_check_finds_nothing_missing(agents: EmbeddedCluster, source: Source) -> None:
    rows: list[Check] = []

    def all_ok() -> bool:
        rows[:] = broker_checks(settings_of(agents, source=source))
        return all(row.answer is CheckStatus.OK for row in rows)

    # A broker has metrics of a topic once it has got a request for it.
    wait_until(all_ok, 60, "a check without a finding", lambda: rows)
    # For each broker its rates, the source, and the MBeans of logs, lags and loads.
    assert len(rows) == 10


@pytest.fixture
def server(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path, "server")


@pytest.fixture
def client(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path, "client")


@pytest.fixture
def secured(tmp_path: Path, start_cluster: StartCluster, server: Certificate, client: Certificate) -> dict[Source, str]:
    """A broker whose agents speak TLS and ask for a password, Jolokia for a client's certificate too."""
    jolokia, exporter = own_port(), own_port()
    tls = {"protocol": "https", "serverCert": server.pem, "serverKey": server.key}
    clients = {"useSslClientAuthentication": "true", "caCert": client.pem, "authMatch": "all"}
    asked = {"user": "monitor", "password": PASSWORD}
    config = tmp_path / "jmx_exporter.yml"
    config.write_text(f"""{EXPORTER_CONFIG.read_text()}
httpServer:
  authentication:
    basic: {{username: monitor, password: {PASSWORD}}}
  ssl:
    keyStore: {{filename: {key_store(server, PASSWORD)}, password: {PASSWORD}}}
    certificate: {{alias: own}}
""")
    options = [jolokia_option(jolokia, {**tls, **clients, **asked}), exporter_option(exporter, config)]
    start_cluster(1, BrokerOptions(java_options={1: options}))
    return {Source.JOLOKIA: f"127.0.0.1:{jolokia}", Source.PROMETHEUS: f"127.0.0.1:{exporter}"}


def read(collect: CollectSettings, address: str) -> int | None:
    """Return the broker's start, as a source of its own tells it."""
    source = metrics_source(collect)
    try:
        return source.read(1, address, ReadPlan([], [], []), 8).started_ms
    finally:
        source.stop()


def test_agents_are_read_with_password_and_tls_and_not_without(
    secured: dict[Source, str], server: Certificate, client: Certificate
) -> None:
    for source, address in secured.items():
        collect = CollectSettings(
            source=source,
            http_ssl=True,
            http_cafile=str(server.pem),
            http_certfile=str(client.pem),
            http_keyfile=str(client.key),
            http_username="monitor",
            http_password=PASSWORD,
        )
        assert read(collect, address), source
        with pytest.raises(MetricsError, match="user, password or token refused") as refused:
            read(replace(collect, http_password="wrong-secret"), address)
        assert "wrong-secret" not in str(refused.value)
        with pytest.raises(MetricsError, match="TLS failed: self-signed certificate"):
            read(replace(collect, http_cafile=None), address)
        with pytest.raises(MetricsError):
            read(replace(collect, http_ssl=False), address)
    stranger = CollectSettings(source=Source.JOLOKIA, http_ssl=True, http_cafile=str(server.pem))
    with pytest.raises(MetricsError):
        read(replace(stranger, http_username="monitor", http_password=PASSWORD), secured[Source.JOLOKIA])


def test_jolokias_policy_lets_nothing_else_through(agents: EmbeddedCluster) -> None:
    asked = [
        {"type": "read", "mbean": "java.lang:type=Runtime", "attribute": "SystemProperties"},
        {"type": "read", "mbean": "kafka.server:type=app-info,id=1", "attribute": "Version"},
        {"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"},
    ]
    address = f"http://{endpoint(agents.broker(1), Source.JOLOKIA)}/jolokia/"
    request = urllib.request.Request(address, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = json.loads(answer.read())
    assert [result["status"] for result in text] == [403, 403, 403]


def test_a_broker_whose_agent_went_away_costs_only_its_own_rows(agents: EmbeddedCluster) -> None:
    settings = settings_of(agents, source=Source.JOLOKIA)
    gone = f"127.0.0.1:{own_port()}"
    endpoints = {**settings.collect.endpoints, "2": gone}
    with collecting(replace(settings, collect=replace(settings.collect, endpoints=endpoints))) as running:
        refused = f"http://{gone}/jolokia/: connection refused. Start the broker with the agent"
        tick = running.tick_with(
            lambda t: t.rows("meters") and any(silent["reason"].startswith(refused) for silent in t.end["unanswered"]),
            "a tick without the broker's metrics",
        )
    (silent,) = tick.end["unanswered"]
    assert silent["broker"] == 2
    assert {row["broker"] for row in tick.rows("meters")} == {1}


@pytest.mark.parametrize("source", Source)
def test_a_topic_that_grows_and_goes_between_ticks_costs_no_tick_and_no_other_row(
    agents: EmbeddedCluster, source: Source
) -> None:
    topic, settings = f"passing-{source.value}", settings_of(agents, source=source)
    settings = replace(settings, collect=replace(settings.collect, broker_timeout_s=30.0))
    create_topic(agents, topic, {0: [1, 2], 1: [2, 1]})
    apply_lists(settings, {topic: TopicLists("*", "*")})
    with admin_of(agents) as admin, collecting(settings) as running:
        # Every partition is listed, and so has a row on both brokers.
        running.tick_with(lambda tick: len(sampled(tick, topic)) == 4, "two partitions with samples", 120)
        admin.create_partitions({topic: NewPartitions(40)})
        running.tick_with(lambda tick: len(sampled(tick, topic)) == 80, "forty partitions with samples", 120)
        admin.delete_topics([topic])
        running.tick_with(lambda tick: well_without(tick, topic), "ticks with nothing of the topic", 120)
    assert [report.failed for report in running.reports if report.failed] == []
    # A busy machine may cost a broker its time, and that is all that it may be silent for.
    silent = [row["reason"] for tick in running.ticks for row in tick.end["unanswered"]]
    assert [reason for reason in silent if "did not answer" not in reason and "still hangs" not in reason] == []
    assert {len(logs_of(tick, "orders")) for tick in running.ticks if not tick.end["unanswered"]} == {4}


def logs_of(tick: Tick, topic: str) -> list[dict[str, Any]]:
    """Return a topic's logs on all brokers."""
    return [row for row in tick.rows("logs") if row["topic"] == topic]


def well_without(tick: Tick, topic: str) -> bool:
    """Return whether nothing is missing, and nobody tells of a topic any more."""
    shown = {row["topic"] for kind in ("leaders", "logs", "lags", "moves") for row in tick.rows(kind)}
    return topic not in shown and [row["error"] for row in tick.rows("brokers")] == [None, None]


def sampled(tick: Tick, topic: str) -> list[dict[str, Any]]:
    """Return those of which there is an earlier sample too."""
    return [row for row in logs_of(tick, topic) if row["prev_read_ms"] is not None]
