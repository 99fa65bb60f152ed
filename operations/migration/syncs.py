"""Offset syncs of MirrorMaker 2 between the two clusters: those in their topic, and earlier ones that were kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from headroom.cluster.migration.sync_topic import SyncPlace, find_sync_topic, read_syncs
from headroom.operations.migration.clusters import MigrationClusters
from headroom.operations.migration.kept_syncs import KeptSyncs, SyncIdentity
from headroom.operations.progress import OnText
from headroom.planning.migration.mirrors.sync_record import SyncRecord
from headroom.planning.migration.offset_syncs import nearest_sync
from headroom.planning.migration.plan.planned import TopicOnBoth
from headroom.planning.migration.readings import MigratingTopic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Offsets on the origin and on the target by partition, in the order of the topic of the syncs.
PartitionSyncs = Mapping[TopicPartition, Sequence[tuple[int, int]]]


def read_newest_syncs(clusters: MigrationClusters, names: set[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the newest offset sync of partitions that says anything, as offsets on the origin and on the target.

    They are read from the origin, or from the target if MirrorMaker keeps them there.

    Args:
        clusters: the two clusters.
        names: partitions, by their names on the origin.

    Raises:
        NoSyncTopicError: there is no such topic.
        HeadroomError: it could not be read to its end, or one of its records is no sync.
    """
    _, _, records = _read_topic(clusters, names)
    valid = {name: [record for record in own if record.is_valid] for name, own in records.items()}
    return {name: (own[-1].origin, own[-1].target) for name, own in valid.items() if own}


def read_reader_syncs(
    clusters: MigrationClusters,
    on_both: Mapping[str, TopicOnBoth],
    committed: Mapping[TopicPartition, int],
    kept: KeptSyncs | None,
    on_note: OnText,
) -> PartitionSyncs:
    """Return the offset syncs of partitions, with kept ones for readers behind the first one that is in the topic.

    Args:
        clusters: the two clusters.
        on_both: topics of the partitions, by their names on the origin.
        committed: offset on the origin by partition, by its name there.
        kept: syncs that were kept; None: only those in the topic count.
        on_note: gets a sentence if kept syncs cannot be read.

    Raises:
        HeadroomError: as for ``read_newest_syncs``.
    """
    place, topic, records = _read_topic(clusters, set(committed))
    syncs = {name: _pairs(own) for name, own in records.items()}
    if kept is None:
        return syncs
    earlier: dict[TopicPartition, list[tuple[int, int]]] = {}
    try:
        for name, own in records.items():
            first = next((record for record in own if record.is_valid), None)
            if first is not None and nearest_sync(syncs[name], committed[name]) is None:
                identity = _identity(clusters, topic, on_both[name.topic], name.partition)
                earlier[name] = kept.before(identity, first, committed[name], partial(_epoch_ends, place, topic))
        if any(earlier.values()):
            # The offsets of another topic, or of another leader's log, would not fit to those that were kept.
            place.require_same(topic)
    except HeadroomError as error:
        on_note(f"Kept offset syncs are not used: {error}")
        return syncs
    return {name: [*earlier.get(name, ()), *own] for name, own in syncs.items()}


def _read_topic(
    clusters: MigrationClusters, names: set[TopicPartition]
) -> tuple[SyncPlace, MigratingTopic, dict[TopicPartition, list[SyncRecord]]]:
    place = find_sync_topic(clusters.origin, clusters.origin_topics, clusters.target, clusters.target_topics)
    topics = clusters.origin_topics if place.cluster is clusters.origin else clusters.target_topics
    topic = place.topic_of(topics)
    begin, end = place.range_of(topic)
    with place.cluster.reader() as reader:
        return place, topic, read_syncs(reader, place.name, begin, end, names)


def _identity(clusters: MigrationClusters, topic: MigratingTopic, both: TopicOnBoth, partition: int) -> SyncIdentity:
    return SyncIdentity(
        both.topic,
        partition,
        topic.topic_id,
        clusters.origin_topics.cluster_id,
        clusters.target_topics.cluster_id,
        both.origin.topic_id,
        None if both.target is None else both.target.topic_id,
    )


def _epoch_ends(place: SyncPlace, topic: MigratingTopic, epochs: Collection[int]) -> Mapping[int, int]:
    return place.cluster.epoch_ends({place.name.topic: topic}, {place.name: epochs}).get(place.name, {})


def _pairs(records: Sequence[SyncRecord]) -> list[tuple[int, int]]:
    return [(record.origin, record.target) for record in records]
