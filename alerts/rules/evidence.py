"""The numbers behind a finding, ready for JSON: every kind has the keys that readers rely on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.inputs.throttle_status import LeaderSwitch, OutOfSyncReplica, PartitionEvidence, ThrottleStatus
from schemas.alerts import Role

# What has no meaning for a finding is null, and there are no partitions.
NOTHING: dict[str, Any] = {
    "broker_id": None,
    "role": None,
    "throttle_bytes_per_s": None,
    "in_sync_bytes_per_s": None,
    "required_bytes_per_s": None,
    "remaining_bytes": None,
    "partitions": [],
    "switch_tick_ms": None,
}


def subject(side: ThrottleStatus) -> str:
    """Return whom an alert of this side is about."""
    return f"broker {side.broker} as {'leader' if side.role is Role.LEADER else 'destination'}"


def status_evidence(side: ThrottleStatus, switches: Sequence[LeaderSwitch] = (), **more: Any) -> dict[str, Any]:
    """Return the numbers of a side.

    Args:
        side: side.
        switches: leader switches that are the cause.
        more: further keys.
    """
    demand = side.demand
    return {
        "broker_id": side.broker,
        "role": side.role.value,
        "verdict": side.verdict.value,
        "throttle_bytes_per_s": demand.throttle_bytes_per_s,
        "in_sync_bytes_per_s": demand.in_sync_bytes_per_s,
        "required_bytes_per_s": demand.required_bytes_per_s,
        "quota_bytes_per_s": demand.used_bytes_per_s,
        "remaining_bytes": demand.remaining_bytes,
        "moving_replicas": demand.limited_replicas + demand.free_replicas,
        "stalled_replicas": side.stalled_replicas,
        "waiting_replicas": side.waiting_replicas,
        "known_in_sync_bytes_per_s": side.known_in_sync_bytes_per_s,
        "known_required_bytes_per_s": side.known_required_bytes_per_s,
        "counting_partitions": side.counting_partitions,
        "partitions": [_plain(p) for p in side.partitions],
        "switch_tick_ms": max((switch.switch_tick_ms for switch in switches), default=None),
        "switches": [_plain(switch) for switch in switches],
        "reason": side.reason,
        **more,
    }


def broker_evidence(broker: int, lost: Sequence[OutOfSyncReplica], **more: Any) -> dict[str, Any]:
    """Return what is known of a broker's lost replicas.

    Args:
        broker: broker.
        lost: its replicas out of the ISR.
        more: further keys.
    """
    unread = dict.fromkeys(("write_bytes_per_s", "previous_leader", "switch_tick_ms"))
    return {**NOTHING, "broker_id": broker, "partitions": [{**_plain(one), **unread} for one in lost], **more}


def _plain(entry: PartitionEvidence | OutOfSyncReplica | LeaderSwitch) -> dict[str, Any]:
    """Return the attributes; ``dataclasses.asdict`` would copy each of them deeply, of every side and tick."""
    return dict(vars(entry))


def join_names(names: Sequence[str], count: int | None = None, most: int = 3) -> str:
    """Return the first few names and how many more there are.

    Args:
        names: names.
        count: how many there are in truth, where the names are cut; None: as many as names.
        most: how many to name.
    """
    if not names and count:
        return f"{count} partition(s)"
    rest = (len(names) if count is None else count) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
