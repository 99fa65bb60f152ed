"""Search for the elections and moves that bring brokers into their bands, by exact gain per byte."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IndexArray, IntArray, places_by_broker
from headroom.planning.balance.model import NO_BROKER, OF_LEADERS, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.scoring.racks import crowded_slots, keeps_racks
from headroom.planning.balance.search.gains import Candidates, Gains, candidate_deltas
from headroom.planning.balance.search.limits import COPIES_ONLY, ProposalLimits, is_internal, least_throttles
from headroom.planning.balance.search.volume_room import VolumeRoom

# A gain below this is rounding.
LEAST_GAIN = 1e-9
_ROUNDING = 1e-12
# Candidates up to which all of a broker are compared. Of more, those of the nearest peers with the densest load are.
_MOST_COMPARED, _DENSEST, _PEERS, _LEAST_GIVERS, _MOST_PEERS, _SWAP_PEERS = 4_000, 128, 10, 2, 20, 4
# The best candidates to first order, of which the exact gain decides, and more where none of these gains.
_EXACT, _MOST_EXACT = 32, 256
# One of this many replicas of a broker is taken at a time, up to the maximum, before all are compared again.
_REPLICAS_PER_TURN, _MOST_IN_TURN = 32, 256
# Candidates are taken in turn if they are worth this part of the best one, and still gain nearly what they promised.
_ALIKE_RATIO, _KEPT_RATIO = 0.5, 0.9
# Once replicas may move on, brokers get another turn as long as load outside of bands has fallen by this part in one.
_LEAST_ROUND_RATIO = 0.01
# Pairs of replicas that are compared for a swap, and the part of what a broker has outside that it has to gain.
_MOST_PAIRS, _SWAP_RATIO = 20_000, 0.05


class BalanceSearch:
    """Search in one cluster.

    The worst broker takes the action with the most gain per byte, until no broker that is outside of a band finds one.
    Then moved replicas may move on or return, and replicas change places. What has become needless is given back.

    Args:
        loads: the cluster as it is; the search changes it to its end state.
        goals: goals with their bounds.
        limits: limits of the proposal.
        bytes_left: bytes that may be copied.
        moves_left: replicas that may be copied.
        room: room on volumes; None: that of the cluster before any search.

    Attributes:
        slots: brokers of the replicas in the end state, each in the slot that it had before, (P, R).
        taken: number of the last action of each partition, (P,).
    """

    def __init__(
        self,
        loads: ClusterLoads,
        goals: GoalSet,
        limits: ProposalLimits,
        bytes_left: float,
        moves_left: float,
        room: VolumeRoom | None = None,
    ) -> None:
        self._model, self._loads, self._goals, self._limits = loads.model, loads, goals, limits
        self._gains = Gains(loads, goals)
        self._most_sent, self._most_received = (goals.limit(r) for r in (Resource.NETWORK_OUT, Resource.NETWORK_IN))
        self._least_throttles = least_throttles(loads.model, np.arange(loads.model.partitions))
        self.slots = loads.replicas.copy()
        self.taken: IntArray = np.zeros(loads.model.partitions, dtype=np.int64)
        self._bytes_left, self._moves_left = bytes_left, moves_left
        self._room = room or VolumeRoom(loads.model, goals.limit(Resource.DISK))
        brokers = len(self._model.brokers)
        # Where the replica that moved came from, and where it is.
        self._origin, self._place = (np.full(self._model.partitions, NO_BROKER) for _ in range(2))
        # The replicas of each broker at the start, and those that have moved to it, ascending.
        places = places_by_broker(self.slots.ravel(), brokers)
        self._at_start = [own // max(1, self.slots.shape[1]) for own in places]
        self._arrived = [own[:0] for own in places]
        # When each broker last changed, and when it last found no action.
        self._now, self._changed, self._failed = 0, np.zeros(brokers, dtype=np.int64), np.full(brokers, -1)
        self._moves_on = False
        # The replicas of brokers that may move, and the brokers whose replicas have moved since.
        self._found: dict[int, IntArray] = {}
        self._stale: set[int] = set()

    @property
    def leader(self) -> IndexArray:
        """Return the leaders in the end state, (P,)."""
        return self._loads.leader

    @property
    def has_changed(self) -> bool:
        """Whether the end state differs from the cluster as it is."""
        return bool((self.slots != self._model.replicas).any() or (self.leader != self._model.leader).any())

    def run(self) -> None:
        """Change the loads to the end state. Kafka's own topics take part only after all others."""
        excluded = self._limits.exclusions(self._model)
        may_elect = ~np.logical_or.reduce([excluded[reason] for reason in excluded if reason not in COPIES_ONLY])
        may_move = ~np.logical_or.reduce(list(excluded.values())) & (not self._limits.elections_only)
        last = is_internal(self._model)
        for eligible in (~last, last):
            self._electable, self._movable = may_elect & eligible, may_move & eligible
            if not self._electable.any():
                continue
            self._spread_over_racks()
            for self._moves_on in (False, True):
                self._failed[:] = -1
                self._found.clear()
                self._settle()
            if self._give_back():
                self._settle()

    def _spread_over_racks(self) -> None:
        """Move replicas that share a rack needlessly to the racks where they are missing, one per partition."""
        if not self._loads.crowded.any():
            return
        crowded = crowded_slots(self._model, self.slots)
        targets = np.flatnonzero(self._model.may_take)
        for partition in np.flatnonzero(crowded.any(axis=1) & self._movable).tolist():
            if self._moves_left < 1:
                return
            sources = self.slots[partition][crowded[partition]].astype(np.int64)
            sources = sources[self._model.may_give[sources]]
            own = np.full(len(sources) * len(targets), partition)
            candidates = self._moves(own, np.repeat(sources, len(targets)), np.tile(targets, len(sources)))
            gain = self._gains.exact(candidates)
            if len(gain) and np.isfinite(gain.max()):
                self._apply(candidates.subset(np.array([np.argmax(gain)])))

    def _settle(self) -> None:
        """Take actions for the worst broker as long as any broker outside of a band finds one."""
        # A broker that found none waits until all others have had their turn.
        while (waits := self._failed >= self._changed.max()).sum() < len(waits):
            before = float(self._gains.outside.sum())
            while True:
                worst = np.where(waits, 0.0, self._gains.outside)
                broker = int(np.argmax(worst))
                if worst[broker] <= LEAST_GAIN:
                    break
                # What failed is tried again with the brokers that have changed since.
                since = self._failed[broker]
                peers = self._changed > (since if self._changed[broker] <= since else -1)
                peers[broker] = False
                if not self._help(broker, peers):
                    self._failed[broker], waits[broker] = self._now, True
            self._failed[self._gains.outside <= LEAST_GAIN] = self._now
            if self._moves_on and self._gains.outside.sum() > (1 - _LEAST_ROUND_RATIO) * before:
                break

    def _help(self, broker: int, peers: BoolArray) -> bool:
        """Take at least one action between a broker and its peers, (B,); return whether there is one.

        Actions that do not help the broker itself are left to the turn of the peer.
        """
        high, low = self._goals.misses(self._loads.loads, broker)
        both = self._moves_on and not self._is_large(broker)
        gives = bool((both or high.any()) and self._model.may_give[broker])
        needs = bool(both or low.any())
        takes, leads = (needs and bool(may[broker]) for may in (self._model.may_take, self._model.may_lead))
        may_elect = self.slots.shape[1] > 1 and (high + low)[list(OF_LEADERS)].any()
        if may_elect and self._take_best(self._elections(broker, peers, gives, leads)):
            return True
        if self._moves_left <= 0 or not self._movable.any():
            return False
        is_large = self._is_large(broker)
        near = self._near(high - low, peers)[: _MOST_PEERS if is_large else None]
        if is_large and self._take_best(self._moves_between(broker, near[:_PEERS], gives, takes, True)):
            return True
        if self._take_best(self._moves_between(broker, near, gives, takes, False)):
            return True
        return self._moves_on and not self._goals.has_own_goals and self._swap(broker, near)

    def _is_large(self, broker: int) -> bool:
        """Return whether a broker has more candidates than are compared at once."""
        return len(self._at_start[broker]) * len(self._model.brokers) + self.slots.size > _MOST_COMPARED

    def _near(self, missed: FloatArray, peers: BoolArray) -> IntArray:
        """Return peers, those first that are furthest the other way.

        Args:
            missed: by how much the broker is above its bands, or below if negative, by resource, (6,).
            peers: the peers, (B,).
        """
        brokers = np.flatnonzero(peers & (self._model.may_take | self._model.may_give))
        loads = self._loads.loads
        distance = missed @ (loads / np.maximum(loads.mean(axis=1, keepdims=True), 1e-9))
        return brokers[np.argsort(distance[brokers], kind="stable")]

    def _replicas_of(self, broker: int) -> IntArray:
        """Return the partitions with a replica on a broker that may move."""
        own = self._found.get(broker)
        if own is not None and broker not in self._stale:
            return own
        if self._moves_on:
            own = np.concatenate([self._at_start[broker], self._arrived[broker]])
            place = self._place[own]
            own = own[self._movable[own] & ((place == NO_BROKER) | (place == broker))]
            own = own[(self.slots[own] == broker).any(axis=1)]
        else:
            # A replica that has moved stays, and those that have not are where they were.
            own = self._at_start[broker] if own is None else own
            own = own[self._movable[own] & (self._place[own] == NO_BROKER)]
        self._stale.discard(broker)
        self._found[broker] = own
        return own

    def _elections(self, broker: int, peers: BoolArray, gives: bool, leads: bool) -> Candidates:
        """Return the elections by which a broker gives leaders to in-sync replicas of peers, or gets them."""
        model, leader = self._model, self._loads.leader
        own = np.concatenate([self._at_start[broker], self._arrived[broker]])
        lead = leader.take(own)
        wanted = np.where(lead == broker, gives, leads & (lead >= 0))
        own = own[self._electable[own] & wanted]
        slots, lead = self.slots.take(own, axis=0), leader.take(own)
        given = (lead == broker)[:, None] & (slots != broker) & (model.may_lead & peers)[slots]
        taken = ((lead != broker) & (model.may_give & peers)[lead])[:, None] & (slots == broker)
        row, slot = (given | taken).nonzero()
        partitions, targets = own[row], slots[row, slot].astype(np.int64)
        # A replica that arrives is in sync when its copy has ended.
        usable = model.in_sync[partitions, slot] | (targets != model.replicas[partitions, slot])
        usable &= targets != NO_BROKER
        partitions, sources, targets = partitions[usable], lead[row[usable]].astype(np.int64), targets[usable]
        count = len(partitions)
        return Candidates(partitions, sources, targets, np.ones(count, dtype=np.bool_), False, np.zeros(count))

    def _moves_between(self, broker: int, peers: IntArray, gives: bool, takes: bool, dense: bool) -> Candidates:
        """Return the moves between a broker and peers; of many, those with the densest gain for the broker."""
        model = self._model
        given = self._replicas_of(broker) if gives else np.zeros(0, dtype=np.int64)
        targets = peers[model.may_take[peers]]
        givers = peers[model.may_give[peers]] if takes else peers[:0]
        if dense:
            givers = givers[: max(_LEAST_GIVERS, _MOST_COMPARED * len(model.brokers) // self.slots.size)]
        by_peer = [self._replicas_of(peer) for peer in givers.tolist()]
        taken = np.concatenate([np.zeros(0, dtype=np.int64), *by_peer])
        sources = np.repeat(givers, [len(own) for own in by_peer])
        if dense:
            given = given[self._densest(given, broker, broker, -1.0)]
            chosen = self._densest(taken, broker, sources, 1.0)
            taken, sources = taken[chosen], sources[chosen]
        return self._moves(
            np.concatenate([np.repeat(given, len(targets)), taken]),
            np.concatenate([np.full(len(given) * len(targets), broker), sources]),
            np.concatenate([np.tile(targets, len(given)), np.full(len(taken), broker)]),
        )

    def _densest(self, partitions: IntArray, broker: int, sources: IntArray | int, sign: float) -> IntArray:
        """Return the places of the replicas that gain most per byte for a broker that gives or takes them."""
        if len(partitions) <= _DENSEST:
            return np.arange(len(partitions))
        leads = self._loads.leader[partitions] == sources
        at = np.array([broker])
        gain = self._gains.falls(self._gains.moved_loads(partitions, at, leads, True), at, sign)
        cost = self._model.size[partitions] + self._limits.move_overhead_bytes
        return np.argpartition(-gain / np.maximum(cost, 1.0), _DENSEST)[:_DENSEST]

    def _moves(self, partitions: IntArray, sources: IntArray, targets: IntArray) -> Candidates:
        """Return the moves to brokers without a replica of the partition that leave its racks as good as they are."""
        rows = self.slots.take(partitions, axis=0)
        fits = keeps_racks(self._model, rows, sources, targets)
        for slot in rows.T:
            fits &= slot != targets
        partitions, sources, targets = partitions[fits], sources[fits], targets[fits]
        size, origin = self._model.size.take(partitions), self._origin.take(partitions)
        fits = (size <= self._room.largest_bytes[targets]) | (origin == targets)
        copied = np.where(origin == NO_BROKER, size, np.where(origin == targets, -size, 0.0))
        fits &= copied <= self._bytes_left
        leader = self._loads.leader.take(partitions)
        leads = leader == sources
        if np.isfinite(self._model.least_network):
            fits &= self._can_copy(partitions, leader, leads, targets)
        moves = Candidates(partitions, sources, targets, leads, True, copied)
        return moves if fits.all() else moves.subset(fits)

    def _can_copy(self, partitions: IntArray, leader: IndexArray, leads: BoolArray, targets: IntArray) -> BoolArray:
        """Return whether leaders and targets have room for the throttle of a copy, or leaders are relieved of the lead.

        What a leader sends to the followers that are there counts against the throttle, too. Of one that sends an
        unknown amount, no room is known.
        """
        loads, least = self._loads.loads, self._least_throttles.take(partitions)
        room = (self._most_sent - loads[Resource.NETWORK_OUT])[leader]
        sent = self._model.followers.take(partitions) * self._model.rate_edges[0][0].take(partitions)
        relieved = leads & (room < 0)
        known = ~(self._model.leads_unknown & np.isfinite(self._most_sent))[leader]
        can_send: BoolArray = (leader == NO_BROKER) | (known & (least - sent <= room)) | relieved
        return can_send & (least <= (self._most_received - loads[Resource.NETWORK_IN])[targets])

    def _cost(self, candidates: Candidates) -> FloatArray:
        if not candidates.copies:
            return np.ones(len(candidates))
        return np.maximum(candidates.bytes_copied + self._limits.move_overhead_bytes, 1.0)

    def _take_best(self, candidates: Candidates) -> bool:
        """Take the candidate with the most gain per byte, and others like it; return whether there is one."""
        if not len(candidates):
            return False
        rough, cost = self._gains.first_order(candidates), self._cost(candidates)
        density = rough / cost
        order = (rough > LEAST_GAIN).nonzero()[0]
        order = order[np.argsort(-density[order], kind="stable")]
        gain = self._gains.exact(candidates.subset(order[:_EXACT])) if len(order) else rough[:0]
        if not (gain > LEAST_GAIN).any():
            # The first order misses what is near the edge of a percentile.
            order = np.argsort(-rough, kind="stable")[:_MOST_EXACT]
            order = order[self._gains.may_gain(candidates.subset(order))]
            gain = self._gains.exact(candidates.subset(order)) if len(order) else rough[:0]
            if not (gain > LEAST_GAIN).any():
                return False
        exact = candidates.subset(order[: len(gain)])
        # Topics have a say in the choice, but alone they are no gain.
        worth = np.where(gain > LEAST_GAIN, gain + self._gains.of_topics(exact), -np.inf) / cost[order[: len(gain)]]
        best = int(order[np.argmax(worth)])
        most = min(max(1, len(self._at_start[candidates.sources[best]]) // _REPLICAS_PER_TURN), _MOST_IN_TURN)
        alike = order[
            (candidates.sources[order] == candidates.sources[best])
            & (candidates.targets[order] == candidates.targets[best])
            & (order != best)
            # What topics outweigh may be worth nothing, and what harms is not like it.
            & (density[order] >= _ALIKE_RATIO * worth.max())
            & (rough[order] > LEAST_GAIN)
        ]
        chosen = np.concatenate([[best], alike[: most - 1]])
        if len(chosen) > 1 and not self._goals.has_own_goals:
            kept = self._gains.exact_in_turn(candidates.subset(chosen)) >= _KEPT_RATIO * rough[chosen]
            kept[0] = True
            chosen = chosen[: len(kept) if kept.all() else int(np.argmin(kept))]
        else:
            chosen = chosen[:1]
        if candidates.copies:
            within = (np.cumsum(candidates.bytes_copied[chosen]) <= self._bytes_left) & (
                np.arange(len(chosen)) < self._moves_left
            )
            chosen = chosen[within]
        self._apply(candidates.subset(chosen))
        return True

    def _apply(self, candidates: Candidates) -> None:
        """Carry out candidates that are all between the same two brokers."""
        own, source, target = candidates.partitions, int(candidates.sources[0]), int(candidates.targets[0])
        if candidates.copies:
            self._loads.move(own, source, target)
            rows = self.slots[own]
            rows[rows == source] = target
            self.slots[own] = rows
            self._stale.update((source, *rows.ravel().tolist()))
            first = self._origin[own] == NO_BROKER
            back = self._origin[own] == target
            self._origin[own] = np.where(back, NO_BROKER, np.where(first, source, self._origin[own]))
            self._place[own] = np.where(back, NO_BROKER, target)
            here = self._arrived[source]
            self._arrived[source] = here[self._place[here] == source]
            self._arrived[target] = np.sort(np.concatenate([self._arrived[target], own[~back]]))
            if self._room.is_scarce:
                self._room.arrive(target, own[~back])
                if len(self._arrived[source]) < len(here):
                    self._room.hold_only(source, self._arrived[source])
            self._bytes_left -= float(candidates.bytes_copied.sum())
            self._moves_left -= int(first.sum()) - int(back.sum())
        else:
            self._loads.elect(own, source, target)
        both = np.array([source, target])
        self._gains.update(both)
        self._now += 1
        self._changed[both] = self.taken[own] = self._now

    def _swap(self, broker: int, peers: IntArray) -> bool:
        """Let a broker and a peer exchange the replicas that gain most per byte; return whether there are any."""
        model = self._model
        peers = peers[model.may_take[peers] & model.may_give[peers]]
        peers = peers[: _SWAP_PEERS if self._is_large(broker) else _PEERS]
        if not len(peers) or not (model.may_take[broker] and model.may_give[broker]) or self._moves_left < 2:
            return False
        least = max(_SWAP_RATIO * float(self._gains.outside[broker]), LEAST_GAIN)
        most = int((_MOST_PAIRS / (_PEERS if self._is_large(broker) else len(peers))) ** 0.5)
        halves = self._halves(broker, peers)
        alone, cost = self._gains.first_order(halves), self._cost(halves)
        others = np.where(halves.sources == broker, halves.targets, halves.sources)
        both = [
            self._gains.moved_loads(halves.partitions, at, halves.leads, halves.copies)
            for at in (np.array([broker]), others)
        ]
        given, taken, worth = [], [], []
        for peer in peers.tolist():
            out, back = (np.flatnonzero(own == peer) for own in (halves.targets, halves.sources))
            # Those that gain most alone, or harm least.
            out, back = (
                own if len(own) <= most else own[np.argpartition(-alone[own], most)[:most]] for own in (out, back)
            )
            moved = (both[0][:, out, None] - both[0][:, None, back]).reshape(len(both[0]), -1)
            gain = self._gains.falls(moved, np.array([broker]), -1.0)
            # The peer gains no more than it has outside.
            pairs = np.flatnonzero(gain + self._gains.outside[peer] > least)
            out, back = out[pairs // max(1, len(back))], back[pairs % max(1, len(back))]
            gain = gain[pairs] + self._gains.falls(both[1][:, out] - both[1][:, back], np.array([peer]), 1.0)
            fits = (gain > least) & (halves.partitions[out] != halves.partitions[back])
            given.append(out[fits])
            taken.append(back[fits])
            worth.append(gain[fits] / (cost[given[-1]] + cost[taken[-1]]))
        order = np.argsort(-np.concatenate(worth), kind="stable")[:_EXACT]
        first, second = (halves.subset(np.concatenate(own)[order]) for own in (given, taken))
        return len(order) > 0 and self._take_swaps(first, second, least)

    def _halves(self, broker: int, peers: IntArray) -> Candidates:
        """Return the moves from a broker to each peer, and from each peer to the broker."""
        own, others = self._replicas_of(broker), [self._replicas_of(peer) for peer in peers.tolist()]
        counts = [len(other) for other in others]
        here = np.full(len(own) * len(peers) + sum(counts), broker)
        there = np.concatenate([np.repeat(peers, len(own)), np.repeat(peers, counts)])
        is_given = np.arange(len(here)) < len(own) * len(peers)
        return self._moves(
            np.concatenate([np.tile(own, len(peers)), *others]),
            np.where(is_given, here, there),
            np.where(is_given, there, here),
        )

    def _take_swaps(self, given: Candidates, taken: Candidates, least: float) -> bool:
        """Take swaps of N by gain per byte, as long as they gain as much as alone; return whether there are any.

        Args:
            given: replicas that go to the other broker, (N,).
            taken: replicas that come from it, (N,).
            least: gain that a swap must have.
        """
        moved = candidate_deltas(self._model, given).minus(candidate_deltas(self._model, taken))
        alone = self._gains.of_deltas(moved, given.sources, given.targets)
        worth, gain = alone / (self._cost(given) + self._cost(taken)), alone
        gone: set[int] = set()
        for at in np.argsort(-worth, kind="stable").tolist():
            pair = int(given.partitions[at]), int(taken.partitions[at])
            if gone & set(pair) or gain[at] <= least or gain[at] < _KEPT_RATIO * alone[at]:
                continue
            first, second = given.subset([at]), taken.subset([at])
            # Until the moves end, both brokers have the old and the new replicas.
            arrive = np.isfinite(self._gains.exact(first)[0]) and np.isfinite(self._gains.exact(second)[0])
            copied = float(first.bytes_copied[0] + second.bytes_copied[0])
            if not arrive or copied > self._bytes_left or self._moves_left < 2:
                continue
            self._apply(first)
            self._apply(second)
            gone |= set(pair)
            gain = self._gains.of_deltas(moved, given.sources, given.targets)
        return bool(gone)

    def _give_back(self) -> bool:
        """Let moved replicas return whose move has become needless, the largest first; return whether any did."""
        own = np.flatnonzero((self._place != NO_BROKER) & self._movable)
        candidates = self._moves(own, self._place[own], self._origin[own])
        # A lead that has come since does not go to a broker that takes nothing.
        takes = self._model.may_take[candidates.targets] | (
            self._model.leader[candidates.partitions] == candidates.targets
        )
        candidates = candidates.subset(~candidates.leads | takes)
        if not len(candidates):
            return False
        before = self._now
        needless = np.flatnonzero(self._gains.first_order(candidates) >= -LEAST_GAIN)
        for at in needless[np.argsort(candidates.bytes_copied[needless], kind="stable")].tolist():
            one = candidates.subset(np.array([at]))
            if self._gains.exact(one)[0] >= -_ROUNDING:
                self._apply(one)
        return self._now > before
