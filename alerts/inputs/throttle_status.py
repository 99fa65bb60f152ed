"""One broker and role in one tick, as the rules look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planning.finish.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from planning.finish.long_run import burst_bytes
from planning.throttles.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from schemas.alerts import Role, Verdict


@dataclass(frozen=True)
class PartitionEvidence:
    """One partition that counts on a side.

    Attributes:
        topic: topic.
        partition: partition.
        write_bytes_per_s: its write rate; None: unknown.
        followers: listed followers that fetch through this side.
        in_sync_followers: those of them in the ISR.
        leader: leading broker; None: none.
        previous_leader: leader before the last switch; None: no switch was seen.
        switch_tick_ms: the first tick that showed the new leader; None: no switch was seen.
        moving: whether a reassignment of it is running.
        replicas: replicas now, adding and removing ones included.
        target: replicas once it is done.
        stalled: whether an adding replica of it on this side copies nothing.
        remaining_bytes: what its out-of-sync replicas on this side still have to copy; None: unknown.
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
        leader: leading broker; None: none.
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
    """The moving partition that would cost the broker of an in-sync replica most if it came to lead it.

    Attributes:
        bytes_per_s: what it would have to send more.
        topic: topic.
        partition: partition.
        leader: who leads it now; None: nobody.
    """

    bytes_per_s: float
    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True)
class Peer:
    """The broker at the other end of copies that a throttle limits: of a leader a destination, of that a leader.

    Attributes:
        broker: its id.
        replicas: out-of-sync replicas that copy between the two.
        remaining_bytes: what they still have to copy; None: unknown.
        write_bytes_per_s: what is written to them meanwhile; None: unknown.
        largest_remaining_bytes: what the one with most still has to copy; None: unknown.
        leaving_bytes_per_s: what the leader sends no more once they are in sync, because replicas leave.
        leading_bytes_per_s: what the destination fetches no more then, because it leads; None: an older version's row.
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
    """Adding replicas of a destination that copy nothing, for one cause and from one leader.

    Attributes:
        cause: offline, no_leader, not_fetching or unknown.
        leader: broker that they copy from; None: none leads.
        replicas: how many.
        partitions: the first few by name.
    """

    cause: str
    leader: int | None
    replicas: int
    partitions: tuple[str, ...]


@dataclass(frozen=True)
class LeaderSwitch:
    """Listed partitions that a broker came to lead within the last rate window.

    Attributes:
        previous_leader: who led them before.
        partitions: how many.
        bytes_per_s: what the new leader sends for them, as far as it is known.
        switch_tick_ms: the last tick that showed one of them under its new leader first.
        names: the first few by name.
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
        target: replicas once it is done.
    """

    topic: str
    partition: int
    target: tuple[int, ...]


@dataclass(frozen=True)
class LogDirsThrottle:
    """A broker's throttle of moves between its log directories.

    Attributes:
        bytes_per_s: rate in force; None: none, or unknown.
        source: broker or default: where it is set; none: it is not; None: unknown.
    """

    bytes_per_s: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class ThrottleStatus:
    """One row of ``gold/throttle_headroom``, whose columns tell more.

    Attributes:
        demand: what the throttle carries.
        verdict: what it means.
        reason: for no_data what is unknown; else None.
        eta_s: seconds until its replicas are in sync; None: never, or unknown.
        stalled_replicas: adding replicas that copied nothing over the window.
        partitions: the partitions that count, greatest traffic first.
        alive: whether the broker is registered with the cluster.
        throttle_source: broker or default: where the rate is set; none: it is not; None: unknown.
        moving_partitions: partitions in a reassignment that the broker leads, or follows.
        resting_listed_partitions: partitions that a list of the role names and that do not move.
        planned_partitions: partitions that it leads of which none but adding replicas are out of sync.
        lost_replicas: its replicas, but for adding ones, that are out of the ISR.
        lost_moving_replicas: those of them whose partition moves.
        lost: them by name, those that move first; the list is cut.
        stall: why its stalled replicas copy nothing, as ``gold/throttle_headroom`` has it; None: none is stalled.
        takeover: of a follower, what it would cost at worst to lead one more moving partition; None: nothing known.
        lost_leaving_replicas: those of lost_replicas that the running move takes away from the broker.
        waiting_replicas: adding replicas that copied nothing over the window because they wait their turn.
        down_replicas: as leader, adding replicas on brokers that are down.
        known_in_sync_bytes_per_s: in-sync traffic as far as it is known: the least that it can be.
        known_required_bytes_per_s: required traffic as far as it is known: the least that it can be.
        moving_bytes_per_s: what moving partitions send (as leader) or new replicas receive, listed or not; None:
            unknown.
        counting_partitions: how many partitions count, of which ``partitions`` has the first.
        limited_partitions: moving partitions with replicas out of sync that a list of the role names.
        free_partitions: moving partitions with replicas out of sync that no list of the role names.
        peers: brokers at the other end of the copies that a list of the role limits.
        stalls: stalled replicas by cause and leader.
        switches: leader switches of the last rate window, by previous leader.
        moves: partitions in a reassignment by name; the list is cut.
        resting_topics: topics of partitions that a list names and that do not move, by name; the list is cut.
        resting_topic_count: how many these are.
        log_dirs: the broker's throttle of moves between log directories.
        eta_low_s: eta_s at the earliest; None: never, or unknown.
        eta_high_s: eta_s at the latest; None: never, or unknown.
        lost_leaderless_replicas: those of lost_replicas whose partition has no leader; None: an older version's row.
        lost_leaderless_moving_replicas: those of them whose partition moves; None: an older version's row.
        down_required_bytes_per_s: as leader, what required_bytes_per_s would have more if the brokers of its followers
            that are down were up, as far as it is known; None: an older version's row.
    """

    demand: ThrottleLoad
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
    down_required_bytes_per_s: float | None = None

    @property
    def broker(self) -> int:
        """Return the broker's id."""
        return self.demand.broker

    @property
    def role(self) -> Role:
        """Return which of the broker's throttles it is."""
        return self.demand.role

    @property
    def short(self) -> bool:
        """Return whether the throttle is not enough, so that the move never ends."""
        return self.verdict in (Verdict.STARVED, Verdict.LOSING)

    @property
    def binding(self) -> bool:
        """Return whether the throttle is below what is required, so that what is behind it gets nothing for a while."""
        return self.short or self.verdict is Verdict.SLOW


