"""What a replication throttle means for the replicas behind it, and which throttle is enough.

The rule is Kafka's own (``ReplicationQuotaManager`` with ``ReplicaManager.shouldLeaderThrottle`` and
``RemoteLeaderEndPoint.shouldFollowerThrottle``): a quota counts the traffic of in-sync and out-of-sync followers of the
listed partitions, but holds back the out-of-sync ones only. Hence the two marks of every broker and role: the in-sync
traffic, below which out-of-sync replicas get nothing, and the whole traffic, below which they fall back for ever.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from planning.finish.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from planning.finish.long_run import CatchUp, burst_bytes, catch_up, copy_rate
from schemas.alerts import Role, Verdict

BrokerRole = tuple[int, Role]


@dataclass(frozen=True)
class PartitionTraffic:
    """One partition as the throttles see it.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None: none, so that nobody fetches.
        followers: replicas other than the leader whose broker is alive: those that fetch.
        in_sync: replicas in the ISR.
        adding: replicas that the reassignment adds.
        leader_listed: replicas in the leader throttled list; None: unknown.
        follower_listed: replicas in the follower throttled list; None: unknown.
        write_bytes_per_s: bytes appended per second; None: unknown.
        remaining_bytes: bytes that a follower still has to copy, by broker; one that is missing is unknown.
    """

    topic: str
    partition: int
    leader: int | None
    followers: tuple[int, ...]
    in_sync: frozenset[int]
    adding: frozenset[int] = frozenset()
    leader_listed: frozenset[int] | None = frozenset()
    follower_listed: frozenset[int] | None = frozenset()
    write_bytes_per_s: float | None = None
    remaining_bytes: Mapping[int, int] = field(default_factory=dict)


def partition_traffic(
    name: tuple[str, int],
    leader: int | None,
    replicas: Collection[int],
    isr: Collection[int],
    adding: Collection[int],
    listed: tuple[Collection[int] | None, Collection[int] | None],
    write_bytes_per_s: float | None,
    alive: Collection[int],
) -> PartitionTraffic:
    """Return a partition as the throttles see it, from its metadata.

    Args:
        name: topic and partition.
        leader: leading broker; None: none.
        replicas: its replicas.
        isr: those in sync.
        adding: those that the reassignment adds.
        listed: replicas in the leader and in the follower throttled list; None: unknown.
        write_bytes_per_s: bytes appended per second; None: unknown.
        alive: brokers that are alive: no other one fetches.
    """
    leader_listed, follower_listed = (None if brokers is None else frozenset(brokers) for brokers in listed)
    return PartitionTraffic(
        topic=name[0],
        partition=name[1],
        leader=leader,
        followers=tuple(broker for broker in replicas if broker != leader and broker in alive),
        in_sync=frozenset(isr),
        adding=frozenset(adding),
        leader_listed=leader_listed,
        follower_listed=follower_listed,
        write_bytes_per_s=write_bytes_per_s,
    )


@dataclass(frozen=True)
class CatchingUpReplica:
    """One out-of-sync replica.

    Attributes:
        topic: topic.
        partition: partition.
        leader: the broker it copies from.
        remaining_bytes: what it still has to copy.
        write_bytes_per_s: what is written meanwhile.
        replicas: the partition's replicas now.
        target: its replicas once the reassignment is done.
    """

    topic: str
    partition: int
    leader: int
    remaining_bytes: int
    write_bytes_per_s: float
    replicas: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class SourceLoad:
    """What out-of-sync replicas of one destination copy from one leader, as sums over all of them.

    Attributes:
        leader: the broker they copy from.
        replicas: out-of-sync replicas that the destination's throttle holds back.
        remaining_bytes: what they still have to copy; None if unknown.
        write_bytes_per_s: what is written to them meanwhile; None if unknown.
        largest_remaining_bytes: what the one that is furthest behind still has to copy; None if unknown.
        leaving_bytes_per_s: in-sync traffic of the leader that ends once they are in sync, because replicas leave.
        leading_bytes_per_s: of what is written to them, what the destination fetches no more then: it leads instead.
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
    """What one broker's throttle of one role has to carry.

    Attributes:
        broker: broker.
        role: leader (what it sends) or follower (what it receives).
        throttle_bytes_per_s: rate in force; None: none.
        in_sync_bytes_per_s: listed traffic of in-sync followers; None: unknown.
        required_bytes_per_s: listed traffic of all followers; None: unknown.
        limited_replicas: out-of-sync replicas that the list names, and that the throttle therefore holds back.
        free_replicas: out-of-sync replicas that it does not name.
        remaining_bytes: what the out-of-sync replicas still have to copy; None: unknown.
        throttle_known: whether the rate in force, and the lists of all partitions of the side, could be read.
        used_bytes_per_s: what counts against the quota now; None: not measured.
        catching_up: of a destination, the replicas that the throttle holds back; empty: not known one by one.
        sources: of a destination, what they come to per leader; empty: not known.
        burst_bytes: what one check of the quota lets through to out-of-sync replicas at once, however little room there
            is (``planning.finish.long_run.burst_bytes``); None if unknown.
        batch_bytes: of a leader, mean size of the producers' batches that it appends; None if unknown.
        quota_window: samples of the broker's quotas.
        fetch: the broker's limits as a follower.
        known_in_sync_bytes_per_s: the least that in_sync_bytes_per_s can be; None: it is that.
        known_required_bytes_per_s: the least that required_bytes_per_s can be; None: it is that.
        short_source: of a destination, whether a leader that is starved or losing holds back replicas of it.
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
    short_source: bool = False

    @property
    def behind_bytes_per_s(self) -> float:
        """Return what is written to listed out-of-sync replicas, bytes per second; 0 if unknown."""
        if self.required_bytes_per_s is None:
            return 0.0
        return max(0.0, self.required_bytes_per_s - (self.in_sync_bytes_per_s or 0.0))

    @property
    def verdict(self) -> Verdict:
        """Return what the throttle means for the out-of-sync replicas.

        What is certain is said though a part is unknown: more traffic would only be worse.
        """
        if self.limited_replicas + self.free_replicas == 0:
            return Verdict.IDLE
        short = self._certainly_short
        if short is not None:
            return short
        if not self.throttle_known:
            return Verdict.NO_DATA
        if self.throttle_bytes_per_s is None or self.limited_replicas == 0:
            return Verdict.UNTHROTTLED
        if self.in_sync_bytes_per_s is None or self.required_bytes_per_s is None:
            return Verdict.NO_DATA
        return Verdict.SLOW if self.throttle_bytes_per_s <= self.required_bytes_per_s else Verdict.CATCHING_UP

    @property
    def _certainly_short(self) -> Verdict | None:
        """Return what is so however much the unknown part of the traffic is; None: that decides."""
        throttle = self.throttle_bytes_per_s
        if throttle is None or not self.limited_replicas:
            return None
        in_sync = _either(self.known_in_sync_bytes_per_s, self.in_sync_bytes_per_s)
        required = _either(self.known_required_bytes_per_s, self.required_bytes_per_s)
        # A quota is exceeded above its bound, not at it.
        if throttle < in_sync:
            return Verdict.STARVED
        if throttle <= required and self._copied_bytes_per_s(in_sync) <= required - in_sync:
            return Verdict.LOSING
        return None

    def _copied_bytes_per_s(self, in_sync_bytes_per_s: float) -> float:
        """Return what comes to out-of-sync replicas, for no quota cuts a response; 0: not more than is known."""
        if not self.burst_bytes or self.throttle_bytes_per_s is None:
            return 0.0
        return copy_rate(self.throttle_bytes_per_s, in_sync_bytes_per_s, self.burst_bytes, self.quota_window).middle

    @property
    def catch_up(self) -> CatchUp | None:
        """Return when the out-of-sync replicas that the throttle holds back are in sync; None: unknown, or none is.

        Of this broker and role alone, as ``gold/throttle_headroom`` has it: another may take longer. But of a
        destination that has a source which lets too little through, not all replicas are ever in sync.
        """
        if self.short_source or self.verdict not in (Verdict.CATCHING_UP, Verdict.SLOW) or self.remaining_bytes is None:
            return None
        assert self.throttle_bytes_per_s is not None, "a verdict on a throttle"
        in_sync = self.in_sync_bytes_per_s or 0.0
        rate = copy_rate(self.throttle_bytes_per_s, in_sync, self.burst_bytes, self.quota_window)
        used = self.throttle_bytes_per_s if self.used_bytes_per_s is None else self.used_bytes_per_s
        room = (self.throttle_bytes_per_s - used) * self.quota_window.mean_s
        return catch_up(self.remaining_bytes, self.behind_bytes_per_s, rate, room, self.quota_window)


def _either(known: float | None, whole: float | None) -> float:
    """Return the least that a traffic can be."""
    return known if known is not None else whole or 0.0


class FollowerTraffic(NamedTuple):
    """One follower's part in the traffic of one side.

    Attributes:
        side: broker and role.
        write_bytes_per_s: bytes appended to the partition per second; None: unknown.
        in_sync: whether the follower is in the ISR.
        listed: whether the throttled list of the side's role names the side's broker; None: unknown.
        remaining_bytes: what the follower still has to copy; None: unknown.
        peer: the broker at the other end of the fetches; None: none leads.
    """

    side: BrokerRole
    write_bytes_per_s: float | None
    in_sync: bool
    listed: bool | None
    remaining_bytes: int | None
    peer: int | None = None


def follower_traffic(p: PartitionTraffic) -> Iterator[FollowerTraffic]:
    """Return what each follower of a partition adds to its leader's side and to its own.

    Nothing is written to a partition that nobody leads.
    """
    written = p.write_bytes_per_s if p.leader is not None else 0.0
    for follower in p.followers:
        in_sync, remaining = follower in p.in_sync, p.remaining_bytes.get(follower)
        listed = None if p.follower_listed is None else follower in p.follower_listed
        yield FollowerTraffic((follower, Role.FOLLOWER), written, in_sync, listed, remaining, p.leader)
        if p.leader is not None:
            listed = None if p.leader_listed is None else p.leader in p.leader_listed
            yield FollowerTraffic((p.leader, Role.LEADER), written, in_sync, listed, remaining, follower)


class ThrottleLoads:
    """What every broker and role that takes part has to carry, as traffic comes and goes.

    Args:
        partitions: every partition that moves or is listed.
        throttles: rate in force by broker and role in bytes per second, None for none; a side that is missing is
            unknown.
    """

    def __init__(self, partitions: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None]) -> None:
        self._throttles = throttles
        self._sums: dict[BrokerRole, _Sums] = defaultdict(_Sums)
        for partition in partitions:
            self.add(follower_traffic(partition))

    def __iter__(self) -> Iterator[BrokerRole]:
        """Iterate over the sides in the order of broker and role."""
        return iter(sorted(self._sums))

    def add(self, more: Iterable[FollowerTraffic]) -> None:
        """Let each share count on its side."""
        for share in more:
            self._sums[share.side].count(share, 1)

    def remove(self, less: Iterable[FollowerTraffic]) -> None:
        """Let shares that were added count no more."""
        for share in less:
            self._sums[share.side].count(share, -1)

    def demand(self, side: BrokerRole, more: Collection[FollowerTraffic] = ()) -> ThrottleLoad:
        """Return what a side has to carry, or would have to if it had these shares besides its own."""
        sums = self._sums[side] if side in self._sums else _Sums()
        return (sums.plus(more) if more else sums).demand(side, self._throttles)


def throttle_loads(
    partitions: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None]
) -> list[ThrottleLoad]:
    """Return what every broker and role that takes part has to carry, ordered by broker and role.

    Args:
        partitions: every partition that moves or is listed.
        throttles: rate in force by broker and role in bytes per second, None for none; a side that is missing is
            unknown.
    """
    all_of_them = list(partitions)
    sides = ThrottleLoads(all_of_them, throttles)
    found = [sides.demand(side) for side in sides]
    short = {d.broker for d in found if d.role is Role.LEADER and d.verdict in (Verdict.STARVED, Verdict.LOSING)}
    held = {
        follower
        for p in all_of_them
        if p.leader in short and p.leader_listed is not None and p.leader in p.leader_listed
        for follower in p.followers
        if follower not in p.in_sync
    }
    return [replace(d, short_source=True) if d.role is Role.FOLLOWER and d.broker in held else d for d in found]


@dataclass(slots=True)
class _Sums:
    """The sums over the shares of one side; what is unknown is counted, for half a sum would be a false verdict."""

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

    def plus(self, more: Iterable[FollowerTraffic]) -> _Sums:
        """Return the sums with shares besides."""
        # Not added and taken away again: sums of rates would drift.
        sums = replace(self, limited_by_peer=self.limited_by_peer.copy())
        for share in more:
            sums.count(share, 1)
        return sums

    def count(self, share: FollowerTraffic, times: int) -> None:
        """Let a share count once more (1) or once less (-1)."""
        if share.listed is None:
            self.unknown_lists += times
        if share.listed:
            self._count_traffic(share, times)
        if not share.in_sync:
            self._count_behind(share, times)

    def _count_traffic(self, share: FollowerTraffic, times: int) -> None:
        if share.write_bytes_per_s is None:
            self.unknown_required += times
            self.unknown_in_sync += times if share.in_sync else 0
        else:
            self.required_bytes_per_s += times * share.write_bytes_per_s
            self.in_sync_bytes_per_s += times * share.write_bytes_per_s if share.in_sync else 0

    def _count_behind(self, share: FollowerTraffic, times: int) -> None:
        if share.listed:
            self.limited_replicas += times
            if share.peer is not None:
                self.limited_by_peer[share.peer] += times
        else:
            self.free_replicas += times
        if share.remaining_bytes is None:
            self.unknown_remaining += times
        else:
            self.remaining_bytes += times * share.remaining_bytes

    def demand(self, side: BrokerRole, throttles: Mapping[BrokerRole, float | None]) -> ThrottleLoad:
        """Return the demand that these sums make."""
        lists_known = not self.unknown_lists
        responses = [DEFAULT_FETCH.burst_bytes(replicas) for replicas in self.limited_by_peer.values() if replicas]
        return ThrottleLoad(
            broker=side[0],
            role=side[1],
            throttle_bytes_per_s=throttles.get(side),
            in_sync_bytes_per_s=self.in_sync_bytes_per_s if lists_known and not self.unknown_in_sync else None,
            required_bytes_per_s=self.required_bytes_per_s if lists_known and not self.unknown_required else None,
            limited_replicas=self.limited_replicas,
            free_replicas=self.free_replicas,
            remaining_bytes=None if self.unknown_remaining else self.remaining_bytes,
            throttle_known=side in throttles and lists_known,
            burst_bytes=burst_bytes(side[1], responses) or None,
            known_in_sync_bytes_per_s=self.in_sync_bytes_per_s,
            known_required_bytes_per_s=self.required_bytes_per_s,
        )
