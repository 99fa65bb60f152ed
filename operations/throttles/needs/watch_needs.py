"""Needs of the throttles from the newest tick of a running watch, in ``gold/throttle_headroom``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.operations.evaluation import is_recent
from headroom.operations.throttles.needs.throttle_need import (
    MAX_PARTITIONS,
    MoveNeed,
    NeedingPartition,
    NeedsSource,
    ThrottleNeeds,
)
from headroom.schemas.config import Settings
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query_table import query


def watch_needs(settings: Settings, at_ms: int | None = None) -> ThrottleNeeds | None:
    """Return the needs of the newest tick of a cluster; None if no watch is running, or if nothing moved in it.

    Args:
        settings: settings of the cluster.
        at_ms: current time, in epoch milliseconds; this machine's clock if None.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    at_ms = now_ms() if at_ms is None else at_ms
    recent = is_recent(settings, at_ms)
    rows = query(settings.store.path, THROTTLE_HEADROOM.path, _SQL.format(recent=recent))
    if not rows:
        return None
    return ThrottleNeeds(NeedsSource.WATCH, rows[0]["tick_ms"], tuple(_need(row) for row in rows))


def _need(row: Mapping[str, Any]) -> MoveNeed:
    # Moving partitions come first in the evidence.
    moving = [p for p in row["partitions"] or () if p["moving"]]
    return MoveNeed(
        broker=row["broker"],
        role=row["role"],
        throttle_bytes_per_s=row["throttle_bytes_per_s"],
        in_sync_bytes_per_s=row["in_sync_bytes_per_s"],
        required_bytes_per_s=row["required_bytes_per_s"],
        moving_bytes_per_s=row["moving_bytes_per_s"],
        verdict=row["verdict"],
        moving_partitions=row["moving_partitions"],
        partitions=tuple(
            NeedingPartition(p["topic"], p["partition"], p["write_bytes_per_s"]) for p in moving[:MAX_PARTITIONS]
        ),
        remaining_bytes=row["remaining_bytes"],
        down_required_bytes_per_s=row["down_required_bytes_per_s"],
    )


_SQL = """SELECT tick_ms, broker, role, throttle_bytes_per_s, in_sync_bytes_per_s, required_bytes_per_s,
        moving_bytes_per_s, verdict, moving_partitions, partitions, remaining_bytes,
        down_required_bytes_per_s
    FROM data WHERE {recent} AND moving_partitions > 0 AND tick_ms = (SELECT max(tick_ms) FROM data WHERE {recent})
    ORDER BY broker, role DESC"""
