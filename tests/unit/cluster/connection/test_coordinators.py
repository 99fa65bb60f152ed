"""Coordinators of groups, which kafka-python's admin client keeps for good."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.protocol.metadata import CoordinatorType

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.config import ClusterSettings


def test_coordinators_are_forgotten() -> None:
    metadata: Any = ClusterMetadata(bootstrap_servers="127.0.0.1:1")
    answer = SimpleNamespace(error_code=0, error_message=None, node_id=2, host="127.0.0.1", port=2)
    metadata.add_coordinator(answer, CoordinatorType.GROUP, "billing", synthesize_node_id=False)
    assert metadata.get_coordinator("billing") == 2
    connection: Any = AdminConnection(ClusterSettings(bootstrap_servers="127.0.0.1:1"))
    # Not connected yet, it knows none.
    connection.forget_coordinators()
    connection._client = SimpleNamespace(_manager=SimpleNamespace(cluster=metadata))
    connection.forget_coordinators()
    assert metadata.get_coordinator("billing") is None
