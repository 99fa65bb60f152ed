"""One batch of a reassignment plan: what it copies, and the throttle that it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from headroom.planning.reassignments.batches.copy_need import CopyNeeds, Ints
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.schemas.keys import BrokerRole


@dataclass(frozen=True)
class ReassignmentBatch:
    """Partitions that are reassigned together.

    Attributes:
        assignments: target replicas, in the order of their names.
        required_bytes_per_s: rate that the throttle of each broker and role has to exceed, in whatever order expected
            leader switches come; empty if nothing is copied.
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


def batches_of(needs: CopyNeeds, batch: Ints) -> list[ReassignmentBatch]:
    """Return the batches of a division, without a throttle and without empty ones.

    Args:
        needs: copies, in the order of the names of their partitions.
        batch: number of the batch of each copy.
    """
    numbers, batch = np.unique(batch, return_inverse=True)
    shape = len(numbers), len(needs.roles)
    key = batch[needs.copy] * shape[1] + needs.role
    required = np.bincount(key, needs.most_bytes_per_s, shape[0] * shape[1]).reshape(shape) + needs.besides_bytes_per_s
    copied = np.bincount(key, needs.copied_bytes, shape[0] * shape[1]).reshape(shape)
    takes_part = np.bincount(key[needs.limits], minlength=shape[0] * shape[1]).reshape(shape) > 0
    copies = np.bincount(key[needs.copies], minlength=shape[0] * shape[1]).reshape(shape) > 0
    unknown_rates = np.bincount(batch[~needs.rate_known], minlength=shape[0]).tolist()
    unknown_sizes = np.bincount(batch[~needs.size_known], minlength=shape[0]).tolist()
    members = np.split(np.argsort(batch, kind="stable"), np.cumsum(np.bincount(batch))[:-1])
    # An array of objects, because a tuple of 200,000 is made for every number of batches.
    assignments = np.empty(len(needs), object)
    assignments[:] = needs.assignments
    roles = needs.roles
    return [
        ReassignmentBatch(
            assignments=tuple(assignments[own].tolist()),
            required_bytes_per_s={
                roles[r]: float(required[number, r]) for r in np.flatnonzero(takes_part[number]).tolist()
            },
            copied_bytes={roles[r]: int(copied[number, r]) for r in np.flatnonzero(copies[number]).tolist()},
            unknown_rates=unknown_rates[number],
            unknown_sizes=unknown_sizes[number],
        )
        for number, own in enumerate(members if len(numbers) else ())
    ]


def copy_time_s(batch: ReassignmentBatch, ceilings: Mapping[BrokerRole, float] = MappingProxyType({})) -> float | None:
    """Return the time that a batch takes, in seconds: bytes / (throttle - required), for the slowest broker and role.

    Infinity if a throttle does not exceed the required rate; None if a rate or a size is unknown.

    Args:
        batch: the batch.
        ceilings: highest rate of a broker and role that its capacity allows, bytes per second; missing: no limit.
    """
    if batch.unknown_rates or batch.unknown_sizes:
        return None
    throttle = batch.throttle_bytes_per_s or 0
    slowest = 0.0
    for broker_role, size in batch.copied_bytes.items():
        left = min(throttle, ceilings.get(broker_role, math.inf)) - batch.required_bytes_per_s.get(broker_role, 0.0)
        if size:
            slowest = max(slowest, size / left if left > 0 else math.inf)
    return slowest
