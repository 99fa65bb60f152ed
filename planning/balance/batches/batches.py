"""Batches of a proposal: actions that may run at the same time without breaking a hard goal at any moment."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headroom.planning.balance.arrays import FloatArray, hourly_percentile
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.limits import MARGIN_RATIO
from headroom.planning.balance.search.proposal import apply_actions
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class CopyLimits:
    """Limits of one batch.

    Attributes:
        topic_ratio: maximum share of a topic's partitions that move, 0 to 1; at least one partition may.
        moves_per_broker: maximum number of replicas that a broker gives or takes.
        sources_per_target: maximum number of leaders that one broker copies from.
        elections: maximum number of elections.
        replication_bytes_per_s: throttle, or replication capacity of a broker, that the batch has to fit, with the
            usual margin; None: no limit.

    Raises:
        HeadroomError: a limit allows nothing.
    """

    topic_ratio: float = 0.5
    moves_per_broker: int = 50
    sources_per_target: int = 10
    elections: int = 200
    replication_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        """Reject limits that allow nothing."""
        for name in ("moves_per_broker", "sources_per_target", "elections"):
            if getattr(self, name) < 1:
                raise HeadroomError(name, f"is {getattr(self, name)}", "Use at least 1.")
        if not 0 < self.topic_ratio <= 1:
            raise HeadroomError("topic_ratio", f"is {self.topic_ratio}", "Use a ratio above 0 and up to 1.")


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
        moves: replicas that are copied.
    """

    actions: tuple[BalanceAction, ...]
    assignments: tuple[TargetAssignment, ...]
    rollback: tuple[TargetAssignment, ...]
    elections: tuple[TopicPartition, ...]
    moves: tuple[ReplicaMove, ...]


def make_batches(
    before: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], limits: CopyLimits
) -> list[BalanceBatch]:
    """Return the batches of actions, in which everything that the actions take in may arrive before anything leaves.

    An action that does not fit waits for the next batch. Others may overtake it unless they go to the same broker, so
    that room that it waits for is not used up.

    Args:
        before: state before the first action; it is not changed.
        goals: goals with their bounds.
        actions: actions in an order in which each is within all limits after the ones before it.
        limits: limits of one batch.

    Raises:
        HeadroomError: an action does not fit into a batch of its own.
    """
    loads = before.copy()
    batches: list[BalanceBatch] = []
    waiting = list(actions)
    while waiting:
        room = _BatchRoom(loads, goals, limits, waiting[0].kind is ActionKind.ELECT)
        taken: list[BalanceAction] = []
        left: list[BalanceAction] = []
        for action in waiting:
            (taken if room.take(action) else left).append(action)
        if not taken:
            name = loads.model.name(waiting[0].partition)
            raise HeadroomError(str(name), "does not fit into a batch of its own", "Raise the throttle, or exclude it.")
        batches.append(_batch(loads, taken))
        apply_actions(loads, taken)
        waiting = left
    return batches


