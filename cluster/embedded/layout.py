"""Which broker has which ports, files and role."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import HeadroomError

HOST = "127.0.0.1"
MAX_BROKERS = 5
# Below the range from which systems take the ports of outgoing connections (32768 up on Linux): there a client that
# retries against a stopped broker can take the broker's own port before the broker is back.
_CHOSEN_FROM = range(15_000, 32_000)
_CONTROLLER_OFFSET = 10
_JMX_OFFSET = 20
_JOLOKIA_OFFSET = 30
_EXPORTER_OFFSET = 40


@dataclass(frozen=True)
class BrokerPorts:
    """The ports of one broker, all on 127.0.0.1.

    Attributes:
        client: where Kafka clients and the other brokers connect.
        controller: of the KRaft controller; unused on a broker that is none.
        jmx: of JMX over RMI, registry and objects both.
        jolokia: of Jolokia's agent; None: there is none.
        exporter: of jmx_exporter's agent; None: there is none.
    """

    client: int
    controller: int
    jmx: int
    jolokia: int | None = None
    exporter: int | None = None

    def all(self) -> tuple[int, ...]:
        """Return all the ports."""
        ports = (self.client, self.controller, self.jmx, self.jolokia, self.exporter)
        return tuple(port for port in ports if port is not None)

    @property
    def agents(self) -> bool:
        """Whether there are agents."""
        return self.jolokia is not None and self.exporter is not None


@dataclass(frozen=True)
class BrokerProcess:
    """One broker that was started.

    Attributes:
        broker_id: its ``node.id``, from 1.
        host: the address it listens on.
        port: where clients connect.
        jmx_port: of JMX over RMI.
        pid: process id of its JVM.
        log_file: what it logs and prints; appended to by every start.
        jolokia_port: of Jolokia's agent; None: it was started without agents.
        exporter_port: of jmx_exporter's agent; None: it was started without agents.
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
    """Return the ids of the brokers that are controllers too.

    Three of them if there are that many brokers, so that any one broker may die; else one, because a quorum of two
    does not survive the loss of either.
    """
    return [1, 2, 3] if brokers >= 3 else [1]


def ports_from(base_port: int, brokers: int, agents: bool = False) -> dict[int, BrokerPorts]:
    """Return the ports of each broker id i.

    They are: clients base + i, controller base + 10 + i, JMX base + 20 + i, and those of the agents, if there are any,
    base + 30 + i for Jolokia and base + 40 + i for jmx_exporter.
    """
    offsets = (0, _CONTROLLER_OFFSET, _JMX_OFFSET, *((_JOLOKIA_OFFSET, _EXPORTER_OFFSET) if agents else ()))
    return {i: BrokerPorts(*(base_port + offset + i for offset in offsets)) for i in range(1, brokers + 1)}


def free_ports(brokers: int, agents: bool = False) -> dict[int, BrokerPorts]:
    """Return ports of each broker id that were all free at one time, with those of agents if there are to be any."""
    each = 5 if agents else 3
    chosen: list[int] = []
    with ExitStack() as held:
        for candidate in random.sample(_CHOSEN_FROM, len(_CHOSEN_FROM)):
            if _hold(candidate, held):
                chosen.append(candidate)
            if len(chosen) == each * brokers:
                break
    return {i + 1: BrokerPorts(*chosen[each * i : each * (i + 1)]) for i in range(brokers)}


def busy_ports(ports: Iterable[BrokerPorts]) -> list[int]:
    """Return those of the ports that another process listens on, ascending."""
    with ExitStack() as held:
        return sorted(port for broker in ports for port in broker.all() if not _hold(port, held))


def require_free(ports: Iterable[BrokerPorts], remedy: str) -> None:
    """Return if every port is free.

    Raises:
        HeadroomError: names the first that is not.
    """
    busy = busy_ports(ports)
    if busy:
        raise HeadroomError(f"port {busy[0]}", f"is in use by another process on {HOST}", remedy)


def _hold(port: int, held: ExitStack) -> bool:
    candidate = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # As Java's server sockets do, so that connections of an earlier run in TIME_WAIT do not count as use.
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind((HOST, port))
        candidate.listen(1)
    except OSError:
        return False
    return True
