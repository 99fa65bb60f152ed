"""What a replication throttle means for the replicas behind it, and which throttle is enough.

The rule is Kafka's own (``ReplicationQuotaManager`` with ``ReplicaManager.shouldLeaderThrottle`` and
``ReplicaFetcherThread.shouldFollowerThrottle``): a quota counts the traffic of in-sync and out-of-sync followers of the
listed partitions, but holds back the out-of-sync ones only. Hence the two marks of every broker and role: the in-sync
traffic, below which out-of-sync replicas get nothing, and the whole traffic, below which they fall back for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.findings import Role, Verdict

Side = tuple[int, Role]


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


@dataclass(frozen=True)
class CatchingUp:
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
class Demand:
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
    catching_up: tuple[CatchingUp, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return what the throttle means for the out-of-sync replicas."""
        if self.limited_replicas + self.free_replicas == 0:
            return Verdict.IDLE
        if not self.throttle_known:
            return Verdict.NO_DATA
        if self.throttle_bytes_per_s is None or self.limited_replicas == 0:
            return Verdict.UNTHROTTLED
        if self.in_sync_bytes_per_s is None or self.required_bytes_per_s is None:
            return Verdict.NO_DATA
        if self.throttle_bytes_per_s <= self.in_sync_bytes_per_s:
            return Verdict.STARVED
        if self.throttle_bytes_per_s <= self.required_bytes_per_s:
            return Verdict.LOSING
        return Verdict.CATCHING_UP


@dataclass(frozen=True)
class _Share:
    """One follower's part in the traffic of one side."""

    side: Side
    write_bytes_per_s: float | None
    in_sync: bool
    listed: bool | None
    remaining_bytes: int | None


def demands(partitions: Iterable[PartitionTraffic], throttles: Mapping[Side, float | None]) -> list[Demand]:
    """Return what every broker and role that takes part has to carry, ordered by broker and role.

    Args:
        partitions: every partition that moves or is listed.
        throttles: rate in force by broker and role in bytes per second, None for none; a side that is missing is
            unknown.
    """
    shares: dict[Side, list[_Share]] = defaultdict(list)
    for partition in partitions:
        for share in _shares(partition):
            shares[share.side].append(share)
    return [_demand(side, shares[side], throttles) for side in sorted(shares)]


def _shares(p: PartitionTraffic) -> Iterable[_Share]:
    for follower in p.followers:
        in_sync, remaining = follower in p.in_sync, p.remaining_bytes.get(follower)
        listed = None if p.follower_listed is None else follower in p.follower_listed
        yield _Share((follower, Role.FOLLOWER), p.write_bytes_per_s, in_sync, listed, remaining)
        if p.leader is not None:
            listed = None if p.leader_listed is None else p.leader in p.leader_listed
            yield _Share((p.leader, Role.LEADER), p.write_bytes_per_s, in_sync, listed, remaining)


def _demand(side: Side, shares: list[_Share], throttles: Mapping[Side, float | None]) -> Demand:
    listed = [s for s in shares if s.listed]
    limited = [s for s in listed if not s.in_sync]
    lists_known = all(s.listed is not None for s in shares)
    return Demand(
        broker=side[0],
        role=side[1],
        throttle_bytes_per_s=throttles.get(side),
        in_sync_bytes_per_s=_total([s.write_bytes_per_s for s in listed if s.in_sync]) if lists_known else None,
        required_bytes_per_s=_total([s.write_bytes_per_s for s in listed]) if lists_known else None,
        limited_replicas=len(limited),
        free_replicas=sum(not s.in_sync and not s.listed for s in shares),
        remaining_bytes=_total_bytes([s.remaining_bytes for s in shares if not s.in_sync]),
        throttle_known=side in throttles and lists_known,
    )


def _total(rates: list[float | None]) -> float | None:
    """Return the sum, or None if any part of it is unknown: half a sum would be a false verdict."""
    return None if None in rates else float(sum(r for r in rates if r is not None))


def _total_bytes(sizes: list[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)
