"""Proposal of a plan: actions in their order, what each prefix gains and copies, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IndexArray, IntArray
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads, leader_first
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.limits import Exclusion, ProposalLimits
from headroom.planning.balance.search.net_actions import net_actions
from headroom.planning.balance.search.ordering import order_actions, stage_of
from headroom.planning.balance.search.search import LEAST_GAIN, BalanceSearch
from headroom.planning.balance.search.trajectory import LoadEvents, load_events
from headroom.planning.balance.search.volume_room import VolumeRoom
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Searches for one proposal, of which the last mostly finds nothing, and the part by which each has to lower the load
# outside of bands of brokers that give or take replicas. Bands move a little with each state, so less may be a step of
# a circle.
_MOST_SEARCHES, _LEAST_FALL_RATIO = 16, 0.02


@dataclass(frozen=True, eq=False)
class Proposal:
    """Actions that balance a cluster, in the order in which they are worth most. Every prefix is a valid plan.

    Attributes:
        model: the cluster as it is.
        start: state before the first action; it is not changed.
        goals: goals with their bounds.
        actions: actions in their order.
        outside: load outside of bands and beyond limits before the first action and after each one, in shares of the
            means by weight, (N + 1,).
        copied_bytes: bytes copied by each prefix, (N + 1,).
        copied_replicas: replicas copied by each prefix, (N + 1,).
        loads_before: load by resource and broker, (6, B).
        loads_after: the same after all actions, (6, B).
    """

    model: ClusterModel
    start: ClusterLoads
    goals: GoalSet
    actions: tuple[BalanceAction, ...]
    outside: FloatArray
    copied_bytes: FloatArray
    copied_replicas: FloatArray
    loads_before: FloatArray
    loads_after: FloatArray

    @property
    def gains(self) -> FloatArray:
        """Return the gain of each action, (N,): the fall of load outside of bands."""
        gains: FloatArray = -np.diff(self.outside)
        return gains

    def state(self, actions: int) -> ClusterLoads:
        """Return the state after a number of actions."""
        loads = self.start.copy()
        apply_actions(loads, self.actions[:actions])
        return loads


def propose(model: ClusterModel, goals: Sequence[BalanceGoal], limits: ProposalLimits | None = None) -> Proposal:
    """Return the actions that bring brokers into their bands for the fewest bytes found.

    The proposal depends on the cluster, the goals and the limits alone.

    Raises:
        HeadroomError: fewer than two brokers are known, a topic is unknown, or a goal fails.
    """
    limits = limits or ProposalLimits()
    if int(model.is_counted.sum()) < 2:
        raise HeadroomError("brokers", "fewer than two are alive with known metrics", "Balance needs at least two.")
    if not model.partitions:
        raise HeadroomError("partitions", "there are none", "Choose a cluster that has topics.")
    before = ClusterLoads(model)
    goal_set = GoalSet(goals, before)
    return _proposal(_search(_Stage(before, goal_set, (), load_events(before, ())), limits), before, goal_set)


def proposal_of(model: ClusterModel, goals: Sequence[BalanceGoal], actions: Sequence[BalanceAction]) -> Proposal:
    """Return the proposal with actions that ``propose`` has returned for the same cluster, goals and limits."""
    before = ClusterLoads(model)
    goal_set = GoalSet(goals, before)
    return _proposal(_Stage(before, goal_set, tuple(actions), load_events(before, actions)), before, goal_set)


def excluded_partitions(model: ClusterModel, limits: ProposalLimits) -> dict[TopicPartition, Exclusion]:
    """Return the first reason for each partition that a proposal leaves out, in their order.

    Raises:
        HeadroomError: a topic of the limits is unknown.
    """
    reasons = limits.exclusions(model)
    first = np.full(model.partitions, -1)
    order = list(reasons)
    for number in reversed(range(len(order))):
        first[reasons[order[number]]] = number
    return {model.name(int(p)): order[first[p]] for p in np.flatnonzero(first >= 0)}


def apply_actions(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> None:
    """Carry out actions in a state, which is changed."""
    # Actions that follow on each other between the same brokers are carried out together.
    for (kind, source, target), group in groupby(actions, key=lambda a: (a.kind, a.source, a.target)):
        own = list(group)
        partitions = np.array([a.partition for a in own], dtype=np.int64)
        if kind is ActionKind.ELECT:
            loads.elect(partitions, source, target)
            continue
        loads.move(partitions, source, target)


@dataclass(frozen=True, eq=False)
class _Stage:
    """A placement on the way to the end state, with the actions that lead to it from the cluster as it is."""

    loads: ClusterLoads
    goals: GoalSet
    actions: tuple[BalanceAction, ...]
    events: LoadEvents

    def is_worse_than(self, loads: ClusterLoads, goals: GoalSet, ratio: float) -> bool:
        """Return whether another placement has replicas spread better over racks, or enough less load outside of bands.

        Copies have to lower it by a part of what the brokers that give or take replicas have outside, where none counts
        with more than a mean load: how much other brokers have, or one that nothing can help, does not matter.

        Args:
            loads: the other placement.
            goals: goals with its own bands.
            ratio: that part.
        """
        crowded = float(loads.crowded.sum()), float(self.loads.crowded.sum())
        if crowded[0] != crowded[1]:
            return crowded[0] < crowded[1]
        outside = self.goals.outside_at_start
        fall = outside - goals.outside_at_start
        least = ratio * float(np.minimum(outside, 1.0)[self._copied_until(loads)].sum())
        return float(fall.sum()) >= max(least, LEAST_GAIN)

    def _copied_until(self, loads: ClusterLoads) -> BoolArray:
        """Return the brokers that give or take replicas on the way to another placement, (B,)."""
        rows = self.loads.replicas, loads.replicas
        changed = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
        same = rows[0][changed][:, :, None] == rows[1][changed][:, None]
        concerned = np.zeros(len(loads.model.brokers), dtype=np.bool_)
        concerned[rows[0][changed][~same.any(axis=2)]] = True
        concerned[rows[1][changed][~same.any(axis=1)]] = True
        return concerned


def _search(start: _Stage, limits: ProposalLimits) -> _Stage:
    """Return the end state from which a new proposal has no action, with the actions from the cluster as it is.

    Each search starts as that of a new proposal would, with the bands of the state that the one before has reached. The
    proposal is the difference between the first state and the last.
    """
    now = start
    # A limit may leave room for a small part of the gain only.
    ratio = 0.0 if limits.is_partial else _LEAST_FALL_RATIO
    # Within a stage, what the searches took first goes first: it gains the most.
    order = np.zeros(start.loads.model.partitions, dtype=np.int64)
    for _ in range(_MOST_SEARCHES):
        reached, order = _next_stage(start, now, limits, order, ratio)
        if reached is None:
            break
        now = reached
    return now


def _next_stage(
    start: _Stage, now: _Stage, limits: ProposalLimits, order: IntArray, ratio: float
) -> tuple[_Stage | None, IntArray]:
    """Return the stage that a search reaches, None if it is not better, and the order in which partitions were taken.

    Args:
        start: the cluster as it is.
        now: the stage from which the search starts.
        limits: limits of the proposal.
        order: the order so far, (P,).
        ratio: part of the load outside of bands by which copies have to lower it.
    """
    model = start.loads.model
    spent = (sum(a.bytes_copied for a in now.actions), sum(a.copies for a in now.actions))
    bytes_left, moves_left = (
        np.inf if most is None else most - used
        for most, used in zip((limits.max_bytes, limits.max_moves), spent, strict=True)
    )
    room, loads = VolumeRoom(model, start.goals.limit(Resource.DISK), now.actions), now.loads.copy()
    search = BalanceSearch(loads, now.goals, limits, bytes_left, moves_left, room)
    search.run()
    if not search.has_changed:
        return None, order
    # The last search mostly finds next to nothing, and ordering its actions would take as long as the search.
    if now.is_worse_than(loads, GoalSet(start.goals.goals, loads), ratio):
        taken = np.where(search.taken > 0, order.max() + search.taken, order)
        reached = _stage(start, net_actions(model, search.slots, search.leader), taken, limits)
        if now.is_worse_than(reached.loads, reached.goals, ratio):
            return reached, taken
    if limits.elections_only:
        return None, order
    # Where copies are not worth it, elections cost nothing.
    return _next_stage(start, now, replace(limits, elections_only=True), order, ratio)


def _stage(start: _Stage, actions: list[BalanceAction], order: IntArray, limits: ProposalLimits) -> _Stage:
    """Return the stage that actions lead to, which are sorted by the order of their partitions within each kind."""
    model, taken = start.loads.model, order.tolist()
    actions.sort(key=lambda action: (stage_of(model, action), taken[action.partition]))
    ordered, events = order_actions(start.loads, start.goals, actions, limits.move_overhead_bytes)
    loads = ClusterLoads(model.with_placement(*placement(model, ordered)))
    return _Stage(loads, GoalSet(start.goals.goals, loads), tuple(ordered), events)


def placement(model: ClusterModel, actions: Sequence[BalanceAction]) -> tuple[IndexArray, IndexArray]:
    """Return the replicas, (P, R), and leaders, (P,), that ``apply_actions`` leads to, without loads."""
    replicas, leaders = model.replicas.copy(), model.leader.copy()
    left = np.array([(a.partition, a.source, a.target, a.copies) for a in actions], dtype=np.int64).reshape(-1, 4)
    while len(left):
        # The first action that is left of each partition: those of different partitions do not meet.
        first = np.unique(left[:, 0], return_index=True)[1]
        own, source, target, copies = left[first].T
        rows, leader = replicas[own], leaders[own]
        rows = np.where((rows == source[:, None]) & (copies == 1)[:, None], target[:, None], rows)
        leader = np.where((leader == source) | (copies == 0), target, leader)
        replicas[own], leaders[own] = leader_first(rows, leader), leader
        left = np.delete(left, first, axis=0)
    return replicas, leaders


def _proposal(end: _Stage, before: ClusterLoads, goals: GoalSet) -> Proposal:
    model, actions, events = before.model, end.actions, end.events
    changes = (goals.outside(events.after, events.brokers) - goals.outside(events.before, events.brokers)).sum(axis=0)
    start = goals.outside(before.loads, np.arange(len(model.brokers))).sum()
    by_action = np.bincount(events.actions, weights=changes, minlength=len(actions))
    after = before.loads.copy()
    if actions:
        last = np.flatnonzero(np.r_[events.brokers[1:] != events.brokers[:-1], True])
        after[:, events.brokers[last]] = events.after[:, last]
    return Proposal(
        model,
        before,
        goals,
        actions,
        # Sums of differences may end below 0 in their last digits.
        np.maximum(start + _sums_from_0(by_action), 0.0),
        _sums_from_0([a.bytes_copied for a in actions]),
        _sums_from_0([a.copies for a in actions]),
        before.loads,
        after,
    )


def _sums_from_0(values: Sequence[float] | AnyArray) -> FloatArray:
    """Return 0 and the sum of the first values after each one, (N + 1,)."""
    return np.cumsum([0.0, *values])
