"""Search for the actions that bring brokers into their bands: first without copies, then what is worth its copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headroom.planning.balance.arrays import BoolArray, IntArray
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import crowded_slots
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.candidates import CandidateFinder
from headroom.planning.balance.search.deltas import effects, load_deltas
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.planning.balance.search.revision import PlanRevision
from headroom.planning.balance.search.state import SearchState
from headroom.planning.balance.search.taking import LEAST_GAIN, ActionTaker

_MOST_PASSES = 3
# Brokers that are tried with all their replicas where no candidate is accepted.
_MOST_PEERS = 40


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
        thrifty: whether actions that waste bytes are put off as long as there are others.
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
        thrifty: bool = True,
    ) -> None:
        self._model, self._goals, self._loads, self._limits = model, goals, loads, limits
        self._state = SearchState(goals, start, loads, limits, frozen, known)
        self._finder = CandidateFinder(
            loads, goals, limits.move_overhead_bytes, self._state.electable, self._state.movable
        )
        self._taker = ActionTaker(self._state, self._finder, thrifty)
        self._revision = PlanRevision(self._state, self._finder, self._taker)

    def run(self) -> list[BalanceAction]:
        """Return the actions. Kafka's own topics take part only after all others."""
        internal = self._limits.internal(self._model)
        state = self._state
        for eligible in (~internal, internal):
            if not state.admit(eligible):
                continue
            if not self._limits.elections_only:
                self._spread_over_racks()
            for copies in (False, True) if not self._limits.elections_only else (False,):
                state.finished[:] = False
                for group in range(len(self._goals.groups)):
                    self._settle(group, copies)
                    state.finished[group] = True
        return state.actions

    def _spread_over_racks(self) -> None:
        """Move replicas that share a rack needlessly to the racks where they are missing, one per partition."""
        if not self._loads.crowded.any():
            return
        state = self._state
        crowded = crowded_slots(self._model, self._loads.replicas)
        targets = np.flatnonzero(self._model.may_take & ~state.frozen)
        for partition in np.flatnonzero(crowded.any(axis=1) & state.movable).tolist():
            sources = self._loads.replicas[partition][crowded[partition]].astype(np.int64)
            sources = sources[self._model.may_give[sources] & ~state.frozen[sources]]
            moves = self._finder.between(
                np.full(len(sources) * len(targets), partition),
                np.repeat(sources, len(targets)),
                np.tile(targets, len(sources)),
            )
            order = np.argsort(-self._finder.gains(moves), kind="stable")
            moves = moves.subset(order)
            copies = np.ones(len(order), dtype=np.bool_)
            deltas = load_deltas(self._model, moves.partitions, copies, moves.leads)
            scores = self._goals.action_scores(*effects(self._loads, deltas, moves.sources, moves.targets, False))
            allowed = np.flatnonzero(scores.refused_by < 0)
            if len(allowed) and state.budget.spend(self._model.size[[partition]]):
                state.apply(moves.subset(allowed[:1]))

    def _settle(self, group: int, copies: bool) -> None:
        """Bring all brokers into the bands of a group, as far as actions are found."""
        rows = np.flatnonzero(self._goals.group_of == group)
        if not copies:
            rows = rows[self._goals.of_leaders[rows]]
        if not len(rows):
            return
        state = self._state
        for _ in range(_MOST_PASSES):
            # Actions for others may have made room for a broker without any.
            stuck = state.frozen.copy()
            known = list(state.actions)
            while state.budget.moves_left > 0 or not copies:
                outside = state.outside()[rows]
                outside[:, stuck] = 0.0
                worst = outside.sum(axis=0)
                broker = int(np.argmax(worst))
                if worst[broker] <= LEAST_GAIN:
                    break
                goals = rows[np.argsort(-outside[:, broker], kind="stable")]
                stuck[broker] = not self._relieve(broker, goals, group, copies)
            if state.actions == known or (stuck == state.frozen).all():
                return

    def _relieve(self, broker: int, rows: IntArray, group: int, copies: bool) -> bool:
        """Take at least one action that helps a broker; return whether there is one.

        Args:
            broker: index of the broker.
            rows: resource goals of the group, the one that it misses most first.
            group: index of the group.
            copies: whether replicas may be copied.
        """
        missed = [
            (int(row), bool(self._loads.loads[self._goals.resources[row], broker] > self._goals.upper[row, broker]))
            for row in rows
            if self._state.outside()[row, broker] > LEAST_GAIN
        ]
        allowed = [
            (row, gives) for row, gives in missed if (self._model.may_give if gives else self._model.may_take)[broker]
        ]
        for row, gives in allowed:
            if self._goals.of_leaders[row] and self._taker.best(self._finder.elections(broker, gives), group):
                return True
            if copies and self._copy(broker, row, gives, group):
                return True
        return any(self._revision.help(broker, row, gives, group, copies) for row, gives in allowed)

    def _copy(self, broker: int, row: int, gives: bool, group: int) -> bool:
        """Take moves that help a broker, otherwise a swap; return whether there is any."""
        begun = self._state.begun()
        if self._taker.best(self._finder.moves(broker, row, gives, begun), group):
            return True
        for peer in self._finder.peers(broker, row, gives, begun, _MOST_PEERS).tolist():
            source, target = (broker, peer) if gives else (peer, broker)
            if self._taker.best(self._finder.every_move(source, target, row), group):
                return True
        return self._taker.swap(broker, row, gives, group)
