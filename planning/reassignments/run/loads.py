"""Loads on the throttles during a run: now, and as they will be once a batch has been submitted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headroom.planning.quotas.load import (
    PartitionTraffic,
    ThrottleLoad,
    lasting_rate,
    partition_traffic,
    throttle_loads,
    worse_loads,
)
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.run.changes import PlannedRate, broker_roles_of, entries_of
from headroom.planning.reassignments.run.journal import ThrottledList, rate_subject
from headroom.planning.reassignments.run.record import Submission
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.planning.throttles.replica_lists import ReplicaList, parse_replica_list
from headroom.schemas.alerts import TOO_LOW, Verdict
from headroom.schemas.keys import BrokerRate, BrokerRole, Role, TopicPartition
from headroom.schemas.text.amounts import rate_text


def short_throttles(loads: list[ThrottleLoad]) -> list[ThrottleLoad]:
    """Return the loads whose throttle lets replicas fall behind: starved or losing."""
    return [load for load in loads if load.verdict in TOO_LOW]


def required_bytes_per_s(load: ThrottleLoad) -> float:
    """Return the rate that a throttle has to exceed, as far as it is known."""
    return load.least_required_bytes_per_s if load.required_bytes_per_s is None else load.required_bytes_per_s


def lasting_required_bytes_per_s(load: ThrottleLoad) -> float:
    """Return the rate that a throttle has to exceed once dead brokers are back too, as far as it is known."""
    return lasting_rate(required_bytes_per_s(load), load.down_required_bytes_per_s) or 0.0


def enough_bytes_per_s(loads: Iterable[ThrottleLoad], throttles: ThrottlePolicy) -> int:
    """Return the rate that is enough for some loads, with the margin, also once dead brokers are back."""
    return math.ceil(throttles.with_margin(max(map(lasting_required_bytes_per_s, loads))))


def slow_text(loads: Iterable[ThrottleLoad], throttles: ThrottlePolicy) -> str | None:
    """Return that throttles do not exceed what is required, with the rate that fits; None if no load is slow.

    Such a batch is not refused, because its replicas still gain. ``headroom plan`` says the same of it.

    Args:
        loads: loads on the throttles of a batch.
        throttles: margin of recommended throttles.
    """
    slow = [load for load in loads if load.verdict is Verdict.SLOW]
    if not slow:
        return None
    greatest = max(slow, key=required_bytes_per_s)
    names = list(dict.fromkeys(rate_subject(load.broker_role) for load in slow))
    require = "requires" if len(names) == 1 else "require up to"
    rate, required = rate_text(greatest.throttle_bytes_per_s), rate_text(required_bytes_per_s(greatest))
    recommended = rate_text(enough_bytes_per_s(slow, throttles))
    return (
        f"Does not fit: at {rate} the move is too slow; {', '.join(names)} {require} {required}. "
        f"Recommended: {recommended}."
    )


def loads_now(snapshot: RunSnapshot) -> list[ThrottleLoad]:
    """Return the load of every broker and role with throttled or moving partitions."""
    return _loads(snapshot, _throttles(snapshot))


def loads_of_batch(
    snapshot: RunSnapshot, moves: Mapping[TopicPartition, Submission], rates: Mapping[BrokerRate, PlannedRate]
) -> list[ThrottleLoad]:
    """Return the loads on the throttles of a batch once it has been submitted, with the worse of two leaderships.

    These are the present leaders, and those that Kafka may elect meanwhile (``PartitionPlacement.leader_during``).
    Throttles that limit only others' moves are left out.

    Args:
        snapshot: the cluster now.
        moves: reassignments of the batch.
        rates: rates that are set before.
    """
    placed = dict(snapshot.partitions)
    for name, move in moves.items():
        partition = placed[name]
        new = tuple(broker for broker in move.after if broker not in partition.replicas)
        adding = tuple(broker for broker in move.after if broker not in move.before)
        placed[name] = replace(partition, replicas=(*partition.replicas, *new), adding=adding)
    lists = dict(snapshot.lists)
    for listed, entries in entries_of(moves).items():
        own = ",".join(f"{partition}:{broker}" for partition, broker in sorted(entries))
        text = lists.get(listed, "")
        lists[listed] = text if text.strip() == "*" else f"{text},{own}" if text else own
    throttles = _throttles(snapshot)
    throttles |= {name: rate.after for name, rate in rates.items() if isinstance(name, BrokerRole)}
    return _with_switches(replace(snapshot, partitions=placed, lists=lists), moves, throttles)


def loads_during(snapshot: RunSnapshot, moves: Mapping[TopicPartition, Submission]) -> list[ThrottleLoad]:
    """Return the loads on the throttles of running moves, with the worse of two leaderships, as ``loads_of_batch``."""
    return _with_switches(snapshot, moves, _throttles(snapshot))


def _with_switches(
    snapshot: RunSnapshot, moves: Mapping[TopicPartition, Submission], throttles: Mapping[BrokerRole, float | None]
) -> list[ThrottleLoad]:
    limiting = broker_roles_of(moves)
    elected = {}
    for name, move in moves.items():
        # A partition that gains no replica is in no list.
        if (partition := snapshot.partitions.get(name)) is None or not partition.adding:
            continue
        leader = partition.leader_during(move.after, snapshot.alive, snapshot.auto_leader_rebalance)
        if leader not in (None, partition.leader):
            elected[name] = replace(partition, leader=leader)
    loads = _loads(snapshot, throttles)
    if elected:
        after = _loads(replace(snapshot, partitions={**snapshot.partitions, **elected}), throttles)
        loads = worse_loads(loads, after)
    return [load for load in loads if load.broker_role in limiting]


def _throttles(snapshot: RunSnapshot) -> dict[BrokerRole, float | None]:
    return {name: rate.in_force for name, rate in snapshot.rates.items() if isinstance(name, BrokerRole)}


def _loads(snapshot: RunSnapshot, throttles: Mapping[BrokerRole, float | None]) -> list[ThrottleLoad]:
    parsed = {name: parse_replica_list(text) for name, text in snapshot.lists.items()}
    every = {name.topic for name, listed in parsed.items() if listed is not None and listed.every}
    names = {
        TopicPartition(name.topic, number)
        for name, listed in parsed.items()
        if listed is not None
        for number in listed.partitions()
    }
    traffic = [
        _traffic(p, parsed, snapshot.alive)
        for name, p in snapshot.partitions.items()
        if p.moving or name in names or name.topic in every
    ]
    return throttle_loads(traffic, throttles)


def _traffic(
    partition: PartitionPlacement, lists: Mapping[ThrottledList, ReplicaList | None], alive: frozenset[int]
) -> PartitionTraffic:
    def brokers_in_list(role: Role) -> tuple[int, ...]:
        replica_list = lists.get(ThrottledList(partition.topic, role))
        return () if replica_list is None else replica_list.brokers(partition.partition, partition.replicas)

    leaders, followers = brokers_in_list(Role.LEADER), brokers_in_list(Role.FOLLOWER)
    return partition_traffic(partition, alive, leaders, followers, partition.write_bytes_per_s)
