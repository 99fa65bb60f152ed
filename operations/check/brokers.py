"""Checks of each broker: its throttle rates, and its metrics from the configured source."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from kafka.errors import KafkaError

from headroom.cluster.connection.admin_connection import AdminConnection, connection_options
from headroom.cluster.connection.refusal import NO_ANSWER, no_answer, why_refused
from headroom.cluster.metadata.snapshot_reader import SnapshotReader, rates_remedy, read_broker_configs
from headroom.cluster.metrics.factory import metrics_source
from headroom.cluster.metrics.mbeans import LOAD, TICK_AND_IDENTITY, ReadPlan
from headroom.cluster.metrics.missing_load import find_missing_load
from headroom.cluster.metrics.missing_metrics import REMEDIES, find_missing_metrics
from headroom.cluster.metrics.source import MetricsError, MetricsSource
from headroom.cluster.model import Broker, Metrics, Snapshot
from headroom.operations.check.result import Check, CheckStatus, failure, ok, unknown, with_timeout
from headroom.schemas.config import CollectSettings, Settings, Source

CONNECT_TIMEOUT_S = 3.0
# The first read over JMX also loads stubs and classes, so it is slower than the read of a tick.
READ_TIMEOUT_S = 10.0
_MAX_TOPICS = 20
_NAMES = {Source.JMX: "JMX", Source.JOLOKIA: "Jolokia", Source.PROMETHEUS: "jmx_exporter"}
_START_REMEDIES = {
    Source.JMX: "Start the broker with JMX_PORT set",
    Source.JOLOKIA: "Start the broker with Jolokia's agent, listening on an address that can be reached from here",
    Source.PROMETHEUS: "Start the broker with jmx_exporter's agent, on an address that can be reached from here",
}
# A machine that is up refuses a port at which nobody listens.
_NO_CONNECTION = f"no connection within {CONNECT_TIMEOUT_S:g} s"
_NO_CONNECTION_REMEDY = "See that the broker's machine is up, then that no firewall keeps this port from here"


@dataclass(frozen=True)
class _Probe:
    """The connections and the snapshot with which a broker is checked."""

    settings: Settings
    connection: AdminConnection
    source: MetricsSource
    snapshot: Snapshot

    def checks(self, broker: Broker) -> list[Check]:
        """Return the checks of one broker."""
        collect = self.settings.collect
        metrics = metrics_checks(collect, self.source, self.snapshot, broker)
        # A broker without metrics has no loads either, for the same reason.
        loads = load_checks(collect, self.source, self.snapshot, broker) if metrics[0].answer is CheckStatus.OK else []
        return [self._rates(broker), *metrics, *loads]

    def _rates(self, broker: Broker) -> Check:
        name = f"Broker {broker.broker}: throttle rates"
        try:
            read_broker_configs(self.connection, broker.broker, READ_TIMEOUT_S)
        except KafkaError as error:
            kafka, address = self.settings.cluster, f"{broker.host}:{broker.port}"
            refusal = why_refused(kafka, connection_options(kafka), [address], "cluster")
            if refusal is not None:
                return failure(name, refusal.rule, refusal.remedy)
            reason = no_answer(READ_TIMEOUT_S).rule if isinstance(error, NO_ANSWER) else type(error).__name__
            return failure(name, f"{address}: {reason}", rates_remedy(error))
        return ok(name, f"read from {broker.host}:{broker.port}")


def broker_checks(settings: Settings) -> list[Check]:
    """Return the checks of every broker that is registered or has a replica; brokers are checked in parallel.

    Raises:
        HeadroomError: no broker could be reached, or the metrics source could not be started.
        MetadataError: the metadata could not be read.
    """
    with _probe(settings) as probe, ThreadPoolExecutor() as pool:
        brokers = sorted(probe.snapshot.brokers.values(), key=lambda broker: broker.broker)
        return [row for rows in pool.map(lambda broker: _broker_checks(probe, broker), brokers) for row in rows]


def endpoint_of(collect: CollectSettings, broker: Broker) -> str | None:
    """Return ``host:port`` of a broker's metrics; None if its host is not known."""
    return collect.endpoint(broker.broker, broker.host)


