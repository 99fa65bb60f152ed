"""Evidence on the throttle of one broker and role, for all rules on throttle statuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.inputs.throttle_status import LeaderSwitch, ThrottleStatus
from headroom.schemas.alerts import Verdict

# Stored events have these keys first, in this order.
_FIRST_KEYS = (
    "broker_id",
    "role",
    "verdict",
    "throttle_bytes_per_s",
    "in_sync_bytes_per_s",
    "required_bytes_per_s",
    "quota_bytes_per_s",
    "remaining_bytes",
    "moving_replicas",
    "stalled_replicas",
    "waiting_replicas",
    "known_in_sync_bytes_per_s",
    "known_required_bytes_per_s",
    "counting_partitions",
)


@dataclass(frozen=True, kw_only=True)
class ThrottleEvidence(Evidence):
    """Evidence on the throttle of one broker and role.

    Attributes:
        verdict: verdict on the throttle.
        quota_bytes_per_s: traffic that counts against the quota now; None if not measured.
        moving_replicas: out-of-sync replicas, listed or not.
        stalled_replicas: adding replicas that copied nothing in the rate window.
        waiting_replicas: adding replicas that copied nothing in the rate window because they wait their turn.
        known_in_sync_bytes_per_s: known part of the in-sync traffic, a lower bound.
        known_required_bytes_per_s: known part of the required traffic, a lower bound.
        counting_partitions: number of partitions that count against the throttle.
        switches: leader switches that are the cause, largest traffic first.
        reason: unknown inputs if the verdict is no_data; None otherwise.
        down_required_bytes_per_s: known addition to ``required_bytes_per_s`` once dead brokers are back; None if
            unknown.
        lasting_required_bytes_per_s: rate that a throttle has to exceed, also once dead brokers are back; None if
            unknown.
        down_brokers: these brokers; empty if there are none, or only single replicas are offline.
    """

    verdict: Verdict
    quota_bytes_per_s: float | None
    moving_replicas: int
    stalled_replicas: int
    waiting_replicas: int
    known_in_sync_bytes_per_s: float
    known_required_bytes_per_s: float
    counting_partitions: int
    switches: Sequence[LeaderSwitch]
    reason: str | None
    down_required_bytes_per_s: float | None = None
    lasting_required_bytes_per_s: float | None = None
    down_brokers: Sequence[int] = ()

    @staticmethod
    def of(
        status: ThrottleStatus, switches: Sequence[LeaderSwitch] = (), down_brokers: Sequence[int] = ()
    ) -> ThrottleEvidence:
        """Return the evidence of a throttle status.

        Args:
            status: throttle status.
            switches: leader switches that are the cause, largest traffic first.
            down_brokers: dead brokers whose replicas the broker will serve again.
        """
        load = status.load
        return ThrottleEvidence(
            broker_id=status.broker,
            role=status.role,
            verdict=status.verdict,
            throttle_bytes_per_s=load.throttle_bytes_per_s,
            in_sync_bytes_per_s=load.in_sync_bytes_per_s,
            required_bytes_per_s=load.required_bytes_per_s,
            quota_bytes_per_s=load.used_bytes_per_s,
            remaining_bytes=load.remaining_bytes,
            moving_replicas=load.limited_replicas + load.free_replicas,
            stalled_replicas=status.stalled_replicas,
            waiting_replicas=status.waiting_replicas,
            known_in_sync_bytes_per_s=status.known_in_sync_bytes_per_s,
            known_required_bytes_per_s=status.known_required_bytes_per_s,
            counting_partitions=status.counting_partitions,
            partitions=status.partitions,
            switch_tick_ms=max((switch.switch_tick_ms for switch in switches), default=None),
            switches=switches,
            reason=status.reason,
            down_required_bytes_per_s=load.down_required_bytes_per_s,
            lasting_required_bytes_per_s=load.lasting_required_bytes_per_s,
            down_brokers=down_brokers,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as it is stored."""
        values = super().to_json()
        return {name: values[name] for name in _FIRST_KEYS} | values
