"""The files and command lines of a broker."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headroom.cluster.embedded.layout import HOST, BrokerPorts, controller_ids
from headroom.cluster.java import class_archive, jar_folder, java_command

_LOGGING = Path(__file__).with_name("log4j2.xml")
# Small heaps and a fast start, because these brokers live for minutes with little data.
_JVM = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@dataclass(frozen=True)
class BrokerFiles:
    """File locations of one broker in the cluster's folder."""

    folder: Path
    broker_id: int

    @property
    def properties(self) -> Path:
        """Return the path of its ``server.properties``."""
        return self.folder / f"broker-{self.broker_id}.properties"

    @property
    def log(self) -> Path:
        """Return the path of its log."""
        return self.folder / "logs" / f"broker-{self.broker_id}.log"

    @property
    def format_log(self) -> Path:
        """Return the path of the output of formatting its data folder."""
        return self.folder / "logs" / f"broker-{self.broker_id}-format.log"

    @property
    def data(self) -> Path:
        """Return the folder of its partitions."""
        return self.folder / "data" / f"broker-{self.broker_id}"

    def is_formatted(self) -> bool:
        """Return whether its data folder already belongs to a cluster."""
        return (self.data / "meta.properties").exists()


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's form: 22 characters of URL-safe base 64, not starting with a dash.

    Kafka's storage tool takes an id that starts with a dash as an option.
    """
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def write_properties(files: BrokerFiles, ports: Mapping[int, BrokerPorts], overrides: Mapping[str, str]) -> None:
    """Write ``server.properties`` of one broker; the overrides take precedence."""
    settings = {**_settings(files, ports), **overrides}
    files.properties.parent.mkdir(parents=True, exist_ok=True)
    files.log.parent.mkdir(parents=True, exist_ok=True)
    files.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")


def format_command(files: BrokerFiles, cluster_id: str) -> list[str]:
    """Return the command that prepares the broker's data folders; those of an earlier attempt to start stay."""
    tool = [*_java(), "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    return [*tool, "-t", cluster_id, "-c", str(files.properties)]


def broker_command(files: BrokerFiles, ports: BrokerPorts, java_options: Sequence[str]) -> list[str]:
    """Return the command that runs the broker, JMX on, with further options for its JVM.

    Java opens another JMX port with a random number, which rejects connections from other machines.
    """
    jmx = (
        f"-Dcom.sun.management.jmxremote.host={HOST}",
        f"-Dcom.sun.management.jmxremote.port={ports.jmx}",
        f"-Dcom.sun.management.jmxremote.rmi.port={ports.jmx}",
        "-Dcom.sun.management.jmxremote.authenticate=false",
        "-Dcom.sun.management.jmxremote.ssl=false",
        f"-Djava.rmi.server.hostname={HOST}",
    )
    return [*_java(*jmx, *java_options), "kafka.Kafka", str(files.properties)]


def _java(*options: str) -> list[str]:
    logging = f"-Dlog4j2.configurationFile={_LOGGING}"
    # The class data archive of set-up lets the JVM start faster. Another Java version ignores it; the -Xlog options
    # suppress its warning at every start.
    archive = class_archive("kafka")
    quiet = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    archived = (f"-XX:SharedArchiveFile={archive}", *quiet) if archive.exists() else ()
    return [java_command(), *_JVM, *archived, logging, *options, "-cp", str(jar_folder("kafka") / "*")]


def _settings(files: BrokerFiles, ports: Mapping[int, BrokerPorts]) -> dict[str, str]:
    controllers = controller_ids(len(ports))
    own = ports[files.broker_id]
    is_controller = files.broker_id in controllers
    client = f"PLAINTEXT://{HOST}:{own.client}"
    return {
        "node.id": str(files.broker_id),
        "process.roles": "broker,controller" if is_controller else "broker",
        "controller.quorum.voters": ",".join(f"{i}@{HOST}:{ports[i].controller}" for i in controllers),
        "listeners": f"{client},CONTROLLER://{HOST}:{own.controller}" if is_controller else client,
        "advertised.listeners": client,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(files.data),
        "num.partitions": "1",
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # By default a broker ends by itself if it is not registered after 60 s, which a busy machine may need. Whoever
        # starts it decides how long to wait.
        "initial.broker.registration.timeout.ms": "1200000",
        # The cleaner reserves 128 MB by default, a third of these brokers' heap.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
