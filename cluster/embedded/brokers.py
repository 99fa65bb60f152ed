"""Broker processes of one cluster: prepares, starts, finds and ends them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from headroom.cluster.embedded.agents import EXPORTER_CONFIG, agent_options
from headroom.cluster.embedded.files import BrokerFiles, broker_command, format_command, write_properties
from headroom.cluster.embedded.layout import BrokerPorts
from headroom.cluster.embedded.processes import Guardian, end, find, last_lines
from headroom.schemas.errors import HeadroomError


@dataclass(frozen=True)
class BrokerOptions:
    """Options that override the built-in settings.

    Attributes:
        properties: settings of ``server.properties`` for every broker.
        broker_properties: settings of single brokers, by id; they take precedence.
        java_options: further options of single brokers' JVMs, by id.
        agents: whether every broker runs Jolokia's agent and jmx_exporter's.
        exporter_config: configuration of jmx_exporter.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    broker_properties: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    java_options: Mapping[int, Sequence[str]] = field(default_factory=dict)
    agents: bool = False
    exporter_config: Path = EXPORTER_CONFIG

    def properties_of(self, broker_id: int) -> dict[str, str]:
        """Return the settings of one broker that override the built-in ones."""
        return {**self.properties, **self.broker_properties.get(broker_id, {})}


class Brokers:
    """The broker processes that this process started.

    Attributes:
        folder: folder of the cluster.
        pids: process id of each broker as last started.
    """

    def __init__(self, folder: Path, options: BrokerOptions) -> None:
        self.folder = folder
        self.pids: dict[int, int] = {}
        self._options = options
        self._guardian: Guardian | None = None

    def files(self, broker_id: int) -> BrokerFiles:
        """Return the file locations of a broker."""
        return BrokerFiles(self.folder, broker_id)

    def prepare(self, ports: Mapping[int, BrokerPorts], cluster_id: str) -> None:
        """Write every broker's properties, and format new data folders in parallel.

        Raises:
            HeadroomError: formatting failed; with the last lines of Kafka's output.
        """
        started = []
        for files in map(self.files, ports):
            write_properties(files, ports, self._options.properties_of(files.broker_id))
            if not files.is_formatted():
                with files.format_log.open("wb") as log:
                    command = format_command(files, cluster_id)
                    started.append((files, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)))
        # All of them: one that went on would write into a folder that the next attempt prepares.
        failed = [files for files, process in started if process.wait() != 0]
        if failed:
            raise _death_error(failed[0].broker_id, "while its data folder was prepared", failed[0].format_log)

    def spawn(self, broker_id: int, ports: BrokerPorts) -> None:
        """Start the process of one broker; it is not ready yet."""
        files = self.files(broker_id)
        self._guardian = self._guardian or Guardian()
        options = [*agent_options(ports, self._options.exporter_config), *self._options.java_options.get(broker_id, ())]
        command = broker_command(files, ports, options)
        self.pids[broker_id] = self._guardian.spawn(command, files.log)

    def living(self) -> dict[int, psutil.Process]:
        """Return the processes of the running brokers, by id."""
        processes = {i: find(self.files(i), pid) for i, pid in self.pids.items()}
        return {i: process for i, process in processes.items() if process is not None}

    def process(self, broker_id: int) -> psutil.Process:
        """Return the process of a broker.

        Raises:
            HeadroomError: it does not run.
        """
        living = self.living()
        if broker_id not in living:
            raise HeadroomError(f"broker {broker_id}", "is not running", f"Running are {sorted(living)}")
        return living[broker_id]

    def require_alive(self, *broker_ids: int) -> None:
        """Check that the brokers run.

        Raises:
            HeadroomError: a broker has ended; with the last lines of its log.
        """
        living = self.living()
        for broker_id in broker_ids:
            if broker_id not in living:
                raise _death_error(broker_id, "while starting", self.files(broker_id).log)

    def end(self, grace_s: float) -> None:
        """End every broker; those that have not shut down within ``grace_s`` seconds are killed."""
        end(self.living().values(), grace_s)
        if self._guardian is not None:
            self._guardian.kill_all()
            self._guardian = None
        self.pids.clear()

    def release(self) -> None:
        """Let the brokers continue after this process ends."""
        if self._guardian is not None:
            self._guardian.release()
            self._guardian = None


def _death_error(broker_id: int, when: str, log: Path) -> HeadroomError:
    return HeadroomError(f"broker {broker_id}", f"died {when}: {last_lines(log)}", f"See {log}")
