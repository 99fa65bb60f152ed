"""Throttle status of one broker and role, the input of rules from ``gold/throttle_headroom``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headroom.planning.quotas.limits import FetchLimits, QuotaWindow
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.planning.quotas.long_run import burst_bytes
from headroom.planning.throttles.effect import ObservedThrottle
from headroom.schemas.alerts import BELOW_REQUIRED, TOO_LOW, Verdict
from headroom.schemas.keys import Role, TopicPartition
from headroom.schemas.records import record, records


@dataclass(frozen=True)
class PartitionEvidence:
    """One partition whose traffic counts against the throttle of a broker and role.

    Attributes:
        topic: topic.
        partition: partition.
        write_bytes_per_s: write rate; None if unknown.
        followers: listed followers that fetch under this throttle.
        in_sync_followers: those of them in the ISR.
        leader: leading broker; None if there is none.
        previous_leader: leader before the last switch; None if no switch was observed.
        switch_tick_ms: first tick with the new leader, epoch milliseconds; None if no switch was observed.
        moving: whether a reassignment of the partition is running.
        replicas: current replicas, including adding and removing ones.
        target: replicas after the reassignment.
        stalled: whether an adding replica under this throttle copies nothing.
        remaining_bytes: bytes that its out-of-sync replicas under this throttle have to copy; None if unknown.
    """

    topic: str
    partition: int
    write_bytes_per_s: float | None
    followers: int
    in_sync_followers: int
    leader: int | None
    previous_leader: int | None
    switch_tick_ms: int | None
    moving: bool
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    stalled: bool
    remaining_bytes: int | None = None

    @property
    def name(self) -> str:
        """Return ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class OutOfSyncReplica:
    """A replica of a partition's original assignment that is out of the ISR.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None if there is none.
        moving: whether a reassignment of the partition is running.
    """

    topic: str
    partition: int
    leader: int | None
    moving: bool

    @property
    def name(self) -> str:
        """Return ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class LeadershipRisk:
    """The moving partition that would add most traffic to a broker with an in-sync replica if it led it.

    Attributes:
        bytes_per_s: additional traffic that the broker would send.
        topic: topic.
        partition: partition.
        leader: current leader; None if there is none.
    """

    bytes_per_s: float
    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True)
class Peer:
    """The broker at the other end of throttled copies: a destination for a leader, a leader for a destination.

    Attributes:
        broker: its id.
        replicas: out-of-sync replicas that copy between the two.
        remaining_bytes: bytes that these replicas have to copy; None if unknown.
        write_bytes_per_s: write rate of their partitions; None if unknown.
        largest_remaining_bytes: largest remainder of a single replica; None if unknown.
        leaving_bytes_per_s: traffic of the leader that ends once they are in sync, because replicas are removed.
        leading_bytes_per_s: traffic of the destination that ends then, because it becomes the leader; None in rows
            of older versions.
    """

    broker: int
    replicas: int
    remaining_bytes: int | None
    write_bytes_per_s: float | None
    largest_remaining_bytes: int | None
    leaving_bytes_per_s: float = 0.0
    leading_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Stall:
    """Adding replicas of a destination that copy nothing, grouped by cause and leader.

    Attributes:
        cause: offline, no_leader, not_fetching or unknown.
        leader: broker that they copy from; None if there is no leader.
        replicas: number of replicas.
        partitions: names of the first few partitions.
    """

    cause: str
    leader: int | None
    replicas: int
    partitions: tuple[str, ...]


@dataclass(frozen=True)
class LeaderSwitch:
    """Listed partitions whose leadership a broker took over within the last rate window.

    Attributes:
        previous_leader: leader before the switch.
        partitions: number of partitions.
        bytes_per_s: known traffic that the new leader sends for them.
        switch_tick_ms: latest of the first ticks with the new leader, epoch milliseconds.
        names: names of the first few partitions.
    """

    previous_leader: int
    partitions: int
    bytes_per_s: float
    switch_tick_ms: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class MovingPartition:
    """A partition in a reassignment.

    Attributes:
        topic: topic.
        partition: partition.
        target: replicas after the reassignment.
    """

    topic: str
    partition: int
    target: tuple[int, ...]


@dataclass(frozen=True)
class LogDirsThrottle:
    """Throttle of a broker for moves between its log directories.

    Attributes:
        bytes_per_s: rate in force; None if not set or unknown.
        source: level that sets it: broker, default or none; None if unknown.
    """

    bytes_per_s: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class ThrottleStatus:
    """Throttle status of one broker and role: one row of ``gold/throttle_headroom``, whose table describes the columns.

    Attributes:
        load: traffic that the throttle has to carry.
        verdict: verdict on the throttle.
        reason: unknown inputs if the verdict is no_data; None otherwise.
        eta_s: seconds until its replicas are in sync; None if never or unknown.
        stalled_replicas: adding replicas that copied nothing in the rate window.
        partitions: partitions that count against the throttle, largest traffic first; truncated.
        alive: whether the broker is registered with the cluster.
        throttle_source: level that sets the rate: broker, default or none; None if unknown.
        moving_partitions: partitions in a reassignment that the broker leads or follows.
        resting_listed_partitions: partitions in a throttled list of the role that do not move.
        planned_partitions: led partitions whose only out-of-sync replicas are adding ones.
        lost_replicas: replicas on the broker that are out of the ISR, without adding ones.
        lost_moving_replicas: those of lost_replicas whose partition moves.
        lost: these replicas, moving ones first; truncated.
        stall: cause of the stalled replicas, as in ``gold/throttle_headroom``; None if none is stalled.
        takeover: for a follower, the leader switch that would add most traffic; None if unknown.
        lost_leaving_replicas: those of lost_replicas that the running reassignment removes.
        waiting_replicas: adding replicas that copied nothing in the rate window because they wait their turn.
        down_replicas: for a leader, adding replicas on dead brokers.
        known_in_sync_bytes_per_s: known part of the in-sync traffic, a lower bound.
        known_required_bytes_per_s: known part of the required traffic, a lower bound.
        moving_bytes_per_s: traffic that moving partitions send (leader) or new replicas receive (destination), listed
            or not; None if unknown.
        counting_partitions: number of partitions that count against the throttle.
        limited_partitions: moving partitions with out-of-sync replicas that a list of the role contains.
        free_partitions: moving partitions with out-of-sync replicas that no list of the role contains.
        peers: brokers at the other end of the limited copies.
        stalls: stalled replicas by cause and leader.
        switches: leader switches in the last rate window, by previous leader.
        moves: partitions in a reassignment; truncated.
        resting_topics: topics of listed partitions that do not move; truncated.
        resting_topic_count: number of these topics.
        log_dirs: throttle of moves between log directories.
        eta_low_s: earliest value of eta_s; None if never or unknown.
        eta_high_s: latest value of eta_s; None if never or unknown.
        lost_leaderless_replicas: those of lost_replicas without a leader; None in rows of older versions.
        lost_leaderless_moving_replicas: those of them whose partition moves; None in rows of older versions.
    """

    load: ThrottleLoad
    verdict: Verdict
    reason: str | None
    eta_s: float | None
    stalled_replicas: int
    partitions: tuple[PartitionEvidence, ...]
    alive: bool = True
    throttle_source: str | None = None
    moving_partitions: int = 0
    resting_listed_partitions: int = 0
    planned_partitions: int = 0
    lost_replicas: int = 0
    lost_moving_replicas: int = 0
    lost: tuple[OutOfSyncReplica, ...] = ()
    stall: str | None = None
    takeover: LeadershipRisk | None = None
    lost_leaving_replicas: int = 0
    waiting_replicas: int = 0
    down_replicas: int = 0
    known_in_sync_bytes_per_s: float = 0.0
    known_required_bytes_per_s: float = 0.0
    moving_bytes_per_s: float | None = None
    counting_partitions: int = 0
    limited_partitions: int = 0
    free_partitions: int = 0
    peers: tuple[Peer, ...] = ()
    stalls: tuple[Stall, ...] = ()
    switches: tuple[LeaderSwitch, ...] = ()
    moves: tuple[MovingPartition, ...] = ()
    resting_topics: tuple[str, ...] = ()
    resting_topic_count: int = 0
    log_dirs: LogDirsThrottle = LogDirsThrottle()
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    lost_leaderless_replicas: int | None = None
    lost_leaderless_moving_replicas: int | None = None

    @property
    def broker(self) -> int:
        """Return the broker's id."""
        return self.load.broker

    @property
    def role(self) -> Role:
        """Return the role that the throttle limits."""
        return self.load.role

    @property
    def subject(self) -> str:
        """Return the subject of alerts on the broker and role."""
        return f"broker {self.broker} as {'leader' if self.role is Role.LEADER else 'destination'}"

    @property
    def is_rate_unread(self) -> bool:
        """Return whether the rate in force could not be read, in contrast to none that is set."""
        load = self.load
        return load.throttle_bytes_per_s is None and not load.throttle_known and self.throttle_source != "none"

    @property
    def observed_throttle(self) -> ObservedThrottle | None:
        """Return the throttle with what counts against it; None if it limits no replica."""
        rate = self.load.throttle_bytes_per_s
        if rate is None or not self.load.limited_replicas:
            return None
        return ObservedThrottle(rate, self.load.used_bytes_per_s, len(self.peers), self.below_required)

    @property
    def too_low(self) -> bool:
        """Return whether the throttle is too low for the move to finish."""
        return self.verdict in TOO_LOW

    @property
    def below_required(self) -> bool:
        """Return whether the throttle is below the required rate, so that out-of-sync replicas get nothing at times."""
        return self.verdict in BELOW_REQUIRED


