"""The copies that a tick shows under way between limited brokers."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy
from planning.finish.limits import DEFAULT_FETCH, FetchLimits
from planning.throttles.load import BrokerRole, CatchingUpReplica, SourceLoad, ThrottleLoad
from schemas.alerts import Role

# By leader, None for one that is not limited, and destination likewise.
_Pair = tuple[int | None, int | None]


def copies_between(
    throttle_loads: Sequence[ThrottleLoad], ends: Mapping[BrokerRole, QuotaEndpoint]
) -> list[CopyStream]:
    """Return what is copied between brokers.

    A destination's replicas are taken one by one where they are known so, else by the sums per leader; else it is taken
    to draw on every limited leader alike. What a leader sends beyond that goes to destinations without a limit.

    Args:
        throttle_loads: brokers and roles that hold replicas back; what these still have to copy is known.
        ends: the quota of each.
    """
    leaders = [d for d in throttle_loads if d.role is Role.LEADER]
    destinations = [d for d in throttle_loads if d.role is Role.FOLLOWER]
    parts: dict[_Pair, list[ReplicaCopy]] = defaultdict(list)
    _add_known(parts, destinations, ends)
    for destination in destinations:
        if not destination.catching_up:
            for broker, source in _sources(destination, leaders):
                own = _end(ends, destination.broker, Role.FOLLOWER)
                parts[broker, destination.broker].extend(_alike(source, _end(ends, broker, Role.LEADER), own))
    for leader in leaders:
        parts[leader.broker, None].extend(_beyond(leader, parts))
    limits: dict[int | None, FetchLimits] = {d.broker: d.fetch for d in destinations}
    return [
        CopyStream(_end(ends, leader, Role.LEADER), _end(ends, destination, Role.FOLLOWER), deque(share), fetch)
        for (leader, destination), found in sorted(parts.items(), key=_order)
        for fetch in [limits.get(destination, DEFAULT_FETCH)]
        for share in _per_fetcher(found, fetch)
    ]


def _order(item: tuple[_Pair, list[ReplicaCopy]]) -> tuple[int, int]:
    leader, destination = item[0]
    return (-1 if leader is None else leader), (-1 if destination is None else destination)


def _end(ends: Mapping[BrokerRole, QuotaEndpoint], broker: int | None, role: Role) -> QuotaEndpoint | None:
    return None if broker is None else ends.get((broker, role))


def _per_fetcher(parts: Sequence[ReplicaCopy], fetch: FetchLimits) -> Iterator[Sequence[ReplicaCopy]]:
    """Give the parts of each fetcher thread: partitions are spread over them by a hash."""
    for number in range(min(fetch.fetchers, len(parts))):
        yield parts[number :: fetch.fetchers]


def _add_known(
    parts: dict[_Pair, list[ReplicaCopy]],
    destinations: Iterable[ThrottleLoad],
    ends: Mapping[BrokerRole, QuotaEndpoint],
) -> None:
    """Add the replicas that are known one by one."""
    known = [(destination.broker, replica) for destination in destinations for replica in destination.catching_up]
    behind = Counter((r.topic, r.partition) for _, r in known)
    copying = {(r.topic, r.partition, destination) for destination, r in known}
    moving: dict[tuple[str, int], CopiedPartition] = {}
    for destination, r in known:
        name = r.topic, r.partition
        if name not in moving:
            next_copies = (*name, r.target[0]) in copying
            moving[name] = CopiedPartition(behind[name], list(_leaving(r, next_copies, ends)))
        parts[r.leader, destination].append(ReplicaCopy(r.remaining_bytes, r.write_bytes_per_s, moving[name]))


def _leaving(
    replica: CatchingUpReplica, next_copies: bool, ends: Mapping[BrokerRole, QuotaEndpoint]
) -> Iterator[tuple[QuotaEndpoint, float]]:
    """Give the in-sync traffic that ends when the replica's partition has moved: whose quota counts it, and how much.

    A leader that leaves hands over to the first of the target, and all of its followers fetch from that one; no list
    names it as a leader, where it is new itself.

    Args:
        replica: one of those that copy.
        next_copies: whether that first one copies too: when it leads, it fetches no more.
        ends: the quota of each.
    """
    leaving = set(replica.replicas) - set(replica.target)
    leads_on = replica.leader not in leaving
    fetching = leaving if leads_on else set(replica.replicas) - {replica.leader}
    ended: list[tuple[BrokerRole, int]] = [((replica.leader, Role.LEADER), len(fetching))]
    ended += [((follower, Role.FOLLOWER), 1) for follower in sorted(leaving - {replica.leader})]
    if not leads_on and next_copies:
        ended.append(((replica.target[0], Role.FOLLOWER), 1))
    yield from ((ends[side], times * replica.write_bytes_per_s) for side, times in ended if side in ends)


def _alike(
    source: SourceLoad, leader: QuotaEndpoint | None, destination: QuotaEndpoint | None
) -> Iterator[ReplicaCopy]:
    """Give the replicas of one leader: the one that is furthest behind, and the others alike."""
    if not source.replicas:
        return
    remaining, write = float(source.remaining_bytes or 0), (source.write_bytes_per_s or 0.0) / source.replicas
    largest = max(float(source.largest_remaining_bytes or 0), remaining / source.replicas)
    ended = [(leader, source.leaving_bytes_per_s), (destination, source.leading_bytes_per_s)]
    leaving = [(end, bytes_per_s / source.replicas) for end, bytes_per_s in ended if end is not None and bytes_per_s]
    for number in range(source.replicas):
        own = largest if number == 0 else (remaining - largest) / (source.replicas - 1)
        yield ReplicaCopy(max(0.0, own), write, CopiedPartition(1, leaving) if leaving else None)


def _sources(destination: ThrottleLoad, leaders: Sequence[ThrottleLoad]) -> Iterator[tuple[int | None, SourceLoad]]:
    """Give what a destination copies from each leader; if that is not known, from all limited leaders alike."""
    if destination.sources:
        yield from ((source.leader, source) for source in destination.sources)
        return
    remaining = sum(leader.remaining_bytes or 0 for leader in leaders)
    shares: list[tuple[int | None, float]] = [
        (d.broker, (d.remaining_bytes or 0) / remaining) for d in leaders if remaining
    ]
    for leader, ratio in shares or [(None, 1.0)]:
        replicas = max(1, round(destination.limited_replicas * ratio))
        own = round((destination.remaining_bytes or 0) * ratio)
        yield leader, SourceLoad(leader or 0, replicas, own, destination.behind_bytes_per_s * ratio)


def _beyond(leader: ThrottleLoad, parts: Mapping[_Pair, Sequence[ReplicaCopy]]) -> Iterator[ReplicaCopy]:
    """Give the replicas that copy from a leader to destinations without a limit."""
    known = [part for (source, _), found in parts.items() if source == leader.broker for part in found]
    replicas = leader.limited_replicas - len(known)
    remaining = (leader.remaining_bytes or 0) - sum(part.remaining_bytes for part in known)
    write = leader.behind_bytes_per_s - sum(part.write_bytes_per_s for part in known)
    if replicas > 0 and remaining > 0:
        yield from (ReplicaCopy(remaining / replicas, max(0.0, write) / replicas) for _ in range(replicas))
