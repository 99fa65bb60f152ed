"""The two clusters of a migration, connected and known to be two."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.topics import ClusterTopics
from headroom.operations.progress import OnText
from headroom.planning.migration.mirrors.names import other_mirrors, target_topic
from headroom.planning.migration.plan.planned import TopicOnBoth
from headroom.planning.migration.readings import MigratingTopic
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import join_names


@dataclass(frozen=True)
class MigrationClusters:
    """The origin and the target, and the topics that they had at the start.

    Attributes:
        origin: cluster that topics migrate from.
        target: cluster that they migrate to.
        origin_topics: topics of the origin.
        target_topics: topics of the target.
    """

    origin: MigrationCluster
    target: MigrationCluster
    origin_topics: ClusterTopics
    target_topics: ClusterTopics

    def topics_on_both(self, topics: Collection[str], is_mirror: bool) -> dict[str, TopicOnBoth]:
        """Return topics as they are on both clusters, by their names on the origin.

        Args:
            topics: names on the origin.
            is_mirror: whether the target's topic may have the name of the origin before its own.

        Raises:
            HeadroomError: a topic is not on the origin, or a cluster did not answer.
        """
        missing = sorted(set(topics) - self.origin_topics.names)
        if missing:
            remedy = "Check its spelling, and that this user has DESCRIBE on it."
            raise HeadroomError(f"topic {missing[0]}", f"is not on the {self.origin.subject}", remedy)
        there = self.target_topics.names
        names = {topic: target_topic(topic, is_mirror, self.origin.name, there) for topic in dict.fromkeys(topics)}
        rules = self.origin.rules(topics)
        target_rules = self.target.rules([name for name in names.values() if name is not None])
        return {
            topic: TopicOnBoth(
                topic,
                self.origin_topics.topics[topic],
                rules.get(topic),
                name,
                None if name is None else self.target_topics.topics[name],
                None if name is None else target_rules.get(name),
            )
            for topic, name in names.items()
        }

    def mirrored_topics(self, topics: Collection[str], is_mirror: bool, on_note: OnText) -> dict[str, TopicOnBoth]:
        """Return topics as ``topics_on_both`` does, that are on the target with the same number of partitions.

        Args:
            topics: names on the origin.
            is_mirror: whether the target's topic may have the name of the origin before its own.
            on_note: gets a sentence about a topic that may be mirrored under another name.

        Raises:
            HeadroomError: one is not, or a cluster did not answer.
        """
        on_both = self.topics_on_both(topics, is_mirror)
        for topic, both in on_both.items():
            if both.target is None:
                names = f"neither as {self.origin.name}.{topic} nor as {topic}" if is_mirror else f"as {topic}"
                remedy = (
                    "See that the mirror runs, and that migration.origin.name is its alias; or name the other topics."
                )
                raise HeadroomError(f"topic {topic}", f"is not on the {self.target.subject}, {names}", remedy)
            counts = len(both.origin.leaders), len(both.target.leaders)
            if counts[0] != counts[1]:
                rule = f"has {counts[0]} partitions on the origin, and {counts[1]} on the target as {both.target_name}"
                raise HeadroomError(f"topic {topic}", rule, "Give both the same number of partitions.")
            others = other_mirrors(topic, str(both.target_name), self.target_topics.names) if is_mirror else []
            if both.target_name == topic and others:
                names = join_names(others)
                on_note(f"{topic} counts as its own mirror. If {names} is it, set migration.origin.name to that alias.")
        return on_both

    def require_same_topics(self, on_both: Collection[TopicOnBoth]) -> None:
        """Check that topics are those that were read at the start, on both clusters.

        Raises:
            HeadroomError: one was deleted or recreated meanwhile, or a cluster did not answer.
        """
        origin = {both.topic: both.origin for both in on_both}
        for cluster, known in ((self.origin, origin), (self.target, targets_of(on_both))):
            now = cluster.topics().topics
            for name, topic in known.items():
                if name not in now or now[name].topic_id != topic.topic_id:
                    raise recreated_error(name, cluster.subject)


def recreated_error(topic: str, subject: str) -> HeadroomError:
    """Return the error that a topic of a cluster is another one than at the start."""
    rule = f"was deleted or recreated on the {subject} while it was read"
    return HeadroomError(f"topic {topic}", rule, "Run the command again.")


def targets_of(topics: Collection[TopicOnBoth]) -> dict[str, MigratingTopic]:
    """Return the topics that are on the target, by their names there."""
    return {
        both.target_name: both.target for both in topics if both.target_name is not None and both.target is not None
    }


def require_other_cluster(clusters: MigrationClusters) -> None:
    """Check that the origin and the target are not one cluster under two names.

    Raises:
        HeadroomError: both have the same id.
    """
    cluster_id = clusters.origin_topics.cluster_id
    if cluster_id is not None and cluster_id == clusters.target_topics.cluster_id:
        rule = f"leads to the same cluster as cluster.bootstrap_servers: both have the id {cluster_id}"
        raise HeadroomError("migration.origin.bootstrap_servers", rule, "Name brokers of the other cluster.")


def require_origin(settings: Settings) -> None:
    """Check that an origin is set.

    Raises:
        HeadroomError: it is not.
    """
    if not settings.migration.origin.bootstrap_servers.strip():
        remedy = "Give host:port of brokers of the cluster that topics migrate from; [cluster] is the one they go to."
        raise HeadroomError("migration.origin.bootstrap_servers", "is not set", remedy)


@contextmanager
def migration_clusters(settings: Settings) -> Iterator[MigrationClusters]:
    """Yield the connected clusters of the settings, and close the connections at the end.

    Raises:
        HeadroomError: no origin is set, a cluster could not be reached, or both are the same one.
    """
    require_origin(settings)
    origin_settings = settings.migration.origin
    with (
        MigrationCluster(origin_settings, origin_settings.name) as origin,
        MigrationCluster(settings.cluster, settings.cluster.name) as target,
    ):
        clusters = MigrationClusters(origin, target, origin.topics(), target.topics())
        require_other_cluster(clusters)
        yield clusters
