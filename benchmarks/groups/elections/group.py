"""Group ``elections``: time to plan the elections of a large cluster, and their effect on producers.

**Planning.** The cluster is synthetic: 200,000 partitions, 100 brokers, RF 3, with a fixed seed. One partition in 100
is in throttled lists, half of these are moving, and brokers have a capacity, so the planner checks every constraint. In
``election_plan_200k_s`` no partition is led by its preferred leader, in ``election_plan_200k_tenth_s`` 90 % are. Each
figure is the median of 5 plans (``--plans``).

**Produce latency** is measured on real brokers (``benchmarks.groups.elections.latency``). ``produce_p99_batched_s`` and
``produce_p99_all_at_once_s`` are the latency of the records sent from just before the first leader moves until just
after the last. The first uses ``headroom elections --execute`` with its defaults, the second one request for all
partitions of the topic. The batches take longer, so ``produce_p99_same_window_ratio`` compares all records of windows
of the same length.

**Imbalance** (``benchmarks.groups.elections.imbalance``). ``imbalance_seen_ticks`` is the number of tick intervals from
an imbalance in Kafka to the row in the table: the longest of all restarts, with a watch that has run for three minutes.
``imbalance_seen_cold_ticks`` is the same for a watch that has only just written its first balance.
``imbalance_after_batches_ratio`` is the greatest imbalance of a broker after the batches.
"""

from __future__ import annotations

import gc
import random
import time
from dataclasses import dataclass
from statistics import median

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.groups.elections.imbalance import measure_imbalance
from benchmarks.groups.elections.latency import measure_latency
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure
from headroom.planning.elections.planner import (
    BatchLimits,
    ClusterConstraints,
    ElectionPlan,
    PartitionState,
    balances,
    plan_elections,
)
from headroom.planning.quotas.load import PartitionTraffic, throttle_loads
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

_PARTITIONS = 200_000
_PARTITIONS_PER_TOPIC = 100
_BROKERS = range(1, 101)
_REPLICATION = 3
_THROTTLED_ONE_IN = 100
# Capacity and throttles exceed the greatest load with all preferred leaders by 20 %, a usual choice.
_CAPACITY_RATIO = 1.2
_THROTTLE_RATIO = 1.2
_SEED = 1


@dataclass(frozen=True)
class PlanInput:
    """Input of a plan for a synthetic cluster.

    Attributes:
        partitions: all partitions.
        limits: limits of a batch.
        constraints: live brokers and throttles.
    """

    partitions: tuple[PartitionState, ...]
    limits: BatchLimits
    constraints: ClusterConstraints


@dataclass(frozen=True)
class ElectionsOptions:
    """Options of the group ``elections``."""

    plans: int = option(5, AT_LEAST_ONE, "Timed plans of each of two clusters.")
    rounds: int = option(3, AT_LEAST_ONE, "Rounds of elections on real brokers, for imbalance and for produce latency.")


def measure(on_progress: OnProgress, options: ElectionsOptions) -> list[Figure]:
    """Return the figures of planning, imbalance and produce latency.

    Raises:
        HeadroomError: a plan was incomplete, leaders were not elected, or records were lost.
    """
    return [
        *_planning(options.plans, on_progress),
        *measure_imbalance(options.rounds, on_progress),
        *measure_latency(options.rounds, on_progress),
    ]


def _planning(plans: int, on_progress: OnProgress) -> list[Figure]:
    return [
        _plan_s("election_plan_200k_s", cluster(_PARTITIONS, non_preferred_ratio=1.0), plans, on_progress),
        _plan_s("election_plan_200k_tenth_s", cluster(_PARTITIONS, non_preferred_ratio=0.1), plans, on_progress),
    ]


def _plan_s(name: str, plan_input: PlanInput, plans: int, on_progress: OnProgress) -> Figure:
    took_s = []
    for _ in range(plans):
        # Garbage of the previous plan must not be collected within the measured time.
        gc.collect()
        began_s = time.perf_counter()
        plan = plan_elections(plan_input.partitions, plan_input.limits, plan_input.constraints)
        took_s.append(time.perf_counter() - began_s)
        _require_complete(plan_input, plan)
    elected = sum(len(batch.partitions) for batch in plan.batches)
    on_progress(
        f"{elected} elections in {len(plan.batches)} batches, {len(plan.left_out)} partitions skipped: "
        f"median {median(took_s):.2f} s, at most {max(took_s):.2f} s"
    )
    return Figure(name, median(took_s), "s", plans)


def _require_complete(plan_input: PlanInput, plan: ElectionPlan) -> None:
    """Raise an error if a plan omits a partition, or has one twice."""
    planned = [name for batch in plan.batches for name in batch.partitions]
    planned += [left.name for left in plan.left_out]
    non_preferred = [p.name for p in plan_input.partitions if p.leader != p.replicas[0]]
    if sorted(planned) != sorted(non_preferred):
        raise failure(
            f"the plan has {len(planned)} partitions, but {len(non_preferred)} are not led by their preferred leader"
        )


def cluster(size: int, non_preferred_ratio: float) -> PlanInput:
    """Return the input for a synthetic cluster.

    Args:
        size: number of partitions.
        non_preferred_ratio: share of the partitions that are not led by their preferred leader.
    """
    draw = random.Random(_SEED)
    partitions = tuple(_partition(number, non_preferred_ratio, draw) for number in range(size))
    alive = frozenset(_BROKERS)
    carried = max(balance.preferred_write_bytes_per_s or 0.0 for balance in balances(partitions, alive))
    limits = BatchLimits(capacity_bytes_per_s=carried * _CAPACITY_RATIO)
    return PlanInput(partitions, limits, _constraints_for(partitions, alive))


def _partition(number: int, non_preferred_ratio: float, draw: random.Random) -> PartitionState:
    replicas = tuple(draw.sample(_BROKERS, _REPLICATION))
    leader = draw.choice(replicas[1:]) if draw.random() < non_preferred_ratio else replicas[0]
    moving = number % (2 * _THROTTLED_ONE_IN) == 0
    return PartitionState(
        name=TopicPartition(f"topic-{number // _PARTITIONS_PER_TOPIC:04}", number % _PARTITIONS_PER_TOPIC),
        leader=leader,
        replicas=replicas,
        # A moving partition has its new replica, the first one, out of sync.
        isr=replicas[1:] if moving and leader != replicas[0] else replicas,
        moving=moving,
        min_insync_replicas=2,
        # A Pareto distribution: few partitions have most of the traffic.
        write_bytes_per_s=1000 * draw.paretovariate(1.2),
    )


def _constraints_for(partitions: tuple[PartitionState, ...], alive: frozenset[int]) -> ClusterConstraints:
    """Return throttles that exceed the required rate of the listed partitions by the usual margin."""
    traffic = tuple(_traffic(p) for p in partitions[::_THROTTLED_ONE_IN])
    required = max(demand.required_bytes_per_s or 0.0 for demand in throttle_loads(traffic, {}))
    throttles = {BrokerRole(broker, role): required * _THROTTLE_RATIO for broker in alive for role in Role}
    return ClusterConstraints(alive, throttled=traffic, throttles=throttles)


def _traffic(p: PartitionState) -> PartitionTraffic:
    return PartitionTraffic(
        name=p.name,
        leader=p.leader,
        followers=tuple(broker for broker in p.replicas if broker != p.leader),
        in_sync=frozenset(p.isr),
        leader_listed=frozenset(p.replicas),
        follower_listed=frozenset(p.replicas[:1]),
        write_bytes_per_s=p.write_bytes_per_s,
    )
