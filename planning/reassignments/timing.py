"""Time of a planned move under a throttle: every broker and role alone, and the whole with quotas simulated."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.finish.finish_time import Finish, finish, lowest_in_time, planned_finish
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.replica_keys import Ints
from headroom.planning.reassignments.traffic import PlannedTraffic, RoleSums
from headroom.schemas.keys import BrokerRole, Role

# Up to this number of copies each is simulated by itself; of more, the sums for each pair of brokers are.
_MOST_COPIES = 1_500
# With more brokers and roles, only those are simulated that take longest alone: the others end before them.
_MOST_BROKER_ROLES = 12
# Events that are simulated of so many copies, whose start matters little.
_FEW_EVENTS = 1_000
# Copies between two brokers that are simulated; more make no difference, because a response holds no more.
_MOST_PARTS = 10
# Kafka gives leads back every leader.imbalance.check.interval.seconds (300 by default): half of it on average.
_REBALANCED_AFTER_S = 150.0


@dataclass(frozen=True)
class TimeEstimate:
    """Time of a move under one throttle.

    Attributes:
        throttle_bytes_per_s: the throttle.
        finish: time until all is copied; None if it never is, or if that is unknown.
        known: whether all sizes and write rates are known that the time follows from.
        bottleneck: broker and role that takes longest alone; None if nothing copies.
        bottleneck_s: its time alone, seconds; infinite if it never ends, None if unknown.
    """

    throttle_bytes_per_s: int
    finish: Finish | None
    known: bool
    bottleneck: BrokerRole | None
    bottleneck_s: float | None


class MoveTimes:
    """Times of one move under any throttle.

    Args:
        traffic: traffic of the move.
        state: the cluster.
        ceilings: highest rate of a broker and role that its capacity allows, bytes per second; missing: no limit.
        in_flight: whether the move runs already, with the rates in force where they are higher.

    Attributes:
        copies: number of copies that each broker and role limits; the greater of both leaderships.
        before: loads with the present leaders.
        after: loads once Kafka has given the lead to preferred leaders that are in sync.
    """

    def __init__(
        self,
        traffic: PlannedTraffic,
        state: ClusterState,
        ceilings: Mapping[BrokerRole, float],
        in_flight: bool = False,
    ) -> None:
        self._ceilings = ceilings
        self._in_flight = in_flight
        self._rebalances = state.auto_leader_rebalance is True
        self._copies = bool(traffic.copies.any())
        self.copies = _most_copies(traffic)
        self.before = _loads(traffic, traffic.leader, traffic.before, state, in_flight)
        same = np.array_equal(traffic.leader, traffic.preferred)
        self.after = self.before if same else _loads(traffic, traffic.preferred, traffic.after, state, in_flight)

    def at(self, throttle_bytes_per_s: int, most: int | None = None) -> TimeEstimate:
        """Return the time under a throttle.

        Args:
            throttle_bytes_per_s: throttle.
            most: maximum number of simulated scenarios, for a rough time; the usual number if None.
        """
        loads = [*self.before, *self.after]
        # Copies that no throttle limits end at a time that only network and disks know.
        limited = bool(loads) or not self._copies
        known = limited and all(d.remaining_bytes is not None and d.required_bytes_per_s is not None for d in loads)
        alone = {d.broker_role: self.alone_s(d, throttle_bytes_per_s) for d in self.before}
        for d in self.after:
            after_s, before_s = self.alone_s(d, throttle_bytes_per_s), alone.get(d.broker_role, 0.0)
            alone[d.broker_role] = None if after_s is None or before_s is None else max(after_s, before_s)
        known_times = {role: seconds for role, seconds in alone.items() if seconds is not None}
        bottleneck = max(known_times, key=lambda role: known_times[role], default=None)
        finish = self.finish(throttle_bytes_per_s, most) if known else None
        bottleneck_s = None if bottleneck is None else known_times[bottleneck]
        return TimeEstimate(throttle_bytes_per_s, finish, known, bottleneck, bottleneck_s)

    def finish(self, throttle_bytes_per_s: float, most: int | None = None) -> Finish | None:
        """Return the time until all is copied; None if it never is.

        A move that ends before Kafka gives leads to preferred leaders keeps the present ones. Where it is unknown
        whether Kafka does, the range covers both, and the move has no end if it has none with one of them.

        Args:
            throttle_bytes_per_s: throttle.
            most: maximum number of scenarios; the usual number if None.
        """
        alone = [self.alone_s(d, throttle_bytes_per_s) or 0.0 for d in self.before]
        if self.after is not self.before and self._rebalances and max(alone, default=0.0) > 2 * _REBALANCED_AFTER_S:
            return self._finish(self.after, throttle_bytes_per_s, most)
        before = self._finish(self.before, throttle_bytes_per_s, most)
        if self.after is self.before:
            return before
        if before is not None and before.middle_s <= _REBALANCED_AFTER_S:
            return before
        after = self._finish(self.after, throttle_bytes_per_s, most)
        if self._rebalances:
            return after
        if before is None or after is None:
            return None
        return Finish(min(before.low_s, after.low_s), after.middle_s, max(before.high_s, after.high_s))

    def lowest_in_time(self, within_s: float, most_bytes_per_s: float) -> float:
        """Return the lowest throttle that ends the move in time, bytes per second; infinity if none does.

        Args:
            within_s: deadline, seconds.
            most_bytes_per_s: highest throttle that a broker can carry; infinity if unknown.
        """
        loads = [*self.before, *self.after]
        return lowest_in_time(loads, within_s, self.finish, most_bytes_per_s) if loads else 0.0

    def alone_s(self, load: ThrottleLoad, throttle_bytes_per_s: float) -> float | None:
        """Return the time of a broker and role alone, seconds: bytes / (throttle - required).

        Returns:
            Infinity if it never ends; None if bytes or rates are unknown.
        """
        if load.remaining_bytes is None or load.required_bytes_per_s is None:
            return None
        left = self._rate_of(load, throttle_bytes_per_s) - load.required_bytes_per_s
        return load.remaining_bytes / left if left > 0 else math.inf

    def _rate_of(self, load: ThrottleLoad, throttle_bytes_per_s: float) -> float:
        rate = max(load.throttle_bytes_per_s or 0.0, throttle_bytes_per_s) if self._in_flight else throttle_bytes_per_s
        return min(rate, self._ceilings.get(load.broker_role, math.inf))

    def _finish(self, loads: Sequence[ThrottleLoad], throttle: float, most: int | None) -> Finish | None:
        many = any(d.sources for d in loads)
        if many and len(loads) > _MOST_BROKER_ROLES:
            longest = sorted(loads, key=lambda d: -(self.alone_s(d, throttle) or 0.0))
            loads = sorted(longest[:_MOST_BROKER_ROLES], key=lambda d: d.broker_role)
        if self._in_flight:
            return finish(loads, throttle, applied_s=0.0)

        def rate_of(load: ThrottleLoad) -> float:
            return self._rate_of(load, throttle)

        if many:
            return planned_finish(loads, rate_of, 1, _FEW_EVENTS)
        if most is not None:
            return planned_finish(loads, rate_of, most)
        first, listed = planned_finish(loads, rate_of), [_listed_to_the_end(d) for d in loads]
        # Kafka's own tool leaves partitions that have moved in the lists. The range has the end of such a move too.
        later = None if first is None or listed == loads else planned_finish(listed, rate_of, 1)
        return first if first is None or later is None else replace(first, high_s=max(first.high_s, later.middle_s))


def _listed_to_the_end(load: ThrottleLoad) -> ThrottleLoad:
    return replace(load, catching_up=tuple(replace(copy, leaves_lists=False) for copy in load.catching_up))


def _loads(
    traffic: PlannedTraffic, leader: Ints, sums: RoleSums, state: ClusterState, in_flight: bool
) -> list[ThrottleLoad]:
    """Return the load of every broker and role that limits copies of the plan, ordered by broker and role."""
    count = len(traffic.brokers)
    limited, keys = _limited_copies(traffic, leader)
    copies = np.bincount(keys, minlength=2 * count)
    remaining = np.bincount(keys, traffic.remaining[limited], minlength=2 * count)
    behind = np.bincount(keys, traffic.known_write[traffic.partition[limited]], minlength=2 * count)
    details = _details(traffic, leader, np.unique(limited))
    parts = details.parts_by_leader() or dict(zip(traffic.brokers, copies[:count].tolist(), strict=True))
    loads = []
    for index in np.flatnonzero(copies).tolist():
        role = traffic.broker_role(index)
        broker = state.brokers[role.broker]
        own = broker.leader_bytes_per_s if role.role is Role.LEADER else broker.follower_bytes_per_s
        # A running move is not limited by a broker without a rate.
        if in_flight and own is None:
            continue
        known = not sums.unknown[index]
        load = ThrottleLoad(
            broker=role.broker,
            role=role.role,
            throttle_bytes_per_s=float(own or 0.0) if in_flight else 0.0,
            in_sync_bytes_per_s=max(0.0, float(sums.required[index] - behind[index])) if known else None,
            required_bytes_per_s=float(sums.required[index]) if known else None,
            limited_replicas=parts[role.broker] if role.role is Role.LEADER else int(copies[index]),
            free_replicas=0,
            remaining_bytes=None if math.isnan(remaining[index]) else int(remaining[index]),
            quota_window=broker.quota_window,
            fetch=broker.fetch,
            used_bytes_per_s=None if in_flight or role.role in broker.unused_quotas else 0.0,
            known_in_sync_bytes_per_s=float(sums.in_sync[index]),
            known_required_bytes_per_s=float(sums.required[index]),
        )
        loads.append(details.added_to(load) if role.role is Role.FOLLOWER else load)
    return sorted(loads, key=lambda d: d.broker_role)


def _limited_copies(traffic: PlannedTraffic, leader: Ints) -> tuple[Ints, Ints]:
    """Return the copies that a leader limits, then those that a destination limits, and the broker and role of each."""
    copy = np.flatnonzero(traffic.copies & traffic.alive & (leader[traffic.partition] >= 0))
    source = leader[traffic.partition[copy]]
    sent, received = traffic.leader_listed[source], traffic.follower_listed[copy]
    keys = [traffic.broker[source[sent]], len(traffic.brokers) + traffic.broker[copy[received]]]
    return np.concatenate([copy[sent], copy[received]]), np.concatenate(keys)


def _most_copies(traffic: PlannedTraffic) -> dict[BrokerRole, int]:
    length = 2 * len(traffic.brokers)
    before, after = (_limited_copies(traffic, leader)[1] for leader in (traffic.leader, traffic.preferred))
    most = np.maximum(np.bincount(before, minlength=length), np.bincount(after, minlength=length))
    return {traffic.broker_role(index): int(most[index]) for index in np.flatnonzero(most).tolist()}


@dataclass(frozen=True)
class _Details:
    """Copies of each destination, one by one or as sums per leader."""

    replicas: Mapping[int, Sequence[CatchingUpReplica]]
    sources: Mapping[int, Sequence[SourceLoad]]

    def parts_by_leader(self) -> Mapping[int, int]:
        """Return the number of copies that the sums stand for, by leader; empty if copies are known one by one."""
        parts: Counter[int] = Counter()
        for sources in self.sources.values():
            for source in sources:
                parts[source.leader] += source.replicas
        return parts

    def added_to(self, load: ThrottleLoad) -> ThrottleLoad:
        return replace(
            load,
            catching_up=tuple(self.replicas.get(load.broker, ())),
            sources=tuple(self.sources.get(load.broker, ())),
        )


def _details(traffic: PlannedTraffic, leader: Ints, copy: Ints) -> _Details:
    if len(copy) > _MOST_COPIES:
        return _Details({}, _sources(traffic, leader, copy))
    starts = np.searchsorted(traffic.partition, np.arange(len(traffic.names) + 1))
    catching_up: dict[int, list[CatchingUpReplica]] = defaultdict(list)
    for at in copy.tolist():
        number = int(traffic.partition[at])
        own = slice(starts[number], starts[number + 1])
        brokers = [traffic.brokers[b] for b in traffic.broker[own]]
        target = tuple(b for b, leaves in zip(brokers, traffic.leaves[own], strict=True) if not leaves)
        # A replica on a broker that is down fetches nothing that could end.
        replicas = tuple(b for b, alive in zip(brokers, traffic.alive[own], strict=True) if alive)
        size = traffic.remaining[at]
        catching_up[traffic.brokers[traffic.broker[at]]].append(
            CatchingUpReplica(
                traffic.names[number],
                leader=traffic.brokers[traffic.broker[leader[number]]],
                remaining_bytes=0 if np.isnan(size) else int(size),
                write_bytes_per_s=float(traffic.known_write[number]),
                replicas=replicas,
                target=target,
                leaves_lists=bool(traffic.leaves_lists[number]),
            )
        )
    return _Details(catching_up, {})


def _sources(traffic: PlannedTraffic, leader: Ints, copy: Ints) -> dict[int, list[SourceLoad]]:
    """Return the sums of each destination per leader, by destination."""
    count, partition = len(traffic.brokers), traffic.partition[copy]
    lead = leader[partition]
    pair = traffic.broker[copy] * count + traffic.broker[lead]
    written = traffic.known_write[partition]
    leader_leaves = traffic.leaves[lead]
    replicas = traffic.live
    leaving = np.bincount(traffic.partition[traffic.leaves & traffic.alive], minlength=len(traffic.names))
    per_copy = np.maximum(1, np.bincount(traffic.partition[traffic.copies], minlength=len(traffic.names)))
    unlisted = traffic.leaves_lists[partition]
    followers = np.where(leader_leaves | unlisted, replicas[partition] - 1, leaving[partition])
    ended = written * followers / per_copy[partition]
    first = np.searchsorted(traffic.partition, partition)
    leading = written * (unlisted | leader_leaves & (first == copy))
    size = np.nan_to_num(traffic.remaining[copy])
    pairs, at = np.unique(pair, return_inverse=True)
    largest = np.zeros(len(pairs))
    np.maximum.at(largest, at, size)
    numbers, bytes_, writes, ends, leads = (
        np.bincount(at, weights) for weights in (np.ones(len(copy)), size, written, ended, leading)
    )
    sources: dict[int, list[SourceLoad]] = defaultdict(list)
    for n, key in enumerate(pairs.tolist()):
        sources[traffic.brokers[key // count]].append(
            SourceLoad(
                traffic.brokers[key % count],
                min(_MOST_PARTS, int(numbers[n])),
                int(bytes_[n]),
                float(writes[n]),
                int(largest[n]),
                float(ends[n]),
                float(leads[n]),
            )
        )
    return sources
