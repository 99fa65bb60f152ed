"""Load on replication throttles, and the verdict on each throttle.

The rule is Kafka's own (``ReplicationQuotaManager`` with ``ReplicaManager.shouldLeaderThrottle`` and
``RemoteLeaderEndPoint.shouldFollowerThrottle``). A quota counts the traffic of in-sync and out-of-sync followers of the
listed partitions, but limits only the out-of-sync ones. Every broker and role therefore has two thresholds. Below the
in-sync traffic, out-of-sync replicas get nothing. Below the traffic of all followers, their lag grows indefinitely.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from headroom.planning.quotas.long_run import CopyTime, burst_bytes, catch_up, copy_rate
from headroom.schemas.alerts import TOO_LOW, Verdict
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.schemas.reassigned import Reassigned


@dataclass(frozen=True)
class PartitionTraffic:
    """Replication traffic of one partition, with its throttled replica lists.

    Attributes:
        name: topic and number of the partition.
        leader: broker id of the leader; None if there is no leader, and so no fetch.
        followers: replicas that fetch: all except the leader whose broker is alive.
        in_sync: replicas in the ISR.
        adding: replicas that the reassignment adds.
        leader_listed: replicas in the leader throttled list; None if unknown.
        follower_listed: replicas in the follower throttled list; None if unknown.
        write_bytes_per_s: bytes appended per second; None if unknown.
        remaining_bytes: bytes that a follower still has to copy, by broker; a missing broker is unknown.
        down: replicas on dead brokers, which fetch again once these are back.
    """

    name: TopicPartition
    leader: int | None
    followers: tuple[int, ...]
    in_sync: frozenset[int]
    adding: frozenset[int] = frozenset()
    leader_listed: frozenset[int] | None = frozenset()
    follower_listed: frozenset[int] | None = frozenset()
    write_bytes_per_s: float | None = None
    remaining_bytes: Mapping[int, int] = field(default_factory=dict)
    down: tuple[int, ...] = ()


def live_followers(replicas: Collection[int], leader: int | None, alive: Collection[int]) -> tuple[int, ...]:
    """Return the replicas that fetch: all except the leader whose broker is alive."""
    return tuple(broker for broker in replicas if broker != leader and broker in alive)


def dead_followers(replicas: Collection[int], leader: int | None, alive: Collection[int]) -> tuple[int, ...]:
    """Return the replicas that would fetch if their broker were up: all except the leader whose broker is dead."""
    return tuple(broker for broker in replicas if broker != leader and broker not in alive)


def partition_traffic(
    partition: Reassigned,
    alive: Collection[int],
    leader_listed: Collection[int] | None,
    follower_listed: Collection[int] | None,
    write_bytes_per_s: float | None,
) -> PartitionTraffic:
    """Return the replication traffic of a partition by its metadata; what followers still have to copy is unknown.

    Args:
        partition: the partition.
        alive: live brokers.
        leader_listed: its replicas in the leader throttled list; None if unknown.
        follower_listed: its replicas in the follower throttled list; None if unknown.
        write_bytes_per_s: bytes appended per second; None if unknown.
    """
    return PartitionTraffic(
        name=partition.name,
        leader=partition.leader,
        followers=live_followers(partition.replicas, partition.leader, alive),
        in_sync=frozenset(partition.isr),
        adding=frozenset(partition.adding),
        leader_listed=None if leader_listed is None else frozenset(leader_listed),
        follower_listed=None if follower_listed is None else frozenset(follower_listed),
        write_bytes_per_s=write_bytes_per_s,
        down=dead_followers(partition.replicas, partition.leader, alive),
    )


def lasting_rate(required_bytes_per_s: float | None, down_bytes_per_s: float | None) -> float | None:
    """Return the rate that is required once dead brokers are back too, bytes per second; None if unknown.

    Args:
        required_bytes_per_s: rate that is required now; None if unknown.
        down_bytes_per_s: what followers on dead brokers add; None if unknown, which counts as nothing.
    """
    return None if required_bytes_per_s is None else required_bytes_per_s + (down_bytes_per_s or 0.0)


@dataclass(frozen=True)
class CatchingUpReplica:
    """One out-of-sync replica that copies from its leader.

    Attributes:
        name: topic and number of the partition.
        leader: broker it copies from.
        remaining_bytes: bytes still to copy.
        write_bytes_per_s: write rate of the partition meanwhile.
        replicas: current replicas of the partition.
        target: replicas of the partition after the reassignment.
        leaves_lists: whether the partition leaves the throttled replica lists once it has moved.
    """

    name: TopicPartition
    leader: int
    remaining_bytes: int
    write_bytes_per_s: float
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    leaves_lists: bool = False


@dataclass(frozen=True)
class SourceLoad:
    """Copies from one leader to the out-of-sync replicas of one destination, as sums over these replicas.

    Attributes:
        leader: broker they copy from.
        replicas: number of out-of-sync replicas that the destination's throttle limits.
        remaining_bytes: bytes still to copy; None if unknown.
        write_bytes_per_s: write rate of their partitions; None if unknown.
        largest_remaining_bytes: bytes still to copy for the replica that is furthest behind; None if unknown.
        leaving_bytes_per_s: in-sync traffic of the leader that its quota no longer counts once they are in sync,
            because replicas leave, or partitions leave the lists.
        leading_bytes_per_s: the same of the destination, because it becomes the leader, or partitions leave the lists.
    """

    leader: int
    replicas: int
    remaining_bytes: int | None
    write_bytes_per_s: float | None
    largest_remaining_bytes: int | None = None
    leaving_bytes_per_s: float = 0.0
    leading_bytes_per_s: float = 0.0


@dataclass(frozen=True)
class ThrottleLoad:
    """Traffic on one broker's throttle of one role.

    Attributes:
        broker: broker.
        role: leader (traffic that it sends) or follower (traffic that it receives).
        throttle_bytes_per_s: rate in force; None if there is none.
        in_sync_bytes_per_s: listed traffic of in-sync followers; None if unknown.
        required_bytes_per_s: listed traffic of all followers; None if unknown.
        limited_replicas: out-of-sync replicas in the list, which the throttle limits.
        free_replicas: out-of-sync replicas that are not in the list.
        remaining_bytes: bytes that the out-of-sync replicas still have to copy; None if unknown.
        throttle_known: true if the rate in force and the lists of all its partitions could be read.
        used_bytes_per_s: traffic that counts against the quota now; None if not measured.
        catching_up: for a destination: the limited replicas; empty if they are not known one by one.
        sources: for a destination: sums of the limited replicas per leader; empty if unknown.
        burst_bytes: bytes that one check of the quota lets through to out-of-sync replicas at once, however little room
            there is (``planning.quotas.long_run.burst_bytes``); None if unknown.
        batch_bytes: for a leader: mean size of appended producer batches; None if unknown.
        quota_window: samples of the broker's quotas.
        fetch: the broker's limits as a follower.
        known_in_sync_bytes_per_s: minimum of in_sync_bytes_per_s; None if it is that value.
        known_required_bytes_per_s: minimum of required_bytes_per_s; None if it is that value.
        leader_too_low: for a destination: true if it copies from a leader that is starved or losing.
        down_required_bytes_per_s: for a leader: known traffic that followers on dead brokers add to
            required_bytes_per_s once these are back; None if unknown.
    """

    broker: int
    role: Role
    throttle_bytes_per_s: float | None
    in_sync_bytes_per_s: float | None
    required_bytes_per_s: float | None
    limited_replicas: int
    free_replicas: int
    remaining_bytes: int | None
    throttle_known: bool = True
    used_bytes_per_s: float | None = None
    catching_up: tuple[CatchingUpReplica, ...] = ()
    sources: tuple[SourceLoad, ...] = ()
    burst_bytes: float | None = None
    batch_bytes: float | None = None
    quota_window: QuotaWindow = DEFAULT_WINDOW
    fetch: FetchLimits = DEFAULT_FETCH
    known_in_sync_bytes_per_s: float | None = None
    known_required_bytes_per_s: float | None = None
    leader_too_low: bool = False
    down_required_bytes_per_s: float | None = 0.0

    @property
    def broker_role(self) -> BrokerRole:
        """The broker and its role."""
        return BrokerRole(self.broker, self.role)

    @property
    def least_in_sync_bytes_per_s(self) -> float:
        """Return the listed traffic of in-sync followers as far as it is known, bytes per second."""
        return _minimum(self.known_in_sync_bytes_per_s, self.in_sync_bytes_per_s)

    @property
    def least_required_bytes_per_s(self) -> float:
        """Return the listed traffic of all followers as far as it is known, bytes per second."""
        return _minimum(self.known_required_bytes_per_s, self.required_bytes_per_s)

    @property
    def behind_bytes_per_s(self) -> float:
        """Return the write rate to listed out-of-sync replicas in bytes per second; 0 if unknown."""
        if self.required_bytes_per_s is None:
            return 0.0
        return max(0.0, self.required_bytes_per_s - (self.in_sync_bytes_per_s or 0.0))

    @property
    def needs_throttle(self) -> bool:
        """Return whether the throttle limits replicas, now or once dead brokers are back."""
        return self.limited_replicas > 0 or bool(self.down_required_bytes_per_s)

    @property
    def lasting_required_bytes_per_s(self) -> float | None:
        """Return the rate that a throttle has to exceed now, and still once dead brokers are back; None if unknown.

        Advice asks for more than this, and the alert that gave the advice ends above it. So an alert that has ended
        does not fire again because a broker returns.
        """
        return lasting_rate(self.required_bytes_per_s, self.down_required_bytes_per_s)

    @property
    def verdict(self) -> Verdict:
        """Return the effect of the throttle on the out-of-sync replicas.

        A verdict that is certain is returned even if a part of the traffic is unknown, because more traffic only makes
        it worse.
        """
        if self.limited_replicas + self.free_replicas == 0:
            return Verdict.IDLE
        too_low = self._certainly_too_low
        if too_low is not None:
            return too_low
        if not self.throttle_known:
            return Verdict.NO_DATA
        if self.throttle_bytes_per_s is None or self.limited_replicas == 0:
            return Verdict.UNTHROTTLED
        if self.in_sync_bytes_per_s is None or self.required_bytes_per_s is None:
            return Verdict.NO_DATA
        return Verdict.SLOW if self.throttle_bytes_per_s <= self.required_bytes_per_s else Verdict.CATCHING_UP

    @property
    def _certainly_too_low(self) -> Verdict | None:
        """Return the verdict that holds whatever the unknown traffic is; None if the unknown traffic decides."""
        throttle = self.throttle_bytes_per_s
        if throttle is None or not self.limited_replicas:
            return None
        in_sync, required = self.least_in_sync_bytes_per_s, self.least_required_bytes_per_s
        # Kafka exceeds a quota only above its bound, so a throttle equal to the in-sync traffic starves no replica.
        if throttle < in_sync:
            return Verdict.STARVED
        if throttle <= required and self._copied_bytes_per_s(in_sync) <= required - in_sync:
            return Verdict.LOSING
        return None

    def _copied_bytes_per_s(self, in_sync_bytes_per_s: float) -> float:
        """Return the rate at which out-of-sync replicas copy, in bytes per second; 0 if no burst size is known.

        It can exceed the room in the quota, because no quota cuts a response.
        """
        if not self.burst_bytes or self.throttle_bytes_per_s is None:
            return 0.0
        return copy_rate(self.throttle_bytes_per_s, in_sync_bytes_per_s, self.burst_bytes, self.quota_window).middle

    @property
    def catch_up(self) -> CopyTime | None:
        """Return when the limited out-of-sync replicas are in sync; None if unknown, or if there are none.

        This holds for this broker and role alone, as in ``gold/throttle_headroom``; another broker may take longer. If
        a destination copies from a leader whose throttle is too low, some of its replicas never get in sync.
        """
        if (
            self.leader_too_low
            or self.verdict not in (Verdict.CATCHING_UP, Verdict.SLOW)
            or self.remaining_bytes is None
        ):
            return None
        assert self.throttle_bytes_per_s is not None, "a verdict on a throttle"
        in_sync = self.in_sync_bytes_per_s or 0.0
        rate = copy_rate(self.throttle_bytes_per_s, in_sync, self.burst_bytes, self.quota_window)
        used = self.throttle_bytes_per_s if self.used_bytes_per_s is None else self.used_bytes_per_s
        room = (self.throttle_bytes_per_s - used) * self.quota_window.mean_s
        return catch_up(self.remaining_bytes, self.behind_bytes_per_s, rate, room, self.quota_window)


def _minimum(known_part: float | None, total: float | None) -> float:
    """Return the minimum of a traffic: its known part if given, otherwise the total."""
    return known_part if known_part is not None else total or 0.0


class FollowerTraffic(NamedTuple):
    """Traffic of one follower at one end of its fetches.

    Attributes:
        broker_role: broker and role of that end.
        write_bytes_per_s: bytes appended to the partition per second; None if unknown.
        in_sync: true if the follower is in the ISR.
        listed: true if the throttled list of the role contains the broker; None if unknown.
        remaining_bytes: bytes that the follower still has to copy; None if unknown.
        peer: broker at the other end; None if there is no leader.
        alive: false if the follower's broker is dead, so that it fetches only once it is back.
    """

    broker_role: BrokerRole
    write_bytes_per_s: float | None
    in_sync: bool
    listed: bool | None
    remaining_bytes: int | None
    peer: int | None = None
    alive: bool = True

    @property
    def counts_against_quota(self) -> bool:
        """Whether the follower is in an unknown list, or is listed and has traffic or is out of sync."""
        return self.listed is None or (self.listed and (self.write_bytes_per_s != 0 or not self.in_sync))


def follower_traffic(p: PartitionTraffic) -> Iterator[FollowerTraffic]:
    """Yield the traffic of each follower of a partition: once for its leader and once for itself.

    A partition without a leader has no write traffic. A follower on a dead broker is yielded for its leader alone.
    """
    written = p.write_bytes_per_s if p.leader is not None else 0.0
    for follower in p.followers:
        in_sync, remaining = follower in p.in_sync, p.remaining_bytes.get(follower)
        listed = None if p.follower_listed is None else follower in p.follower_listed
        yield FollowerTraffic(BrokerRole(follower, Role.FOLLOWER), written, in_sync, listed, remaining, p.leader)
        if p.leader is not None:
            listed = None if p.leader_listed is None else p.leader in p.leader_listed
            yield FollowerTraffic(BrokerRole(p.leader, Role.LEADER), written, in_sync, listed, remaining, follower)
    if p.leader is not None:
        listed = None if p.leader_listed is None else p.leader in p.leader_listed
        for follower in p.down:
            yield FollowerTraffic(BrokerRole(p.leader, Role.LEADER), written, False, listed, None, follower, False)


class ThrottleLoads:
    """Loads of all brokers and roles, to which traffic can be added and from which it can be removed.

    Args:
        partitions: all partitions in a reassignment or in a throttled replica list.
        throttles: rate in force by broker and role in bytes per second, None for none; a missing key is unknown.
    """

    def __init__(self, partitions: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None]) -> None:
        self._throttles = throttles
        self._sums: dict[BrokerRole, _LoadSum] = defaultdict(_LoadSum)
        for partition in partitions:
            self.add(follower_traffic(partition))

    def __iter__(self) -> Iterator[BrokerRole]:
        """Iterate over brokers and roles in ascending order."""
        return iter(sorted(self._sums))

    def add(self, more: Iterable[FollowerTraffic]) -> None:
        """Add the traffic of followers to the sums of their brokers and roles."""
        for traffic in more:
            self._sums[traffic.broker_role].count(traffic, 1)

    def remove(self, less: Iterable[FollowerTraffic]) -> None:
        """Subtract traffic of followers that was added before."""
        for traffic in less:
            self._sums[traffic.broker_role].count(traffic, -1)

    def load_of(self, broker_role: BrokerRole, more: Collection[FollowerTraffic] = ()) -> ThrottleLoad:
        """Return the load of a broker and role, with additional traffic on top of its own."""
        sums = self._sums[broker_role] if broker_role in self._sums else _LoadSum()
        return (sums.plus(more) if more else sums).load_of(broker_role, self._throttles)


def throttle_loads(
    partitions: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None]
) -> list[ThrottleLoad]:
    """Return the load of every broker and role with traffic, ordered by broker and role.

    Args:
        partitions: all partitions in a reassignment or in a throttled replica list.
        throttles: rate in force by broker and role in bytes per second, None for none; a missing key is unknown.
    """
    all_partitions = list(partitions)
    all_loads = ThrottleLoads(all_partitions, throttles)
    loads = [all_loads.load_of(broker_role) for broker_role in all_loads]
    too_low_leaders = {load.broker for load in loads if load.role is Role.LEADER and load.verdict in TOO_LOW}
    # Copies from such a leader never end, whatever the throttle of their destination is.
    behind_too_low_leader = {
        BrokerRole(follower, Role.FOLLOWER)
        for p in all_partitions
        if p.leader in too_low_leaders and p.leader_listed is not None and p.leader in p.leader_listed
        for follower in p.followers
        if follower not in p.in_sync
    }
    return [replace(load, leader_too_low=True) if load.broker_role in behind_too_low_leader else load for load in loads]


def worse_loads(loads: Iterable[ThrottleLoad], others: Iterable[ThrottleLoad]) -> list[ThrottleLoad]:
    """Return the load of every broker and role, with the worse of two leaderships, ordered by broker and role.

    Args:
        loads: loads with the present leaders.
        others: loads with the leaders that Kafka may elect during the move.
    """
    worse = {load.broker_role: load for load in loads}
    for load in others:
        other = worse.get(load.broker_role)
        worse[load.broker_role] = load if other is None else _worse(other, load)
    return [worse[role] for role in sorted(worse)]


def _worse(load: ThrottleLoad, other: ThrottleLoad) -> ThrottleLoad:
    return replace(
        load,
        in_sync_bytes_per_s=_greater(load.in_sync_bytes_per_s, other.in_sync_bytes_per_s),
        required_bytes_per_s=_greater(load.required_bytes_per_s, other.required_bytes_per_s),
        known_in_sync_bytes_per_s=max(load.least_in_sync_bytes_per_s, other.least_in_sync_bytes_per_s),
        known_required_bytes_per_s=max(load.least_required_bytes_per_s, other.least_required_bytes_per_s),
        limited_replicas=max(load.limited_replicas, other.limited_replicas),
        free_replicas=max(load.free_replicas, other.free_replicas),
        remaining_bytes=None
        if load.remaining_bytes is None or other.remaining_bytes is None
        else max(load.remaining_bytes, other.remaining_bytes),
        leader_too_low=load.leader_too_low or other.leader_too_low,
        down_required_bytes_per_s=_greater(load.down_required_bytes_per_s, other.down_required_bytes_per_s),
    )


def _greater(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else max(one, other)


@dataclass(slots=True)
class _LoadSum:
    """Sums over the followers of one broker and role; with counts of unknown values, because partial sums mislead."""

    in_sync_bytes_per_s: float = 0.0
    required_bytes_per_s: float = 0.0
    remaining_bytes: int = 0
    unknown_in_sync: int = 0
    unknown_required: int = 0
    unknown_remaining: int = 0
    unknown_lists: int = 0
    limited_replicas: int = 0
    free_replicas: int = 0
    limited_by_peer: Counter[int] = field(default_factory=Counter)
    down_required_bytes_per_s: float = 0.0

    def plus(self, more: Iterable[FollowerTraffic]) -> _LoadSum:
        """Return a copy of the sums with additional traffic."""
        # A copy, because adding and then subtracting floating-point rates would drift.
        sums = replace(self, limited_by_peer=self.limited_by_peer.copy())
        for traffic in more:
            sums.count(traffic, 1)
        return sums

    def count(self, traffic: FollowerTraffic, times: int) -> None:
        """Add the traffic of a follower (times = 1) or subtract it (-1)."""
        if not traffic.alive:
            if traffic.listed and traffic.write_bytes_per_s is not None:
                self.down_required_bytes_per_s += times * traffic.write_bytes_per_s
            return
        if traffic.listed is None:
            self.unknown_lists += times
        if traffic.listed:
            self._count_traffic(traffic, times)
        if not traffic.in_sync:
            self._count_out_of_sync(traffic, times)

    def _count_traffic(self, traffic: FollowerTraffic, times: int) -> None:
        if traffic.write_bytes_per_s is None:
            self.unknown_required += times
            self.unknown_in_sync += times if traffic.in_sync else 0
        else:
            self.required_bytes_per_s += times * traffic.write_bytes_per_s
            self.in_sync_bytes_per_s += times * traffic.write_bytes_per_s if traffic.in_sync else 0

    def _count_out_of_sync(self, traffic: FollowerTraffic, times: int) -> None:
        if traffic.listed:
            self.limited_replicas += times
            if traffic.peer is not None:
                self.limited_by_peer[traffic.peer] += times
        else:
            self.free_replicas += times
        if traffic.remaining_bytes is None:
            self.unknown_remaining += times
        else:
            self.remaining_bytes += times * traffic.remaining_bytes

    def load_of(self, broker_role: BrokerRole, throttles: Mapping[BrokerRole, float | None]) -> ThrottleLoad:
        """Return the sums as the load of a broker and role; a sum with unknown parts is None."""
        lists_known = not self.unknown_lists
        responses = [DEFAULT_FETCH.burst_bytes(replicas) for replicas in self.limited_by_peer.values() if replicas]
        return ThrottleLoad(
            broker=broker_role.broker,
            role=broker_role.role,
            throttle_bytes_per_s=throttles.get(broker_role),
            in_sync_bytes_per_s=self.in_sync_bytes_per_s if lists_known and not self.unknown_in_sync else None,
            required_bytes_per_s=self.required_bytes_per_s if lists_known and not self.unknown_required else None,
            limited_replicas=self.limited_replicas,
            free_replicas=self.free_replicas,
            remaining_bytes=None if self.unknown_remaining else self.remaining_bytes,
            throttle_known=broker_role in throttles and lists_known,
            burst_bytes=burst_bytes(broker_role.role, responses) or None,
            known_in_sync_bytes_per_s=self.in_sync_bytes_per_s,
            known_required_bytes_per_s=self.required_bytes_per_s,
            down_required_bytes_per_s=self.down_required_bytes_per_s,
        )
