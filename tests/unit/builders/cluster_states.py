"""Small cluster states, and random ones with plans for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from headroom.planning.quotas.load import PartitionTraffic, live_followers
from headroom.planning.reassignments.changes import PlanChanges, plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.traffic import PlannedTraffic, planned_traffic
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan, parse_replica_list
from headroom.schemas.keys import TopicPartition

MB = 1_000_000
BROKERS = (1, 2, 3, 4, 5)
# Sums of these are exact.
_WRITES = (0.0, 1 * MB / 1, 2.0 * MB, 3.0 * MB)


def placed(number: int, replicas: tuple[int, ...], **fields: Any) -> PartitionPlacement:
    """A partition of topic t, in sync and led by its first replica, with 100 MB and 1 MB/s unless given."""
    usual: dict[str, Any] = {"isr": replicas, "leader": replicas[0], "size_bytes": 100 * MB, "write_bytes_per_s": 1e6}
    return PartitionPlacement("t", number, replicas=replicas, **{**usual, **fields})


def state_of(
    placements: Iterable[PartitionPlacement],
    brokers: Mapping[int, BrokerState] | None = None,
    **fields: Any,
) -> ClusterState:
    known = {broker: BrokerState(broker) for broker in BROKERS} | dict(brokers or {})
    fields = {"auto_leader_rebalance": False, **fields}
    return ClusterState("c", 0, known, {p.name: p for p in placements}, **fields)


def plan_of(targets: Mapping[int, tuple[int, ...]]) -> ReassignmentPlan:
    return ReassignmentPlan(
        tuple(TargetAssignment(TopicPartition("t", number), replicas) for number, replicas in targets.items())
    )


def traffic_of(state: ClusterState, plan: ReassignmentPlan) -> PlannedTraffic:
    changes = plan_changes(plan, state)
    return planned_traffic(state, changes, changes.lists)


def reference_traffic(state: ClusterState, changes: PlanChanges, leaders: Mapping[int, int]) -> list[PartitionTraffic]:
    """The traffic during a move by the scalar rule.

    Args:
        state: the cluster.
        changes: the plan's changes.
        leaders: leader by partition where it differs from the present one.
    """
    targets = {target.name: target for target in changes.gaining}
    in_force = state.lists.get("t", TopicLists(None, None))
    found = []
    for name, p in state.partitions.items():
        target = targets.get(name)
        added = () if target is None else tuple(b for b in target.replicas if b not in p.replicas)
        own = lists_of_plan([] if target is None else [Move(p.name, p.replicas, target.replicas)])
        replicas = (*p.replicas, *added)
        leader_listed, follower_listed = (
            frozenset(_listed(text, p.partition, replicas)) | frozenset(_listed(force, p.partition, replicas))
            for text, force in zip(_texts(own.get("t")), _texts(in_force), strict=True)
        )
        if target is None and not leader_listed | follower_listed:
            continue
        leader = leaders.get(p.partition, p.leader)
        found.append(
            PartitionTraffic(
                p.name,
                leader,
                live_followers(replicas, leader, state.alive),
                frozenset(p.isr),
                frozenset(added),
                leader_listed,
                follower_listed,
                p.write_bytes_per_s,
                {} if p.size_bytes is None else dict.fromkeys(added, p.size_bytes),
            )
        )
    return found


def _texts(lists: TopicLists | None) -> tuple[str | None, str | None]:
    return (None, None) if lists is None else (lists.leader, lists.follower)


def _listed(text: str | None, partition: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
    found = parse_replica_list(text)
    return () if found is None else found.brokers(partition, replicas)


@st.composite
def states_and_plans(draw: st.DrawFn) -> tuple[ClusterState, ReassignmentPlan]:
    """Draw a cluster of a few partitions, and a plan for all of them; a broker may be down, rates may be unknown."""
    down = draw(st.sampled_from((None, None, 5)))
    brokers = {b: BrokerState(b, alive=b != down) for b in BROKERS}
    placements, targets = [], {}
    for number in range(draw(st.integers(1, 5))):
        replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)))
        live = [b for b in replicas if b != down]
        leader = draw(st.sampled_from(live)) if live else None
        isr = () if leader is None else (leader, *(b for b in live if b != leader and draw(st.integers(0, 3))))
        write = draw(st.sampled_from((*_WRITES, *_WRITES, None)))
        placements.append(placed(number, replicas, leader=leader, isr=isr, write_bytes_per_s=write))
        targets[number] = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True)))
    lists = draw(
        st.sampled_from(({}, {}, {"t": TopicLists("*", "*")}, {"t": TopicLists("0:1,0:2,1:3", "0:3,1:1,9:1")}))
    )
    balances = draw(st.sampled_from((True, False, None)))
    return state_of(placements, brokers, lists=lists, auto_leader_rebalance=balances), plan_of(targets)
