"""Candidates of one broker: partitions that could give load to another broker, or take it from one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, percentile_weights
from headroom.planning.balance.model import NO_BROKER, OF_LEADERS, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import keeps_racks

# Candidates that are compared at a time; those with the most load of the resource per byte come first.
_MOST_CANDIDATES, _DENSEST = 384, 256
_PEERS = 10
# Load up to which a broker that the plan changes already takes more before others do, as a ratio of the mean.
_NEARLY_FULL = 1.05


@dataclass(frozen=True, eq=False)
class Candidates:
    """N possible actions of one kind.

    Attributes:
        partitions: partition, (N,).
        sources: broker that gives, (N,).
        targets: broker that takes, (N,).
        leads: whether the lead goes over, (N,).
        copies: whether a replica goes over; the same for all.
        cost_bytes: bytes copied, and the overhead of a move, (N,); 1 for an election.
    """

    partitions: IntArray
    sources: IntArray
    targets: IntArray
    leads: BoolArray
    copies: bool
    cost_bytes: FloatArray

    def subset(self, which: BoolArray | IntArray) -> Candidates:
        """Return some of the candidates."""
        return Candidates(
            self.partitions[which],
            self.sources[which],
            self.targets[which],
            self.leads[which],
            self.copies,
            self.cost_bytes[which],
        )


class CandidateFinder:
    """Finder of the candidates of brokers in the current state.

    Args:
        loads: the state; it changes between calls.
        goals: the goals.
        overhead_bytes: cost of a move besides its bytes.
        electable: partitions whose leader may change, (P,); it changes between calls.
        movable: partitions of which a replica may move, (P,); it changes between calls.
    """

    def __init__(
        self, loads: ClusterLoads, goals: GoalSet, overhead_bytes: float, electable: BoolArray, movable: BoolArray
    ) -> None:
        self._loads, self._goals, self._overhead = loads, goals, overhead_bytes
        self._electable, self._movable = electable, movable
        model = loads.model
        slots = model.replicas.ravel()
        order = np.argsort(slots, kind="stable")
        edges = np.searchsorted(slots[order], np.arange(len(model.brokers) + 1))
        rows = order // max(1, model.replicas.shape[1])
        # A partition gains at most one replica in a plan, so replicas that arrive are never candidates.
        self._at_start = [rows[edges[b] : edges[b + 1]] for b in range(len(model.brokers))]

    def elections(self, broker: int, gives: bool) -> Candidates:
        """Return the elections by which a broker gives leaders to in-sync replicas, or gets them.

        Args:
            broker: index of the broker.
            gives: whether it gives or gets.
        """
        model, loads = self._loads.model, self._loads
        own = self._at_start[broker]
        own = own[self._electable[own] & (loads.replicas[own] == broker).any(axis=1)]
        if gives:
            own = own[loads.leader[own] == broker]
            slots = loads.replicas[own]
            # A replica that arrives in the plan is not in sync before its copy ends.
            usable = (slots != NO_BROKER) & (slots != broker) & (slots == model.replicas[own])
            usable &= model.in_sync[own] & model.may_take[slots]
            rows, columns = np.nonzero(usable)
            partitions, targets = own[rows], slots[rows, columns].astype(np.int64)
            sources = np.full(len(rows), broker)
        else:
            in_sync = (model.in_sync[own] & (loads.replicas[own] == broker)).any(axis=1)
            leader = loads.leader[own]
            partitions = own[in_sync & (leader != broker) & (leader >= 0) & model.may_give[leader]]
            sources = loads.leader[partitions].astype(np.int64)
            targets = np.full(len(partitions), broker)
        every = np.ones(len(partitions), dtype=np.bool_)
        return Candidates(partitions, sources, targets, every, False, np.ones(len(partitions)))

    def replicas_of(self, broker: int, lead_only: bool) -> IntArray:
        """Return the partitions with a replica on a broker that may move, in ascending order.

        Args:
            broker: index of the broker.
            lead_only: whether only those count that it leads.
        """
        own = self._at_start[broker]
        own = own[self._movable[own]]
        if lead_only:
            own = own[self._loads.leader[own] == broker]
        return own[(self._loads.replicas[own] == broker).any(axis=1)]

    def moves(self, broker: int, row: int, gives: bool, begun: BoolArray) -> Candidates:
        """Return moves by which a broker gives or takes load of one goal, with the brokers furthest the other way.

        Args:
            broker: index of the broker.
            row: row of the goal in ``GoalSet.resource_goals``.
            gives: whether it gives or takes.
            begun: brokers that the plan changes, but so little that it would be dropped, (B,); they come first.
        """
        resource = self._goals.resources[row]
        lead_only = Resource(resource) in OF_LEADERS
        peers = self.peers(broker, row, gives, begun)
        if gives:
            own = self._densest(self.replicas_of(broker, lead_only), broker, resource)
            partitions = np.repeat(own, len(peers))
            sources, targets = np.full(len(partitions), broker), np.tile(peers, len(own))
        else:
            by_peer = [self._densest(self.replicas_of(peer, lead_only), broker, resource) for peer in peers]
            partitions = np.concatenate([np.zeros(0, dtype=np.int64), *by_peer])
            sources = np.repeat(peers, [len(own) for own in by_peer])
            targets = np.full(len(partitions), broker)
        return self.between(partitions, sources.astype(np.int64), targets.astype(np.int64))

    def every_move(self, source: int, target: int, row: int) -> Candidates:
        """Return all moves between two brokers that could help with a goal.

        Args:
            source: broker that gives.
            target: broker that takes.
            row: row of the goal in ``GoalSet.resource_goals``.
        """
        own = self.replicas_of(source, Resource(self._goals.resources[row]) in OF_LEADERS)
        return self.between(own, np.full(len(own), source), np.full(len(own), target))

    def swaps(self, source: int, target: int, row: int, most: int) -> tuple[Candidates, Candidates]:
        """Return pairs of replicas that could change places.

        Those of the source carry more of the resource than of others, those of the target less.

        Args:
            source: broker that gives more than it gets.
            target: broker that gets more than it gives.
            row: row of the goal.
            most: maximum number of replicas of each broker.
        """
        resource = self._goals.resources[row]
        own = []
        for broker, sign in ((source, -1.0), (target, 1.0)):
            replicas = self.replicas_of(broker, False)
            leads = self._loads.leader[replicas] == broker
            special = self._specialty(self.contributions(replicas, broker, leads), broker, int(resource))
            own.append(replicas[np.argsort(sign * special, kind="stable")[:most]])
        given, taken = (each.ravel() for each in np.meshgrid(*own, indexing="ij"))
        at_source, at_target = np.full(len(given), source), np.full(len(given), target)
        fits = self._fits(given, at_source, at_target) & self._fits(taken, at_target, at_source) & (given != taken)
        given, taken, at_source, at_target = given[fits], taken[fits], at_source[fits], at_target[fits]
        return (
            self._with_cost(given, at_source, at_target),
            self._with_cost(taken, at_target, at_source),
        )

    def peers(self, broker: int, row: int, gives: bool, begun: BoolArray, most: int = _PEERS) -> IntArray:
        """Return the brokers furthest below their mean, if a broker gives, or else above it.

        Args:
            broker: index of the broker.
            row: row of the goal.
            gives: whether the broker gives or takes.
            begun: brokers that come first while they are on the right half of their band, (B,).
            most: maximum number of brokers.
        """
        model, goals = self._loads.model, self._goals
        # A limit has no mean: the broker with the most room comes first.
        share = self._loads.loads[goals.resources[row]] / np.maximum(goals.mean[row], 1e-9)
        distance = share if gives else -share
        allowed = (model.may_take if gives else model.may_give).copy()
        allowed[broker] = False
        order = np.lexsort((distance, ~(begun & (distance < (_NEARLY_FULL if gives else -1.0)))))
        furthest = order[allowed[order]][:most]
        return furthest.astype(np.int64)

    def _densest(self, partitions: IntArray, broker: int, resource: int) -> IntArray:
        """Return the partitions with the most load per byte of cost, at the peak of a broker, in ascending order."""
        if len(partitions) <= _MOST_CANDIDATES:
            return partitions
        load = self.contributions(partitions, broker, None)
        density = load[resource] / self._cost(partitions)
        dense = np.argpartition(-density, _DENSEST)[:_DENSEST]
        # Some that change little else, for brokers that have no room for more of that.
        special = self._specialty(load, broker, resource)
        rest = np.argpartition(-special, _MOST_CANDIDATES - _DENSEST)[: _MOST_CANDIDATES - _DENSEST]
        selection: IntArray = np.unique(partitions[np.concatenate([dense, rest])])
        return selection

    def _specialty(self, load: FloatArray, broker: int, resource: int) -> FloatArray:
        """Return how much more of one resource than of the others partitions carry, in shares of the means, (N,)."""
        soft = [n for n, goal in enumerate(self._goals.resource_goals) if not goal.hard]
        own = self._goals.resources[soft]
        share = load[own] / np.maximum(self._goals.mean[soft, broker], 1e-9)[:, None]
        wanted = own == resource
        specialty: FloatArray = share[wanted].sum(axis=0) - share[~wanted].max(axis=0, initial=0.0)
        return specialty

    def _cost(self, partitions: IntArray) -> FloatArray:
        cost: FloatArray = self._loads.model.size[partitions] + self._overhead
        return np.maximum(cost, 1.0)

    def between(self, partitions: IntArray, sources: IntArray, targets: IntArray) -> Candidates:
        """Return the moves to brokers without a replica of the partition that leave its racks as good as they are.

        Args:
            partitions: partition of each move, (N,).
            sources: broker that gives the replica, (N,).
            targets: broker that may take it, (N,).
        """
        fits = self._fits(partitions, sources, targets)
        return self._with_cost(partitions[fits], sources[fits], targets[fits])

    def _fits(self, partitions: IntArray, sources: IntArray, targets: IntArray) -> BoolArray:
        replicas = self._loads.replicas[partitions]
        fits: BoolArray = (replicas != targets[:, None]).all(axis=1)
        return fits & keeps_racks(self._loads.model, replicas, sources, targets)

    def _with_cost(self, partitions: IntArray, sources: IntArray, targets: IntArray) -> Candidates:
        leads = self._loads.leader[partitions] == sources
        return Candidates(partitions, sources, targets, leads, True, self._cost(partitions))

    def contributions(self, partitions: IntArray, broker: int, leads: BoolArray | None) -> FloatArray:
        """Return what partitions add to the load of a broker, to first order, (6, N).

        Args:
            partitions: partitions.
            broker: broker at whose peak hours rates count.
            leads: whether the lead counts too; None: always.
        """
        model = self._loads.model
        weights = percentile_weights(self._loads.hours[:, broker], model.percentile)
        load = np.empty((6, len(partitions)))
        for number, rates in enumerate(model.rates_by_hour):
            hours = np.flatnonzero(weights[number])
            load[number] = sum(weights[number, hour] * rates[hour].take(partitions) for hour in hours.tolist())
        load[3], load[4], load[5] = model.size[partitions], 1.0, 1.0
        if leads is not None:
            load[[1, 2, 4]] *= leads
        return load

    def gains(self, candidates: Candidates) -> FloatArray:
        """Return the fall of load outside of bands by each candidate, to first order, in shares of the mean, (N,)."""
        return self.gains_by_goal(candidates).sum(axis=0) + self.topic_gains(candidates)

    def gains_by_goal(self, candidates: Candidates) -> FloatArray:
        """Return the same for each goal in ``GoalSet.resource_goals``, (K, N).

        Args:
            candidates: candidates that all have the same source, or all the same target.
        """
        gains = np.zeros((len(self._goals.resource_goals), len(candidates.partitions)))
        if not len(candidates.partitions):
            return gains
        broker = _shared(candidates)
        load = self.moved_load(candidates, int(broker[0]))
        now = self._goals.outside(self._loads.loads, np.arange(len(self._loads.model.brokers)))
        for own, sign in ((candidates.sources, -1.0), (candidates.targets, 1.0)):
            # One column instead of N equal ones.
            brokers = own[:1] if own is broker else own
            gains += now[:, brokers] - self._goals.outside(self._loads.loads[:, brokers] + sign * load, brokers)
        return gains

    def moved_load(self, candidates: Candidates, broker: int) -> FloatArray:
        """Return the load that each candidate moves, to first order, (6, N).

        Args:
            candidates: the candidates.
            broker: broker at whose peak hours rates count.
        """
        # A partition occurs once per broker that it could go to.
        own, at = np.unique(candidates.partitions, return_inverse=True)
        load: FloatArray = self.contributions(own, broker, None)[:, at]
        load[[1, 2, 4]] *= candidates.leads
        if not candidates.copies:
            load[[0, 3, 5]] = 0.0
        return load

    def room_used(self, candidates: Candidates) -> FloatArray:
        """Return the largest share of the room in a band that each candidate uses up, to first order, (N,).

        Args:
            candidates: candidates that all have the same source, or all the same target.
        """
        shares = np.zeros(len(candidates.partitions))
        if not len(shares):
            return shares
        broker = _shared(candidates)
        goals = self._goals
        soft = [n for n, goal in enumerate(goals.resource_goals) if not goal.hard]
        load = self.moved_load(candidates, int(broker[0]))[goals.resources[soft]]
        now = self._loads.loads[goals.resources[soft]]
        for own, room in (
            (candidates.sources, now - goals.lower[soft]),
            (candidates.targets, goals.upper[soft] - now),
        ):
            least = np.maximum(room, 1e-9 * np.maximum(goals.mean[soft], 1e-9))
            np.maximum(shares, (load / least[:, own]).max(axis=0, initial=0.0), out=shares)
        return shares

    def topic_gains(self, candidates: Candidates) -> FloatArray:
        """Return the fall of counts of topics outside of their bands, in shares of the mean, (N,)."""
        gain = np.zeros(len(candidates.partitions))
        topics = self._loads.model.topic[candidates.partitions]
        # All topics together weigh as one resource.
        share = 1.0 / max(1, len(self._loads.model.topics))
        for goal, number in self._goals.topic_goals:
            mean = self._goals.bounds[number][topics]
            amount = candidates.leads.astype(np.float64) if goal.of_leaders else float(candidates.copies)
            counts = self._loads.topic_leaders if goal.of_leaders else self._loads.topic_replicas
            for brokers, sign in ((candidates.sources, -1.0), (candidates.targets, 1.0)):
                count = counts[topics, brokers].astype(np.float64)
                fall = topic_outside(count, mean) - topic_outside(count + sign * amount, mean)
                gain += goal.weight * fall / np.maximum(mean, 1e-9) * share
        return gain


def topic_outside(count: FloatArray, mean: FloatArray) -> FloatArray:
    """Return the distance of counts of a topic from its band, or from the whole numbers next to the mean."""
    low = np.minimum(mean * 0.9, np.floor(mean))
    high = np.maximum(mean * 1.1, np.ceil(mean))
    distance: FloatArray = np.maximum(np.maximum(count - high, low - count), 0.0)
    return distance


def _shared(candidates: Candidates) -> IntArray:
    """Return the sources if all candidates have the same one, and otherwise the targets, which are the same then."""
    return candidates.sources if (candidates.sources == candidates.sources[0]).all() else candidates.targets
