"""Brokers of Kafka 3.9 in ZooKeeper mode, as many clusters still run them, with a ZooKeeper of their own."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.brokers import BrokerOptions, Brokers
from headroom.cluster.embedded.files import broker_command, write_properties
from headroom.cluster.embedded.layout import HOST, BrokerPorts
from headroom.cluster.embedded.processes import Guardian
from headroom.cluster.java import jar_folder, java_command
from tests.support.ports import own_port
from tests.support.waiting import until

# What KRaft alone knows.
_KRAFT = ("node.id", "process.roles", "controller.quorum.voters", "controller.listener.names")
_LOG4J = "log4j.properties"
_LOGGING = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1} %m%n
"""


def _logging(folder: Path) -> str:
    return f"-Dlog4j.configuration=file:{folder / _LOG4J}"


class OldBrokers(Brokers):
    """Broker processes of Kafka 3.9.

    Args:
        folder: of the cluster.
        options: broker settings besides the built-in ones.
        zookeeper: ``host:port``.
    """

    def __init__(self, folder: Path, options: BrokerOptions, zookeeper: str) -> None:
        super().__init__(folder, options)
        self._zookeeper = zookeeper

    def prepare(self, ports: Mapping[int, BrokerPorts], cluster_id: str) -> None:
        """Write every broker's properties; nothing is formatted in ZooKeeper mode."""
        for broker_id, own in ports.items():
            files = self.files(broker_id)
            client = f"PLAINTEXT://{HOST}:{own.client}"
            overrides = {
                **self._options.properties_of(broker_id),
                "broker.id": str(broker_id),
                "zookeeper.connect": self._zookeeper,
                "zookeeper.session.timeout.ms": "12000",
                "listeners": client,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
            }
            write_properties(files, ports, overrides)
            lines = files.properties.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.partition("=")[0] not in _KRAFT]
            files.properties.write_text("".join(kept), encoding="utf-8")

    def spawn(self, broker_id: int, ports: BrokerPorts) -> None:
        """Start the process of one broker; it is not ready yet."""
        files = self.files(broker_id)
        options = [_logging(self.folder), *self._options.java_options.get(broker_id, ())]
        command = broker_command(files, ports, options)
        command[command.index("-cp") + 1] = str(jar_folder("zookeeper") / "*")
        self._guardian = self._guardian or Guardian()
        self.pids[broker_id] = self._guardian.spawn(command, files.log)


class ZooKeeperCluster(EmbeddedCluster):
    """Brokers of Kafka 3.9 and one ZooKeeper; the rest as of an embedded cluster.

    Args:
        folder: of its data, logs and record.
        brokers: how many.
        options: broker settings and JVM options in addition to the built-in ones; its agents are not started.
    """

    def __init__(self, folder: Path, brokers: int, options: BrokerOptions | None = None) -> None:
        super().__init__(folder, brokers)
        self._port = own_port()
        self._brokers = OldBrokers(self.folder, options or BrokerOptions(), f"{HOST}:{self._port}")
        self._zookeeper: Guardian | None = None

    def stop(self, grace_s: float = 0.0) -> None:
        """End all brokers, then ZooKeeper."""
        super().stop(grace_s)
        if self._zookeeper is not None:
            self._zookeeper.kill_all()
            self._zookeeper = None

    def _launch(self) -> None:
        """Start ZooKeeper, then the brokers."""
        (self.folder / _LOG4J).write_text(_LOGGING, encoding="utf-8")
        log = self.folder / "zookeeper.log"
        options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false", _logging(self.folder))
        main = ("org.apache.zookeeper.server.ZooKeeperServerMain", str(self._port), str(self.folder / "zookeeper"))
        self._zookeeper = Guardian()
        self._zookeeper.spawn([java_command(), *options, "-cp", str(jar_folder("zookeeper") / "*"), *main], log)
        until(self._listens, lambda: "ZooKeeper does not listen", 30)
        super()._launch()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port)) == 0

    def controller(self) -> int:
        """Return the broker that is the controller now; -1: nobody tells of one."""
        with suppress(KafkaError), closing(KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)) as admin:
            return int(admin.describe_cluster()["controller_id"])
        return -1
