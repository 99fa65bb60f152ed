"""Sides of a tick made by hand, as the rules look at them."""

from __future__ import annotations

import json
from typing import Any

from alerts.recommend import Recommender
from alerts.rules import Assessment, assess
from alerts.sides import PartitionEvidence, SideState
from planning.recommend import Wish
from planning.throttle import Demand
from schemas.config import AlertSettings
from schemas.findings import Finding, Kind, Role, Verdict

MB = 1_000_000.0
TICK_MS = 1_800_000_000_000
SETTINGS = AlertSettings(hold_s=3, stalled_s=30, no_data_s=15, exit_ratio=1.05)
# What readers of any finding rely on.
CONTRACT = {
    "broker_id",
    "role",
    "throttle_bytes_per_s",
    "in_sync_bytes_per_s",
    "required_bytes_per_s",
    "partitions",
    "switch_tick_ms",
}


def partition(number: int = 0, **more: Any) -> PartitionEvidence:
    """Partition of topic ``t`` of 2 MB/s that moves from 2, 1 to 3, 2 and is led by broker 1."""
    fields: dict[str, Any] = {
        "topic": "t",
        "partition": number,
        "write_bytes_per_s": 2 * MB,
        "followers": 2,
        "in_sync_followers": 1,
        "leader": 1,
        "previous_leader": None,
        "switch_tick_ms": None,
        "moving": True,
        "replicas": (3, 2, 1),
        "target": (3, 2),
        "stalled": False,
    }
    return PartitionEvidence(**fields | more)


def side(
    broker: int,
    role: Role,
    throttle_mb: float | None,
    required_mb: float | None,
    *partitions: PartitionEvidence,
    in_sync_mb: float | None = 2.0,
    limited: int = 1,
    **more: Any,
) -> SideState:
    """A side with one replica held back; the verdict is the one of its demand."""
    demand = Demand(
        broker=broker,
        role=role,
        throttle_bytes_per_s=None if throttle_mb is None else throttle_mb * MB,
        in_sync_bytes_per_s=None if in_sync_mb is None else in_sync_mb * MB,
        required_bytes_per_s=None if required_mb is None else required_mb * MB,
        limited_replicas=limited,
        free_replicas=more.pop("free", 0),
        remaining_bytes=more.pop("remaining_bytes", 10_000_000),
        throttle_known=more.pop("throttle_known", True),
        used_bytes_per_s=more.pop("used_bytes_per_s", None),
    )
    fields: dict[str, Any] = {
        "demand": demand,
        "verdict": demand.verdict,
        "reason": "write rate unknown of 1 partition(s)" if demand.verdict is Verdict.NO_DATA else None,
        "eta_s": None,
        "stalled_replicas": sum(p.stalled for p in partitions),
        "partitions": partitions,
        "moving_partitions": sum(p.moving for p in partitions),
    }
    return SideState(**fields | more)


def assessed(*sides: SideState, wish: Wish | None = None) -> Assessment:
    """What a tick of these sides says."""
    return assess(sides, SETTINGS, Recommender(wish or Wish(), "broker1:9092"))


def found(*sides: SideState, kind: Kind | None = None, wish: Wish | None = None) -> Finding:
    """The only finding, or the only one of a kind, and that it holds what readers rely on."""
    (finding,) = [f for f in assessed(*sides, wish=wish).findings if kind in (None, f.kind)]
    assert set(finding.evidence) >= CONTRACT
    json.dumps([finding.evidence, dict(finding.recommendation)])
    return finding


def kinds(*sides: SideState) -> set[Kind]:
    """The kinds of what is found."""
    return {finding.kind for finding in assessed(*sides).findings}
