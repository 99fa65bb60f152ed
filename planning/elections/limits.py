"""Batch limits from the settings."""

from __future__ import annotations

from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.config import ElectionSettings


def limits_of(elections: ElectionSettings) -> BatchLimits:
    """Return the batch limits of the settings in section ``elections``."""
    return BatchLimits(
        partitions=elections.batch_partitions,
        partitions_per_broker=elections.batch_partitions_per_broker,
        write_bytes_per_s=elections.batch_write_bytes_per_s,
        capacity_bytes_per_s=elections.capacity_bytes_per_s,
    )
