"""Order of actions: first what copies nothing, then by gain per byte, and never beyond a limit in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headroom.planning.balance.arrays import FloatArray, IntArray, hourly_percentile, percentile_hours
from headroom.planning.balance.model import LATEST, ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.deltas import LoadDeltas
from headroom.planning.balance.search.limits import is_internal
from headroom.planning.balance.search.trajectory import LoadEvents, action_deltas, breaks_limits, load_events
from headroom.planning.balance.search.volume_room import VolumeRoom

# Actions are ordered in rounds: each takes this part of those that are left, and then all gains are computed again. Of
# few actions a round takes one, because two that help alone may harm together.
_ROUND_RATIO, _FEW = 1 / 8, 16


def order_actions(
    start: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], overhead_bytes: float
) -> tuple[list[BalanceAction], LoadEvents]:
    """Return actions in the order in which they are worth most, and their events; every prefix keeps all limits.

    Elections come first, then copies, then elections of new replicas, each by gain / (bytes + overhead). Actions of
    Kafka's own topics follow all others. An action that only fits after another one comes after it.

    Args:
        start: the cluster as it is; it is not changed.
        goals: goals with their bounds.
        actions: actions by stage, each in the order in which they were found.
        overhead_bytes: cost of a copied replica besides its bytes.
    """
    # Only the loads of this state change, not its placement.
    loads = start.copy()
    ordered: list[BalanceAction] = []
    comes_last = is_internal(start.model).tolist()
    stages: dict[tuple[bool, int], list[BalanceAction]] = {}
    for action in actions:
        stages.setdefault((comes_last[action.partition], stage_of(start.model, action)), []).append(action)
    for stage in sorted(stages):
        ordered += _by_worth(loads, goals, stages[stage], overhead_bytes)
    ordered = _with_room(start.model, goals, ordered)
    events = load_events(start, ordered)
    if breaks_limits(goals, events).any():
        # Where room is scarce, the order in which actions were found may fit better.
        ordered = max((_within_limits(start, goals, order) for order in (ordered, actions)), key=len)
        events = load_events(start, ordered)
    return ordered, events


def stage_of(model: ClusterModel, action: BalanceAction) -> int:
    """Return 0 for an election of a replica that is there, 1 for a copy, and 2 for an election after a copy."""
    if action.kind is not ActionKind.ELECT:
        return 1
    return 0 if action.target in model.replicas[action.partition] else 2


def _by_worth(
    loads: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], overhead_bytes: float
) -> list[BalanceAction]:
    """Return actions by gain per byte, each computed after the ones before it; the loads are changed."""
    ordered: list[BalanceAction] = []
    deltas = action_deltas(loads.model, actions)
    partitions, brokers = np.array([a.partition for a in actions], dtype=np.int64), _brokers(actions)
    cost = np.array([max(a.bytes_copied + a.copies * overhead_bytes, 1.0) for a in actions])
    gains, gain = _FirstOrder(loads, goals, deltas), np.zeros(len(actions))
    left, changed = np.arange(len(actions)), np.ones(len(loads.model.brokers), dtype=np.bool_)
    while len(left):
        gains.update(np.flatnonzero(changed))
        # The gains of all others are what they were.
        stale = left[changed[brokers[:, left]].any(axis=0)]
        gain[stale] = gains.of(stale, brokers[:, stale])
        order = np.argsort(-gain[left] / cost[left], kind="stable")
        first = order[: 1 if len(left) <= _FEW else int(len(left) * _ROUND_RATIO)]
        chosen = left[first]
        _shift(loads, partitions[chosen], brokers[:, chosen], deltas.subset(chosen))
        ordered += [actions[n] for n in chosen.tolist()]
        left = np.delete(left, first)
        changed[:] = False
        changed[brokers[:, chosen]] = True
    return ordered


class _FirstOrder:
    """Gains of actions, each alone, as if the hours of the percentile of each broker stayed the same.

    Args:
        loads: the state before.
        goals: goals with their bounds.
        deltas: what the actions move.
    """

    def __init__(self, loads: ClusterLoads, goals: GoalSet, deltas: LoadDeltas) -> None:
        self._loads, self._goals, self._deltas = loads, goals, deltas
        kinds, brokers, hours = loads.hours.shape
        # Where the hours of the first action begin, for each of ``TIMED``.
        self._starts = np.arange(kinds)[:, None, None] * deltas.hours.shape[1] * hours
        self._weights = percentile_hours(loads.hours[:, :1], loads.model.percentile)[1]
        self._hours = np.zeros((kinds, brokers, len(self._weights)), dtype=np.int64)
        self._outside = np.zeros(brokers)

    def update(self, brokers: IntArray) -> None:
        """Follow changes of the loads of brokers."""
        loads = self._loads
        self._hours[:, brokers] = percentile_hours(loads.hours.take(brokers, axis=1), loads.model.percentile)[0]
        self._outside[brokers] = self._goals.total_outside(loads.loads.take(brokers, axis=1), brokers)

    def of(self, actions: IntArray, brokers: IntArray) -> FloatArray:
        """Return the fall of load outside of bands by actions, (N,), of which the brokers are given, (2, N)."""
        rows, own, count = np.tile(actions, 2), brokers.ravel(), len(actions)
        change = np.empty((RESOURCES, len(rows)))
        at = self._hours.take(own, axis=1) + self._starts + (rows * self._deltas.hours.shape[2])[:, None]
        change[:3] = (self._deltas.hours.take(at) * self._weights).sum(axis=2)
        change[3:] = self._deltas.latest.take(rows, axis=1)
        change[:, :count] *= -1.0
        fall = self._outside.take(own) - self._goals.total_outside(self._loads.loads.take(own, axis=1) + change, own)
        gain: FloatArray = fall[:count] + fall[count:]
        return gain


def _brokers(actions: Sequence[BalanceAction]) -> IntArray:
    """Return sources and targets, (2, N)."""
    return np.array([[a.source, a.target] for a in actions], dtype=np.int64).reshape(-1, 2).T


def _shift(loads: ClusterLoads, partitions: IntArray, brokers: IntArray, deltas: LoadDeltas) -> None:
    """Change the loads of brokers and the leaders by N actions; the replicas of partitions stay.

    Args:
        loads: the state; it is changed.
        partitions: partition of each action, (N,).
        brokers: source and target of each, (2, N).
        deltas: what the actions move.
    """
    leads = deltas.latest[LATEST.index(Resource.LEADERS)] > 0
    loads.leader[partitions[leads]] = brokers[1, leads]
    hours = loads.hours.transpose(1, 0, 2)
    by_action = deltas.hours.transpose(1, 0, 2)
    for own, add in zip(brokers, (np.subtract, np.add), strict=True):
        add.at(hours, own, by_action)
        add.at(loads.loads[3:].T, own, deltas.latest.T)
    changed = np.flatnonzero(np.bincount(brokers.ravel()))
    loads.loads[:3, changed] = hourly_percentile(loads.hours[:, changed], loads.model.percentile)


def _with_room(model: ClusterModel, goals: GoalSet, actions: list[BalanceAction]) -> list[BalanceAction]:
    """Return the actions without those of partitions of which a new replica finds no room after those before it."""
    room = VolumeRoom(model, goals.limit(Resource.DISK))
    if not room.is_scarce:
        return actions
    without = {a.partition for a in actions if a.copies and not room.take(a.target, a.partition)}
    return [action for action in actions if action.partition not in without]


def _within_limits(start: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction]) -> list[BalanceAction]:
    """Return the actions with those that do not fit yet moved behind the ones that make room for them.

    An action for which nothing makes room is left out, and so are all others of its partition: an election may have
    been chosen only because its partition moves, or the other way round.
    """
    loads = start.copy()
    ordered: list[BalanceAction] = []
    waiting = list(actions)
    room = VolumeRoom(start.model, goals.limit(Resource.DISK))
    while waiting:
        deferred: list[BalanceAction] = []
        # What follows on an action that waits, waits too.
        late: set[int] = set()
        for action in waiting:
            if (
                action.partition in late
                or breaks_limits(goals, load_events(loads, [action])).any()
                or (action.copies and not room.take(action.target, action.partition))
            ):
                deferred.append(action)
                late.add(action.partition)
                continue
            _shift(loads, np.array([action.partition]), _brokers([action]), action_deltas(loads.model, [action]))
            ordered.append(action)
        if len(deferred) == len(waiting):
            whole = [action for action in ordered if action.partition not in late]
            # Without them, others may have no room any more.
            return ordered if len(whole) == len(ordered) else _within_limits(start, goals, whole)
        waiting = deferred
    return ordered
