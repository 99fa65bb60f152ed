"""Choice among candidates: the best ones between two brokers are taken as long as all goals accept them."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.candidates import CandidateFinder, Candidates
from headroom.planning.balance.search.deltas import Usages, effects, load_deltas
from headroom.planning.balance.search.state import SearchState

# A gain below this is rounding.
LEAST_GAIN = 1e-9
# Candidates that are tried in turn between two brokers, after which all candidates are compared again.
_MOST_IN_TURN = 64
# An action in turn is taken if it gains at least this share of what it promised alone; otherwise others may be better.
_KEPT_GAIN_RATIO = 0.5
# Below this share a part of its bytes is wasted: it takes a broker beyond an edge, and a smaller one may not.
_FULL_GAIN_RATIO = 0.95
# Ratio of the best candidate's gain per byte down to which others between the same brokers are tried with it.
_ALIKE_RATIO = 0.5
# Pairs of brokers that are tried for one broker and goal.
_MOST_PAIRS = 4
# Preference for brokers that the plan changes already, but too little to be worth an action.
_BEGUN_RATIO = 1.5
_SWAP_PEERS, _SWAP_REPLICAS = 4, 20
# Room that an action may use up as if it were free, as a share of all room: below it, the gain decides.
_FREE_ROOM_RATIO = 0.01


class ActionTaker:
    """Taker of the best candidates in a search.

    Args:
        state: state of the search; taken actions change it.
        finder: finder of candidates in this state.
        thrifty: whether candidates that waste bytes are put off as long as there are others.
    """

    def __init__(self, state: SearchState, finder: CandidateFinder, thrifty: bool) -> None:
        self._state, self._finder, self._thrifty = state, finder, thrifty

    def best(self, candidates: Candidates, group: int) -> bool:
        """Take the candidates between two brokers with the most gain per byte; return whether any was taken.

        Args:
            candidates: candidates with the same source, or the same target.
            group: index of the group that is being settled.
        """
        candidates, gain = self._useful(candidates, group)
        begun = self._state.begun()
        changed = begun[candidates.sources] | begun[candidates.targets]
        worth = gain / candidates.cost_bytes * np.where(changed, _BEGUN_RATIO, 1.0)
        return self._in_order(candidates, gain, worth, group)

    def least_room(self, candidates: Candidates, group: int) -> bool:
        """Take the candidates with the most gain for the room that they use up in bands; return whether any was taken.

        Where bands leave little room, this decides how much more can be gained.

        Args:
            candidates: candidates with the same source, or the same target.
            group: index of the group that is being settled.
        """
        candidates, gain = self._useful(candidates, group)
        return self._in_order(candidates, gain, gain / (_FREE_ROOM_RATIO + self._finder.room_used(candidates)), group)

    def _useful(self, candidates: Candidates, group: int) -> tuple[Candidates, FloatArray]:
        """Return the candidates that gain, and make no settled group worse, with their gains, to first order."""
        state = self._state
        candidates = candidates.subset(~state.frozen[candidates.sources] & ~state.frozen[candidates.targets])
        by_goal = self._finder.gains_by_goal(candidates)
        gain = by_goal.sum(axis=0) + self._finder.topic_gains(candidates)
        useful = gain > LEAST_GAIN
        for other in np.flatnonzero(state.settled_groups(group)):
            useful &= by_goal[state.goals.group_of == other].sum(axis=0) >= -LEAST_GAIN
        return candidates.subset(useful), gain[useful]

    def _in_order(self, candidates: Candidates, gain: FloatArray, worth: FloatArray, group: int) -> bool:
        """Take the candidates that are worth most between one pair of brokers after another, until any are taken."""
        order = np.argsort(-worth, kind="stable")
        for _ in range(_MOST_PAIRS):
            if not len(order):
                return False
            first = order[0]
            same_source = candidates.sources[order] == candidates.sources[first]
            between = same_source & (candidates.targets[order] == candidates.targets[first])
            alike = order[between & (worth[order] >= _ALIKE_RATIO * worth[first])][:_MOST_IN_TURN]
            if self._in_turn(candidates.subset(alike), gain[alike], group):
                return True
            order = order[~between]
        return False

    def _in_turn(self, candidates: Candidates, gain: FloatArray, group: int) -> bool:
        """Take candidates between two brokers one after another as long as they are accepted and gain enough."""
        state, settled = self._state, self._state.settled_groups(group)
        copies = np.full(len(candidates.partitions), candidates.copies)
        deltas = load_deltas(state.model, candidates.partitions, copies, candidates.leads)
        alone = state.goals.action_scores(*effects(state.loads, deltas, candidates.sources, candidates.targets, False))
        accepted = np.flatnonzero(alone.is_accepted(group, settled))
        if not len(accepted):
            return False
        candidates, gain, deltas = candidates.subset(accepted), gain[accepted], deltas.subset(accepted)
        before, after = effects(state.loads, deltas, candidates.sources, candidates.targets, True)
        keeps = state.goals.action_scores(before, after).is_accepted(group, settled)
        exact = state.exact_gain(before, after)
        keeps &= exact >= np.maximum(LEAST_GAIN, _KEPT_GAIN_RATIO * gain)
        taken = _first(keeps)
        if self._thrifty:
            # The best one is taken in any case.
            taken = _first(keeps & (exact >= _FULL_GAIN_RATIO * gain)) or taken
        # The promise was to first order: what gains less than promised, but gains, is taken if it is the best.
        if not taken and exact[0] > LEAST_GAIN:
            taken = 1
        if candidates.copies:
            taken = min(taken, state.budget.spend(state.model.size[candidates.partitions[:taken]]))
        if not taken:
            return False
        state.apply(candidates.subset(np.arange(taken)))
        return True

    def swap(self, broker: int, row: int, gives: bool, group: int) -> bool:
        """Take the best swap of replicas between a broker and one of its peers; return whether there is one.

        Args:
            broker: index of the broker.
            row: row of the goal in ``GoalSet.resource_goals``.
            gives: whether the broker has to give load of that goal, or to take it.
            group: index of the group.
        """
        state = self._state
        for peer in self._finder.peers(broker, row, gives, state.begun())[:_SWAP_PEERS]:
            if state.frozen[peer] or state.budget.moves_left < 2:
                continue
            source, target = (broker, int(peer)) if gives else (int(peer), broker)
            if not (state.model.may_take[[source, target]] & state.model.may_give[[source, target]]).all():
                continue
            given, taken = self._finder.swaps(source, target, row, _SWAP_REPLICAS)
            if len(given.partitions) and self._best_swap(given, taken, group):
                return True
        return False

    def _best_swap(self, given: Candidates, taken: Candidates, group: int) -> bool:
        """Take the swap of N with the greatest gain per byte that is accepted; return whether there is one.

        Args:
            given: replicas that go from source to target, (N,).
            taken: replicas that go the other way, (N,).
            group: index of the group.
        """
        state = self._state
        every = np.ones(len(given.partitions), dtype=np.bool_)
        out = load_deltas(state.model, given.partitions, every, given.leads)
        back = load_deltas(state.model, taken.partitions, every, taken.leads)
        before, after = effects(state.loads, out.minus(back), given.sources, given.targets, False)
        gain = state.exact_gain(before, after)
        worth = np.where(gain > LEAST_GAIN, gain / (given.cost_bytes + taken.cost_bytes), 0.0)
        settled = state.settled_groups(group)
        accepted = state.goals.action_scores(before, after).is_accepted(group, settled) & (worth > 0)
        # Both topics count, and until the moves end, both brokers have the old and the new replicas.
        other = effects(state.loads, back.minus(out), given.targets, given.sources, False)
        accepted &= state.goals.action_scores(*other).is_accepted(group, settled)
        accepted &= self._arrives(effects(state.loads, out, given.sources, given.targets, False))
        accepted &= self._arrives(effects(state.loads, back, given.targets, given.sources, False))
        sizes = state.model.size[given.partitions] + state.model.size[taken.partitions]
        accepted &= sizes <= state.budget.bytes_left
        if not accepted.any():
            return False
        best = int(np.argmax(np.where(accepted, worth, -1.0)))
        state.swap(
            BalanceAction(
                ActionKind.SWAP,
                int(given.partitions[best]),
                int(given.sources[best]),
                int(given.targets[best]),
                int(taken.partitions[best]),
                float(sizes[best]),
                bool(given.leads[best]),
                bool(taken.leads[best]),
            )
        )
        return True

    def _arrives(self, usages: tuple[Usages, Usages]) -> BoolArray:
        """Return whether targets stay within their limits when a replica arrives, (N,)."""
        before, after = usages
        return self._state.goals.keeps_limits(before[1], after[1])


def _first(keeps: BoolArray) -> int:
    """Return how many come before the first that is false."""
    return len(keeps) if keeps.all() else int(np.argmin(keeps))
