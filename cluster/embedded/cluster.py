"""The embedded cluster: start, stop, and what a test does to a broker in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from cluster.embedded.brokers import BrokerOptions, Brokers
from cluster.embedded.files import new_cluster_id
from cluster.embedded.layout import (
    HOST,
    MAX_BROKERS,
    BrokerPorts,
    BrokerProcess,
    busy_ports,
    free_ports,
    ports_from,
    require_free,
)
from cluster.embedded.processes import end, freeze
from cluster.embedded.readiness import wait_until_ready
from cluster.embedded.record import ClusterRecord, exclusive, read_record, running
from schemas.errors import HeadroomError

_ATTEMPTS = 3


class EmbeddedCluster:
    """One to five real KRaft brokers on 127.0.0.1, JMX on.

    The brokers end with this process, however it ends, unless they are given away by ``detach``. A folder that has
    held a cluster starts it again with its data.
    """

    def __init__(
        self,
        folder: Path | str,
        brokers: int | None = None,
        base_port: int | None = None,
        options: BrokerOptions | None = None,
        ready_within_s: float = 120.0,
    ) -> None:
        """Describe a cluster; nothing is started yet.

        Args:
            folder: of its data, logs and record; made if missing.
            brokers: how many, 1 to 5; None: as many as the folder's cluster has, or 3.
            base_port: clients of broker i connect to base + i, controllers to base + 10 + i, JMX is base + 20 + i, and
                with agents Jolokia base + 30 + i and jmx_exporter base + 40 + i; None: free ports are chosen.
            options: broker settings and JVM options besides the built-in ones.
            ready_within_s: longest wait in seconds until all brokers are ready.

        Raises:
            HeadroomError: the number of brokers is none of 1 to 5, or not that of the folder's cluster.
        """
        self.folder = Path(folder).resolve()
        record = read_record(self.folder)
        self._count = _broker_count(self.folder, brokers, record)
        self._base_port = base_port
        self._ready_within_s = ready_within_s
        self._cluster_id = record.cluster_id if record else new_cluster_id()
        self._ports: Mapping[int, BrokerPorts] = record.ports if record else {}
        self._agents = options is not None and options.agents
        self._brokers = Brokers(self.folder, options or BrokerOptions())

    def start(self) -> EmbeddedCluster:
        """Return this cluster when all its brokers are ready; nothing is left running if they are not.

        Raises:
            HeadroomError: already running, a port in use, a broker died (with the last lines of its log), or time out.
        """
        with exclusive(self.folder):
            if running(self.folder):
                remedy = "Stop it with `headroom cluster down`, or use another --dir"
                raise HeadroomError(str(self.folder), "already holds a running cluster", remedy)
            for attempt in range(1, _ATTEMPTS + 1):
                self._ports = self._choose_ports()
                if self._try_start(last=attempt == _ATTEMPTS):
                    break
        return self

    def stop(self, grace_s: float = 0.0) -> None:
        """End all brokers; their data stay. Without a grace in seconds they are killed, as a test wants it."""
        self._brokers.end(grace_s)
        if read_record(self.folder):
            self._remember()

    def detach(self) -> None:
        """Let the brokers run on when this process ends."""
        self._brokers.release()

    def __enter__(self) -> EmbeddedCluster:
        """Return the started cluster."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the cluster."""
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Return ``host:port`` of every broker, separated by commas."""
        return ",".join(f"{HOST}:{ports.client}" for ports in self._ports.values())

    @property
    def brokers(self) -> list[BrokerProcess]:
        """Return the brokers as last started, by ascending id."""
        return [self.broker(broker_id) for broker_id in sorted(self._brokers.pids)]

    def broker(self, broker_id: int) -> BrokerProcess:
        """Return one broker as last started."""
        ports = self._ports[broker_id]
        log = self._brokers.files(broker_id).log
        pid = self._brokers.pids[broker_id]
        return BrokerProcess(broker_id, HOST, ports.client, ports.jmx, pid, log, ports.jolokia, ports.exporter)

    def kill(self, broker_id: int) -> None:
        """Kill a broker at once, as a crash would, and return when it is gone."""
        end([self._brokers.process(broker_id)], grace_s=0)

    def pause(self, broker_id: int) -> None:
        """Freeze a broker: its connections stay open and nothing answers."""
        freeze(self._brokers.process(broker_id))

    def resume(self, broker_id: int) -> None:
        """Let a frozen broker go on."""
        self._brokers.process(broker_id).resume()

    def restart(self, broker_id: int) -> None:
        """Start a broker again on its ports and data, killing it first if it runs; return when it is ready.

        After a kill that takes Kafka's ``broker.session.timeout.ms``, 9 s unless overridden: the controllers do not
        let the broker back before they have given up its earlier self.

        Raises:
            HeadroomError: it did not become ready.
        """
        if broker_id in self._brokers.living():
            self.kill(broker_id)
        self._brokers.spawn(broker_id, self._ports[broker_id])
        self._remember()
        self._wait([broker_id])

    def _choose_ports(self) -> Mapping[int, BrokerPorts]:
        if self._base_port is not None:
            ports = ports_from(self._base_port, self._count, self._agents)
            require_free(ports.values(), "Choose another --base-port, or stop what listens there")
            return ports
        known = self._known_ports()
        if known and not busy_ports(known.values()):
            return known
        return free_ports(self._count, self._agents)

    def _known_ports(self) -> Mapping[int, BrokerPorts]:
        """Return the ports of the last start, with or without those of agents as they are wanted now."""
        if not self._agents:
            return {i: replace(ports, jolokia=None, exporter=None) for i, ports in self._ports.items()}
        new = free_ports(self._count, agents=True)
        return {
            i: ports if ports.agents else replace(ports, jolokia=new[i].jolokia, exporter=new[i].exporter)
            for i, ports in self._ports.items()
        }

    def _try_start(self, last: bool) -> bool:
        """Return whether the brokers are ready; False if a chosen port was taken meanwhile and another try is left."""
        try:
            self._launch()
            return True
        except BaseException as error:
            self.stop()
            clash = self._base_port is None and busy_ports(self._ports.values())
            if isinstance(error, HeadroomError) and clash and not last:
                return False
            raise

    def _launch(self) -> None:
        # Before anything carries the cluster's id, so that a start after a failed one goes on with the same id.
        self._remember()
        self._brokers.prepare(self._ports, self._cluster_id)
        for broker_id, ports in self._ports.items():
            self._brokers.spawn(broker_id, ports)
            self._remember()
        self._wait(sorted(self._ports))

    def _wait(self, broker_ids: list[int]) -> None:
        chosen = {i: self._ports[i] for i in broker_ids}
        wait_until_ready(chosen, lambda: self._brokers.require_alive(*broker_ids), self._ready_within_s)

    def _remember(self) -> None:
        ClusterRecord(self._cluster_id, self._ports, self._brokers.pids).write(self.folder)


def _broker_count(folder: Path, wanted: int | None, record: ClusterRecord | None) -> int:
    had = len(record.ports) if record else None
    count = had or 3 if wanted is None else wanted
    if not 1 <= count <= MAX_BROKERS:
        raise HeadroomError("number of brokers", f"must be 1 to {MAX_BROKERS}, not {count}", "Choose one of these")
    if had not in (None, count):
        rule = f"holds a cluster of {had} brokers, not {count}"
        raise HeadroomError(str(folder), rule, f"Start it with --brokers {had}, or use another --dir")
    return count
