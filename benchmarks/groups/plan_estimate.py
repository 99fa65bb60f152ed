"""Group ``plan``: CPU time of the estimate of a move of 200,000 partitions, without reading or writing files.

Every partition has 3 replicas on 60 brokers and gets a new one in place of one of them; a tenth are not led by their
preferred leader. Measured are the checks of the plan, its lists, the need of every broker, the time under seven
throttles, and the what-ifs.
"""

from __future__ import annotations

import gc
import os
import time
from random import Random

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.results import Figure, percentile
from planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from planning.reassignments.estimate import estimate
from planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from planning.reassignments.validation import plan_notes, require_possible
from planning.throttles.recommendation import ThrottlePolicy

_PARTITIONS, _BROKERS, _PER_TOPIC = 200_000, 60, 100


def measure(on_progress: OnProgress) -> list[Figure]:
    """Return the median of BENCH_PLANS estimates (default 3)."""
    count = int(os.environ.get("BENCH_PLANS", "3"))
    state, plan = _large_move(Random(1))
    # As the command does, because millions of objects stay.
    gc.disable()
    seconds = []
    for number in range(1, count + 1):
        seconds.append(_estimate_s(plan, state))
        on_progress(f"estimate {number} of {count}: {seconds[-1]:.1f} s")
    gc.enable()
    return [Figure("plan_200k_s", percentile(seconds, 0.5), "s", count)]


def _estimate_s(plan: ReassignmentPlan, state: ClusterState) -> float:
    began_s = time.process_time()
    changes = require_possible(plan, state, "the plan")
    plan_notes(plan, changes, state)
    estimate(changes, state, ThrottlePolicy())
    return time.process_time() - began_s


def _large_move(chance: Random) -> tuple[ClusterState, ReassignmentPlan]:
    brokers = {broker: BrokerState(broker, rack=f"rack{broker % 3}") for broker in range(_BROKERS)}
    partitions, targets = {}, []
    for number in range(_PARTITIONS):
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
        targets.append(TargetAssignment(topic, partition, target))
    return ClusterState("plan", 0, brokers, partitions, auto_leader_rebalance=True), ReassignmentPlan(tuple(targets))
