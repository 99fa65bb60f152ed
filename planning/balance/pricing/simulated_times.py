"""Times of batches by the simulation of Kafka's quotas, as a plan of the same moves has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headroom.planning.balance.arrays import hourly_percentile
from headroom.planning.balance.batches.batches import BalanceBatch
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.pricing.price import BatchRun, Ceilings
from headroom.planning.finish.finish_time import SCENARIOS
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.timing import MoveTimes
from headroom.planning.reassignments.traffic import OtherReplication, planned_traffic
from headroom.schemas.keys import Role


def simulated_times_s(run: BatchRun, throttle_bytes_per_s: float, state: ClusterState) -> list[float | None]:
    """Return the time of each batch in seconds; None if it never ends.

    A quota that has counted nothing since the start of its broker begins with the first batch that uses it. Between two
    batches quotas come to rest, and then have room for a burst.

    Args:
        run: batches one after another.
        throttle_bytes_per_s: throttle on all brokers, both roles.
        state: the cluster before the first batch.
    """
    used: dict[int, set[Role]] = defaultdict(set)
    times_s = []
    for batch, ceilings in zip(run.batches, run.ceilings, strict=True):
        rate = batch.throttle(throttle_bytes_per_s)
        times_s.append(_simulated_s(batch, rate, _without_unused(state, used), ceilings))
        for move in batch.moves:
            used[move.leader].add(Role.LEADER)
            used[move.target].add(Role.FOLLOWER)
    return times_s


def _without_unused(state: ClusterState, used: Mapping[int, set[Role]]) -> ClusterState:
    brokers = {
        broker: replace(own, unused_quotas=own.unused_quotas - used.get(broker, set()))
        for broker, own in state.brokers.items()
    }
    return replace(state, brokers=brokers)


def ceilings_of(
    model: ClusterModel, batches: Sequence[BalanceBatch], state: ClusterState, capacity_bytes_per_s: float | None
) -> list[Ceilings]:
    """Return the highest rates that brokers of each batch may have, because other replication needs capacity too.

    Args:
        model: the cluster before the first batch, whose replication counts.
        batches: the batches.
        state: the same cluster.
        capacity_bytes_per_s: replication traffic that a broker can carry; None if unknown.
    """
    if capacity_bytes_per_s is None:
        return [{}] * len(batches)
    rates = np.nan_to_num(hourly_percentile(model.write, model.percentile)).tolist()
    partitions = {
        name: replace(state.partitions[name], write_bytes_per_s=rate)
        for name, rate in zip(map(model.name, range(model.partitions)), rates, strict=True)
    }
    others = OtherReplication(replace(state, partitions=partitions), capacity_bytes_per_s)
    return [others.rough_ceilings(move.name for move in batch.moves) for batch in batches]


def _simulated_s(
    batch: BalanceBatch, throttle_bytes_per_s: float, state: ClusterState, ceilings: Ceilings
) -> float | None:
    if not batch.moves:
        return 0.0
    # Only what the batch moves, as the batches before it leave that behind.
    placements = (
        PartitionPlacement(
            move.name.topic,
            move.name.partition,
            move.leader,
            move.replicas,
            isr=move.replicas,
            size_bytes=int(move.size_bytes),
            write_bytes_per_s=move.write_bytes_per_s,
        )
        for move in batch.moves
    )
    own = replace(state, partitions={placement.name: placement for placement in placements}, lists={})
    changes = plan_changes(ReassignmentPlan(tuple(a for a in batch.assignments if a.name in own.partitions)), own)
    times = MoveTimes(planned_traffic(own, changes, changes.lists), own, ceilings)
    # The number of scenarios leaves out that of moved partitions that stay in the lists, which only widens the range.
    finish = times.finish(throttle_bytes_per_s, SCENARIOS)
    return None if finish is None else finish.middle_s
