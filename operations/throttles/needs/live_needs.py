"""Needs of the throttles from two readings of the brokers' counters by this command."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.operations.throttles.needs.throttle_need import (
    MAX_PARTITIONS,
    MoveNeed,
    NeedingPartition,
    NeedsSource,
    ThrottleNeeds,
)
from headroom.planning.quotas.load import PartitionTraffic, ThrottleLoad, follower_traffic, throttle_loads
from headroom.schemas.config import Settings
from headroom.schemas.keys import BrokerRole, Role, TopicPartition


def live_needs(settings: Settings) -> ThrottleNeeds:
    """Return the needs of the running moves, with write rates measured for some seconds.

    Raises:
        HeadroomError: no broker could be reached, or the metadata could not be read.
    """
    with LiveCluster(settings) as cluster:
        return needs_of(cluster.leadership_with_traffic())


def needs_of(leadership: LeadershipSnapshot) -> ThrottleNeeds:
    """Return the needs of the running moves: one per broker and role with a moving partition.

    Args:
        leadership: leaders, lists, rates and traffic.
    """
    moving = {p.name: p for p in leadership.throttled if leadership.partitions[p.name].moving}
    loads = {load.broker_role: load for load in throttle_loads(leadership.throttled, leadership.throttles)}
    by_role = _copies_by_role(moving.values())
    ordered = sorted(by_role, key=lambda key: (key.broker, key.role is not Role.LEADER))
    problems = tuple(
        f"Required rates are incomplete: broker {broker} could not be measured ({reason})."
        for broker, reason in sorted(leadership.traffic.unmeasured.items())
    )
    needs = tuple(_need(loads[r], by_role[r], moving, leadership.traffic) for r in ordered)
    return ThrottleNeeds(NeedsSource.LIVE, None, needs, problems)


def _copies_by_role(moving: Iterable[PartitionTraffic]) -> dict[BrokerRole, Counter[TopicPartition]]:
    """Return the number of copies that each broker and role carries of the moving partitions.

    As in ``gold/throttle_headroom``: a leader sends to all followers, and a follower counts where it is out of sync.
    """
    copies: dict[BrokerRole, Counter[TopicPartition]] = defaultdict(Counter)
    for partition in moving:
        for traffic in follower_traffic(partition):
            if traffic.alive and (traffic.broker_role.role is Role.LEADER or not traffic.in_sync):
                copies[traffic.broker_role][partition.name] += 1
    return copies


def _need(
    load: ThrottleLoad,
    copies: Counter[TopicPartition],
    moving: Mapping[TopicPartition, PartitionTraffic],
    traffic: Traffic,
) -> MoveNeed:
    rates = {name: moving[name].write_bytes_per_s for name in copies}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    by_traffic = sorted(copies, key=lambda name: (-copies[name] * known.get(name, 0.0), name))
    return MoveNeed(
        broker=load.broker,
        role=load.role.value,
        throttle_bytes_per_s=load.throttle_bytes_per_s,
        in_sync_bytes_per_s=load.in_sync_bytes_per_s,
        required_bytes_per_s=load.required_bytes_per_s,
        moving_bytes_per_s=(
            sum(count * known[name] for name, count in copies.items()) if len(known) == len(rates) else None
        ),
        verdict=load.verdict.value,
        moving_partitions=len(copies),
        partitions=tuple(NeedingPartition(*name, rates[name]) for name in by_traffic[:MAX_PARTITIONS]),
        down_required_bytes_per_s=load.down_required_bytes_per_s,
        quota_bytes_per_s=traffic.counted.get(load.broker_role),
        copied_bytes_per_s=traffic.copied.get(load.broker_role),
    )
