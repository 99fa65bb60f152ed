"""One reading of one cluster of a migration, for its status; a cluster that does not answer leaves it unknown."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.topics import ClusterTopics
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules, growth_per_s
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class ClusterSnapshot:
    """A cluster at one time.

    Attributes:
        topics: its topics; None if it did not answer, or was not asked.
        logs: logs of the partitions that were asked for.
        rules: settings of their topics.
        groups: whether each group has members; None if unknown.
        committed: committed offsets by group and partition; None if they could not be read.
        epoch_ends: where leader epochs end in the log of the present leader, by partition and epoch.
        at_s: time of the log ends, monotonic seconds.
        failure: why it did not answer; empty if it did.
    """

    topics: ClusterTopics | None = None
    logs: Mapping[TopicPartition, LogOffsets] = field(default_factory=dict)
    rules: Mapping[str, TopicRules] = field(default_factory=dict)
    groups: Mapping[str, bool | None] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, int]] | None = None
    epoch_ends: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    at_s: float = 0.0
    failure: str = ""

    def topic_id(self, name: str) -> str | None:
        """Return the id of a topic; None if unknown."""
        topic = None if self.topics is None else self.topics.topics.get(name)
        return None if topic is None else topic.topic_id

    def leader_end(self, name: TopicPartition) -> int | None:
        """Return the log end of a partition's leader, with what no other replica has yet; None if unknown."""
        topic = None if self.topics is None else self.topics.topics.get(name.topic)
        epoch = None if topic is None else topic.leader_epochs.get(name.partition)
        return None if epoch is None else self.epoch_ends.get(name, {}).get(epoch)

    def rate_since(self, earlier: ClusterSnapshot, name: TopicPartition) -> float | None:
        """Return the rate at which a log has grown, offsets per second; None if unknown, or if it got shorter.

        Args:
            earlier: reading before this one.
            name: partition.
        """
        before, after = (at.logs.get(name, LogOffsets()).end for at in (earlier, self))
        return growth_per_s(before, after, self.at_s - earlier.at_s)


def read_snapshot(
    cluster: MigrationCluster,
    names: Sequence[TopicPartition],
    groups: Collection[str],
    epochs: Mapping[TopicPartition, Collection[int]] | None = None,
) -> ClusterSnapshot:
    """Return a reading of a cluster; nothing is called without partitions.

    Args:
        cluster: the cluster.
        names: partitions, by their names there.
        groups: consumer groups; empty: all.
        epochs: leader epochs whose ends are read, beside that of now; None: none are.
    """
    if not names:
        return ClusterSnapshot(failure="it was not called")
    try:
        topics = cluster.topics()
        own = {name.topic: topics.topics[name.topic] for name in names if name.topic in topics.topics}
        states = _states(cluster)
        committed = _committed(cluster, states, groups, names)
        rules = cluster.rules(list(own))
        _, at_s = cluster.log_ends({})
        logs = cluster.log_offsets(own)
        # Afterwards: what only the leader has is rather too much than too little.
        ends = {} if epochs is None else cluster.epoch_ends(own, _asked_epochs(names, own, epochs))
        return ClusterSnapshot(topics, logs, rules, states or {}, committed, ends, at_s)
    except HeadroomError as error:
        return ClusterSnapshot(at_s=time.monotonic(), failure=error.rule)


def _asked_epochs(
    names: Sequence[TopicPartition],
    topics: Mapping[str, MigratingTopic],
    epochs: Mapping[TopicPartition, Collection[int]],
) -> dict[TopicPartition, set[int]]:
    asked: dict[TopicPartition, set[int]] = {}
    for name in names:
        own = topics.get(name.topic)
        newest = None if own is None else own.leader_epochs.get(name.partition)
        asked[name] = {*epochs.get(name, ()), *(() if newest is None else (newest,))}
    return asked


def _states(cluster: MigrationCluster) -> dict[str, bool | None] | None:
    try:
        return cluster.groups()
    except HeadroomError:
        return None


def _committed(
    cluster: MigrationCluster,
    states: Mapping[str, bool | None] | None,
    groups: Collection[str],
    names: Sequence[TopicPartition],
) -> dict[str, dict[TopicPartition, int]] | None:
    wanted = groups or states
    if wanted is None:
        return None
    try:
        return cluster.committed(list(wanted), names)
    except HeadroomError:
        return None
