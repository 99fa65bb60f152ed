"""Offset syncs of MirrorMaker 2 between the two clusters, from the one that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.sync_topic import read_syncs
from headroom.operations.migration.clusters import MigrationClusters
from headroom.planning.migration.mirrors.names import sync_topic, sync_topics
from headroom.planning.migration.readings import MigratingTopic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Offsets on the origin and on the target by partition, in the order of the topic of the syncs.
PartitionSyncs = Mapping[TopicPartition, Sequence[tuple[int, int]]]


def read_mirror_syncs(clusters: MigrationClusters, names: set[TopicPartition]) -> PartitionSyncs:
    """Return the offset syncs of partitions, from the origin, or from the target if MirrorMaker keeps them there.

    Those of another mirror have offsets of another cluster, so only the topic with the alias is read.

    Args:
        clusters: the two clusters.
        names: partitions, by their names on the origin.

    Raises:
        HeadroomError: there is no such topic, it could not be read to its end, or one of its records is no sync.
    """
    places = (
        (clusters.origin, clusters.origin_topics, sync_topic(clusters.target.name)),
        (clusters.target, clusters.target_topics, sync_topic(clusters.origin.name)),
    )
    for cluster, topics, own in places:
        if own in topics.names:
            return _read_sync_topic(cluster, topics.topics[own], own, names)
    subject = f"{places[0][2]} on the origin, {places[1][2]} on the target"
    others = sorted({name for _, topics, _ in places for name in sync_topics(topics.names)})
    if others:
        rule = f"no offset syncs are there; but those of other mirrors, or other aliases, are: {', '.join(others)}"
        remedy = "Set cluster.name and migration.origin.name to the aliases that MirrorMaker uses."
        raise HeadroomError(subject, rule, remedy)
    remedy = (
        "Grant READ on mm2-offset-syncs.* to this user. With another mirror use --exact, with a link --method linked."
    )
    raise HeadroomError(subject, "no offset syncs are there", remedy)


def _read_sync_topic(
    cluster: MigrationCluster, described: MigratingTopic, topic: str, names: set[TopicPartition]
) -> PartitionSyncs:
    if set(described.leaders) != {0}:
        rule = f"has {len(described.leaders)} partitions, so the order of its syncs is unknown"
        raise HeadroomError(topic, rule, "MirrorMaker creates it with one; let it create it again.")
    name = TopicPartition(topic, 0)
    log = cluster.log_offsets({topic: described})[name]
    if log.start is None or log.end is None:
        raise HeadroomError(topic, "has an unknown log end", "See that it has a leader, then run it again.")
    with cluster.reader() as reader:
        return read_syncs(reader, name, log.start, log.end, names)
