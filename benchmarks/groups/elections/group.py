"""Group ``elections``: how long does it take to plan those of a large cluster, and what does a producer feel of them?

A made-up cluster of 200,000 partitions and 100 brokers, RF 3, the same for the same seed. A hundredth of the partitions
stands in throttled lists, half of these are still moving, and brokers have a capacity: so that every election is held
against all that can forbid it. ``election_plan_200k_s`` is for a cluster where every partition is led by another than
the preferred broker, ``election_plan_200k_tenth_s`` for one where a tenth is. BENCH_ELECTION_PLANS plans are made of
each (default 5), in the process that measures; the median counts.

What they cost a producer is measured on real brokers: ``benchmarks.groups.elections.latency``.
``produce_p99_batched_s`` and
``produce_p99_all_at_once_s`` are the latency of records sent from just before the first leader moves until just after
the last, by ``headroom elections --execute`` with its defaults and by one request for all partitions of the topic. Few
partitions move at a time in the one, all in the other, and the one takes longer; so beside the ratio of the two stands
that of all records of a window of the same length, ``produce_p99_same_window_ratio``.

``imbalance_seen_ticks`` is how many intervals of ticks pass from an imbalance that Kafka has to the table that says it,
the longest of all restarts under a watch that has run for three minutes, ``imbalance_seen_cold_ticks`` under one that
has only just told of a balance; ``imbalance_after_batches_ratio`` is the greatest that a broker has left after the
batches.
``benchmarks.groups.elections.imbalance`` measures both.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.fixtures.bench_cluster import Say, failure
from benchmarks.groups.elections.imbalance import measure_imbalance
from benchmarks.groups.elections.latency import measure_latency
from benchmarks.results import Figure
from planning.elections.planner import (
    BatchLimits,
    ClusterConstraints,
    ElectionPlan,
    PartitionState,
    balances,
    plan_elections,
)
from planning.throttles.load import PartitionTraffic, throttle_loads
from schemas.alerts import Role

_PARTITIONS = 200_000
_PARTITIONS_PER_TOPIC = 100
_BROKERS = range(1, 101)
_REPLICATION = 3
_THROTTLED_ONE_IN = 100
# Above what the preferred leaders carry at most, as it would be chosen.
_CAPACITY_RATIO = 1.2
_THROTTLE_RATIO = 1.2
_SEED = 1


@dataclass(frozen=True)
class Made:
    """A made-up cluster.

    Attributes:
        partitions: all of them.
        limits: of a batch.
        around: brokers and throttles.
    """

    partitions: tuple[PartitionState, ...]
    limits: BatchLimits
    around: ClusterConstraints


def measure(say: Say) -> list[Figure]:
    """Return the figures of every part of the group.

    Raises:
        HeadroomError: a plan did not account for every partition, leaders were not elected, or records were lost.
    """
    return [figure for part in _PARTS for figure in part(say)]


def _planning(say: Say) -> list[Figure]:
    return [
        _plan_s("election_plan_200k_s", cluster(_PARTITIONS, away_ratio=1.0), say),
        _plan_s("election_plan_200k_tenth_s", cluster(_PARTITIONS, away_ratio=0.1), say),
    ]


_PARTS: tuple[Callable[[Say], list[Figure]], ...] = (_planning, measure_imbalance, measure_latency)


def _plan_s(name: str, made: Made, say: Say) -> Figure:
    plans = int(os.environ.get("BENCH_ELECTION_PLANS", "5"))
    took_s = []
    for _ in range(plans):
        gc.collect()
        began_s = time.perf_counter()
        plan = plan_elections(made.partitions, made.limits, made.around)
        took_s.append(time.perf_counter() - began_s)
        _require_whole(made, plan)
    elected = sum(len(batch.partitions) for batch in plan.batches)
    say(
        f"{elected} elections in {len(plan.batches)} batches, {len(plan.left_out)} partitions left out: "
        f"median {median(took_s):.2f} s, at most {max(took_s):.2f} s"
    )
    return Figure(name, median(took_s), "s", plans)


def _require_whole(made: Made, plan: ElectionPlan) -> None:
    """Refuse a plan that forgets a partition, or one twice."""
    told = [name for batch in plan.batches for name in batch.partitions]
    told += [(left.topic, left.partition) for left in plan.left_out]
    away = [(p.topic, p.partition) for p in made.partitions if p.leader != p.replicas[0]]
    if sorted(told) != sorted(away):
        raise failure(f"the plan tells of {len(told)} partitions, and {len(away)} are led by another")


def cluster(size: int, away_ratio: float) -> Made:
    """Return a cluster of so many partitions.

    Args:
        size: how many.
        away_ratio: share of the partitions that another than the preferred broker leads.
    """
    draw = random.Random(_SEED)
    partitions = tuple(_partition(number, away_ratio, draw) for number in range(size))
    alive = frozenset(_BROKERS)
    carried = max(balance.preferred_write_bytes_per_s or 0.0 for balance in balances(partitions, alive))
    limits = BatchLimits(capacity_bytes_per_s=carried * _CAPACITY_RATIO)
    return Made(partitions, limits, _around(partitions, alive))


def _partition(number: int, away_ratio: float, draw: random.Random) -> PartitionState:
    replicas = tuple(draw.sample(_BROKERS, _REPLICATION))
    leader = draw.choice(replicas[1:]) if draw.random() < away_ratio else replicas[0]
    moving = number % (2 * _THROTTLED_ONE_IN) == 0
    return PartitionState(
        topic=f"topic-{number // _PARTITIONS_PER_TOPIC:04}",
        partition=number % _PARTITIONS_PER_TOPIC,
        leader=leader,
        replicas=replicas,
        # One that moves has its new replica, the first, out of sync.
        isr=replicas[1:] if moving and leader != replicas[0] else replicas,
        moving=moving,
        min_insync_replicas=2,
        # Few partitions have most of the traffic.
        write_bytes_per_s=1000 * draw.paretovariate(1.2),
    )


def _around(partitions: tuple[PartitionState, ...], alive: frozenset[int]) -> ClusterConstraints:
    """Return throttles that exceed what the listed partitions require by the usual margin."""
    traffic = tuple(_traffic(p) for p in partitions[::_THROTTLED_ONE_IN])
    required = max(demand.required_bytes_per_s or 0.0 for demand in throttle_loads(traffic, {}))
    throttles = {(broker, role): required * _THROTTLE_RATIO for broker in alive for role in Role}
    return ClusterConstraints(alive, throttled=traffic, throttles=throttles)


def _traffic(p: PartitionState) -> PartitionTraffic:
    return PartitionTraffic(
        topic=p.topic,
        partition=p.partition,
        leader=p.leader,
        followers=tuple(broker for broker in p.replicas if broker != p.leader),
        in_sync=frozenset(p.isr),
        leader_listed=frozenset(p.replicas),
        follower_listed=frozenset(p.replicas[:1]),
        write_bytes_per_s=p.write_bytes_per_s,
    )