_AS_THEY_ARE = (
    "reason",
    "eta_s",
    "stalled_replicas",
    "alive",
    "throttle_source",
    "moving_partitions",
    "resting_listed_partitions",
    "planned_partitions",
    "lost_replicas",
    "lost_moving_replicas",
    "stall",
    "lost_leaving_replicas",
    "waiting_replicas",
    "down_replicas",
    "known_in_sync_bytes_per_s",
    "known_required_bytes_per_s",
    "moving_bytes_per_s",
    "counting_partitions",
    "limited_partitions",
    "free_partitions",
    "resting_topic_count",
    "eta_low_s",
    "eta_high_s",
)
# What rows of older versions may lack altogether.
_ADDED = ("lost_leaderless_replicas", "lost_leaderless_moving_replicas", "down_required_bytes_per_s")


def throttle_status_of(row: Mapping[str, Any]) -> ThrottleStatus:
    """Return the side of one row of ``gold/throttle_headroom``, given as a mapping of its columns."""
    verdict = Verdict(row["verdict"])
    partitions = tuple(_partition(entry) for entry in row["partitions"])
    peers = tuple(Peer(**peer) for peer in row["peers"])
    demand = _demand(row, partitions, peers)
    added: dict[str, Any] = {name: row.get(name) for name in _ADDED}
    return ThrottleStatus(
        demand,
        verdict,
        lost=tuple(OutOfSyncReplica(**lost) for lost in row["lost"]),
        takeover=LeadershipRisk(**row["takeover"]) if row["takeover"] is not None else None,
        partitions=partitions,
        peers=peers,
        stalls=tuple(Stall(**stall | {"partitions": tuple(stall["partitions"])}) for stall in row["stalls"]),
        switches=tuple(LeaderSwitch(**switch | {"names": tuple(switch["names"])}) for switch in row["switches"]),
        moves=tuple(MovingPartition(**move | {"target": tuple(move["target"])}) for move in row["moves"]),
        resting_topics=tuple(row["resting_topics"]),
        log_dirs=LogDirsThrottle(row["log_dirs_throttle_bytes_per_s"], row["log_dirs_throttle_source"]),
        **{name: row[name] for name in _AS_THEY_ARE},
        **added,
    )


