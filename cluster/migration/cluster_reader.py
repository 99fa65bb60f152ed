"""Readings of one cluster of the migrations: the collector and a run take one after the other, the status takes two."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.topics import ClusterTopics
from headroom.planning.migration.agreement import EndsByEpoch
from headroom.planning.migration.log_size import LogSize
from headroom.planning.migration.mirrors.names import target_topic
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement

log = logging.getLogger(__name__)
# Topics of a large cluster take a second of a core to read. A leader that has moved does not answer: then they are read
# again at once.
_TOPICS_S = 5.0
# What changes rarely is read this often, seconds: settings of topics, and which groups have offsets of them.
_SLOW_S = 30.0
# A broker goes through all of its logs for the sizes of some.
_SIZES_S = 5.0
# A clock that is off by more against elapsed time was set.
_STEP_MS = 500
# Clients write to the origin no more, or the rest of what they wrote before.
_WRITTEN = (MigrationStatus.PLANNED, MigrationStatus.MIGRATING)


@dataclass(frozen=True)
class ClusterReading:
    """One cluster at one time. Partitions have their names on the origin; what could not be read is missing.

    Attributes:
        began_s: start of the reading, elapsed seconds.
        read_ms: time of the offsets, epoch milliseconds.
        cluster_id: id of the cluster; None if the broker does not report it.
        logs: offsets by partition.
        topic_ids: id by topic that was asked about; None if it is not there, or before Kafka 2.8.
        leader_epochs: epoch of the leader by partition.
        epoch_ends: where epochs end in the log of the leader, by partition and epoch.
        rules: settings by topic.
        groups: groups with committed offsets of the topics, with whether they have members; None: not listed.
        committed: committed offsets by group and partition.
        sizes: size of the leader's log by partition, read now or some seconds before.
        names: name on this cluster by topic; those that are not there are missing.
        topics: topics that are there, with all of their partitions, by their names on the origin.
        unlisted: groups of ``migration.groups`` that the cluster does not list.
        leader_ends: end of the log on its leader by partition, with what no other replica has yet, read after the
            offsets; only of the origin, and only if logs are read alone.
    """

    began_s: float
    read_ms: int
    cluster_id: str | None = None
    logs: Mapping[TopicPartition, LogOffsets] = field(default_factory=dict)
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    epoch_ends: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    rules: Mapping[str, TopicRules] = field(default_factory=dict)
    groups: Mapping[str, bool | None] | None = None
    committed: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, LogSize] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, MigratingTopic] = field(default_factory=dict)
    unlisted: frozenset[str] = frozenset()
    leader_ends: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WantedPartitions:
    """What a reading is about.

    Attributes:
        names: partitions, by their names on the origin.
        mirrored: topics whose name on the target may have the origin's alias before it.
        epochs: epochs of the origin whose ends are asked for, beside the newest one.
        sized: those of the partitions whose logs' sizes are asked for.
        is_logs_only: whether topics and logs are read alone, on the origin with their ends on the leaders: no groups,
            settings, epochs and sizes.
    """

    names: Collection[TopicPartition]
    mirrored: frozenset[str] = frozenset()
    epochs: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)
    sized: Collection[TopicPartition] = ()
    is_logs_only: bool = False


def wanted_on_target(agreements: Collection[PartitionAgreement]) -> WantedPartitions:
    """Return what is read of the target.

    Args:
        agreements: partitions of the migrations.
    """
    mirrored = frozenset(own.topic for own in agreements if own.method == MigrationMethod.MIRRORED)
    return WantedPartitions([own.name for own in agreements], mirrored)


def wanted_on_origin(agreements: Collection[PartitionAgreement], acknowledged: EndsByEpoch) -> WantedPartitions | None:
    """Return what is read of the origin; None if nothing calls it: all partitions are shielded, or deleted there.

    Args:
        agreements: partitions of the migrations.
        acknowledged: offset after the last record that is known to be acknowledged.
    """
    called = [own for own in agreements if not (own.shielded or own.origin_dropped)]
    if not called:
        return None
    # Which cluster answers is not known yet.
    epochs: dict[TopicPartition, list[int]] = {}
    for own in called:
        name = own.name
        epochs.setdefault(name, []).extend(acknowledged.get((own.origin_cluster_id, name), ()))
    return WantedPartitions(
        [own.name for own in called],
        epochs=epochs,
        sized=[own.name for own in called if own.status in _WRITTEN],
    )


class ClusterReader:
    """Reads one cluster of the migrations; one reading at a time.

    Args:
        connect: returns the cluster, not yet connected.
        clock_s: seconds since a fixed moment.
        clock_ms: time now, epoch milliseconds.
        groups: names of the groups that migrate; empty: all that have committed offsets of the topics.
        alias: the origin's name if this is the target; None if this is the origin.
    """

    def __init__(
        self,
        connect: Callable[[], MigrationCluster],
        clock_s: Callable[[], float],
        clock_ms: Callable[[], int],
        groups: Sequence[str],
        alias: str | None = None,
    ) -> None:
        self._connect = connect
        self._clock_s = clock_s
        self._clock_ms = clock_ms
        self._named = tuple(groups)
        self._alias = alias
        self._cluster: MigrationCluster | None = None
        self._described: ClusterTopics | None = None
        self._described_s = 0.0
        self._slow_at_s: float | None = None
        self._rules: Mapping[str, TopicRules] = {}
        # None: all groups are asked.
        self._readers: tuple[str, ...] | None = None
        self._topics: frozenset[str] = frozenset()
        self._sizes: Mapping[TopicPartition, LogSize] = {}
        self._sizes_at: tuple[float, int] | None = None
        self._unsized = ""

    def read(self, wanted: WantedPartitions) -> ClusterReading:
        """Return a reading. After an error the next one connects again.

        Raises:
            HeadroomError: the cluster did not answer.
        """
        try:
            if self._cluster is None:
                self._cluster = self._connect().__enter__()
            return self._read(self._cluster, wanted)
        except BaseException:
            self.close()
            raise

    def forget(self) -> None:
        """Forget what is not read every time, so that the next reading has nothing of an earlier one."""
        self._described = self._slow_at_s = self._sizes_at = None

    def close(self) -> None:
        """Close the connections."""
        cluster, self._cluster = self._cluster, None
        self.forget()
        if cluster is not None:
            with contextlib.suppress(Exception):
                cluster.__exit__(None, None, None)

    def _read(self, cluster: MigrationCluster, wanted: WantedPartitions) -> ClusterReading:
        is_old = self._clock_s() - self._described_s > _TOPICS_S
        if self._described is not None and not is_old:
            reading = self._read_of(cluster, wanted, self._described)
            if len(reading.logs) == len(wanted.names) and all(log.end is not None for log in reading.logs.values()):
                return reading
        self._described, self._described_s = cluster.topics(), self._clock_s()
        return self._read_of(cluster, wanted, self._described)

    def _read_of(self, cluster: MigrationCluster, wanted: WantedPartitions, described: ClusterTopics) -> ClusterReading:
        began_s = self._clock_s()
        here = self._names_here({name.topic for name in wanted.names}, wanted.mirrored, described.names)
        origin_names = {own: topic for topic, own in here.items()}
        topics = _only(
            described.topics, [TopicPartition(here[n.topic], n.partition) for n in wanted.names if n.topic in here]
        )

        def name_on_origin(name: TopicPartition) -> TopicPartition:
            return TopicPartition(origin_names[name.topic], name.partition)

        groups: Mapping[str, bool | None] | None = None
        committed: Mapping[str, Mapping[TopicPartition, int]] = {}
        unlisted: frozenset[str] = frozenset()
        if not wanted.is_logs_only:
            self._read_rules(cluster, topics)
            groups, committed, unlisted = self._groups(cluster, topics)
        # Ends come last: no reader may seem to be ahead because it went on meanwhile.
        logs, read_ms = cluster.log_offsets(topics), self._clock_ms()
        leader_ends = cluster.leader_ends(topics) if wanted.is_logs_only and self._alias is None else {}
        epochs = {TopicPartition(t, p): epoch for t, own in topics.items() for p, epoch in own.leader_epochs.items()}
        has_epochs = self._alias is None and not wanted.is_logs_only
        asked = (
            {name: {epoch, *wanted.epochs.get(name_on_origin(name), ())} for name, epoch in epochs.items()}
            if has_epochs
            else {}
        )
        return ClusterReading(
            began_s,
            read_ms,
            described.cluster_id,
            {name_on_origin(name): log for name, log in logs.items()},
            dict.fromkeys(name.topic for name in wanted.names)
            | {origin_names[topic]: own.topic_id for topic, own in topics.items()},
            {name_on_origin(name): epoch for name, epoch in epochs.items()},
            {name_on_origin(name): ends for name, ends in cluster.epoch_ends(topics, asked).items()},
            {origin_names[topic]: rules for topic, rules in self._rules.items() if topic in origin_names},
            groups,
            {group: {name_on_origin(name): offset for name, offset in own.items()} for group, own in committed.items()},
            self._log_sizes(cluster, topics, logs, () if wanted.is_logs_only else wanted.sized),
            here,
            {topic: described.topics[name] for topic, name in here.items()},
            unlisted,
            {name_on_origin(name): end for name, end in leader_ends.items()},
        )

    def _log_sizes(
        self,
        cluster: MigrationCluster,
        topics: Mapping[str, MigratingTopic],
        logs: Mapping[TopicPartition, LogOffsets],
        names: Collection[TopicPartition],
    ) -> Mapping[TopicPartition, LogSize]:
        """Return sizes of logs beside their offsets: those of before, unless new ones are due."""
        if not names:
            return {}
        at, now_s, now_ms = self._sizes_at, self._clock_s(), self._clock_ms()
        if at is not None and now_s - at[0] <= _SIZES_S and abs(now_ms - at[1] - (now_s - at[0]) * 1000) <= _STEP_MS:
            return self._sizes
        found, reason = cluster.log_sizes(topics, [name for name in names if name in logs])
        if reason and reason != self._unsized:
            log.warning("what clients write to partitions of a migration is unknown: %s", reason)
        self._unsized = reason
        self._sizes_at = now_s, now_ms
        read_ms = self._clock_ms()
        self._sizes = {
            name: LogSize(
                read_ms, topics[name.topic].leaders.get(name.partition), logs[name].start, logs[name].end, size_bytes
            )
            for name, size_bytes in found.items()
        }
        return self._sizes

    def _names_here(self, topics: Collection[str], mirrored: Collection[str], there: Collection[str]) -> dict[str, str]:
        """Return the names that topics of the origin have on this cluster; those that are not there are missing."""
        alias = self._alias
        names = {
            topic: target_topic(topic, alias is not None and topic in mirrored, alias or "", there) for topic in topics
        }
        return {topic: name for topic, name in names.items() if name is not None}

    def _read_rules(self, cluster: MigrationCluster, topics: Mapping[str, MigratingTopic]) -> None:
        """Read the settings of topics if that is due; then all groups are looked through again too."""
        now_s = self._clock_s()
        is_due = self._slow_at_s is None or now_s - self._slow_at_s > _SLOW_S or topics.keys() != self._topics
        if is_due:
            self._readers = None
            # Groups that cannot be read leave the settings known, and the other way round.
            with contextlib.suppress(HeadroomError):
                self._rules = cluster.rules(topics)
                self._slow_at_s, self._topics = now_s, frozenset(topics)

    def _groups(
        self, cluster: MigrationCluster, topics: Mapping[str, MigratingTopic]
    ) -> tuple[dict[str, bool | None] | None, Mapping[str, Mapping[TopicPartition, int]], frozenset[str]]:
        """Return the groups of the topics, their committed offsets, and named groups that are not there.

        If they could not be read, that is None and nothing.
        """
        names = [TopicPartition(topic, partition) for topic, own in topics.items() for partition in own.leaders]
        try:
            active = cluster.groups()
            chosen = self._named or (active if self._readers is None else self._readers)
            committed = cluster.committed([group for group in chosen if group in active], names)
        except HeadroomError:
            return None, {}, frozenset()
        if self._readers is None:
            self._readers = tuple(group for group, offsets in committed.items() if offsets)
        known = {group: offsets for group, offsets in committed.items() if offsets or group in self._named}
        return {group: active[group] for group in known}, known, frozenset(self._named).difference(active)


def _only(topics: Mapping[str, MigratingTopic], names: Sequence[TopicPartition]) -> dict[str, MigratingTopic]:
    """Return topics with some of their partitions: of the others nothing is asked."""
    wanted = set(names)
    kept: dict[str, MigratingTopic] = {}
    for topic in sorted({name.topic for name in wanted}):
        own = topics[topic]
        kept[topic] = replace(
            own,
            leaders={p: leader for p, leader in own.leaders.items() if TopicPartition(topic, p) in wanted},
            leader_epochs={p: e for p, e in own.leader_epochs.items() if TopicPartition(topic, p) in wanted},
        )
    return kept
