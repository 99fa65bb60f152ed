"""One batch of a reassignment plan: what it copies, and the throttle that it needs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planning.reassignments.batches.copy_need import CopyNeed
from planning.reassignments.plan import TargetAssignment
from schemas.keys import BrokerRole


@dataclass(frozen=True)
class ReassignmentBatch:
    """Partitions that are reassigned together.

    Attributes:
        assignments: target replicas, in the order of their names.
        required_bytes_per_s: rate that the throttle of each broker and role has to exceed; empty if nothing is copied.
        copied_bytes: bytes that each broker and role sends or receives.
        throttle_bytes_per_s: throttle of the batch; None if nothing is copied.
        unknown_rates: copied partitions whose write rate is unknown and counts as 0.
        unknown_sizes: copied partitions whose size is unknown and counts as 0.
    """

    assignments: tuple[TargetAssignment, ...]
    required_bytes_per_s: Mapping[BrokerRole, float] = field(default_factory=dict)
    copied_bytes: Mapping[BrokerRole, int] = field(default_factory=dict)
    throttle_bytes_per_s: int | None = None
    unknown_rates: int = 0
    unknown_sizes: int = 0

    @property
    def smallest_bytes_per_s(self) -> float:
        """The rate that one throttle for all brokers has to exceed, without a margin; 0 if nothing is copied."""
        return max(self.required_bytes_per_s.values(), default=0.0)


def batch_of(needs: Iterable[CopyNeed]) -> ReassignmentBatch:
    """Return the batch of some copies, without a throttle. The sums do not depend on the order of the copies."""
    ordered = sorted(needs, key=lambda need: (need.assignment.topic, need.assignment.partition))
    rates: dict[BrokerRole, list[float]] = defaultdict(list)
    copied: dict[BrokerRole, int] = defaultdict(int)
    for need in ordered:
        for broker_role, rate in need.required_bytes_per_s.items():
            rates[broker_role].append(rate)
        for broker_role, size in need.copied_bytes.items():
            copied[broker_role] += size
    return ReassignmentBatch(
        assignments=tuple(need.assignment for need in ordered),
        required_bytes_per_s={broker_role: math.fsum(own) for broker_role, own in rates.items()},
        copied_bytes=dict(copied),
        unknown_rates=sum(not need.rate_known for need in ordered),
        unknown_sizes=sum(not need.size_known for need in ordered),
    )


def copy_time_s(batch: ReassignmentBatch) -> float | None:
    """Return the time that a batch takes, in seconds: bytes / (throttle - required), for the slowest broker and role.

    Infinity if a throttle does not exceed the required rate; None if a rate or a size is unknown.
    """
    if batch.unknown_rates or batch.unknown_sizes:
        return None
    throttle = batch.throttle_bytes_per_s or 0
    slowest = 0.0
    for broker_role, size in batch.copied_bytes.items():
        left = throttle - batch.required_bytes_per_s.get(broker_role, 0.0)
        if size:
            slowest = max(slowest, size / left if left > 0 else math.inf)
    return slowest
