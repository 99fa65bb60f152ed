"""One cluster of the migrations, read on a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headroom.cluster.collector.clock import Clock
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.topics import ClusterTopics
from headroom.planning.migration.mirrors.names import mirror_topic
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Topics of a large cluster take a second of a core to read. A leader that has moved does not answer: then they are read
# again at once.
_TOPICS_S = 5.0
# What changes rarely is read this often, seconds: settings of topics, and which groups have offsets of them.
_SLOW_S = 30.0


@dataclass(frozen=True)
class ClusterReading:
    """One cluster at one time. Partitions have their names on the origin; what could not be read is missing.

    Attributes:
        began_s: start of the reading, elapsed seconds.
        read_ms: time of the offsets, epoch milliseconds.
        cluster_id: id of the cluster; None if the broker does not report it.
        logs: offsets by partition.
        topic_ids: id by topic.
        leader_epochs: epoch of the leader by partition.
        epoch_ends: where epochs end in the log of the leader, by partition and epoch.
        rules: settings by topic.
        groups: groups with committed offsets of the topics, with whether they have members; None: not listed.
        committed: committed offsets by group and partition.
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


@dataclass(frozen=True)
class WantedPartitions:
    """What a reading is about.

    Attributes:
        names: partitions, by their names on the origin.
        mirrored: topics whose name on the target may have the origin's alias before it.
        epochs: epochs of the origin whose ends are asked for, beside the newest one.
    """

    names: Collection[TopicPartition]
    mirrored: frozenset[str] = frozenset()
    epochs: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)


class ClusterReader:
    """Reads one cluster of the migrations; one reading at a time.

    Args:
        connect: returns the cluster, not yet connected.
        clock: clock of the readings.
        groups: names of the groups that migrate; empty: all that have committed offsets of the topics.
        alias: the origin's name if this is the target; None if this is the origin.
    """

    def __init__(
        self, connect: Callable[[], MigrationCluster], clock: Clock, groups: Sequence[str], alias: str | None = None
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._named = tuple(groups)
        self._alias = alias
        self._cluster: MigrationCluster | None = None
        self._described: ClusterTopics | None = None
        self._described_s = 0.0
        self._slow_at_s: float | None = None
        self._rules: Mapping[str, TopicRules] = {}
        self._readers: tuple[str, ...] = ()
        self._topics: frozenset[str] = frozenset()

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

    def close(self) -> None:
        """Close the connections."""
        cluster, self._cluster = self._cluster, None
        self._described = self._slow_at_s = None
        if cluster is not None:
            with contextlib.suppress(Exception):
                cluster.__exit__(None, None, None)

    def _read(self, cluster: MigrationCluster, wanted: WantedPartitions) -> ClusterReading:
        is_old = self._clock.elapsed_s() - self._described_s > _TOPICS_S
        if self._described is not None and not is_old:
            reading = self._read_of(cluster, wanted, self._described)
            if len(reading.logs) == len(wanted.names) and all(log.end is not None for log in reading.logs.values()):
                return reading
        self._described, self._described_s = cluster.topics(), self._clock.elapsed_s()
        return self._read_of(cluster, wanted, self._described)

    def _read_of(self, cluster: MigrationCluster, wanted: WantedPartitions, described: ClusterTopics) -> ClusterReading:
        began_s = self._clock.elapsed_s()
        here = self._names_here({name.topic for name in wanted.names}, wanted.mirrored, described.names)
        origin_names = {own: topic for topic, own in here.items()}
        topics = _only(
            described.topics, [TopicPartition(here[n.topic], n.partition) for n in wanted.names if n.topic in here]
        )

        def named(name: TopicPartition) -> TopicPartition:
            return TopicPartition(origin_names[name.topic], name.partition)

        groups, committed = self._groups(cluster, topics)
        # Ends come last: no reader may seem to be ahead because it went on meanwhile.
        logs, read_ms = cluster.log_offsets(topics), self._clock.now_ms()
        epochs = {TopicPartition(t, p): epoch for t, own in topics.items() for p, epoch in own.leader_epochs.items()}
        is_origin = self._alias is None
        asked = (
            {name: {epoch, *wanted.epochs.get(named(name), ())} for name, epoch in epochs.items()} if is_origin else {}
        )
        return ClusterReading(
            began_s,
            read_ms,
            described.cluster_id,
            {named(name): log for name, log in logs.items()},
            {origin_names[topic]: own.topic_id for topic, own in topics.items()},
            {named(name): epoch for name, epoch in epochs.items()},
            {named(name): ends for name, ends in cluster.epoch_ends(topics, asked).items()},
            {origin_names[topic]: rules for topic, rules in self._rules.items() if topic in origin_names},
            groups,
            {group: {named(name): offset for name, offset in own.items()} for group, own in committed.items()},
        )

    def _names_here(self, topics: Collection[str], mirrored: Collection[str], there: Collection[str]) -> dict[str, str]:
        """Return the names that topics of the origin have on this cluster; those that are not there are missing."""
        alias = self._alias
        names = {
            topic: mirror_topic(topic, alias, there)
            if alias is not None and topic in mirrored
            else topic
            if topic in there
            else None
            for topic in topics
        }
        return {topic: name for topic, name in names.items() if name is not None}

    def _groups(
        self, cluster: MigrationCluster, topics: Mapping[str, MigratingTopic]
    ) -> tuple[dict[str, bool | None] | None, Mapping[str, Mapping[TopicPartition, int]]]:
        """Return the groups of the topics and their committed offsets; (None, nothing) if they could not be read."""
        names = [TopicPartition(topic, partition) for topic, own in topics.items() for partition in own.leaders]
        now_s = self._clock.elapsed_s()
        is_due = self._slow_at_s is None or now_s - self._slow_at_s > _SLOW_S or topics.keys() != self._topics
        try:
            active = cluster.groups()
            chosen = list(self._named or (active if is_due else self._readers))
            committed = cluster.committed([group for group in chosen if group in active], names)
            if is_due:
                self._rules = cluster.rules(topics)
        except HeadroomError:
            return None, {}
        if is_due:
            self._slow_at_s, self._topics = now_s, frozenset(topics)
            self._readers = tuple(group for group, offsets in committed.items() if offsets)
        known = {group: offsets for group, offsets in committed.items() if offsets or group in self._named}
        return {group: active[group] for group in known}, known


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
