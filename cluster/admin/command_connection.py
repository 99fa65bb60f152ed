"""Admin connection of a command, with the helpers that commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.config import ClusterSettings

# Longest wait for a change to be in force, seconds.
DEADLINE_S = 15.0
# Called with one line of text per step.
OnStep = Callable[[str], None]


@contextmanager
def open_connection(cluster: ClusterSettings) -> Iterator[AdminConnection]:
    """Yield an open admin connection and close it at the end.

    Raises:
        HeadroomError: no broker could be reached.
    """
    connection = AdminConnection(cluster)
    try:
        connection.client()
        yield connection
    finally:
        connection.close()


def timeout_s(cluster: ClusterSettings) -> float:
    """Return the longest wait for one answer, seconds."""
    return cluster.request_timeout_ms / 1000
