"""Small clusters with replicas, and random requests for plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.schemas.keys import TopicPartition


def placement(
    topic: str,
    partition: int,
    replicas: Sequence[int],
    size_bytes: int | None = 1000,
    write_bytes_per_s: float | None = 10.0,
    isr: Sequence[int] | None = None,
) -> PartitionPlacement:
    """Return a partition that its first in-sync replica leads; all replicas are in sync unless given."""
    in_sync = tuple(replicas if isr is None else isr)
    leader = in_sync[0] if in_sync else None
    return PartitionPlacement(
        topic, partition, leader, tuple(replicas), in_sync, size_bytes=size_bytes, write_bytes_per_s=write_bytes_per_s
    )


def cluster_state(
    brokers: Iterable[int],
    partitions: Iterable[PartitionPlacement],
    racks: Mapping[int, str] | None = None,
    dead: Collection[int] = (),
) -> ClusterState:
    """Return a cluster with some brokers down."""
    states = {broker: BrokerState(broker, broker not in dead, (racks or {}).get(broker)) for broker in brokers}
    return ClusterState("prod", 0, states, {p.name: p for p in partitions})


def carried_out(state: ClusterState, assignments: Iterable[TargetAssignment]) -> ClusterState:
    """Return the cluster after a plan: new replicas are in sync, and preferred leaders lead where they can."""
    partitions: dict[TopicPartition, PartitionPlacement] = dict(state.partitions)
    for target in assignments:
        p = partitions[target.name]
        isr = tuple(broker for broker in target.replicas if broker in p.isr or broker not in p.replicas)
        leader = next(iter(isr), p.leader)
        partitions[target.name] = replace(p, replicas=target.replicas, isr=isr, leader=leader)
    return replace(state, partitions=partitions)


@st.composite
def cluster_states(draw: st.DrawFn, with_racks: bool = True) -> ClusterState:
    """Random clusters of 1 to 8 brokers, some with racks, with brokers down and replicas out of sync."""
    brokers = list(range(draw(st.integers(1, 8))))
    all_racks = st.lists(st.sampled_from("abcd"), min_size=len(brokers), max_size=len(brokers))
    racks = draw(st.none() | all_racks) if with_racks else None
    dead = draw(st.sets(st.sampled_from(brokers), max_size=1)) if draw(st.integers(0, 3)) == 0 else set()
    partitions = []
    for topic in range(draw(st.integers(1, 3))):
        factor = draw(st.integers(1, min(4, len(brokers))))
        for number in range(draw(st.integers(1, 10))):
            replicas = draw(st.permutations(brokers))[:factor]
            alive = [broker for broker in replicas if broker not in dead]
            isr = alive[1:] + alive[:1] if draw(st.integers(0, 5)) else alive[:1]
            size = draw(st.none() | st.integers(0, 1000) | st.integers(0, 1000))
            rate = float(draw(st.integers(0, 20)))
            partitions.append(placement(f"topic{topic}", number, replicas, size, rate, isr))
    return cluster_state(brokers, partitions, dict(zip(brokers, racks, strict=True)) if racks else None, dead)


@st.composite
def plan_requests(draw: st.DrawFn, state: ClusterState) -> PlanRequest:
    """Random requests that name existing topics and brokers; not all of them can be fulfilled."""
    brokers = st.sampled_from(sorted(state.brokers))
    goal = draw(st.sampled_from(["drain", "factor", "spread", "spread and factor", "replace", "reorder"]))
    old = draw(brokers)
    new = draw(brokers.filter(lambda broker: broker != old)) if goal == "replace" and len(state.brokers) > 1 else None
    return PlanRequest(
        topics=draw(st.none() | st.just(frozenset({min(name.topic for name in state.partitions)}))),
        to_brokers=frozenset(draw(st.sets(brokers, min_size=1))) if "spread" in goal else None,
        replication_factor=draw(st.integers(1, 4)) if "factor" in goal else None,
        drain=frozenset(draw(st.sets(brokers, min_size=1, max_size=2))) if goal == "drain" else frozenset(),
        replace={} if new is None else {old: new},
        reorder=goal == "reorder" or draw(st.integers(0, 9)) == 0,
    )
