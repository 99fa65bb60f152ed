"""Evidence of findings as JSON objects; every alert kind has the keys of ``EMPTY_EVIDENCE``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.inputs.throttle_status import LeaderSwitch, OutOfSyncReplica, PartitionEvidence, ThrottleStatus
from schemas.alerts import Role

# Values that do not apply to a finding stay null.
EMPTY_EVIDENCE: dict[str, Any] = {
    "broker_id": None,
    "role": None,
    "throttle_bytes_per_s": None,
    "in_sync_bytes_per_s": None,
    "required_bytes_per_s": None,
    "remaining_bytes": None,
    "partitions": [],
    "switch_tick_ms": None,
}


def subject(status: ThrottleStatus) -> str:
    """Return the alert subject of a broker and role."""
    return f"broker {status.broker} as {'leader' if status.role is Role.LEADER else 'destination'}"


def status_evidence(status: ThrottleStatus, switches: Sequence[LeaderSwitch] = (), **more: Any) -> dict[str, Any]:
    """Return the evidence of one broker and role.

    Args:
        status: throttle status.
        switches: leader switches that are the cause.
        more: further keys.
    """
    load = status.load
    return {
        "broker_id": status.broker,
        "role": status.role.value,
        "verdict": status.verdict.value,
        "throttle_bytes_per_s": load.throttle_bytes_per_s,
        "in_sync_bytes_per_s": load.in_sync_bytes_per_s,
        "required_bytes_per_s": load.required_bytes_per_s,
        "quota_bytes_per_s": load.used_bytes_per_s,
        "remaining_bytes": load.remaining_bytes,
        "moving_replicas": load.limited_replicas + load.free_replicas,
        "stalled_replicas": status.stalled_replicas,
        "waiting_replicas": status.waiting_replicas,
        "known_in_sync_bytes_per_s": status.known_in_sync_bytes_per_s,
        "known_required_bytes_per_s": status.known_required_bytes_per_s,
        "counting_partitions": status.counting_partitions,
        "partitions": [_as_dict(p) for p in status.partitions],
        "switch_tick_ms": max((switch.switch_tick_ms for switch in switches), default=None),
        "switches": [_as_dict(switch) for switch in switches],
        "reason": status.reason,
        **more,
    }


def broker_evidence(broker: int, lost: Sequence[OutOfSyncReplica], **more: Any) -> dict[str, Any]:
    """Return the evidence on a broker's out-of-sync replicas.

    Args:
        broker: broker id.
        lost: its replicas that are out of the ISR.
        more: further keys.
    """
    unread = dict.fromkeys(("write_bytes_per_s", "previous_leader", "switch_tick_ms"))
    return {**EMPTY_EVIDENCE, "broker_id": broker, "partitions": [{**_as_dict(one), **unread} for one in lost], **more}


def _as_dict(entry: PartitionEvidence | OutOfSyncReplica | LeaderSwitch) -> dict[str, Any]:
    """Return the attributes as a dict."""
    # ``dataclasses.asdict`` would copy every value deeply, for each status of each tick.
    return dict(vars(entry))
