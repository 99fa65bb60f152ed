"""State of a cluster that a plan rests on: brokers with their throttles and disks, partitions with sizes and rates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import Role, TopicPartition
from headroom.schemas.reassigned import Reassigned


@dataclass(frozen=True)
class LogDirectory:
    """One log directory of a broker.

    Attributes:
        path: its path on the broker.
        total_bytes: size of its volume; None if unknown.
        usable_bytes: free bytes of its volume; None if unknown.
        offline: true if the broker cannot use it.
        cordoned: true if it takes no new replicas (``cordoned.log.dirs``, since Kafka 4.3); false if not reported.
        logs_bytes: bytes of the logs in it, as far as they were read.
        volume: name of its volume by the settings, equal for directories of a broker that share one; None: by its
            numbers (``room.volumes``).
        logs: number of logs in it, those that are copied between directories included; None if unknown.
    """

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    offline: bool = False
    cordoned: bool = False
    logs_bytes: int = 0
    volume: str | None = None
    logs: int | None = None


@dataclass(frozen=True)
class BrokerState:
    """One broker.

    Attributes:
        broker: id.
        alive: whether it is registered now.
        rack: its rack; None if it has none.
        throttles_known: whether it reported its throttle rates.
        leader_bytes_per_s: leader throttle rate in force; None if there is none.
        follower_bytes_per_s: follower throttle rate in force; None if there is none.
        log_dirs_bytes_per_s: rate in force for moves between its log directories; None if there is none.
        log_dirs: its log directories; empty if unknown.
        quota_window: samples of its replication quotas.
        fetch: its limits as a follower.
        unused_quotas: roles whose quota has counted nothing since the start of the broker, as far as known.
    """

    broker: int
    alive: bool = True
    rack: str | None = None
    throttles_known: bool = True
    leader_bytes_per_s: int | None = None
    follower_bytes_per_s: int | None = None
    log_dirs_bytes_per_s: int | None = None
    log_dirs: tuple[LogDirectory, ...] = ()
    quota_window: QuotaWindow = DEFAULT_WINDOW
    fetch: FetchLimits = DEFAULT_FETCH
    unused_quotas: frozenset[Role] = frozenset()

    @property
    def cordoned(self) -> bool:
        """Whether all its online log directories are cordoned: Kafka places no new replicas on it by itself."""
        online = [directory for directory in self.log_dirs if not directory.offline]
        return bool(online) and all(directory.cordoned for directory in online)

    @property
    def room_known(self) -> bool:
        """Whether the free space of all its online log directories is known."""
        online = [directory for directory in self.log_dirs if not directory.offline]
        return bool(online) and all(directory.usable_bytes is not None for directory in online)


@dataclass(frozen=True, slots=True)
class PartitionPlacement(Reassigned):
    """One partition: where its replicas are, and what they carry.

    Attributes:
        topic: topic.
        partition: partition.
        leader: broker id of the leader; None if there is no leader.
        replicas: current replicas, adding ones included; the first is the preferred leader.
        isr: replicas in sync.
        adding: replicas that a running reassignment adds.
        removing: replicas that a running reassignment removes.
        size_bytes: bytes of the leader's log; None if unknown.
        write_bytes_per_s: bytes appended per second; None if unknown.
        log_dirs: path of the log directory by broker, as far as known.
        copied_bytes: bytes that adding replicas of a running reassignment have already, by broker, as far as known.
        untiered_bytes: bytes of the leader's log that are not in remote storage yet, if new replicas copy only these;
            None if they copy all.
        awaits_leader: whether new replicas copy nothing before the leader's next upload to remote storage, or before
            its next record.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    size_bytes: int | None = None
    write_bytes_per_s: float | None = None
    log_dirs: Mapping[int, str] = field(default_factory=dict)
    copied_bytes: Mapping[int, int] = field(default_factory=dict)
    untiered_bytes: int | None = None
    awaits_leader: bool = False

    @property
    def new_replica_bytes(self) -> int | None:
        """The bytes that a new replica copies; None if unknown."""
        return self.size_bytes if self.untiered_bytes is None else self.untiered_bytes

    def leader_during(self, target: Sequence[int], alive: Collection[int], rebalances: bool | None) -> int | None:
        """Return the first target replica, if Kafka may give it the lead during a move to other brokers; else None.

        The first target replica is the preferred leader from the beginning. If it is in sync, Kafka gives it the lead
        at some time during the move.

        Args:
            target: replicas after the move.
            alive: brokers that are up.
            rebalances: whether Kafka gives leads to preferred leaders by itself; None: it may.
        """
        first = target[0]
        return first if rebalances is not False and first in self.isr and first in alive else None

    def dead_kept(self, target: Sequence[int], alive: Collection[int], waits: bool | None) -> tuple[int, ...]:
        """Return the brokers that are down, and whose present replicas the end of a move may wait for.

        Before Kafka 4.3 a reassignment ends only once every target replica is in sync. Since then, only if it removes
        more replicas than it adds; otherwise it waits for the added ones alone.

        Args:
            target: replicas after the move.
            alive: brokers that are up.
            waits: whether it is so as before Kafka 4.3; None: it may.

        Source: Kafka 3.9.1 and 4.3.1, ``PartitionReassignmentReplicas.maybeCompleteReassignment`` (KAFKA-19975).
        """
        before = self.before
        # The same brokers in another order are no move that could wait.
        if set(target) == set(before) or (waits is False and len(target) >= len(before)):
            return ()
        return tuple(broker for broker in target if broker in before and broker not in alive)


@dataclass(frozen=True)
class ClusterState:
    """Everything that a plan rests on, at one time.

    Attributes:
        cluster: name of the cluster.
        read_ms: when it was read, epoch milliseconds.
        brokers: every broker that is registered or has a replica, by id.
        partitions: every partition, by name.
        topic_ids: id of each topic; it changes when a topic is deleted and made again.
        lists: throttled replica lists in force, by topic that has any.
        auto_leader_rebalance: whether Kafka gives leads back to preferred leaders by itself; None if unknown.
        rates_from: where the write rates come from, as text for people.
        waits_for_kept: whether reassignments end only once every replica that stays is in sync, as before Kafka 4.3;
            None if unknown, or if it was not read because no broker is down.
    """

    cluster: str
    read_ms: int
    brokers: Mapping[int, BrokerState]
    partitions: Mapping[TopicPartition, PartitionPlacement]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, TopicLists] = field(default_factory=dict)
    auto_leader_rebalance: bool | None = None
    rates_from: str = "unknown"
    waits_for_kept: bool | None = None

    @property
    def alive(self) -> frozenset[int]:
        """The brokers that are registered now."""
        return frozenset(broker for broker, state in self.brokers.items() if state.alive)

    @property
    def open(self) -> frozenset[int]:
        """The brokers that are registered now and are not cordoned, so that new replicas may be placed on them."""
        return frozenset(broker for broker, state in self.brokers.items() if state.alive and not state.cordoned)
