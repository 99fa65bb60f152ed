"""Proposal of a plan: actions in their order, what each prefix gains and copies, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import TRIFLE_RATIO, GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.limits import ExcludedPartition, ProposalLimits
from headroom.planning.balance.search.ordering import order_actions
from headroom.planning.balance.search.search import BalanceSearch
from headroom.planning.balance.search.trajectory import load_events
from headroom.schemas.errors import HeadroomError

# Difference of two sums of loads in another order, in shares of the means.
_ROUNDING = 1e-9
# Up to this number of partitions a second search is made if the first leaves load outside of bands. Of more, single
# replicas matter less than the time.
_MOST_SEARCHED_TWICE = 50_000


@dataclass(frozen=True, eq=False)
class Proposal:
    """Actions that balance a cluster, in the order in which they are worth most. Every prefix is a valid plan.

    Attributes:
        model: the cluster as it is.
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
        loads = ClusterLoads(self.model)
        apply_actions(loads, self.actions[:actions])
        return loads

    def cheapest_prefix(self, outside: float) -> int:
        """Return the smallest number of actions after which at most a load is outside of bands.

        All actions are returned if no prefix reaches that.

        Args:
            outside: load outside of bands, in shares of the means.
        """
        enough = np.flatnonzero(self.outside <= outside)
        return int(enough[0]) if len(enough) else len(self.actions)


def propose(model: ClusterModel, goals: Sequence[BalanceGoal], limits: ProposalLimits | None = None) -> Proposal:
    """Return the actions that bring brokers into their bands for the fewest bytes found.

    The proposal depends on the cluster, the goals and the limits alone. A partition gains at most one replica.

    Args:
        model: the cluster.
        goals: goals in the order in which their groups are settled.
        limits: what the proposal may cost and must leave alone; None: defaults.

    Raises:
        HeadroomError: fewer than two brokers are known, a topic is unknown, or a goal fails.
    """
    limits = limits or ProposalLimits()
    if int(model.counted.sum()) < 2:
        raise HeadroomError("brokers", "fewer than two are alive with known metrics", "Balance needs at least two.")
    if not model.partitions:
        raise HeadroomError("partitions", "there are none", "Choose a cluster that has topics.")
    before = ClusterLoads(model)
    goal_set = GoalSet(goals, before)
    actions = _search(model, goal_set, before, limits)
    actions = order_actions(before, goal_set, actions, limits.move_overhead_bytes, limits.internal(model))
    return _proposal(model, goal_set, before, actions)


def excluded_partitions(model: ClusterModel, limits: ProposalLimits) -> list[ExcludedPartition]:
    """Return the partitions that a proposal leaves out, each with the first reason, in their order.

    Raises:
        HeadroomError: a topic of the limits is unknown.
    """
    reasons = limits.exclusions(model)
    first = np.full(model.partitions, -1)
    order = list(reasons)
    for number in reversed(range(len(order))):
        first[reasons[order[number]]] = number
    return [ExcludedPartition(model.name(int(p)), order[first[p]]) for p in np.flatnonzero(first >= 0)]


