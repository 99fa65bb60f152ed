"""Checks of single brokers: their throttle rates, and their MBeans over JMX."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from kafka.errors import KafkaError

from cli.check_result import Check, bounded, no, ok, unknown
from cluster.admin import MetadataReader, read_broker_throttles
from cluster.client import AdminLink
from cluster.jmx import JmxSource, MetricsError
from cluster.jmx_gateway import JmxGateway
from cluster.mbeans import Plan
from cluster.model import Broker, Metrics, Snapshot
from schemas.config import CollectSettings, Settings

CONNECT_TIMEOUT_S = 3.0
# JMX reads its own stubs and classes first: the first read is slower than those of a tick.
READ_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class _Probe:
    """What the check of a broker works with."""

    settings: Settings
    link: AdminLink
    source: JmxSource
    snapshot: Snapshot

    def checks(self, broker: Broker) -> list[Check]:
        """Return the rows of one broker."""
        return [self._rates(broker), *jmx_checks(self.settings.collect, self.source, self.snapshot, broker)]

    def _rates(self, broker: Broker) -> Check:
        name = f"Broker {broker.broker}: throttle rates"
        try:
            read_broker_throttles(self.link, broker.broker, READ_TIMEOUT_S)
        except KafkaError as error:
            remedy = "Grant DESCRIBE_CONFIGS on the cluster to this user, and see that the broker is up."
            return no(name, f"{broker.host}:{broker.port}: {type(error).__name__}", remedy)
        return ok(name, f"read from {broker.host}:{broker.port}")


def broker_checks(settings: Settings) -> list[Check]:
    """Return the rows of every broker that is registered or holds a replica, asked side by side.

    Raises:
        HeadroomError: no broker could be reached, or the JVM that reads JMX could not be started.
        MetadataError: the metadata could not be read.
    """
    with _probe(settings) as probe, ThreadPoolExecutor() as pool:
        brokers = sorted(probe.snapshot.brokers.values(), key=lambda broker: broker.broker)
        return [row for rows in pool.map(lambda broker: _of_broker(probe, broker), brokers) for row in rows]


def endpoint_of(collect: CollectSettings, broker: Broker) -> str | None:
    """Return ``host:port`` of a broker's metrics; None when its host is not known."""
    given = collect.endpoints.get(str(broker.broker))
    return given or (f"{broker.host}:{collect.port}" if broker.host else None)


def jmx_checks(collect: CollectSettings, source: JmxSource, snapshot: Snapshot, broker: Broker) -> list[Check]:
    """Return whether a broker's JMX can be reached, and whether the MBeans that matter can be read there."""
    name = f"Broker {broker.broker}: JMX"
    endpoint = endpoint_of(collect, broker)
    if endpoint is None:
        return [unknown(name, "its host is not known", f'Set {broker.broker} = "host:port" under [collect.endpoints].')]
    refused = tcp_error(endpoint)
    if refused:
        remedy = (
            f"Start the broker with JMX_PORT set, or set collect.port or {broker.broker} under [collect.endpoints]."
        )
        return [no(name, f"{endpoint}: {refused}", remedy)]
    try:
        metrics = source.read(broker.broker, endpoint, _plan(snapshot, broker.broker), READ_TIMEOUT_S)
    except MetricsError as error:
        remedy = "See that java.rmi.server.hostname and the RMI port can be reached from here, and collect.jmx_*."
        return [no(name, str(error), remedy)]
    return [ok(name, endpoint), *_mbeans(snapshot, broker.broker, metrics)]


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
    link, gateway = AdminLink(settings.cluster), JmxGateway(settings.collect)
    try:
        snapshot = MetadataReader(link, settings.cluster.request_timeout_ms / 1000, 0.0).snapshot()
        gateway.start()
        yield _Probe(settings, link, JmxSource(gateway), snapshot)
    finally:
        gateway.stop()
        link.close()


def _of_broker(probe: _Probe, broker: Broker) -> list[Check]:
    name = f"Broker {broker.broker}"
    if not broker.alive:
        return [no(name, "holds replicas but is not registered", "Start it; until then its verdicts are no_data.")]
    limit_s = CONNECT_TIMEOUT_S + 2 * READ_TIMEOUT_S
    return bounded(name, limit_s, lambda: probe.checks(broker))


def _plan(snapshot: Snapshot, broker: int) -> Plan:
    """Return the reads of one partition that the broker leads: enough to know that Log MBeans can be read."""
    led = [p.name for p in snapshot.partitions.values() if p.leader == broker][:1]
    return Plan([name.topic for name in led], led, [])


def _mbeans(snapshot: Snapshot, broker: int, metrics: Metrics) -> list[Check]:
    partitions = snapshot.partitions.values()
    leads = any(p.leader == broker for p in partitions)
    follows = any(broker in p.isr and p.leader not in (None, broker) for p in partitions)
    return [
        _seen(f"Broker {broker}: Log MBeans", bool(metrics.logs), leads, "leads no partition"),
        _seen(f"Broker {broker}: FetcherLag MBeans", bool(metrics.lags), follows, "follows no leader"),
    ]


def _seen(name: str, seen: bool, expected: bool, excuse: str) -> Check:
    if seen:
        return ok(name, "read")
    if expected:
        return no(
            name, "not there", "See that this is the broker's JMX port, and not filtered by an exporter or agent."
        )
    return unknown(name, f"the broker {excuse} now, so it has none", "Nothing to do; look again when it has.")
