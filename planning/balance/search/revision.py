"""Revision of a plan for a broker that no further action helps: earlier choices make room for better ones.

A broker may be at the edge of one band and outside of another: it has taken replicas with much traffic, and now lacks
replicas, but has no room for their traffic. Then leaders with much traffic go to other brokers, moves of the plan go
elsewhere or are taken out of it, and many small ones take their place.
"""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.search.actions import ActionKind
from headroom.planning.balance.search.candidates import CandidateFinder, Candidates
from headroom.planning.balance.search.deltas import effects, load_deltas
from headroom.planning.balance.search.state import SearchState
from headroom.planning.balance.search.taking import LEAST_GAIN, ActionTaker

# Load that makes room at a time, as a share of the mean, and the largest number of partitions for it.
_PORTION_RATIO, _MOST_AT_A_TIME = 0.02, 16
# Distance from an edge of a band up to which a broker has no room, as a share of the mean.
_NO_ROOM_RATIO = 0.02
_MOST_ROUNDS = 24
_MOST_PEERS, _MOST_TRIED = 40, 640
_MOVE = ("partition", "target", "source")


class PlanRevision:
    """Revision of the plan of a search.

    Args:
        state: state of the search; it is changed.
        finder: finder of candidates in this state.
        taker: taker of candidates.
    """

    def __init__(self, state: SearchState, finder: CandidateFinder, taker: ActionTaker) -> None:
        self._state, self._finder, self._taker = state, finder, taker
        self._soft = np.array([not goal.hard for goal in state.goals.resource_goals], dtype=np.bool_)

    def help(self, broker: int, row: int, gives: bool, group: int, copies: bool) -> bool:
        """Revise the plan until a broker is in its band; return whether the load outside of bands has fallen.

        Args:
            broker: index of the broker.
            row: row of the goal in ``GoalSet.resource_goals``.
            gives: whether the broker has to give load of that goal, or to take it.
            group: index of the group.
            copies: whether replicas may be copied.
        """
        helped = False
        for _ in range(_MOST_ROUNDS):
            before, settled = self._state.outside(), self._state.settled_groups(group)
            if before[row, broker] <= LEAST_GAIN:
                break
            saved = self._state.save()
            if not self._make_room(broker, row, gives, group, copies):
                break
            while self._fill(broker, row, group, copies):
                pass
            if not self._is_better(before, self._state.outside(), row, broker, settled):
                self._state.restore(saved)
                break
            helped = True
        return helped

    def _is_better(self, before: FloatArray, after: FloatArray, row: int, broker: int, settled: BoolArray) -> bool:
        """Return whether a goal of a broker gained, all goals together gained, and no settled group got worse.

        Args:
            before: load outside of bands before, (K, B).
            after: the same after.
            row: row of the goal.
            broker: index of the broker.
            settled: which groups are settled, (groups,).
        """
        worse = (after - before).sum(axis=1)
        groups = np.bincount(self._state.goals.group_of, weights=worse, minlength=len(settled))
        gains = after[row, broker] < before[row, broker] - LEAST_GAIN and worse.sum() < -LEAST_GAIN
        return bool(gains and (groups[settled] <= LEAST_GAIN).all())

    def _make_room(self, broker: int, row: int, gives: bool, group: int, copies: bool) -> bool:
        """Let a broker give load of the goals for which it has no room, or take it if it has to give load.

        Returns:
            whether anything was changed.
        """
        blocked = self._at_edge(broker, row, not gives)
        if not len(blocked):
            return False
        state, elected = self._state, False
        if state.goals.of_leaders[row] and state.goals.of_leaders[blocked].any():
            elections = self._finder.elections(broker, not gives)
            elections = elections.subset(~state.frozen[elections.sources] & ~state.frozen[elections.targets])
            elected = self._take(elections, broker, row, gives, group)
        return (copies and self._take(self._redirections(broker, gives), broker, row, gives, group)) or elected

    def _at_edge(self, broker: int, row: int, upper: bool) -> IntArray:
        """Return the rows of other soft goals for which a broker is at the upper, or the lower, edge of its band."""
        goals, load = self._state.goals, self._state.loads.loads[self._state.goals.resources, broker]
        room = goals.upper[:, broker] - load if upper else load - goals.lower[:, broker]
        blocked = self._soft & (room < _NO_ROOM_RATIO * goals.mean[:, broker])
        blocked[row] = False
        return np.flatnonzero(blocked)

    def _redirections(self, broker: int, gives: bool) -> Candidates:
        """Return moves of the plan with another target: those to a broker elsewhere, or others to it.

        Args:
            broker: index of the broker.
            gives: whether the broker gives load, and moves of the plan from it or to others go to it instead.
        """
        state = self._state
        moves = [a for a in state.actions if a.kind is ActionKind.MOVE and not state.frozen[[a.source, a.target]].any()]
        moves = [a for a in moves if (a.target != broker if gives else a.target == broker)]
        own, now, first = (np.array([getattr(a, name) for a in moves], dtype=np.int64) for name in _MOVE)
        targets = np.array([broker]) if gives else np.flatnonzero(state.model.may_take & ~state.frozen)
        redirections = self._finder.between(
            np.concatenate([np.repeat(own, len(targets)), own]),
            np.concatenate([np.repeat(now, len(targets)), now]),
            np.concatenate([np.tile(targets, len(own)), first]),
        )
        return redirections.subset((redirections.targets == broker) == gives)

    def _take(self, candidates: Candidates, broker: int, row: int, gives: bool, group: int) -> bool:
        """Take candidates that make room at a broker, until there is enough; return whether any were taken.

        Args:
            candidates: elections, or moves of the plan with another target.
            broker: index of the broker.
            row: row of the goal that misses room.
            gives: whether the broker gives load of that goal.
            group: index of the group.
        """
        if not len(candidates.partitions):
            return False
        amounts = self._room_made(candidates, broker, row, gives)
        # Among the targets of a partition the one with the most room comes first.
        order = np.lexsort((self._finder.room_used(candidates), -amounts))
        order = order[amounts[order] > LEAST_GAIN][:_MOST_TRIED]
        made, taken = 0.0, set[int]()
        for at in order.tolist():
            one, partition = candidates.subset(np.array([at])), int(candidates.partitions[at])
            if partition in taken or not self._is_accepted(one, broker, group):
                continue
            self._carry_out(one)
            taken.add(partition)
            made += float(amounts[at])
            if made >= _PORTION_RATIO or len(taken) == _MOST_AT_A_TIME:
                break
        return bool(taken)

    def _room_made(self, candidates: Candidates, broker: int, row: int, gives: bool) -> FloatArray:
        """Return how much more of full bands than of missing load candidates move, in shares of means, (N,)."""
        goals = self._state.goals
        load = self._finder.moved_load(candidates, broker)[goals.resources]
        share = load / np.maximum(goals.mean[:, broker], LEAST_GAIN)[:, None]
        scarce = np.append(self._at_edge(broker, row, gives), row)
        return share[self._at_edge(broker, row, not gives)].max(axis=0, initial=0.0) - share[scarce].max(axis=0)

    def _is_accepted(self, one: Candidates, broker: int, group: int) -> bool:
        """Return whether no hard goal refuses a candidate, and the other broker stays as well as it is.

        The broker for which room is made may get worse until the room is filled.
        """
        state = self._state
        deltas = load_deltas(state.model, one.partitions, np.full(1, one.copies), one.leads)
        before, after = effects(state.loads, deltas, one.sources, one.targets, False)
        if state.goals.action_scores(before, after).refused_by[0] >= 0:
            return False
        other = 0 if int(one.targets[0]) == broker else 1
        worse = self._outside(after[other]) - self._outside(before[other])
        groups = np.bincount(state.goals.group_of, weights=worse, minlength=len(state.goals.groups))
        return bool((groups[state.settled_groups(group)] <= LEAST_GAIN).all())

    def _outside(self, usage: BrokerUsage) -> FloatArray:
        outside: FloatArray = self._state.goals.outside(usage.loads, usage.brokers)[:, 0]
        return outside

    def _carry_out(self, one: Candidates) -> None:
        if not one.copies:
            self._state.apply(one)
            return
        partition = int(one.partitions[0])
        moves = (n for n, a in enumerate(self._state.actions) if a.kind is ActionKind.MOVE and a.partition == partition)
        self._state.redirect(next(moves), int(one.targets[0]))

    def _fill(self, broker: int, row: int, group: int, copies: bool) -> bool:
        """Take actions that bring a broker back into its bands and use up little room; return whether there are any."""
        state, goals = self._state, self._state.goals
        outside = state.outside()[:, broker]
        others = [n for n in np.argsort(-outside, kind="stable").tolist() if n != row]
        for missed in [row, *others]:
            if outside[missed] <= LEAST_GAIN or not self._soft[missed]:
                continue
            gives = bool(state.loads.loads[goals.resources[missed], broker] > goals.upper[missed, broker])
            elections = goals.of_leaders[missed]
            if elections and self._taker.least_room(self._finder.elections(broker, gives), group):
                return True
            if copies and self._fill_by_moves(broker, missed, gives, group):
                return True
        return False

    def _fill_by_moves(self, broker: int, row: int, gives: bool, group: int) -> bool:
        for peer in self._finder.peers(broker, row, gives, self._state.begun(), _MOST_PEERS).tolist():
            source, target = (broker, peer) if gives else (peer, broker)
            if self._taker.least_room(self._finder.every_move(source, target, row), group):
                return True
        return False
