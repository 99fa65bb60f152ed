"""The brokers of the group: four with agents, each with a second listener for a watch behind proxies."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster
from headroom.cluster.embedded.layout import HOST, BrokerPorts, busy_ports, controller_ids, ports_from

BROKERS = 4
# The broker whose agent of Jolokia is behind a proxy.
PROXIED_AGENT = 2
_BASES = range(15_000, 31_000, 100)
# Port offsets. The embedded cluster uses 0 to 44.
_WATCHED, _KAFKA_PROXY, _AGENT_PROXY, _RECEIVERS, _RECEIVERS_PROXY, _METRICS = 50, 60, 70, 80, 81, 90
# Deleted topics leave the disk at once, because a run writes gigabytes to them.
_PROPERTIES = {"log.segment.delete.delay.ms": "1000"}
_LISTENER = "WATCHED"


class OutageCluster(BenchCluster):
    """Fresh brokers with two configuration files for the watch: with proxies and without.

    Attributes:
        receivers_port: port for the receivers.
        metrics_port: port of the watch for ``/metrics``.
    """

    def __init__(self) -> None:
        super().__init__(BROKERS)
        self._base = _free_base()
        self.receivers_port = self._base + _RECEIVERS
        self.metrics_port = self._base + _METRICS
        options = BrokerOptions(properties=_PROPERTIES, broker_properties=listeners(self._base), agents=True)
        self._cluster = EmbeddedCluster(self.folder / "kafka", BROKERS, self._base, options)

    def __enter__(self) -> OutageCluster:
        """Return this cluster with all brokers ready."""
        super().__enter__()
        return self

    def routes(self) -> dict[str, list[str]]:
        """Return the routes of each proxy by what is behind it."""
        ids = range(1, BROKERS + 1)
        agent = self.broker(PROXIED_AGENT).jolokia_port
        return {
            "kafka": [f"{self._base + _KAFKA_PROXY + i}:{self._base + _WATCHED + i}" for i in ids],
            "jolokia": [f"http:{self._base + _AGENT_PROXY}:{agent}"],
            "receivers": [f"{self._base + _RECEIVERS_PROXY}:{self.receivers_port}"],
        }

    def proxied_config(self) -> Path:
        """Write and return a configuration file that uses the proxies."""
        path = self.config.with_name("proxied.toml")
        servers = ",".join(f"{HOST}:{self._base + _KAFKA_PROXY + i}" for i in range(1, BROKERS + 1))
        replaced = {
            self.bootstrap_servers: servers,
            f"{HOST}:{self.broker(PROXIED_AGENT).jolokia_port}": f"{HOST}:{self._base + _AGENT_PROXY}",
            f"{HOST}:{self.receivers_port}": f"{HOST}:{self._base + _RECEIVERS_PROXY}",
        }
        text = self.config.read_text(encoding="utf-8")
        for direct, proxied in replaced.items():
            if direct not in text:
                raise failure(f"{self.config} does not name {direct}")
            text = text.replace(direct, proxied)
        path.write_text(text, encoding="utf-8")
        return path


def listeners(base: int) -> dict[int, Mapping[str, str]]:
    """Return the listener properties by broker: the usual listener, and one advertised with the port of its proxy.

    Only the watch uses the second one, so the proxy affects nothing else.

    Args:
        base: base port of the cluster.
    """
    ports = ports_from(base, BROKERS, agents=True)
    return {i: _listeners(base, i, own, i in controller_ids(BROKERS)) for i, own in ports.items()}


def _listeners(base: int, broker_id: int, own: BrokerPorts, is_controller: bool) -> dict[str, str]:
    client = f"PLAINTEXT://{HOST}:{own.client}"
    bound = [client, f"{_LISTENER}://{HOST}:{base + _WATCHED + broker_id}"]
    if is_controller:
        bound.append(f"CONTROLLER://{HOST}:{own.controller}")
    return {
        "listeners": ",".join(bound),
        "advertised.listeners": f"{client},{_LISTENER}://{HOST}:{base + _KAFKA_PROXY + broker_id}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{_LISTENER}:PLAINTEXT",
    }


def _free_base() -> int:
    """Return a base port for which all ports of the group are free.

    Raises:
        HeadroomError: there is none.
    """
    own = [*(offset + i for offset in (_WATCHED, _KAFKA_PROXY) for i in range(1, BROKERS + 1)), _AGENT_PROXY]
    own += [_RECEIVERS, _RECEIVERS_PROXY, _METRICS]
    for base in _BASES:
        if not busy_ports(ports_from(base, BROKERS, agents=True).values()) and all(_is_free(base + n) for n in own):
            return base
    raise failure("no hundred ports in a row are free")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        # As the servers do, so that closed connections of an earlier run do not block the port.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except OSError:
            return False
    return True
