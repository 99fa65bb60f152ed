"""The embedded cluster: start, stop, and operations of tests on its brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from headroom.cluster.embedded.brokers import BrokerOptions, Brokers
from headroom.cluster.embedded.files import new_cluster_id
from headroom.cluster.embedded.layout import (
    HOST,
    MAX_BROKERS,
    BrokerPorts,
    BrokerProcess,
    busy_ports,
    free_ports,
    ports_from,
    require_free,
)
from headroom.cluster.embedded.processes import end, freeze
from headroom.cluster.embedded.readiness import wait_until_ready
from headroom.cluster.embedded.record import ClusterRecord, exclusive, read_record, running
from headroom.schemas.errors import HeadroomError

# Another process may take a chosen free port before the broker binds it, or hold it for the moment in which it looks
# for free ports itself.
_ATTEMPTS = 3
_TAKEN = "Address already in use"


class EmbeddedCluster:
    """One to five real KRaft brokers on 127.0.0.1, with JMX.

    The brokers end with this process, even after a crash, unless ``detach`` was called. A folder with an earlier
    cluster starts that cluster again with its data.
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
            folder: folder for data, logs and record; created if missing.
            brokers: number of brokers, 1 to 5; None: as in the folder's cluster, or 3.
            base_port: clients of broker i connect to base + i, controllers to base + 10 + i, JMX is base + 20 + i, and
                with agents Jolokia base + 30 + i and jmx_exporter base + 40 + i; None: free ports are chosen.
            options: broker settings and JVM options in addition to the built-in ones.
            ready_within_s: longest wait in seconds until all brokers are ready.

        Raises:
            HeadroomError: the number of brokers is not 1 to 5, or not that of the folder's cluster.
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
        """Start the brokers and return this cluster when all are ready; on an error every broker is stopped.

        Raises:
            HeadroomError: already running, a port in use, a broker died (with the last lines of its log), or timeout.
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
        """End all brokers and keep their data; those that have not shut down after ``grace_s`` seconds are killed."""
        self._brokers.end(grace_s)
        if read_record(self.folder):
            self._write_record()

    def detach(self) -> None:
        """Let the brokers continue after this process ends."""
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
        """Resume a frozen broker."""
        self._brokers.process(broker_id).resume()

    def restart(self, broker_id: int) -> None:
        """Restart a broker on its ports and data, killing it first if it runs; return when it is ready.

        After a kill this takes Kafka's ``broker.session.timeout.ms`` (9 s by default), because the controllers register
        the broker again only after its earlier session has expired.

        Raises:
            HeadroomError: it did not become ready.
        """
        if broker_id in self._brokers.living():
            self.kill(broker_id)
        for attempt in range(1, _ATTEMPTS + 1):
            self._brokers.spawn(broker_id, self._ports[broker_id])
            self._write_record()
            try:
                self._wait([broker_id])
                return
            except HeadroomError as error:
                if _TAKEN not in str(error) or attempt == _ATTEMPTS:
                    raise

    def _choose_ports(self) -> Mapping[int, BrokerPorts]:
        if self._base_port is not None:
            ports = ports_from(self._base_port, self._count, self._agents)
            require_free(ports.values(), "Choose another --base-port, or stop what listens there")
            return ports
        last_ports = self._known_ports()
        if last_ports and not busy_ports(last_ports.values()):
            return last_ports
        return free_ports(self._count, self._agents)

    def _known_ports(self) -> Mapping[int, BrokerPorts]:
        """Return the ports of the last start, adjusted to whether agents are requested now."""
        if not self._agents:
            return {i: replace(ports, jolokia=None, exporter=None) for i, ports in self._ports.items()}
        new = free_ports(self._count, agents=True)
        return {
            i: ports if ports.agents else replace(ports, jolokia=new[i].jolokia, exporter=new[i].exporter)
            for i, ports in self._ports.items()
        }

    def _try_start(self, last: bool) -> bool:
        """Return whether the brokers are ready; False if another process took a port and attempts are left."""
        try:
            self._launch()
            return True
        except BaseException as error:
            self.stop()
            if not isinstance(error, HeadroomError) or last or self._base_port is not None:
                raise
            if _TAKEN in str(error) or busy_ports(self._ports.values()):
                return False
            raise

    def _launch(self) -> None:
        # Written first, so that a start after a failed one uses the same cluster id.
        self._write_record()
        self._brokers.prepare(self._ports, self._cluster_id)
        for broker_id, ports in self._ports.items():
            self._brokers.spawn(broker_id, ports)
            self._write_record()
        self._wait(sorted(self._ports))

    def _wait(self, broker_ids: list[int]) -> None:
        chosen = {i: self._ports[i] for i in broker_ids}
        wait_until_ready(chosen, lambda: self._brokers.require_alive(*broker_ids), self._ready_within_s)
        # Where a broker could not have its port, what answered there is another cluster's.
        self._brokers.require_alive(*broker_ids)

    def _write_record(self) -> None:
        ClusterRecord(self._cluster_id, self._ports, self._brokers.pids).write(self.folder)


def _broker_count(folder: Path, wanted: int | None, record: ClusterRecord | None) -> int:
    recorded = len(record.ports) if record else None
    count = recorded or 3 if wanted is None else wanted
    if not 1 <= count <= MAX_BROKERS:
        raise HeadroomError("number of brokers", f"must be 1 to {MAX_BROKERS}, not {count}", "Choose one of these")
    if recorded not in (None, count):
        rule = f"holds a cluster of {recorded} brokers, not {count}"
        raise HeadroomError(str(folder), rule, f"Start it with --brokers {recorded}, or use another --dir")
    return count
