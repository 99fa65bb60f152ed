"""Readings and progress of migrating partitions for tests."""

from __future__ import annotations

from typing import Any

from headroom.planning.migration.progress.message_row import Row, readings_of_rows
from headroom.planning.migration.progress.progress import GroupProgress, MigrationProgress, MigrationVerdict
from headroom.planning.migration.progress.reading import MigrationReading


def reading_of_row(row: Row, tick_ms: int) -> MigrationReading | None:
    """Return ``readings_of_rows`` of one row."""
    return readings_of_rows([row], tick_ms)[0]


def progress(partition: int = 0, **more: Any) -> MigrationProgress:
    """The paper's partition: routed, 600,000 offsets below E 700,000 are left at 2,000/s, and nothing is wrong."""
    fields: dict[str, Any] = {
        "topic": "orders",
        "partition": partition,
        "migration": "m",
        "status": "migrating",
        "method": "routed",
        "end_offset": 700_000,
        "left_offsets": 600_000,
        "write_offsets_per_s": 2_000.0,
        "switch_eta_s": 300.0,
        "beyond_offsets": 0,
        "unstable_offsets": 0,
        "lost_offsets": 0,
        "at_risk_offsets": 0,
        "mirror_lag_offsets": None,
        "mirror_eta_s": None,
        "kept_s": 3_900.0,
        "acks": "all",
        "min_insync_replicas": 2,
        "unclean_elections": False,
        "missing_routers": (),
        "expected_ms": None,
        "removable": False,
        "reason": "E 700,000 is reached in 5 min: 600,000 offsets are left at 2,000.0/s.",
        "verdict": MigrationVerdict.ON_PLAN,
        "groups": (),
    }
    return MigrationProgress(**fields | more)


def switched(partition: int = 0, **more: Any) -> MigrationProgress:
    """A partition whose origin is at E and at rest, without readers that need it."""
    at_rest: dict[str, Any] = {
        "status": "migrated",
        "left_offsets": 0,
        "write_offsets_per_s": 0.0,
        "switch_eta_s": 0.0,
        "verdict": MigrationVerdict.REMOVABLE,
        "removable": True,
        "reason": "",
    }
    return progress(partition, **at_rest | more)


def unread(verdict: MigrationVerdict = MigrationVerdict.SHIELDED, **more: Any) -> MigrationProgress:
    """A partition of whose origin nothing is read."""
    names = (
        "left_offsets",
        "write_offsets_per_s",
        "switch_eta_s",
        "beyond_offsets",
        "unstable_offsets",
        "lost_offsets",
        "at_risk_offsets",
        "kept_s",
        "removable",
        "min_insync_replicas",
        "unclean_elections",
        "acks",
        "groups",
    )
    unknown: dict[str, Any] = dict.fromkeys(names)
    return progress(verdict=verdict, reason="Nothing calls the origin.", **unknown | more)


def doomed(group: str = "billing", **more: Any) -> GroupProgress:
    """The case of the judgement: 650,000 to read at 100/s in 3,900 s, so that 260,000 are lost."""
    fields: dict[str, Any] = {
        "client_offset": 50_000,
        "left_offsets": 650_000,
        "read_offsets_per_s": 100.0,
        "read_eta_s": 6_500.0,
        "lost_offsets": 260_000,
        "gone_offsets": 0,
        "kept_s": 3_900.0,
        "enough_retention_ms": 7_440_000,
    }
    return GroupProgress(group, **fields | more)
