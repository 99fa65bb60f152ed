"""Running copies between throttled brokers, reconstructed from one tick."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from headroom.planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy
from headroom.planning.quotas.limits import DEFAULT_FETCH, FetchLimits
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

# Leader and destination; None for one without a limit.
_Pair = tuple[int | None, int | None]


def copies_between(
    throttle_loads: Sequence[ThrottleLoad], ends: Mapping[BrokerRole, QuotaEndpoint]
) -> list[CopyStream]:
    """Return the copy streams between brokers.

    The replicas of a destination are used one by one if they are known, otherwise as sums per leader. Without these
    sums, the destination is assumed to copy from every limited leader in proportion to its remaining bytes. Copies of a
    leader beyond that go to destinations without a limit.

    Args:
        throttle_loads: brokers and roles that limit replicas, all with known remaining bytes.
        ends: quota by broker and role.
    """
    leaders = [d for d in throttle_loads if d.role is Role.LEADER]
    destinations = [d for d in throttle_loads if d.role is Role.FOLLOWER]
    parts: dict[_Pair, list[ReplicaCopy]] = defaultdict(list)
    _add_single_replicas(parts, destinations, ends)
    for destination in destinations:
        if not destination.catching_up:
            for broker, source in _sources(destination, leaders):
                own = _endpoint(ends, destination.broker, Role.FOLLOWER)
                parts[broker, destination.broker].extend(
                    _equal_copies(source, _endpoint(ends, broker, Role.LEADER), own)
                )
    of_leader: dict[int | None, list[ReplicaCopy]] = defaultdict(list)
    for (broker, _), copies in parts.items():
        of_leader[broker] += copies
    for leader in leaders:
        parts[leader.broker, None].extend(_copies_to_unlimited(leader, of_leader[leader.broker]))
    limits: dict[int | None, FetchLimits] = {d.broker: d.fetch for d in destinations}
    return [
        CopyStream(
            _endpoint(ends, leader, Role.LEADER), _endpoint(ends, destination, Role.FOLLOWER), deque(share), fetch
        )
        for (leader, destination), copies in sorted(parts.items(), key=_order)
        for fetch in [limits.get(destination, DEFAULT_FETCH)]
        for share in _per_fetcher(copies, fetch)
    ]


def _order(item: tuple[_Pair, list[ReplicaCopy]]) -> tuple[int, int]:
    leader, destination = item[0]
    return (-1 if leader is None else leader), (-1 if destination is None else destination)


def _endpoint(ends: Mapping[BrokerRole, QuotaEndpoint], broker: int | None, role: Role) -> QuotaEndpoint | None:
    return None if broker is None else ends.get(BrokerRole(broker, role))


def _per_fetcher(parts: Sequence[ReplicaCopy], fetch: FetchLimits) -> Iterator[Sequence[ReplicaCopy]]:
    """Yield the copies of each fetcher thread. Kafka assigns partitions to threads by a hash."""
    for number in range(min(fetch.fetchers, len(parts))):
        yield parts[number :: fetch.fetchers]


def _add_single_replicas(
    parts: dict[_Pair, list[ReplicaCopy]],
    destinations: Iterable[ThrottleLoad],
    ends: Mapping[BrokerRole, QuotaEndpoint],
) -> None:
    """Add the replicas that are known one by one."""
    known = [(destination.broker, replica) for destination in destinations for replica in destination.catching_up]
    behind = Counter(r.name for _, r in known)
    destinations_of: dict[TopicPartition, list[int]] = defaultdict(list)
    for destination, r in known:
        destinations_of[r.name].append(destination)
    moving: dict[TopicPartition, CopiedPartition] = {}
    for destination, r in known:
        name = r.name
        if name not in moving:
            moving[name] = CopiedPartition(behind[name], list(_ending_traffic(r, destinations_of[name], ends)))
        parts[r.leader, destination].append(ReplicaCopy(r.remaining_bytes, r.write_bytes_per_s, moving[name]))


def _ending_traffic(
    replica: CatchingUpReplica, destinations: Collection[int], ends: Mapping[BrokerRole, QuotaEndpoint]
) -> Iterator[tuple[QuotaEndpoint, float]]:
    """Yield the in-sync traffic that no longer counts when the replica's partition has moved: the quota, and its rate.

    If the partition leaves the lists, that is all of it: from the leader, and to the destinations.

    A leader that is removed hands over to the first target replica, and all other replicas then fetch from that one. If
    the new leader is an adding replica, no list throttles it as a leader.

    Args:
        replica: one of the copying replicas.
        destinations: brokers of all its copying replicas. If the first target replica is one of them, it leads then,
            and stops fetching.
        ends: quota by broker and role.
    """
    leaving = set(replica.replicas) - set(replica.target)
    leader_stays = replica.leader not in leaving
    fetching = leaving if leader_stays else set(replica.replicas) - {replica.leader}
    ended: list[tuple[BrokerRole, int]]
    if replica.leaves_lists:
        ended = [(BrokerRole(replica.leader, Role.LEADER), len(set(replica.replicas) - {replica.leader}))]
        ended += [(BrokerRole(destination, Role.FOLLOWER), 1) for destination in destinations]
    else:
        ended = [(BrokerRole(replica.leader, Role.LEADER), len(fetching))]
        ended += [(BrokerRole(follower, Role.FOLLOWER), 1) for follower in sorted(leaving - {replica.leader})]
    if not leader_stays and not replica.leaves_lists and replica.target[0] in destinations:
        ended.append((BrokerRole(replica.target[0], Role.FOLLOWER), 1))
    yield from (
        (ends[broker_role], times * replica.write_bytes_per_s) for broker_role, times in ended if broker_role in ends
    )


def _equal_copies(
    source: SourceLoad, leader: QuotaEndpoint | None, destination: QuotaEndpoint | None
) -> Iterator[ReplicaCopy]:
    """Yield the replicas of one leader: the one furthest behind, and the others with equal shares of the rest."""
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
    """Yield the sums of a destination per leader; if they are unknown, distributed over all limited leaders."""
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


def _copies_to_unlimited(leader: ThrottleLoad, known: Sequence[ReplicaCopy]) -> Iterator[ReplicaCopy]:
    """Yield the replicas that copy from a leader to destinations without a limit.

    Args:
        leader: the leader.
        known: its copies to destinations with a limit.
    """
    replicas = leader.limited_replicas - len(known)
    remaining = (leader.remaining_bytes or 0) - sum(part.remaining_bytes for part in known)
    write = leader.behind_bytes_per_s - sum(part.write_bytes_per_s for part in known)
    if replicas > 0 and remaining > 0:
        yield from (ReplicaCopy(remaining / replicas, max(0.0, write) / replicas) for _ in range(replicas))
