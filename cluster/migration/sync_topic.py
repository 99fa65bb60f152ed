"""Topic of MirrorMaker 2's offset syncs: on which of two clusters it is, and the syncs in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.records import RecordReader
from headroom.cluster.migration.topics import ClusterTopics
from headroom.planning.migration.mirrors.names import sync_topic, sync_topics
from headroom.planning.migration.mirrors.sync_format import parse_offset_sync
from headroom.planning.migration.mirrors.sync_record import SyncRecord
from headroom.planning.migration.readings import LogOffsets, MigratingTopic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text import one_line


class NoSyncTopicError(HeadroomError):
    """Neither cluster has the topic of the syncs between the two."""


class SyncPlace(NamedTuple):
    """Where the syncs are.

    Attributes:
        cluster: cluster with the topic.
        name: partition of the syncs; their topic has only one.
    """

    cluster: MigrationCluster
    name: TopicPartition

    def topic_of(self, topics: ClusterTopics) -> MigratingTopic:
        """Return the topic among those that were read.

        Raises:
            HeadroomError: it is not there, or has more than one partition.
        """
        topic = topics.topics.get(self.name.topic)
        if topic is None:
            remedy = "See that the mirror runs, and that this user has DESCRIBE on the topic."
            raise HeadroomError(self.name.topic, f"is gone from the {self.cluster.subject}", remedy)
        if set(topic.leaders) != {0}:
            rule = f"has {len(topic.leaders)} partitions, so the order of its syncs is unknown"
            raise HeadroomError(self.name.topic, rule, "MirrorMaker creates it with one; let it create it again.")
        return topic

    def range_of(self, topic: MigratingTopic) -> tuple[int, int]:
        """Return the log start and the log end of the topic.

        Raises:
            HeadroomError: they are unknown.
        """
        log = self.cluster.log_offsets({self.name.topic: topic}).get(self.name, LogOffsets())
        if log.start is None or log.end is None:
            raise HeadroomError(self.name.topic, "has an unknown log end", "See that it has a leader.")
        return log.start, log.end

    def require_same(self, before: MigratingTopic) -> None:
        """Check that records that were read are of the topic, and of the leader, that were there before.

        Raises:
            HeadroomError: they may not be.
        """
        now = self.topic_of(self.cluster.topics([self.name.topic]))
        if (now.topic_id, now.leader_epochs) != (before.topic_id, before.leader_epochs):
            rule = "was created again, or got another leader, while it was read"
            raise HeadroomError(self.name.topic, rule, "Read it again.")


def find_sync_topic(
    origin: MigrationCluster, origin_topics: ClusterTopics, target: MigrationCluster, target_topics: ClusterTopics
) -> SyncPlace:
    """Return where the offset syncs between two clusters are: on the origin, or on the target.

    Those of another mirror have offsets of another cluster, so only the topic with the alias counts.

    Args:
        origin: the origin.
        origin_topics: its topics.
        target: the target.
        target_topics: its topics.

    Raises:
        NoSyncTopicError: they are on neither.
    """
    places = (
        (origin, origin_topics, sync_topic(target.name)),
        (target, target_topics, sync_topic(origin.name)),
    )
    for cluster, topics, own in places:
        if own in topics.names:
            return SyncPlace(cluster, TopicPartition(own, 0))
    subject = f"{places[0][2]} on the origin, {places[1][2]} on the target"
    others = sorted({name for _, topics, _ in places for name in sync_topics(topics.names)})
    if others:
        rule = f"no offset syncs are there; but those of other mirrors, or other aliases, are: {', '.join(others)}"
        remedy = "Set cluster.name and migration.origin.name to the aliases that MirrorMaker uses."
        raise NoSyncTopicError(subject, rule, remedy)
    remedy = (
        "Grant READ on mm2-offset-syncs.* to this user. With another mirror use --exact, with a link --method linked."
    )
    raise NoSyncTopicError(subject, "no offset syncs are there", remedy)


def sync_records(reader: RecordReader, topic: TopicPartition, begin: int, end: int) -> Iterator[SyncRecord]:
    """Yield the syncs of all partitions, in the order of the topic.

    Args:
        reader: reads the cluster with the topic.
        topic: partition of the syncs.
        begin: first offset.
        end: offset at which reading ends.

    Raises:
        HeadroomError: the topic could not be read to its end, or one of its records is not an offset sync.
    """
    for record in reader.read(topic, begin, end):
        try:
            sync = parse_offset_sync(record.key, record.value)
        except ValueError as error:
            rule = one_line(f"its record at offset {record.offset} is not an offset sync: {error}", 200)
            remedy = (
                "It may have replaced a rewind, so no sync is used. See who else writes there; --exact needs no sync."
            )
            raise HeadroomError(topic.topic, rule, remedy) from None
        yield SyncRecord(record.offset, sync.name, sync.origin, sync.target, record.timestamp_ms)


def read_syncs(
    reader: RecordReader, topic: TopicPartition, begin: int, end: int, names: Collection[TopicPartition]
) -> dict[TopicPartition, list[SyncRecord]]:
    """Return the syncs of partitions, in the order of the topic.

    Args:
        reader: reads the cluster with the topic.
        topic: partition of the syncs.
        begin: its log start.
        end: its log end: a rewind that is not read yet would void what was.
        names: partitions, by their names on the origin.

    Raises:
        HeadroomError: the topic could not be read to its end, or one of its records is not an offset sync.
    """
    syncs: dict[TopicPartition, list[SyncRecord]] = defaultdict(list)
    for sync in sync_records(reader, topic, begin, end):
        if sync.name in names:
            syncs[sync.name].append(sync)
    return dict(syncs)
