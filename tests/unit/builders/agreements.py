"""Agreements of one partition, orders-0, from the cluster "old" to the cluster "new"."""

from __future__ import annotations

from typing import Any

from headroom.schemas.migrations import PartitionAgreement

TOPIC = "orders"
END = 10


def agreement(**changes: Any) -> PartitionAgreement:
    """Return agreement 1 of the migration "move", on end offset 10, to which the router "writer" has to agree."""
    values: dict[str, Any] = {
        "migration": "move",
        "number": 1,
        "origin_cluster_id": "old",
        "target_cluster_id": "new",
        "topic": TOPIC,
        "partition": 0,
        "end_offset": END,
        "target_base_offset": 3,
        "routers": ("writer",),
    }
    return PartitionAgreement(**values | changes)
