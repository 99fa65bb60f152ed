"""Search for the actions that bring brokers into their bands: first without copies, then what is worth its copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planning.balance.arrays import BoolArray, FloatArray, IntArray
from planning.balance.goals.goal import BrokerUsage
from planning.balance.model import ClusterModel
from planning.balance.scoring.goal_set import TRIFLE_RATIO, GoalSet
from planning.balance.scoring.loads import ClusterLoads
from planning.balance.scoring.racks import crowded_slots
from planning.balance.search.actions import ActionKind, BalanceAction
from planning.balance.search.candidates import CandidateFinder, Candidates
from planning.balance.search.deltas import Usages, effects, load_deltas
from planning.balance.search.limits import COPIES_ONLY, ProposalLimits

# Candidates that are tried in turn between two brokers, after which all candidates are compared again.
_MOST_IN_TURN = 64
# An action in turn is taken if it gains at least this share of what it promised alone; otherwise others may be better.
_KEPT_GAIN_RATIO = 0.5
# Ratio of the best candidate's gain per byte down to which others between the same brokers are tried with it.
_ALIKE_RATIO = 0.5
_MOST_PASSES = 3
# Pairs of brokers that are tried for one broker and goal.
_MOST_PAIRS = 4
# Preference for brokers that the plan changes already, but too little to be worth an action.
_BEGUN_RATIO = 1.5
_SWAP_PEERS, _SWAP_REPLICAS = 4, 20
# A gain below this is rounding.
_LEAST_GAIN = 1e-9


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


class BalanceSearch:
    """Search in one cluster.

    Args:
        model: the cluster.
        goals: goals with their bounds.
        start: the cluster as it is.
        loads: the state after ``known``; the search changes it.
        limits: limits of the proposal.
        frozen: brokers that give and take nothing, (B,).
        known: actions of the proposal so far.

    Attributes:
        actions: actions found so far, in the order in which they were found.
    """

    def __init__(
        self,
        model: ClusterModel,
        goals: GoalSet,
        start: ClusterLoads,
        loads: ClusterLoads,
        limits: ProposalLimits,
        frozen: BoolArray,
        known: Sequence[BalanceAction] = (),
    ) -> None:
        self._model, self._goals, self._loads, self._limits = model, goals, loads, limits
        self.actions = list(known)
        self._start = start.loads
        excluded = limits.exclusions(model)
        self._may_elect = ~np.logical_or.reduce([excluded[r] for r in excluded if r not in COPIES_ONLY])
        self._may_move = ~np.logical_or.reduce(list(excluded.values()))
        self._electable, self._movable = self._may_elect.copy(), self._may_move.copy()
        self._finder = CandidateFinder(loads, goals, limits.move_overhead_bytes, self._electable, self._movable)
        self._frozen = frozen
        self._budget = CopyBudget(
            (np.inf if limits.max_bytes is None else limits.max_bytes) - sum(a.bytes_copied for a in known),
            (np.inf if limits.max_moves is None else limits.max_moves) - sum(a.copies for a in known),
        )
        self._finished = np.zeros(len(goals.groups), dtype=np.bool_)

    def run(self) -> list[BalanceAction]:
        """Return the actions. Kafka's own topics take part only after all others."""
        internal = self._limits.internal(self._model)
        for eligible in (~internal, internal):
            if not (eligible & self._may_elect).any():
                continue
            changed = self._changed()
            self._electable[:] = self._may_elect & eligible & ~changed[0]
            self._movable[:] = self._may_move & eligible & ~changed[1]
            if not self._limits.elections_only:
                self._spread_over_racks()
            for copies in (False, True) if not self._limits.elections_only else (False,):
                self._finished[:] = False
                for group in range(len(self._goals.groups)):
                    self._settle(group, copies)
                    self._finished[group] = True
        return self.actions

    def _spread_over_racks(self) -> None:
        """Move replicas that share a rack needlessly to the racks where they are missing, one per partition."""
        if not self._loads.crowded.any():
            return
        crowded = crowded_slots(self._model, self._loads.replicas)
        targets = np.flatnonzero(self._model.may_take & ~self._frozen)
        for partition in np.flatnonzero(crowded.any(axis=1) & self._movable).tolist():
            sources = self._loads.replicas[partition][crowded[partition]].astype(np.int64)
            sources = sources[self._model.may_give[sources] & ~self._frozen[sources]]
            found = self._finder.between(
                np.full(len(sources) * len(targets), partition),
                np.repeat(sources, len(targets)),
                np.tile(targets, len(sources)),
            )
            order = np.argsort(-self._finder.gains(found), kind="stable")
            found = found.chosen(order)
            copies = np.ones(len(order), dtype=np.bool_)
            deltas = load_deltas(self._model, found.partitions, copies, found.leads)
            scores = self._goals.action_scores(*effects(self._loads, deltas, found.sources, found.targets, False))
            allowed = np.flatnonzero(scores.refused_by < 0)
            if len(allowed) and self._budget.spend(self._model.size[[partition]]):
                self._apply(found.chosen(allowed[:1]))

    def _changed(self) -> tuple[BoolArray, BoolArray]:
        """Return which partitions have an election, and which have a new replica, (P,) each."""
        elected, moved = (np.zeros(self._model.partitions, dtype=np.bool_) for _ in range(2))
        for action in self.actions:
            if action.kind is ActionKind.ELECT:
                elected[action.partition] = True
            for partition, _, _ in action.moves():
                moved[partition] = True
        return elected, moved

    def _settle(self, group: int, copies: bool) -> None:
        """Bring all brokers into the bands of a group, as far as actions are found."""
        rows = np.flatnonzero(self._goals.group_of == group)
        if not copies:
            rows = rows[self._goals.of_leaders[rows]]
        if not len(rows):
            return
        every = np.arange(len(self._model.brokers))
        for _ in range(_MOST_PASSES):
            # Actions for others may have made room for a broker without any.
            stuck = self._frozen.copy()
            known = len(self.actions)
            while self._budget.moves_left > 0 or not copies:
                outside = self._goals.outside(self._loads.loads, every)[rows]
                outside[:, stuck] = 0.0
                worst = outside.sum(axis=0)
                broker = int(np.argmax(worst))
                if worst[broker] <= _LEAST_GAIN:
                    break
                goals = rows[np.argsort(-outside[:, broker], kind="stable")]
                stuck[broker] = not self._relieve(broker, goals, group, copies)
            if len(self.actions) == known or (stuck == self._frozen).all():
                return

    def _relieve(self, broker: int, rows: IntArray, group: int, copies: bool) -> bool:
        """Take at least one action that helps a broker; return whether there is one.

        Args:
            broker: index of the broker.
            rows: resource goals of the group, the one that it misses most first.
            group: index of the group.
            copies: whether replicas may be copied.
        """
        outside = self._goals.outside(self._loads.loads[:, [broker]], np.array([broker]))[:, 0]
        for row in rows:
            if outside[row] <= _LEAST_GAIN:
                continue
            gives = bool(self._loads.loads[self._goals.resources[row], broker] > self._goals.upper[row, broker])
            if not (self._model.may_give if gives else self._model.may_take)[broker]:
                continue
            if copies:
                found = self._finder.moves(broker, int(row), gives, self._begun())
            else:
                found = self._finder.elections(broker, gives)
            if self._take_best(found, group) or (copies and self._swap(broker, int(row), gives, group)):
                return True
        return False

    def _begun(self) -> BoolArray:
        """Return the brokers that the plan changes by less than what is worth an action, (B,)."""
        soft = ~np.array([goal.hard for goal in self._goals.resource_goals], dtype=np.bool_)
        own = self._goals.resources[soft]
        change = np.abs(self._loads.loads[own] - self._start[own])
        small = change < TRIFLE_RATIO * self._goals.mean[soft]
        return np.asarray(small.all(axis=0) & change.any(axis=0))

    def _take_best(self, found: Candidates, group: int) -> bool:
        """Take the best candidates between two brokers; return whether any was taken."""
        found = found.chosen(~self._frozen[found.sources] & ~self._frozen[found.targets])
        gain = self._finder.gains(found)
        useful = np.flatnonzero(gain > _LEAST_GAIN)
        found, gain = found.chosen(useful), gain[useful]
        worth = gain / found.cost_bytes
        begun = self._begun()
        worth *= np.where(begun[found.sources] | begun[found.targets], _BEGUN_RATIO, 1.0)
        order = np.argsort(-worth, kind="stable")
        for _ in range(_MOST_PAIRS):
            if not len(order):
                return False
            first = order[0]
            between = (found.sources[order] == found.sources[first]) & (found.targets[order] == found.targets[first])
            alike = order[between & (worth[order] >= _ALIKE_RATIO * worth[first])][:_MOST_IN_TURN]
            if self._take_in_turn(found.chosen(alike), gain[alike], group):
                return True
            order = order[~between]
        return False

    def _take_in_turn(self, found: Candidates, gain: FloatArray, group: int) -> bool:
        """Take candidates between two brokers one after another as long as they are accepted and gain enough."""
        settled = self._settled(group)
        copies = np.full(len(found.partitions), found.copies)
        deltas = load_deltas(self._model, found.partitions, copies, found.leads)
        alone = self._goals.action_scores(*effects(self._loads, deltas, found.sources, found.targets, False))
        accepted = np.flatnonzero(alone.accepted(group, settled))
        if not len(accepted):
            return False
        found, gain, deltas = found.chosen(accepted), gain[accepted], deltas.chosen(accepted)
        before, after = effects(self._loads, deltas, found.sources, found.targets, True)
        keeps = self._goals.action_scores(before, after).accepted(group, settled)
        keeps &= self._exact_gain(before, after) >= np.maximum(_LEAST_GAIN, _KEPT_GAIN_RATIO * gain)
        taken = int(np.argmin(keeps)) if not keeps.all() else len(keeps)
        # The promise was to first order: what gains less than promised, but gains, is taken if it is the best.
        if not taken and self._exact_gain(before, after)[0] > _LEAST_GAIN:
            taken = 1
        if found.copies:
            taken = min(taken, self._budget.spend(self._model.size[found.partitions[:taken]]))
        if not taken:
            return False
        self._apply(found.chosen(np.arange(taken)))
        return True

    def _exact_gain(
        self, before: tuple[BrokerUsage, BrokerUsage], after: tuple[BrokerUsage, BrokerUsage]
    ) -> FloatArray:
        gain = np.zeros(len(before[0].brokers))
        for usages, sign in ((before, 1.0), (after, -1.0)):
            for usage in usages:
                gain += sign * self._goals.outside(usage.loads, usage.brokers).sum(axis=0)
        return gain

    def _settled(self, group: int) -> BoolArray:
        """Return which groups must not get worse: those settled before, and those with every broker in its band."""
        every = np.arange(len(self._model.brokers))
        outside = self._goals.outside(self._loads.loads, every).sum(axis=1)
        settled = self._finished.copy()
        for other in range(len(settled)):
            own = self._goals.group_of == other
            if own.any() and not outside[own].any():
                settled[other] = True
        settled[group] = False
        return settled

    def _apply(self, found: Candidates) -> None:
        """Carry out candidates between two brokers."""
        partitions, source, target = found.partitions, int(found.sources[0]), int(found.targets[0])
        if found.copies:
            self._loads.move(partitions, source, target)
            self._movable[partitions] = False
            # The lead stays where the plan puts it.
            self._electable[partitions] &= ~found.leads
        else:
            self._loads.elect(partitions, source, target)
            self._electable[partitions] = False
        kind = ActionKind.MOVE if found.copies else ActionKind.ELECT
        sizes = self._model.size[partitions] if found.copies else np.zeros(len(partitions))
        for partition, size, leads in zip(partitions.tolist(), sizes.tolist(), found.leads.tolist(), strict=True):
            self.actions.append(BalanceAction(kind, partition, source, target, -1, size, leads))

    def _swap(self, broker: int, row: int, gives: bool, group: int) -> bool:
        """Take the best swap of replicas between a broker and one of its peers; return whether there is one."""
        for peer in self._finder.peers(broker, row, gives, self._begun())[:_SWAP_PEERS]:
            if self._frozen[peer] or self._budget.moves_left < 2:
                continue
            source, target = (broker, int(peer)) if gives else (int(peer), broker)
            if not (self._model.may_take[[source, target]] & self._model.may_give[[source, target]]).all():
                continue
            given, taken = self._finder.swaps(source, target, row, _SWAP_REPLICAS)
            if len(given.partitions) and self._take_swap(given, taken, group):
                return True
        return False

    def _take_swap(self, given: Candidates, taken: Candidates, group: int) -> bool:
        """Take the swap of N with the greatest gain per byte that is accepted; return whether there is one.

        Args:
            given: replicas that go from source to target, (N,).
            taken: replicas that go the other way, (N,).
            group: index of the group.
        """
        every = np.ones(len(given.partitions), dtype=np.bool_)
        out = load_deltas(self._model, given.partitions, every, given.leads)
        back = load_deltas(self._model, taken.partitions, every, taken.leads)
        before, after = effects(self._loads, out.minus(back), given.sources, given.targets, False)
        gain = self._exact_gain(before, after)
        worth = np.where(gain > _LEAST_GAIN, gain / (given.cost_bytes + taken.cost_bytes), 0.0)
        accepted = self._goals.action_scores(before, after).accepted(group, self._settled(group)) & (worth > 0)
        # Both topics count, and until the moves end, both brokers have the old and the new replicas.
        other = effects(self._loads, back.minus(out), given.targets, given.sources, False)
        accepted &= self._goals.action_scores(*other).accepted(group, self._settled(group))
        accepted &= self._goals.keeps_limits(*_only(effects(self._loads, out, given.sources, given.targets, False)))
        accepted &= self._goals.keeps_limits(*_only(effects(self._loads, back, given.targets, given.sources, False)))
        sizes = self._model.size[given.partitions] + self._model.size[taken.partitions]
        accepted &= sizes <= self._budget.bytes_left
        if not accepted.any():
            return False
        best = int(np.argmax(np.where(accepted, worth, -1.0)))
        one, two = int(given.partitions[best]), int(taken.partitions[best])
        source, target = int(given.sources[best]), int(given.targets[best])
        self._budget.bytes_left -= float(sizes[best])
        self._budget.moves_left -= 2
        self._loads.move(np.array([one]), source, target)
        self._loads.move(np.array([two]), target, source)
        self._movable[[one, two]] = False
        leads, swapped_leads = bool(given.leads[best]), bool(taken.leads[best])
        self._electable[one] &= not leads
        self._electable[two] &= not swapped_leads
        self.actions.append(
            BalanceAction(ActionKind.SWAP, one, source, target, two, float(sizes[best]), leads, swapped_leads)
        )
        return True


def _only(usages: tuple[Usages, Usages]) -> tuple[BrokerUsage, BrokerUsage]:
    """Return the usages of the targets before and after."""
    before, after = usages
    return before[1], after[1]