def throttle_status_of(row: Mapping[str, Any]) -> ThrottleStatus:
    """Return the throttle status of one row of ``gold/throttle_headroom``, given as a mapping of its columns.

    Structs are mappings too.

    Raises:
        ValueError: a value is missing or of another type.
    """
    partitions = records(
        PartitionEvidence,
        [{**one, "replicas": one["replicas"] or (), "target": one["target"] or ()} for one in row["partitions"]],
    )
    peers = records(Peer, row["peers"])
    log_dirs = LogDirsThrottle(row["log_dirs_throttle_bytes_per_s"], row["log_dirs_throttle_source"])
    load = _throttle_load(row, partitions, peers)
    return record(ThrottleStatus, {**row, "load": load, "partitions": partitions, "peers": peers, "log_dirs": log_dirs})


def _throttle_load(
    row: Mapping[str, Any], partitions: Sequence[PartitionEvidence], peers: Sequence[Peer]
) -> ThrottleLoad:
    """Return the throttle load of a row."""
    role, limited = Role(row["role"]), row["moving_replicas"] - row["free_replicas"]
    destination = role is Role.FOLLOWER
    fetch = FetchLimits.with_defaults(
        row["replica_fetch_max_bytes"],
        row["replica_fetch_response_max_bytes"],
        row["num_replica_fetchers"],
        row["replica_fetch_backoff_ms"],
    )
    of_parts = {
        "limited_replicas": limited,
        "throttle_known": row["verdict"] != Verdict.NO_DATA.value or row["throttle_bytes_per_s"] is not None,
        "used_bytes_per_s": row["quota_bytes_per_s"],
        "catching_up": _catching_up(partitions, limited) if destination else (),
        "sources": tuple(_source(peer) for peer in peers) if destination else (),
        "burst_bytes": burst_bytes(role, [fetch.burst_bytes(peer.replicas) for peer in peers]) or None,
        "quota_window": QuotaWindow.with_defaults(row["quota_window_num"], row["quota_window_size_s"]),
        "fetch": fetch,
        # Rows of older versions do not have this column.
        "down_required_bytes_per_s": row.get("down_required_bytes_per_s"),
    }
    return record(ThrottleLoad, {**row, **of_parts})


def _source(peer: Peer) -> SourceLoad:
    return SourceLoad(
        leader=peer.broker,
        replicas=peer.replicas,
        remaining_bytes=peer.remaining_bytes,
        write_bytes_per_s=peer.write_bytes_per_s,
        largest_remaining_bytes=peer.largest_remaining_bytes,
        leaving_bytes_per_s=peer.leaving_bytes_per_s,
        leading_bytes_per_s=peer.leading_bytes_per_s or 0.0,
    )


def _catching_up(partitions: Sequence[PartitionEvidence], limited: int) -> tuple[CatchingUpReplica, ...]:
    """Return the replicas that a destination's throttle limits; empty if the truncated evidence does not list all."""
    replicas = tuple(
        CatchingUpReplica(
            name=TopicPartition(p.topic, p.partition),
            leader=p.leader,
            remaining_bytes=p.remaining_bytes,
            write_bytes_per_s=p.write_bytes_per_s,
            replicas=p.replicas,
            target=p.target,
        )
        for p in partitions
        if p.followers > p.in_sync_followers
        and p.leader is not None
        and p.remaining_bytes is not None
        and p.write_bytes_per_s is not None
    )
    return replicas if len(replicas) == limited else ()
