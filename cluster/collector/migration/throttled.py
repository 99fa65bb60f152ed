"""Which migrating partitions the throttles of the target count, from the metadata of a tick."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headroom.cluster.metadata.throttled_partitions import listed_brokers
from headroom.cluster.model import Partition, Snapshot
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod


def add_throttles(rows: Iterable[dict[str, Any]], snapshot: Snapshot) -> None:
    """Add to rows of the kind ``migrations`` who leads their partitions on the target, and what its throttle counts.

    Args:
        rows: rows; each gets ``target_leader`` and ``throttled_followers``, null if unknown.
        snapshot: metadata of the target.
    """
    for row in rows:
        topic = row["target_topic"]
        if topic is None and row["method"] != MigrationMethod.MIRRORED:
            topic = row["topic"]
        partition = snapshot.partitions.get(TopicPartition(topic, row["partition"]))
        row["target_leader"] = None if partition is None else partition.leader
        row["throttled_followers"] = None if partition is None else _throttled_followers(partition, snapshot)


def _throttled_followers(partition: Partition, snapshot: Snapshot) -> int | None:
    """Return the followers that the leader's throttle counts; None if its list could not be read, or none leads."""
    listed = listed_brokers(partition, snapshot.topic_configs.get(partition.topic)).leader
    if listed is None or partition.leader is None:
        return None
    if partition.leader not in listed:
        return 0
    return len(set(partition.replicas) - {partition.leader, *partition.offline})
