"""State of a search: actions so far, what may still change, and what it may still cost."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import TRIFLE_RATIO, GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.candidates import Candidates
from headroom.planning.balance.search.limits import COPIES_ONLY, ProposalLimits


@dataclass
class CopyBudget:
    """What a proposal may still copy.

    Attributes:
        bytes_left: bytes.
        moves_left: number of replicas.
    """

    bytes_left: float
    moves_left: float

    def spend(self, sizes: FloatArray) -> int:
        """Return how many of the first copies are affordable, and take them off.

        Args:
            sizes: bytes of each copy.
        """
        affordable = min(int((np.cumsum(sizes) <= self.bytes_left).sum()), int(min(self.moves_left, len(sizes))))
        self.bytes_left -= float(sizes[:affordable].sum())
        self.moves_left -= affordable
        return affordable


@dataclass(frozen=True, eq=False)
class SavedState:
    """Copy of a state, to return to."""

    loads: ClusterLoads
    actions: list[BalanceAction]
    electable: BoolArray
    movable: BoolArray
    budget: CopyBudget


class SearchState:
    """State of a search in one cluster.

    Args:
        goals: goals with their bounds.
        start: the cluster as it is.
        loads: the state after ``known``; it is changed.
        limits: limits of the proposal.
        frozen: brokers that give and take nothing, (B,).
        known: actions of the proposal so far.

    Attributes:
        model: the cluster.
        goals: goals with their bounds.
        loads: the state after the actions.
        actions: actions in the order in which they were found.
        frozen: brokers that give and take nothing, (B,).
        budget: what may still be copied.
        electable: partitions whose leader may still change, (P,).
        movable: partitions of which a replica may still move, (P,).
        finished: groups of goals that are settled, (groups,).
    """

    def __init__(
        self,
        goals: GoalSet,
        start: ClusterLoads,
        loads: ClusterLoads,
        limits: ProposalLimits,
        frozen: BoolArray,
        known: Sequence[BalanceAction],
    ) -> None:
        self.model: ClusterModel = start.model
        self.goals, self.loads, self.actions, self.frozen = goals, loads, list(known), frozen
        self._start = start.loads
        excluded = limits.exclusions(self.model)
        self._may_elect = ~np.logical_or.reduce([excluded[r] for r in excluded if r not in COPIES_ONLY])
        self._may_move = ~np.logical_or.reduce(list(excluded.values()))
        self.electable, self.movable = self._may_elect.copy(), self._may_move.copy()
        self.budget = CopyBudget(
            (np.inf if limits.max_bytes is None else limits.max_bytes) - sum(a.bytes_copied for a in known),
            (np.inf if limits.max_moves is None else limits.max_moves) - sum(a.copies for a in known),
        )
        self.finished = np.zeros(len(goals.groups), dtype=np.bool_)
        self._soft = ~np.array([goal.hard for goal in goals.resource_goals], dtype=np.bool_)
        self._every = np.arange(len(self.model.brokers))

    def admit(self, eligible: BoolArray) -> bool:
        """Let some partitions take part that are in no action yet; return whether there are any.

        Args:
            eligible: the partitions, (P,).
        """
        elected, moved = (np.zeros(self.model.partitions, dtype=np.bool_) for _ in range(2))
        for action in self.actions:
            # The lead stays where the plan puts it, by an election or with a replica.
            elected[action.partition] |= action.kind is ActionKind.ELECT or action.leads
            if action.swapped_leads:
                elected[action.swapped] = True
            for partition, _, _ in action.moves():
                moved[partition] = True
        self.electable[:] = self._may_elect & eligible & ~elected
        self.movable[:] = self._may_move & eligible & ~moved
        return bool((self._may_elect & eligible).any())

    def outside(self) -> FloatArray:
        """Return the load of each broker outside of bands, in shares of the means, (K, B)."""
        return self.goals.outside(self.loads.loads, self._every)

    def settled_groups(self, group: int) -> BoolArray:
        """Return which groups must not get worse: those settled before, and those with every broker in its band.

        Args:
            group: index of the group that is being settled.
        """
        outside = self.outside().sum(axis=1)
        settled = self.finished.copy()
        for other in range(len(settled)):
            own = self.goals.group_of == other
            if own.any() and not outside[own].any():
                settled[other] = True
        settled[group] = False
        return settled

    def begun(self) -> BoolArray:
        """Return the brokers that the plan changes by less than what is worth an action, (B,)."""
        own = self.goals.resources[self._soft]
        change = np.abs(self.loads.loads[own] - self._start[own])
        small = change < TRIFLE_RATIO * self.goals.mean[self._soft]
        return np.asarray(small.all(axis=0) & change.any(axis=0))

    def exact_gain(self, before: tuple[BrokerUsage, BrokerUsage], after: tuple[BrokerUsage, BrokerUsage]) -> FloatArray:
        """Return the fall of load outside of bands by N actions, (N,).

        Args:
            before: usage of the brokers that give, and of those that take, before each action.
            after: the same after each action.
        """
        gain = np.zeros(len(before[0].brokers))
        for usages, sign in ((before, 1.0), (after, -1.0)):
            for usage in usages:
                gain += sign * self.goals.outside(usage.loads, usage.brokers).sum(axis=0)
        return gain

    def apply(self, candidates: Candidates) -> None:
        """Carry out candidates that are all between the same two brokers."""
        partitions, source, target = candidates.partitions, int(candidates.sources[0]), int(candidates.targets[0])
        if candidates.copies:
            self.loads.move(partitions, source, target)
            self.movable[partitions] = False
            # The lead stays where the plan puts it.
            self.electable[partitions] &= ~candidates.leads
        else:
            self.loads.elect(partitions, source, target)
            self.electable[partitions] = False
        kind = ActionKind.MOVE if candidates.copies else ActionKind.ELECT
        sizes = self.model.size[partitions] if candidates.copies else np.zeros(len(partitions))
        for partition, size, leads in zip(partitions.tolist(), sizes.tolist(), candidates.leads.tolist(), strict=True):
            self.actions.append(BalanceAction(kind, partition, source, target, -1, size, leads))

    def swap(self, one: BalanceAction) -> None:
        """Carry out a swap, for which the budget must be enough."""
        self.budget.bytes_left -= one.bytes_copied
        self.budget.moves_left -= 2
        for partition, source, target in one.moves():
            self.loads.move(np.array([partition]), source, target)
        self.movable[[one.partition, one.swapped]] = False
        self.electable[one.partition] &= not one.leads
        self.electable[one.swapped] &= not one.swapped_leads
        self.actions.append(one)

    def redirect(self, number: int, target: int) -> None:
        """Let a move of the plan go to another broker. To its own source, it is taken out of the plan.

        Args:
            number: index of the move in ``actions``.
            target: broker without a replica of the partition, or the source of the move.
        """
        action = self.actions[number]
        self.loads.move(np.array([action.partition]), action.target, target)
        if target != action.source:
            self.actions[number] = replace(action, target=target)
            return
        del self.actions[number]
        self.budget.bytes_left += action.bytes_copied
        self.budget.moves_left += 1
        self.movable[action.partition] = True

    def save(self) -> SavedState:
        """Return a copy of the state."""
        return SavedState(
            self.loads.copy(), list(self.actions), self.electable.copy(), self.movable.copy(), copy(self.budget)
        )

    def restore(self, saved: SavedState) -> None:
        """Return to a saved state, which must not be used again."""
        # Others hold the loads and the masks: their values change, not the objects.
        vars(self.loads).update(vars(saved.loads))
        self.electable[:], self.movable[:] = saved.electable, saved.movable
        self.actions, self.budget = saved.actions, saved.budget