def _demand(row: Mapping[str, Any], partitions: Sequence[PartitionEvidence], peers: Sequence[Peer]) -> ThrottleLoad:
    """Return what the throttle of a row carries."""
    role, limited = Role(row["role"]), row["moving_replicas"] - row["free_replicas"]
    destination = role is Role.FOLLOWER
    fetch = _fetch_limits(row)
    return ThrottleLoad(
        broker=row["broker"],
        role=role,
        throttle_bytes_per_s=row["throttle_bytes_per_s"],
        in_sync_bytes_per_s=row["in_sync_bytes_per_s"],
        required_bytes_per_s=row["required_bytes_per_s"],
        limited_replicas=limited,
        free_replicas=row["free_replicas"],
        remaining_bytes=row["remaining_bytes"],
        throttle_known=row["verdict"] != Verdict.NO_DATA.value or row["throttle_bytes_per_s"] is not None,
        used_bytes_per_s=row["quota_bytes_per_s"],
        catching_up=_catching_up(partitions, limited) if destination else (),
        sources=tuple(_source(peer) for peer in peers) if destination else (),
        burst_bytes=burst_bytes(role, [fetch.burst_bytes(peer.replicas) for peer in peers]) or None,
        quota_window=_quota_window(row),
        fetch=fetch,
        known_in_sync_bytes_per_s=row["known_in_sync_bytes_per_s"],
        known_required_bytes_per_s=row["known_required_bytes_per_s"],
    )


def _source(peer: Peer) -> SourceLoad:
    return SourceLoad(
        peer.broker,
        peer.replicas,
        peer.remaining_bytes,
        peer.write_bytes_per_s,
        peer.largest_remaining_bytes,
        peer.leaving_bytes_per_s,
        peer.leading_bytes_per_s or 0.0,
    )


def _quota_window(row: Mapping[str, Any]) -> QuotaWindow:
    """Return the samples of the broker's quotas; Kafka's defaults where it does not tell."""
    samples, sample_s = row["quota_window_num"], row["quota_window_size_s"]
    return QuotaWindow(samples or DEFAULT_WINDOW.samples, float(sample_s or DEFAULT_WINDOW.sample_s))


def _fetch_limits(row: Mapping[str, Any]) -> FetchLimits:
    """Return the broker's limits as a follower; Kafka's defaults where it does not tell."""
    backoff_ms = row["replica_fetch_backoff_ms"]
    return FetchLimits(
        partition_bytes=row["replica_fetch_max_bytes"] or DEFAULT_FETCH.partition_bytes,
        response_bytes=row["replica_fetch_response_max_bytes"] or DEFAULT_FETCH.response_bytes,
        fetchers=row["num_replica_fetchers"] or DEFAULT_FETCH.fetchers,
        backoff_s=DEFAULT_FETCH.backoff_s if backoff_ms is None else backoff_ms / 1000,
    )


def _catching_up(partitions: Sequence[PartitionEvidence], limited: int) -> tuple[CatchingUpReplica, ...]:
    """Return the replicas that a destination's throttle holds back, if the evidence, which is cut, tells of all."""
    found = tuple(
        CatchingUpReplica(p.topic, p.partition, p.leader, p.remaining_bytes, p.write_bytes_per_s, p.replicas, p.target)
        for p in partitions
        if p.followers > p.in_sync_followers
        and p.leader is not None
        and p.remaining_bytes is not None
        and p.write_bytes_per_s is not None
    )
    return found if len(found) == limited else ()


def _partition(entry: Mapping[str, Any]) -> PartitionEvidence:
    fields = {name: entry[name] for name in PartitionEvidence.__dataclass_fields__}
    replicas, target = tuple(entry["replicas"] or ()), tuple(entry["target"] or ())
    return PartitionEvidence(**{**fields, "replicas": replicas, "target": target})