def apply_actions(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> None:
    """Carry out actions in a state.

    Args:
        loads: the state; it is changed.
        actions: actions in their order.
    """
    # Actions that follow on each other between the same brokers are carried out together.
    for (kind, source, target), group in groupby(actions, key=lambda a: (a.kind, a.source, a.target)):
        own = list(group)
        partitions = np.array([a.partition for a in own], dtype=np.int64)
        if kind is ActionKind.ELECT:
            loads.elect(partitions, source, target)
            continue
        loads.move(partitions, source, target)
        if kind is ActionKind.SWAP:
            loads.move(np.array([a.swapped for a in own], dtype=np.int64), target, source)


def _search(model: ClusterModel, goals: GoalSet, before: ClusterLoads, limits: ProposalLimits) -> list[BalanceAction]:
    """Return actions in an order that keeps all limits.

    A search that puts off what wastes bytes copies less. Where a few large replicas decide, it may leave load outside
    of bands that one without this rule brings there.
    """
    first = _search_without_trifles(model, goals, before, limits, thrifty=True)
    if first.outside <= _ROUNDING or model.partitions > _MOST_SEARCHED_TWICE:
        return first.actions
    other = _search_without_trifles(model, goals, before, limits, thrifty=False)
    return other.actions if other.outside < first.outside - _ROUNDING else first.actions


def _search_without_trifles(
    model: ClusterModel, goals: GoalSet, before: ClusterLoads, limits: ProposalLimits, thrifty: bool
) -> _SearchResult:
    """Return what a search finds, without changes of brokers that are trifles."""
    frozen = np.zeros(len(model.brokers), dtype=np.bool_)
    first = _run_search(model, goals, before, limits, frozen, [], thrifty)
    trifles = _trifles(goals, before, first)
    if not trifles.any():
        return first
    # Other brokers may take over what these do; where none can, bands count more than trifles.
    kept = _without(first.actions, trifles, _breaks_hard_goals(goals, before))
    second = _run_search(model, goals, before, limits, trifles, kept, thrifty)
    return first if second.outside > first.outside + _ROUNDING else second


@dataclass(frozen=True)
class _SearchResult:
    """Actions, the state after them, and the load that is then outside of bands."""

    actions: list[BalanceAction]
    loads: ClusterLoads
    outside: float


def _run_search(
    model: ClusterModel,
    goals: GoalSet,
    before: ClusterLoads,
    limits: ProposalLimits,
    frozen: BoolArray,
    known: list[BalanceAction],
    thrifty: bool,
) -> _SearchResult:
    """Return known actions and those found after them."""
    loads = before.copy()
    apply_actions(loads, known)
    actions = BalanceSearch(model, goals, before, loads, limits, frozen, known, thrifty).run()
    every = np.arange(len(model.brokers))
    return _SearchResult(actions, loads, float(goals.outside(loads.loads, every).sum()))


def _trifles(goals: GoalSet, before: ClusterLoads, result: _SearchResult) -> BoolArray:
    """Return the brokers that the actions change by less than 5 % of the mean in every soft goal, (B,)."""
    touched = np.zeros(len(before.model.brokers), dtype=np.bool_)
    for action in result.actions:
        touched[[action.source, action.target]] = True
    soft = [number for number, goal in enumerate(goals.resource_goals) if not goal.hard]
    own = goals.resources[soft]
    change = np.abs(result.loads.loads[own] - before.loads[own])
    # A change of exactly 5 % counts, and sums in another order differ in their last digits.
    small = (change < TRIFLE_RATIO * goals.mean[soft] * (1 - 1e-9)) | (goals.mean[soft] == 0)
    every: BoolArray = touched & small.all(axis=0)
    return every if soft else np.zeros(len(touched), dtype=np.bool_)


def _breaks_hard_goals(goals: GoalSet, before: ClusterLoads) -> BoolArray:
    """Return the brokers that do not hold a hard goal at the start, (B,): what they give is no trifle."""
    hard = [number for number, goal in enumerate(goals.resource_goals) if goal.hard]
    over = (before.loads[goals.resources[hard]] > goals.upper[hard]).any(axis=0)
    breaks: BoolArray = over | (before.crowded > 0)
    return breaks


def _without(actions: Sequence[BalanceAction], brokers: BoolArray, needed: BoolArray) -> list[BalanceAction]:
    """Return actions without those that change some brokers, and without others of the same partitions."""
    dropped: set[int] = set()
    for action in actions:
        small = brokers[action.source] or brokers[action.target]
        if small and not needed[action.source]:
            dropped |= {action.partition, action.swapped} - {-1}
    left = list(actions)
    while True:
        kept = [a for a in left if a.partition not in dropped and a.swapped not in dropped]
        if len(kept) == len(left):
            return kept
        # A swap couples two partitions.
        dropped |= {p for a in left for p in (a.partition, a.swapped) if {a.partition, a.swapped} & dropped}
        dropped.discard(-1)
        left = kept


def _proposal(model: ClusterModel, goals: GoalSet, before: ClusterLoads, actions: Sequence[BalanceAction]) -> Proposal:
    events = load_events(before, actions)
    changes = (goals.outside(events.after, events.brokers) - goals.outside(events.before, events.brokers)).sum(axis=0)
    every = np.arange(len(model.brokers))
    start = float(goals.outside(before.loads, every).sum())
    after = before.loads.copy()
    if actions:
        last = np.flatnonzero(np.r_[events.brokers[1:] != events.brokers[:-1], True])
        after[:, events.brokers[last]] = events.after[:, last]
    copied = np.concatenate([[0.0], np.cumsum([a.bytes_copied for a in actions])])
    replicas = np.concatenate([[0.0], np.cumsum([float(a.copies) for a in actions])])
    return Proposal(
        model,
        goals,
        tuple(actions),
        events.totals(start, changes, len(actions)),
        copied,
        replicas,
        before.loads,
        after,
    )
