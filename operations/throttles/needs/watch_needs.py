"""Needs of the throttles from the newest tick of a running watch, in ``gold/throttle_headroom``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from headroom.operations.evaluation import is_recent
from headroom.operations.throttles.needs.throttle_need import (
    MAX_PARTITIONS,
    MoveNeed,
    NeedsSource,
    ThrottleNeeds,
)
from headroom.schemas.config import Settings
from headroom.schemas.keys import Role
from headroom.schemas.records import record
from headroom.schemas.tables import REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM
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
    copied = _copy_rates(
        query(settings.store.path, REASSIGNMENT_PROGRESS.path, _COPIED_SQL.format(recent=recent)) or ()
    )
    needs = tuple(_need(row, copied.get((row["broker"], row["role"]))) for row in rows)
    return ThrottleNeeds(NeedsSource.WATCH, rows[0]["tick_ms"], needs)


def _copy_rates(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[int, str], float | None]:
    """Return what new replicas copy by broker and role, bytes per second; None if that of one of them is unknown."""
    copied: dict[tuple[int, str], list[float | None]] = defaultdict(list)
    for row in rows:
        copied[row["adding_replica"], Role.FOLLOWER.value].append(row["copied_bytes_per_s"])
        if row["leader"] is not None:
            copied[row["leader"], Role.LEADER.value].append(row["copied_bytes_per_s"])
    return {
        broker_role: None if None in rates else sum(max(0.0, rate) for rate in rates if rate is not None)
        for broker_role, rates in copied.items()
    }


def _need(row: Mapping[str, Any], copied_bytes_per_s: float | None) -> MoveNeed:
    # Moving partitions come first in the evidence.
    moving = [p for p in row["partitions"] or () if p["moving"]]
    of_parts = {
        # An older watch does not count them all.
        "moving_partitions": len(moving) if row["moving_partitions"] is None else row["moving_partitions"],
        "partitions": moving[:MAX_PARTITIONS],
        "copied_bytes_per_s": copied_bytes_per_s,
    }
    return record(MoveNeed, {**row, **of_parts})


_SQL = """SELECT tick_ms, broker, role, throttle_bytes_per_s, in_sync_bytes_per_s, required_bytes_per_s,
        moving_bytes_per_s, verdict, moving_partitions, partitions, remaining_bytes,
        down_required_bytes_per_s, quota_bytes_per_s
    FROM data WHERE {recent} AND moving_partitions > 0 AND tick_ms = (SELECT max(tick_ms) FROM data WHERE {recent})
    ORDER BY broker, role DESC"""
# A replica copies what its leader writes, and what it catches up.
_COPIED_SQL = """SELECT adding_replica, leader, write_bytes_per_s + catch_up_bytes_per_s AS copied_bytes_per_s
    FROM data WHERE {recent} AND NOT in_sync AND tick_ms = (SELECT max(tick_ms) FROM data WHERE {recent})"""
