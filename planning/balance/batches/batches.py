"""Batches of a proposal: actions that may run at the same time without breaking a hard goal at any moment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headroom.planning.balance.batches.numbering import CopyLimits, batch_numbers
from headroom.planning.balance.batches.room import UNLIMITED, BatchThrottle
from headroom.planning.balance.model import NO_BROKER, ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.proposal import apply_actions
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaMove:
    """One replica that is copied in a batch; brokers are ids.

    Attributes:
        name: partition.
        leader: broker that it is copied from.
        replicas: replicas before the batch.
        source: broker that gives it.
        target: broker that takes it.
        size_bytes: bytes to copy.
        write_bytes_per_s: write rate of the partition in its busiest hour.
    """

    name: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    source: int
    target: int
    size_bytes: float
    write_bytes_per_s: float


@dataclass(frozen=True)
class BalanceBatch:
    """Actions that run at the same time.

    Attributes:
        actions: the actions; all elections, or all copies.
        assignments: target replicas, in Kafka's format.
        rollback: replicas before the batch.
        elections: partitions to elect the preferred leader of, after the reassignment.
        moves: replicas that are copied, in the order of the actions.
        places: place of each action among all, from 0, ascending.
        room: throttle that brokers have room for while it copies.
    """

    actions: tuple[BalanceAction, ...]
    assignments: tuple[TargetAssignment, ...]
    rollback: tuple[TargetAssignment, ...]
    elections: tuple[TopicPartition, ...]
    moves: tuple[ReplicaMove, ...]
    places: tuple[int, ...] = ()
    room: BatchThrottle = UNLIMITED

    def throttle(self, chosen_bytes_per_s: float) -> float:
        """Return the throttle at which the batch copies: the chosen one, or less where brokers have no room for it."""
        return min(chosen_bytes_per_s, self.room.most_bytes_per_s)

    def first_moves(self, actions: int) -> tuple[ReplicaMove, ...] | None:
        """Return the copies of those actions of the batch that are among the first of all; None without any."""
        own = bisect_left(self.places, actions)
        return self.moves[:own] if own else None


def make_batches(
    before: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], limits: CopyLimits
) -> list[BalanceBatch]:
    """Return the batches of actions; those of a prefix have the first actions of the batches of all.

    Args and errors are those of ``batch_numbers``.
    """
    numbers, rooms = batch_numbers(before, goals, actions, limits)
    by_batch: list[list[int]] = [[] for _ in range(max(numbers, default=-1) + 1)]
    for place, number in enumerate(numbers):
        by_batch[number].append(place)
    loads = before.copy()
    return [
        replace(_carry_out(loads, [actions[n] for n in own], own), room=room)
        for own, room in zip(by_batch, rooms, strict=True)
    ]


def _carry_out(loads: ClusterLoads, actions: Sequence[BalanceAction], places: Sequence[int]) -> BalanceBatch:
    """Return the batch of actions that are each of another partition; the loads are those after it on return."""
    model = loads.model
    changed = sorted(action.partition for action in actions)
    led = {action.partition for action in actions if action.leads}
    rollback = tuple(_assignment(model, p, loads) for p in changed)
    moves = tuple(_move(loads, action) for action in actions if action.copies)
    # Those between the same brokers are carried out together.
    apply_actions(loads, sorted(actions, key=lambda action: (action.source, action.target)))
    return BalanceBatch(
        actions=tuple(actions),
        assignments=tuple(_assignment(model, p, loads) for p in changed),
        rollback=rollback,
        elections=tuple(model.name(p) for p in changed if p in led),
        moves=moves,
        places=tuple(places),
    )


def _assignment(model: ClusterModel, partition: int, loads: ClusterLoads) -> TargetAssignment:
    return TargetAssignment(model.name(partition), model.broker_ids(loads.replicas[partition]))


def _move(loads: ClusterLoads, action: BalanceAction) -> ReplicaMove:
    model, partition = loads.model, action.partition
    leader = int(loads.leader[partition])
    return ReplicaMove(
        model.name(partition),
        NO_BROKER if leader < 0 else model.brokers[leader].broker,
        model.broker_ids(loads.replicas[partition]),
        model.brokers[action.source].broker,
        model.brokers[action.target].broker,
        float(model.size[partition]),
        float(model.peak_write[partition]),
    )
