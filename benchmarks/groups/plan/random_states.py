"""Random small clusters with plans for them: everything that the need of a throttle depends on is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.generation.planner import MadePlan, make_plan
from headroom.planning.reassignments.generation.request import PlanRequest
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.replica_lists import EVERY_REPLICA, TopicLists, format_replica_list
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_MB = 1_000_000
# Whole bytes, so that sums are exact in any order. None: the rate is unknown.
_WRITES = (0.0, 0.25 * _MB, 1.0 * _MB, 2.0 * _MB, 3.0 * _MB)
_THROTTLES = (None, None, _MB // 2, 5 * _MB, 50 * _MB)
_TOPICS = ("a", "b", "c")
_MOST_PARTITIONS, _MOST_FACTOR = 6, 5


@dataclass(frozen=True)
class DrawnPlan:
    """A random cluster, with a plan for it.

    Attributes:
        state: the cluster.
        wanted: the plan: a file's, or one that was made to drain a broker.
        batches: number of batches in which it is cut.
        throttle_bytes_per_s: a throttle for it, enough or not.
    """

    state: ClusterState
    wanted: ReassignmentPlan | MadePlan
    batches: int
    throttle_bytes_per_s: int

    @property
    def plan(self) -> ReassignmentPlan:
        """The plan without the orders that come first."""
        return self.wanted.plan if isinstance(self.wanted, MadePlan) else self.wanted


def drawn_plan(seed: int) -> DrawnPlan:
    """Return the random cluster of a seed, and its plan."""
    chance = Random(seed)
    state = _state(chance)
    batches, throttle = chance.randint(2, 4), chance.randint(1, 40) * _MB // 2
    if chance.random() < 0.25:
        try:
            made = make_plan(state, PlanRequest(drain=frozenset({chance.choice(sorted(state.brokers))})))
        except HeadroomError:
            made = MadePlan(ReassignmentPlan(()))
        if made.plan.assignments:
            return DrawnPlan(state, made, batches, throttle)
    return DrawnPlan(state, _plan(state, chance), batches, throttle)


def _state(chance: Random) -> ClusterState:
    brokers = range(1, chance.randint(3, 8) + 1)
    down = set(chance.sample(brokers, chance.choice((0, 0, 0, 1, 1, 2))))
    states = {broker: _broker(broker, broker not in down, chance) for broker in brokers}
    alive = [broker for broker in brokers if broker not in down]
    unknown_ratio = chance.choice((0.0, 0.0, 0.2))
    # Known sizes cost a simulation, and change no need.
    sized = chance.random() < 0.2
    partitions: dict[TopicPartition, PartitionPlacement] = {}
    for topic in _TOPICS[: chance.randint(1, len(_TOPICS))]:
        factor, tiered = chance.randint(1, min(_MOST_FACTOR, len(brokers))), chance.random() < 0.2
        for number in range(chance.randint(1, _MOST_PARTITIONS)):
            placement = _placement(topic, number, chance.sample(brokers, factor), alive, unknown_ratio, chance)
            if tiered and placement.size_bytes is not None:
                left = chance.randint(0, placement.size_bytes)
                placement = replace(placement, untiered_bytes=left, awaits_leader=chance.random() < 0.3)
            partitions[placement.name] = placement if sized else replace(placement, size_bytes=None)
    return ClusterState(
        "drawn",
        0,
        states,
        partitions,
        {topic: f"id-{topic}" for topic in {name.topic for name in partitions}},
        _lists(partitions, states, chance),
        chance.choice((True, False, None)),
        waits_for_kept=chance.choice((True, False, None)),
    )


def _broker(broker: int, alive: bool, chance: Random) -> BrokerState:
    leader, follower = chance.choice(_THROTTLES), chance.choice(_THROTTLES)
    known = alive and chance.random() < 0.95
    return BrokerState(
        broker,
        alive,
        throttles_known=known,
        leader_bytes_per_s=leader if known else None,
        follower_bytes_per_s=follower if known else None,
    )


def _placement(
    topic: str, number: int, replicas: Sequence[int], alive: Sequence[int], unknown_ratio: float, chance: Random
) -> PartitionPlacement:
    """Return a partition: mostly in sync, led by any of its in-sync replicas, and sometimes moved by others."""
    live = [broker for broker in replicas if broker in alive]
    adding = [broker for broker in alive if broker not in replicas]
    moved = chance.random() < 0.15 and bool(live)
    added = tuple(chance.sample(adding, min(len(adding), chance.randint(0, 2)))) if moved else ()
    removed = tuple(chance.sample(replicas, chance.randint(0, len(replicas) - 1))) if moved else ()
    has_leader = bool(live) and chance.random() < 0.98
    # Mostly the preferred leader, as in a real cluster.
    leader = (live[0] if chance.random() < 0.6 else chance.choice(live)) if has_leader else None
    behind_ratio = chance.choice((0.0, 0.0, 0.4))
    isr = [broker for broker in live if broker == leader or (has_leader and chance.random() >= behind_ratio)]
    isr += [broker for broker in added if has_leader and chance.random() < 0.2]
    kept = [broker for broker in replicas if broker not in removed]
    size = chance.choice((None, 0, 10 * _MB, 300 * _MB)) if chance.random() < 0.3 else chance.randint(1, 100) * _MB
    copied = {broker: chance.randint(0, size) for broker in added} if size else {}
    return PartitionPlacement(
        topic,
        number,
        leader,
        (*added, *kept, *removed),
        tuple(isr),
        added,
        removed,
        size,
        None if chance.random() < unknown_ratio else chance.choice(_WRITES),
        copied_bytes=copied,
    )


def _lists(
    partitions: Mapping[TopicPartition, PartitionPlacement], brokers: Mapping[int, BrokerState], chance: Random
) -> dict[str, TopicLists]:
    """Return lists in force: none, those of every replica, or any entries."""
    lists = {}
    for topic in {name.topic: None for name in partitions}:
        kind = chance.choice(("none", "none", "none", "every", "some", "leader", "follower"))
        some = [
            format_replica_list(
                (name.partition, broker)
                for name in partitions
                if name.topic == topic
                for broker in brokers
                if chance.random() < 0.4
            )
            or None
            for _ in range(2)
        ]
        made = {
            "none": TopicLists(None, None),
            "every": TopicLists(EVERY_REPLICA, EVERY_REPLICA),
            "some": TopicLists(some[0], some[1]),
            "leader": TopicLists(EVERY_REPLICA, some[1]),
            "follower": TopicLists(some[0], EVERY_REPLICA),
        }[kind]
        if made != TopicLists(None, None):
            lists[topic] = made
    return lists


def _plan(state: ClusterState, chance: Random) -> ReassignmentPlan:
    """Return a plan for some partitions that do not move: replaced, added, dropped and reordered replicas."""
    resting = [p for p in state.partitions.values() if not p.moving]
    # A few plans name one that moves, which both commands refuse.
    candidates = resting if chance.random() < 0.97 and resting else list(state.partitions.values())
    chosen = chance.sample(candidates, chance.randint(1, len(candidates)))
    orders_only = chance.random() < 0.05
    return ReassignmentPlan(
        tuple(TargetAssignment(p.name, _target(p, state, orders_only, chance)) for p in sorted(chosen, key=_name_of))
    )


def _name_of(placement: PartitionPlacement) -> TopicPartition:
    return placement.name


def _target(placement: PartitionPlacement, state: ClusterState, orders_only: bool, chance: Random) -> tuple[int, ...]:
    before = list(placement.before)
    new = [broker for broker in sorted(state.alive) if broker not in before]
    kind = "order" if orders_only else chance.choice(("replace", "replace", "add", "drop", "order", "any", "swap"))
    if kind in ("replace", "swap") and new:
        before[chance.randrange(len(before))] = chance.choice(new)
    elif kind == "add" and new:
        before += chance.sample(new, chance.randint(1, min(2, len(new))))
    elif kind == "drop" and len(before) > 1:
        before.remove(chance.choice(before))
    elif kind == "any" and new:
        before = chance.sample([*new, *before], chance.randint(1, min(_MOST_FACTOR, len(new) + len(before))))
    if kind in ("order", "swap") or chance.random() < 0.2:
        chance.shuffle(before)
    return tuple(before)
