"""Checks of single brokers: their throttle rates, and their metrics by the source that is configured."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from kafka.errors import KafkaError

from cli.check.result import Check, bounded, no, ok, unknown
from cluster.connection.admin_connection import AdminConnection, connection_options
from cluster.connection.refusal import Refusal, why_refused
from cluster.metadata.snapshot_reader import RATES_REMEDY, SnapshotReader, read_broker_configs
from cluster.metrics.factory import metrics_source
from cluster.metrics.mbeans import ReadPlan
from cluster.metrics.missing_metrics import REMEDIES, find_missing_metrics
from cluster.metrics.source import MetricsError, MetricsSource
from cluster.model import Broker, Metrics, Snapshot
from schemas.config import CollectSettings, Settings, Source

CONNECT_TIMEOUT_S = 3.0
# JMX reads its own stubs and classes first: the first read is slower than those of a tick.
READ_TIMEOUT_S = 10.0
_TOPICS = 20
_NAMES = {Source.JMX: "JMX", Source.JOLOKIA: "Jolokia", Source.PROMETHEUS: "jmx_exporter"}
_OPEN = {
    Source.JMX: "Start the broker with JMX_PORT set",
    Source.JOLOKIA: "Start the broker with Jolokia's agent, listening on an address that can be reached from here",
    Source.PROMETHEUS: "Start the broker with jmx_exporter's agent, on an address that can be reached from here",
}


@dataclass(frozen=True)
class _Probe:
    """What the check of a broker works with."""

    settings: Settings
    link: AdminConnection
    source: MetricsSource
    snapshot: Snapshot

    def checks(self, broker: Broker) -> list[Check]:
        """Return the rows of one broker."""
        return [self._rates(broker), *metrics_checks(self.settings.collect, self.source, self.snapshot, broker)]

    def _rates(self, broker: Broker) -> Check:
        name = f"Broker {broker.broker}: throttle rates"
        try:
            read_broker_configs(self.link, broker.broker, READ_TIMEOUT_S)
        except KafkaError as error:
            refusal = self._refusal(broker)
            if refusal is not None:
                return no(name, refusal.rule, refusal.remedy)
            return no(name, f"{broker.host}:{broker.port}: {type(error).__name__}", RATES_REMEDY)
        return ok(name, f"read from {broker.host}:{broker.port}")

    def _refusal(self, broker: Broker) -> Refusal | None:
        """Return why a broker refuses connections at the address that it advertises; None: it takes them."""
        kafka = self.settings.cluster
        return why_refused(kafka, connection_options(kafka), [f"{broker.host}:{broker.port}"], "cluster")


def broker_checks(settings: Settings) -> list[Check]:
    """Return the rows of every broker that is registered or holds a replica, asked side by side.

    Raises:
        HeadroomError: no broker could be reached, or the source of their metrics could not be started.
        MetadataError: the metadata could not be read.
    """
    with _probe(settings) as probe, ThreadPoolExecutor() as pool:
        brokers = sorted(probe.snapshot.brokers.values(), key=lambda broker: broker.broker)
        return [row for rows in pool.map(lambda broker: _of_broker(probe, broker), brokers) for row in rows]


def endpoint_of(collect: CollectSettings, broker: Broker) -> str | None:
    """Return ``host:port`` of a broker's metrics; None when its host is not known."""
    given = collect.endpoints.get(str(broker.broker))
    return given or (f"{broker.host}:{collect.metrics_port()}" if broker.host else None)


def metrics_checks(collect: CollectSettings, source: MetricsSource, snapshot: Snapshot, broker: Broker) -> list[Check]:
    """Return whether a broker's metrics can be reached, and which of those that matter can be read there."""
    name = f"Broker {broker.broker}: {_NAMES[collect.source]}"
    endpoint = endpoint_of(collect, broker)
    if endpoint is None:
        return [unknown(name, "its host is not known", f'Set {broker.broker} = "host:port" under [collect.endpoints].')]
    refused = tcp_error(endpoint)
    if refused:
        settings = f"or set collect.port or {broker.broker} under [collect.endpoints]."
        return [no(name, f"{endpoint}: {refused}", f"{_OPEN[collect.source]}, {settings}")]
    plan = _plan(snapshot, broker.broker)
    try:
        metrics = source.read(broker.broker, endpoint, plan, READ_TIMEOUT_S)
    except MetricsError as error:
        return [no(name, f"{error.subject}: {error.rule}", error.remedy)]
    return [ok(name, endpoint), *_mbeans(broker.broker, plan, metrics, REMEDIES[collect.source])]


def tcp_error(endpoint: str) -> str | None:
    """Return why a TCP connection to ``host:port`` could not be made; None if it could."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


@contextmanager
def _probe(settings: Settings) -> Iterator[_Probe]:
    link, source = AdminConnection(settings.cluster), metrics_source(settings.collect)
    try:
        snapshot = SnapshotReader(link, settings.cluster.request_timeout_ms / 1000, 0.0).snapshot()
        source.start()
        yield _Probe(settings, link, source, snapshot)
    finally:
        source.stop()
        link.close()


def _of_broker(probe: _Probe, broker: Broker) -> list[Check]:
    name = f"Broker {broker.broker}"
    if not broker.alive:
        return [no(name, "holds replicas but is not registered", "Start it; until then its verdicts are no_data.")]
    limit_s = CONNECT_TIMEOUT_S + 2 * READ_TIMEOUT_S
    return bounded(name, limit_s, lambda: probe.checks(broker))


def _plan(snapshot: Snapshot, broker: int) -> ReadPlan:
    """Return the reads of a few topics and of one log, that one as closely as if it moved: nothing is left out."""
    held = [p for p in snapshot.partitions.values() if broker in p.replicas]
    led = [p.name for p in held if p.leader == broker]
    follows = any(broker in p.isr and p.leader not in (None, broker) for p in held)
    return ReadPlan(list(dict.fromkeys(name.topic for name in led))[:_TOPICS], led[:1], led[:1], len(held), follows)


def _mbeans(broker: int, plan: ReadPlan, metrics: Metrics, remedy: str) -> list[Check]:
    found = find_missing_metrics(plan, metrics)
    rows = []
    for name, kind, expected, excuse in (
        ("Log MBeans", "Log ", bool(plan.leads), "leads no partition"),
        ("FetcherLag MBeans", "FetcherLagMetrics ", plan.follows, "follows no leader"),
    ):
        title = f"Broker {broker}: {name}"
        if not expected:
            excuse = f"the broker {excuse} now, so it has none"
            rows.append(unknown(title, excuse, "Nothing to do; look again when it has."))
        elif not any(loss.metric.startswith(kind) for loss in found):
            rows.append(ok(title, "read"))
    for loss in found:
        answer = no if loss.certain else unknown
        rows.append(answer(f"Broker {broker}: {loss.metric}", f"not told; without it: {loss.lost}", remedy))
    return rows