def metrics_checks(collect: CollectSettings, source: MetricsSource, snapshot: Snapshot, broker: Broker) -> list[Check]:
    """Return whether a broker's metrics endpoint can be reached, and which of the required metrics it exposes."""
    name = f"Broker {broker.broker}: {_NAMES[collect.source]}"
    endpoint = endpoint_of(collect, broker)
    if endpoint is None:
        return [unknown(name, "its host is not known", f'Set {broker.broker} = "host:port" under [collect.endpoints].')]
    connect_error = tcp_error(endpoint)
    if connect_error:
        settings = f"or set collect.port or {broker.broker} under [collect.endpoints]."
        start = _NO_CONNECTION_REMEDY if connect_error == _NO_CONNECTION else _START_REMEDIES[collect.source]
        return [failure(name, f"{endpoint}: {connect_error}", f"{start}, {settings}")]
    plan = _plan(snapshot, broker.broker)
    try:
        metrics = source.read(broker.broker, endpoint, plan, READ_TIMEOUT_S)
    except MetricsError as error:
        return [failure(name, f"{error.subject}: {error.rule}", error.remedy)]
    return [ok(name, endpoint), *_mbeans(broker.broker, plan, metrics, REMEDIES[collect.source])]


def load_checks(collect: CollectSettings, source: MetricsSource, snapshot: Snapshot, broker: Broker) -> list[Check]:
    """Return which loads a broker exposes, and the goals of ``headroom balance`` that are lost without the others.

    Missing ones are unknown and no failure, because the watch does not need them.
    """
    title, remedy = f"Broker {broker.broker}: load MBeans", REMEDIES[collect.source]
    plan = ReadPlan(_plan(snapshot, broker.broker).topics, (), (), scope=LOAD)
    try:
        metrics = source.read(broker.broker, endpoint_of(collect, broker) or "", plan, READ_TIMEOUT_S)
    except MetricsError as error:
        return [unknown(title, f"{error.subject}: {error.rule}", error.remedy)]
    missing = find_missing_load(metrics)
    if not missing:
        return [ok(title, "read")]
    return [
        unknown(f"Broker {broker.broker}: {m.metric}", f"not exposed; without it: {m.consequence}", remedy)
        for m in missing
    ]


def tcp_error(endpoint: str) -> str | None:
    """Return why a TCP connection to ``host:port`` failed; None if it succeeded."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except TimeoutError:
        return _NO_CONNECTION
    except OSError as error:
        return error.strerror or str(error)
    return None


@contextmanager
def _probe(settings: Settings) -> Iterator[_Probe]:
    connection, source = AdminConnection(settings.cluster), metrics_source(settings.collect)
    try:
        snapshot = SnapshotReader(connection, settings.cluster.request_timeout_ms / 1000, 0.0).snapshot()
        source.start()
        yield _Probe(settings, connection, source, snapshot)
    finally:
        source.stop()
        connection.close()


def _broker_checks(probe: _Probe, broker: Broker) -> list[Check]:
    name = f"Broker {broker.broker}"
    if not broker.alive:
        return [failure(name, "has replicas but is not registered", "Start it; until then its verdicts are no_data.")]
    limit_s = CONNECT_TIMEOUT_S + 3 * READ_TIMEOUT_S
    return with_timeout(name, limit_s, lambda: probe.checks(broker))


def _plan(snapshot: Snapshot, broker: int) -> ReadPlan:
    """Return the reads of up to 20 topics and of one log, which is read as if it were moving.

    This covers every kind of metric that a tick can need from the broker.
    """
    replicas = [p for p in snapshot.partitions.values() if broker in p.replicas]
    led = [p.name for p in replicas if p.leader == broker]
    follows = any(broker in p.isr and p.leader not in (None, broker) for p in replicas)
    topics = list(dict.fromkeys(name.topic for name in led))[:_MAX_TOPICS]
    return ReadPlan(topics, led[:1], led[:1], len(replicas), follows, TICK_AND_IDENTITY)


def _mbeans(broker: int, plan: ReadPlan, metrics: Metrics, remedy: str) -> list[Check]:
    missing = find_missing_metrics(plan, metrics)
    rows = []
    for name, kind, expected, reason in (
        ("Log MBeans", "Log ", bool(plan.leads), "leads no partition"),
        ("FetcherLag MBeans", "FetcherLagMetrics ", plan.follows, "follows no leader"),
    ):
        title = f"Broker {broker}: {name}"
        if not expected:
            reason = f"the broker {reason} now, so it has none"
            rows.append(unknown(title, reason, "Nothing to do; check again when it has."))
        elif not any(metric.metric.startswith(kind) for metric in missing):
            rows.append(ok(title, "read"))
    for metric in missing:
        answer = failure if metric.certain else unknown
        rows.append(
            answer(f"Broker {broker}: {metric.metric}", f"not exposed; without it: {metric.consequence}", remedy)
        )
    return rows
