"""Plans that Headroom makes beside those of ``kafka-reassign-partitions.sh --generate``: bytes to copy, and spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.plan.kafka_placer import generated_plan
from benchmarks.results import Figure
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.generation.planner import make_plan
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.keys import TopicPartition

# Brokers, racks (0: none), topics, and brokers that are added: small and large clusters, one topic and many.
_SHAPES = ((4, 0, 6, 1), (6, 3, 20, 3), (9, 3, 40, 3), (12, 0, 60, 4), (20, 4, 100, 4), (30, 0, 150, 10))
# Kafka's assignments depend on chance.
_GENERATED = 5
# Sizes of topics differ by orders of magnitude, those of the partitions of one topic by some percent.
_TOPIC_SIGMA, _PARTITION_SIGMA, _MEAN_BYTES = 1.0, 0.15, 10e9
_MOST_PARTITIONS = 60
# Bytes cannot be spread more evenly than partitions are small; differences below this share of the mean are none.
_SAME_RATIO = 0.01


@dataclass(frozen=True)
class Task:
    """A cluster and what is wanted of it.

    Attributes:
        name: name in progress.
        state: the cluster.
        request: what is wanted.
        brokers: brokers that have replicas afterwards.
    """

    name: str
    state: ClusterState
    request: PlanRequest
    brokers: frozenset[int]


@dataclass(frozen=True)
class Spread:
    """How unevenly brokers are loaded: the highest load over the mean.

    Attributes:
        replicas: of numbers of replicas.
        leads: of numbers of preferred leads.
        bytes_: of bytes.
    """

    replicas: float
    leads: float
    bytes_: float

    def __str__(self) -> str:
        return f"{self.replicas:.2f} replicas, {self.leads:.2f} leads, {self.bytes_:.2f} bytes"

    def worse_than(self, other: Spread) -> list[str]:
        """Return the names of the loads that are less evenly spread than in another assignment."""
        return [name for name, ratio in vars(self).items() if ratio > vars(other)[name] + _SAME_RATIO]


def made_plan_figures(on_progress: OnProgress) -> list[Figure]:
    """Return the bytes of made plans over those of generated ones, and how many loads are spread worse."""
    ratios, worse = [], 0
    for task in tasks():
        ours = make_plan(task.state, task.request).plan
        chance = Random(1)
        racks = {broker: task.state.brokers[broker].rack for broker in task.brokers}
        theirs = [generated_plan(task.state.partitions.values(), racks, chance) for _ in range(_GENERATED)]
        ratios.append(copied_bytes(ours, task.state) / median(copied_bytes(plan, task.state) for plan in theirs))
        own, other = spread(ours, task), _median_spread([spread(plan, task) for plan in theirs])
        worse += len(own.worse_than(other))
        on_progress(f"{task.name}: {ratios[-1]:.3f} of the bytes of --generate; highest over mean: {own}, not {other}")
    return [
        Figure("generated_bytes_over_kafka_generate_ratio", median(ratios), "ratio", len(ratios)),
        Figure("generated_bytes_over_kafka_generate_ratio_max", max(ratios), "ratio", len(ratios)),
        Figure("generated_loads_spread_worse", worse, "loads", 3 * len(ratios)),
    ]


def tasks() -> Iterator[Task]:
    """Yield a drain of a broker and a growth for each shape of cluster."""
    for seed, (brokers, racks, topics, added) in enumerate(_SHAPES):
        state = _cluster(brokers, brokers + added, racks, topics, Random(seed))
        every = frozenset(state.brokers)
        growth = PlanRequest(to_brokers=every)
        yield Task(f"growth from {brokers} to {brokers + added} brokers", state, growth, every)
        state = _cluster(brokers, brokers, racks, topics, Random(seed))
        left = frozenset(state.brokers) - {0}
        yield Task(f"drain of 1 of {brokers} brokers", state, PlanRequest(drain=frozenset({0})), left)


def _cluster(used: int, brokers: int, racks: int, topics: int, chance: Random) -> ClusterState:
    """Return a cluster whose topics were created by Kafka when it had fewer brokers, each with its own factor."""
    states = {b: BrokerState(b, rack=f"rack{b % racks}" if racks else None) for b in range(brokers)}
    partitions: dict[TopicPartition, PartitionPlacement] = {}
    rack_of = {broker: states[broker].rack for broker in range(used)}
    for number in range(topics):
        topic, factor = f"topic{number}", chance.choice((1, 2, 3, 3))
        mean = _MEAN_BYTES * chance.lognormvariate(0.0, _TOPIC_SIGMA)
        empty = [
            PartitionPlacement(topic, p, 0, tuple(range(factor)), ())
            for p in range(chance.randint(1, _MOST_PARTITIONS))
        ]
        for target in generated_plan(empty, rack_of, chance):
            size = round(mean * chance.lognormvariate(0.0, _PARTITION_SIGMA))
            partitions[target.name] = PartitionPlacement(
                *target.name, target.replicas[0], target.replicas, target.replicas, size_bytes=size
            )
    return ClusterState("made", 0, states, partitions)


def copied_bytes(plan: ReassignmentPlan, state: ClusterState) -> int:
    """Return the bytes that a plan copies."""
    return sum(
        (placement.size_bytes or 0) * len(set(target.replicas) - set(placement.replicas))
        for target in plan
        for placement in [state.partitions[target.name]]
    )


def spread(plan: ReassignmentPlan, task: Task) -> Spread:
    """Return how unevenly the brokers of a task are loaded after a plan."""
    replicas: Counter[int] = Counter()
    leads: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    for name, placement in task.state.partitions.items():
        target = plan.by_name[name].replicas if name in plan.by_name else placement.replicas
        replicas.update(target)
        leads[target[0]] += 1
        for broker in target:
            sizes[broker] += placement.size_bytes or 0
    return Spread(*(_highest_over_mean(loads, task.brokers) for loads in (replicas, leads, sizes)))


def _highest_over_mean(loads: Mapping[int, int], brokers: Collection[int]) -> float:
    return max(loads.values()) * len(brokers) / sum(loads.values())


def _median_spread(spreads: Collection[Spread]) -> Spread:
    return Spread(*(median(vars(one)[name] for one in spreads) for name in Spread.__annotations__))
