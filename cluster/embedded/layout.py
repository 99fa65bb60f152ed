"""Ports and roles of the brokers of an embedded cluster."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from headroom.schemas.errors import HeadroomError

HOST = "127.0.0.1"
MAX_BROKERS = 5
# Below the range of ephemeral ports (32768 up on Linux). In that range a client that retries against a stopped broker
# can occupy the broker's own port before the broker is back.
_PORT_RANGE = range(15_000, 32_000)
_CONTROLLER_OFFSET = 10
_JMX_OFFSET = 20
_JOLOKIA_OFFSET = 30
_EXPORTER_OFFSET = 40
# Not the generator that a program, or the random order of tests, may seed: processes would choose the same ports.
_RANDOM = random.SystemRandom()


@dataclass(frozen=True)
class BrokerPorts:
    """The ports of one broker, all on 127.0.0.1.

    Attributes:
        client: port for Kafka clients and the other brokers.
        controller: port of the KRaft controller; unused on a broker that is no controller.
        jmx: port of JMX over RMI, for both registry and objects.
        jolokia: port of Jolokia; None without agents.
        exporter: port of jmx_exporter; None without agents.
    """

    client: int
    controller: int
    jmx: int
    jolokia: int | None = None
    exporter: int | None = None

    def all(self) -> tuple[int, ...]:
        """Return all ports of the broker."""
        ports = (self.client, self.controller, self.jmx, self.jolokia, self.exporter)
        return tuple(port for port in ports if port is not None)

    @property
    def agents(self) -> bool:
        """Whether the broker runs both agents."""
        return self.jolokia is not None and self.exporter is not None


@dataclass(frozen=True)
class BrokerProcess:
    """A started broker.

    Attributes:
        broker_id: its ``node.id``, from 1.
        host: listen address.
        port: port for clients.
        jmx_port: port of JMX over RMI.
        pid: process id of its JVM.
        log_file: its log and output; every start appends to it.
        jolokia_port: port of Jolokia; None if started without agents.
        exporter_port: port of jmx_exporter; None if started without agents.
    """

    broker_id: int
    host: str
    port: int
    jmx_port: int
    pid: int
    log_file: Path
    jolokia_port: int | None = None
    exporter_port: int | None = None


def controller_ids(brokers: int) -> list[int]:
    """Return the ids of the brokers that are also controllers.

    Three if there are at least three brokers, so that any one may die; otherwise one, because a quorum of two does not
    survive the loss of either.
    """
    return [1, 2, 3] if brokers >= 3 else [1]


def ports_from(base_port: int, brokers: int, agents: bool = False) -> dict[int, BrokerPorts]:
    """Return the ports of each broker id i.

    The ports are: clients base + i, controller base + 10 + i, JMX base + 20 + i, and with agents base + 30 + i for
    Jolokia and base + 40 + i for jmx_exporter.
    """
    offsets = (0, _CONTROLLER_OFFSET, _JMX_OFFSET, *((_JOLOKIA_OFFSET, _EXPORTER_OFFSET) if agents else ()))
    return {i: BrokerPorts(*(base_port + offset + i for offset in offsets)) for i in range(1, brokers + 1)}


def free_ports(brokers: int, agents: bool = False) -> dict[int, BrokerPorts]:
    """Return ports for each broker id that were all free at the same time, with ports for agents if requested."""
    per_broker = 5 if agents else 3
    chosen: list[int] = []
    with ExitStack() as open_sockets:
        for candidate in _RANDOM.sample(_PORT_RANGE, len(_PORT_RANGE)):
            if _bind(candidate, open_sockets):
                chosen.append(candidate)
            if len(chosen) == per_broker * brokers:
                break
    return {i + 1: BrokerPorts(*chosen[per_broker * i : per_broker * (i + 1)]) for i in range(brokers)}


def busy_ports(ports: Iterable[BrokerPorts]) -> list[int]:
    """Return the ports that another process listens on, ascending."""
    with ExitStack() as open_sockets:
        return sorted(port for broker in ports for port in broker.all() if not _bind(port, open_sockets))


def require_free(ports: Iterable[BrokerPorts], remedy: str) -> None:
    """Check that every port is free.

    Raises:
        HeadroomError: a port is in use; names the first one.
    """
    busy = busy_ports(ports)
    if busy:
        raise HeadroomError(f"port {busy[0]}", f"is in use by another process on {HOST}", remedy)


def _bind(port: int, open_sockets: ExitStack) -> bool:
    candidate = open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # Like Java's server sockets, so that connections of an earlier run in TIME_WAIT do not block the port.
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind((HOST, port))
        candidate.listen(1)
    except OSError:
        return False
    return True
