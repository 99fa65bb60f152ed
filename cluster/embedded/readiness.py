"""Waits until every broker is ready, by connecting to it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Mapping

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from headroom.cluster.connection.new_client import new_client
from headroom.cluster.embedded.layout import HOST, BrokerPorts
from headroom.cluster.embedded.patience import Patience
from headroom.schemas.errors import HeadroomError

_POLL_S = 0.1


def wait_until_ready(ports: Mapping[int, BrokerPorts], check_alive: Callable[[], None], deadline_s: float) -> None:
    """Wait until each broker answers, may lead partitions, and listens for JMX.

    Args:
        ports: ports of each broker to wait for, by id.
        check_alive: raises if one of these brokers has ended.
        deadline_s: longest wait in seconds; longer while the machine is busy.

    Raises:
        HeadroomError: the deadline passed; names the broker and its last problem.
    """
    patience = Patience(deadline_s)
    for broker_id, own in ports.items():
        while (problem := _not_ready_reason(own, ports)) is not None:
            check_alive()
            if patience.is_over():
                rule = f"not ready after {patience}: {problem}"
                raise HeadroomError(f"broker {broker_id}", rule, "See its log; a busy machine may need fewer brokers")
            time.sleep(_POLL_S)


def _not_ready_reason(ports: BrokerPorts, expected: Collection[int]) -> str | None:
    """Return why the broker is not ready yet; None if it is ready."""
    if not _accepts(ports.jmx):
        return f"nothing listens on its JMX port {ports.jmx}"
    if not _accepts(ports.client):
        return f"nothing listens on its port {ports.client}"
    return _missing(ports.client, expected)


def _accepts(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


def _missing(port: int, expected: Collection[int]) -> str | None:
    try:
        admin = new_client(KafkaAdminClient, bootstrap_servers=f"{HOST}:{port}", request_timeout_ms=5_000)
    except KafkaError as error:
        return f"does not answer ({type(error).__name__})"
    try:
        brokers = admin.describe_cluster()["brokers"]
    except KafkaError as error:
        return f"does not describe the cluster ({type(error).__name__})"
    finally:
        admin.close()
    # A fenced broker has registered but may not lead yet; older brokers do not list it at all.
    alive = {int(broker["broker_id"]) for broker in brokers if not broker.get("is_fenced")}
    missing = sorted(set(expected) - alive)
    return f"broker {missing[0]} may not lead yet" if missing else None