@dataclass
class _BatchRoom:
    """What a batch may still take.

    Attributes:
        loads: state at the start of the batch.
        goals: goals with their bounds.
        limits: limits of the batch.
        elections: whether it is a batch of elections, or of copies.
    """

    loads: ClusterLoads
    goals: GoalSet
    limits: CopyLimits
    elections: bool
    _moves: Counter[int] = field(default_factory=Counter)
    _topics: Counter[int] = field(default_factory=Counter)
    _sources: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _sent: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    _received: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    _hours: dict[int, FloatArray] = field(default_factory=dict)
    _latest: dict[int, FloatArray] = field(default_factory=dict)
    _partitions: set[int] = field(default_factory=set)
    _blocked: set[int] = field(default_factory=set)
    _count: int = 0

    def __post_init__(self) -> None:
        """Prepare the limits by capacity."""
        goals = self.goals
        rows = [n for n, goal in enumerate(goals.resource_goals) if goal.hard and np.isfinite(goals.upper[n]).any()]
        self._resources, self._upper = goals.resources[rows], goals.upper[rows]
        self._topic_sizes = np.bincount(self.loads.model.topic, minlength=len(self.loads.model.topics))

    def take(self, action: BalanceAction) -> bool:
        """Return whether an action is part of the batch; if not, others must not use up what it waits for."""
        takers = {target for _, _, target in action.moves()} | {action.target}
        own = {action.partition, action.swapped} - {-1}
        fits = (
            (action.kind is ActionKind.ELECT) is self.elections
            and not takers & self._blocked
            and not own & self._partitions
            and self._within_counts(action)
            and self._within_capacity(action)
        )
        if not fits:
            # Without limits there is no room to be used up.
            self._blocked |= takers if len(self._resources) else set()
            # Actions of one partition keep their order.
            self._partitions |= own
            return False
        self._count_in(action)
        return True

    def _within_counts(self, action: BalanceAction) -> bool:
        if self.elections:
            return self._count < self.limits.elections
        model, limits = self.loads.model, self.limits
        for partition, source, target in action.moves():
            topic, leader = int(model.topic[partition]), int(self.loads.leader[partition])
            most = max(1, math.floor(limits.topic_ratio * int(self._topic_sizes[topic])))
            if self._topics[topic] >= most:
                return False
            # A swap gives and takes one replica on each broker.
            if max(self._moves[source], self._moves[target]) + action.copies > limits.moves_per_broker:
                return False
            if leader not in self._sources[target] and len(self._sources[target]) >= limits.sources_per_target:
                return False
            if limits.replication_bytes_per_s is not None:
                write = float(model.peak_write[partition])
                sent = self._sent[leader] + write * (int(model.followers[partition]) + 1)
                if max(sent, self._received[target] + write) * MARGIN_RATIO > limits.replication_bytes_per_s:
                    return False
        return True

    def _within_capacity(self, action: BalanceAction) -> bool:
        """Return whether brokers stay within their limits if all that they take arrives before anything leaves."""
        if not len(self._resources):
            return True
        for broker, (hours, latest) in self._arrivals(action).items():
            load = np.empty(6)
            load[:3] = hourly_percentile(
                self.loads.hours[:, broker] + self._hours.get(broker, 0.0) + hours, self.loads.model.percentile
            )
            load[3:] = self.loads.loads[3:, broker] + self._latest.get(broker, 0.0) + latest
            now, upper = self.loads.loads[self._resources, broker], self._upper[:, broker]
            own = load[self._resources]
            # Beyond a limit, a broker may take what does not count there, such as leaders beyond the limit of its disk.
            if ((own > upper) & (own > now * (1 + 1e-12))).any():
                return False
        return True

    def _arrivals(self, action: BalanceAction) -> dict[int, tuple[FloatArray, FloatArray]]:
        """Return what each broker takes in: rates by hour, (3, H), and latest values, (3,)."""
        model = self.loads.model
        moved = [(action.partition, action.target, action.leads)]
        if action.kind is ActionKind.SWAP:
            moved.append((action.swapped, action.source, action.swapped_leads))
        copies = 0.0 if action.kind is ActionKind.ELECT else 1.0
        arrivals = {}
        for partition, broker, leads in moved:
            lead = float(leads)
            rates = model.write[partition] * copies, model.sent[partition] * lead, model.requests[partition] * lead
            size = float(model.size[partition]) if copies else 0.0
            arrivals[broker] = (np.stack(rates).astype(np.float64), np.array([size, lead, copies]))
        return arrivals

    def _count_in(self, action: BalanceAction) -> None:
        model = self.loads.model
        self._count += 1
        self._partitions |= {action.partition, action.swapped} - {-1}
        for broker, (hours, latest) in self._arrivals(action).items():
            self._hours[broker] = self._hours.get(broker, 0.0) + hours
            self._latest[broker] = self._latest.get(broker, 0.0) + latest
        for partition, source, target in action.moves():
            leader, write = int(self.loads.leader[partition]), float(model.peak_write[partition])
            self._topics[int(model.topic[partition])] += 1
            self._moves[source] += 1
            self._moves[target] += 1
            self._sources[target].add(leader)
            self._sent[leader] += write * (int(model.followers[partition]) + 1)
            self._received[target] += write


def _batch(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> BalanceBatch:
    """Return a batch with its plan, its rollback and its elections.

    Args:
        loads: state before the batch.
        actions: actions of the batch.
    """
    model = loads.model
    after = loads.copy()
    apply_actions(after, actions)
    changed = sorted({p for action in actions for p in (action.partition, action.swapped) if p >= 0})
    led = {action.partition for action in actions if action.leads}
    led |= {action.swapped for action in actions if action.swapped_leads}
    return BalanceBatch(
        actions=tuple(actions),
        assignments=tuple(_assignment(model, p, after) for p in changed),
        rollback=tuple(_assignment(model, p, loads) for p in changed),
        elections=tuple(model.name(p) for p in changed if p in led),
        moves=tuple(_move(loads, *move) for action in actions for move in action.moves()),
    )


def _assignment(model: ClusterModel, partition: int, loads: ClusterLoads) -> TargetAssignment:
    return TargetAssignment(model.name(partition), model.broker_ids(loads.replicas[partition]))


def _move(loads: ClusterLoads, partition: int, source: int, target: int) -> ReplicaMove:
    model = loads.model
    ids = [broker.broker for broker in model.brokers]
    leader = int(loads.leader[partition])
    return ReplicaMove(
        model.name(partition),
        -1 if leader < 0 else ids[leader],
        model.broker_ids(loads.replicas[partition]),
        ids[source],
        ids[target],
        float(model.size[partition]),
        float(model.peak_write[partition]),
    )
