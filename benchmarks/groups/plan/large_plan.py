"""CPU time of the plan of a move of 200,000 partitions, without reading or writing files."""

from __future__ import annotations

import gc
import time
from random import Random

from headroom.planning.reassignments.batches.batching import BatchPolicy, cut_into_batches
from headroom.planning.reassignments.batches.finish_times import finish_times
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.estimate import estimate
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.validation import plan_notes, require_possible, require_room
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import TopicPartition

PARTITIONS = 200_000
_BROKERS, _PER_TOPIC = 60, 100
# Of the throttle that the whole move needs, so that no fewer than four batches keep it.
_LIMIT_RATIO = 0.3


def plan_seconds(plan: ReassignmentPlan, state: ClusterState) -> tuple[float, float]:
    """Return the CPU time of checks, lists, needs, times and what-ifs of a plan, and that of its batches, seconds.

    The batches are the fewest whose throttle is at most 30 % of that of the whole move.
    """
    # As the command does, because millions of objects stay.
    gc.disable()
    try:
        began_s = time.process_time()
        changes = require_possible(plan, state, "the plan")
        require_room([plan], state, "the plan")
        plan_notes(plan, changes, state)
        move = estimate(changes, state, ThrottlePolicy())
        estimated_s = time.process_time()
        policy = BatchPolicy(max_throttle_bytes_per_s=_LIMIT_RATIO * (move.throttle_bytes_per_s or 0))
        cut_into_batches(state, plan, policy, (), finish_times(state, (), None))
        return estimated_s - began_s, time.process_time() - estimated_s
    finally:
        gc.enable()


def large_move(chance: Random, partition_count: int = PARTITIONS) -> tuple[ClusterState, ReassignmentPlan]:
    """Return a cluster of 60 brokers with replication factor 3, and a plan that replaces a replica of each partition.

    A tenth of the partitions are not led by their preferred leader.
    """
    brokers = {broker: BrokerState(broker, rack=f"rack{broker % 3}") for broker in range(_BROKERS)}
    partitions, targets = {}, []
    for number in range(partition_count):
        topic, partition = f"topic{number // _PER_TOPIC}", number % _PER_TOPIC
        *replicas, new = chance.sample(range(_BROKERS), 4)
        placement = PartitionPlacement(
            topic,
            partition,
            replicas[0] if chance.random() < 0.9 else replicas[1],
            tuple(replicas),
            tuple(replicas),
            size_bytes=chance.randrange(10**9),
            write_bytes_per_s=20_000 * chance.random(),
        )
        partitions[placement.name] = placement
        replaced = chance.randrange(3)
        target = tuple(new if at == replaced else broker for at, broker in enumerate(replicas))
        targets.append(TargetAssignment(TopicPartition(topic, partition), target))
    return ClusterState("plan", 0, brokers, partitions, auto_leader_rebalance=True), ReassignmentPlan(tuple(targets))
