"""One cluster of a migration, the origin or the target: what is read of it, and the changes that are made."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from headroom.cluster.admin.epoch_ends import epoch_ends
from headroom.cluster.admin.list_offsets import (
    END,
    NEWEST,
    START,
    WITH_ISOLATION,
    WITH_NEWEST,
    ListedOffset,
    list_offsets,
)
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.each_broker import ask_each
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.cluster.log_dirs.describe import describe_log_dirs
from headroom.cluster.migration.groups import commit_offsets, read_committed, read_groups
from headroom.cluster.migration.records import RecordReader, record_reader
from headroom.cluster.migration.topic_changes import (
    NewMigrationTopic,
    create_topic,
    delete_topic,
    read_copied_settings,
)
from headroom.cluster.migration.topics import ClusterTopics, read_absent, read_rules, read_topics
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.config import KafkaSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_Answer = TypeVar("_Answer")
# Longest wait for the sizes of logs, seconds: shorter than a reading counts as recent.
_SIZES_TIMEOUT_S = 2.0


class MigrationCluster:
    """Reads one cluster of a migration on its own connections; commits offsets of groups, creates and deletes topics.

    Args:
        kafka: the cluster.
        name: name of the cluster.
    """

    def __init__(self, kafka: KafkaSettings, name: str) -> None:
        self.name = name
        self.subject = f"cluster {name}"
        self._kafka = kafka
        self._timeout_s = kafka.request_timeout_ms / 1000
        self._connection = AdminConnection(kafka)
        self._brokers = BrokerFailover.for_command(self._connection, self._timeout_s)

    def __enter__(self) -> MigrationCluster:
        """Connect and return this object.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._connection.client()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._connection.close()

    def topics(self, names: Collection[str] | None = None) -> ClusterTopics:
        """Return topics, and the id of the cluster.

        Args:
            names: topics, a few; None: all.

        Raises:
            HeadroomError: they could not be read.
        """
        try:
            return read_topics(self._brokers, names)
        except MetadataError as error:
            raise self._unread(error) from None

    def absent(self, names: Collection[str]) -> frozenset[str]:
        """Return those of some topics that the cluster says it does not have: not those that this user may not see.

        Raises:
            HeadroomError: they could not be read.
        """
        try:
            return read_absent(self._brokers, names)
        except MetadataError as error:
            raise self._unread(error) from None

    def rules(self, topics: Collection[str]) -> dict[str, TopicRules]:
        """Return the settings of topics; a topic whose settings this user may not read is missing.

        Raises:
            HeadroomError: no broker answered.
        """
        try:
            return read_rules(self._brokers, topics)
        except MetadataError as error:
            raise self._unread(error) from None

    def copied_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the settings that topics on the target take from these; one that may not be read has none.

        Raises:
            HeadroomError: no broker answered.
        """
        try:
            return read_copied_settings(self._brokers, topics)
        except MetadataError as error:
            raise self._unread(error) from None

    def broker_count(self) -> int:
        """Return the number of brokers."""
        return len(self._connection.nodes())

    def admin(self) -> KafkaAdminClient:
        """Return the connected client of the cluster.

        Raises:
            HeadroomError: no broker could be reached.
        """
        return self._connection.client()

    def create_topic(self, topic: NewMigrationTopic) -> None:
        """Create a topic unless it exists.

        Raises:
            HeadroomError: it was not created.
        """
        create_topic(self._connection.client(), topic, self.subject)

    def delete_topic(self, name: str) -> None:
        """Delete a topic unless it is gone.

        Raises:
            HeadroomError: it was not deleted.
        """
        delete_topic(self._connection.client(), name, self.subject)

    def log_offsets(self, topics: Mapping[str, MigratingTopic]) -> dict[TopicPartition, LogOffsets]:
        """Return the offsets of all partitions of topics; what a leader does not report is None."""
        by_leader = _by_leader(topics)
        start, end = _known(self._list_offsets(by_leader, START)), _known(self._list_offsets(by_leader, END))
        stable = _known(self._list_offsets(by_leader, END, committed=True))
        newest = _known(self._list_offsets(by_leader, NEWEST, min_version=WITH_NEWEST))
        return {
            name: LogOffsets(
                start[name].offset if name in start else None,
                end[name].offset if name in end else None,
                stable[name].offset if name in stable else None,
                newest[name].timestamp_ms if name in newest else None,
                newest[name].offset if name in newest else None,
            )
            for name in sorted(_names(topics))
        }

    def log_ends(self, topics: Mapping[str, MigratingTopic]) -> tuple[dict[TopicPartition, int], float]:
        """Return the log ends of all partitions of topics, and when they were read, monotonic seconds."""
        before_s = time.monotonic()
        ends = {name: found.offset for name, found in _known(self._list_offsets(_by_leader(topics), END)).items()}
        return ends, (before_s + time.monotonic()) / 2

    def epoch_ends(
        self, topics: Mapping[str, MigratingTopic], epochs: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, dict[int, int]]:
        """Return by partition and leader epoch where the epoch ends in the log of the present leader.

        What a leader does not report is missing.

        Args:
            topics: topics with the leaders of their partitions.
            epochs: epochs that are asked for.
        """
        found: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
        waiting = {name: sorted(set(asked)) for name, asked in epochs.items() if asked}
        # A request names a partition once.
        while waiting:
            asked = {name: own.pop() for name, own in waiting.items()}
            waiting = {name: own for name, own in waiting.items() if own}
            for name, end in self._epoch_ends(topics, asked).items():
                found[name][asked[name]] = end
        return dict(found)

    def leader_ends(self, topics: Mapping[str, MigratingTopic]) -> dict[TopicPartition, int]:
        """Return where the log of each partition ends on its leader, with what no other replica has yet.

        The end in ``log_offsets`` is the high watermark: with acks=1 a leader acknowledges records beyond it. A
        partition whose leader does not answer, or has another epoch than the topics have, is missing.

        Args:
            topics: topics with the leaders of their partitions and their epochs.
        """
        epochs = {TopicPartition(t, p): epoch for t, own in topics.items() for p, epoch in own.leader_epochs.items()}
        return self._epoch_ends(topics, epochs, newest=True)

    def _epoch_ends(
        self,
        topics: Mapping[str, MigratingTopic],
        epochs: Mapping[TopicPartition, int],
        newest: bool = False,
    ) -> dict[TopicPartition, int]:
        return self._answers(
            _by_leader(topics, epochs),
            lambda leader, names: epoch_ends(
                self._connection, leader, {name: epochs[name] for name in names}, self._timeout_s, newest=newest
            ),
        )

    def log_sizes(
        self, topics: Mapping[str, MigratingTopic], names: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], str]:
        """Return the size of the leader's log of partitions, bytes, and why some are unknown; empty if none is.

        What a leader does not report is missing. This needs ``Describe`` on the cluster.

        Args:
            topics: topics with the leaders of the partitions.
            names: partitions.
        """
        by_leader = _by_leader(topics, names)
        # They are extras: a broker whose disks hang must not hold up the offsets.
        timeout_s = min(self._timeout_s, _SIZES_TIMEOUT_S)
        reading = describe_log_dirs(self._connection, by_leader, timeout_s, names)
        sizes = {
            name: own.logs[name].size_bytes
            for leader, own in reading.brokers.items()
            for name in by_leader[leader]
            if name in own.logs
        }
        reasons = [f"broker {broker} {error.rule}" for broker, error in sorted(reading.errors.items())]
        return sizes, "; ".join(reasons)

    def offset_at(self, topics: Mapping[str, MigratingTopic], name: TopicPartition, time_ms: int) -> int | None:
        """Return the offset of a partition's first record with a timestamp from a time on; None without one.

        Args:
            topics: the topic of the partition.
            name: partition.
            time_ms: time, epoch milliseconds.

        Raises:
            HeadroomError: its leader did not answer, or is another broker.
        """
        leader = topics[name.topic].leaders.get(name.partition)
        found = {} if leader is None else self._list_offsets({leader: [name]}, time_ms)
        if name not in found:
            raise HeadroomError(f"{name} on {self.subject}", "has no leader that answers", "See that it has a leader.")
        return found[name].offset if found[name].offset >= 0 else None

    def groups(self) -> dict[str, bool | None]:
        """Return all groups, with whether each has members now; None if unknown.

        Raises:
            HeadroomError: a broker did not answer, or refused.
        """
        return read_groups(self._connection, self.subject)

    def committed(
        self, groups: Collection[str], names: Collection[TopicPartition] | None = None
    ) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offsets of groups by partition, of all if None; partitions without one are missing.

        Raises:
            HeadroomError: a broker did not answer, or refused.
        """
        return read_committed(self._connection, self.subject, groups, names)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets in the place of a group, which must have no members.

        Raises:
            HeadroomError: offsets were not committed.
        """
        commit_offsets(self._connection, self.subject, group, offsets)

    def reader(self, *, committed: bool = False, patience_s: float = 0.0) -> AbstractContextManager[RecordReader]:
        """Return a reader of records.

        Args:
            committed: whether records of aborted transactions are left out.
            patience_s: how much longer than a request may take it waits for the next record, seconds.
        """
        return record_reader(self._kafka, self.subject, committed, patience_s)

    def _list_offsets(
        self,
        by_leader: Mapping[int, Iterable[TopicPartition]],
        which: int,
        committed: bool = False,
        min_version: int = WITH_ISOLATION,
    ) -> dict[TopicPartition, ListedOffset]:
        """Return what leaders answer; the offset is below 0 where there is none."""
        return self._answers(
            by_leader,
            lambda leader, names: list_offsets(
                self._connection,
                leader,
                dict.fromkeys(names, which),
                self._timeout_s,
                committed=committed,
                min_version=min_version,
            ),
        )

    def _answers(
        self,
        by_leader: Mapping[int, Iterable[TopicPartition]],
        ask: Callable[[int, Iterable[TopicPartition]], Mapping[TopicPartition, _Answer]],
    ) -> dict[TopicPartition, _Answer]:
        """Return the answers of all leaders; those of one that does not answer are missing."""

        def answer(leader: int) -> Mapping[TopicPartition, _Answer]:
            try:
                return ask(leader, by_leader[leader])
            except KafkaError:
                return {}

        return {name: own for of_leader in ask_each(by_leader, answer).values() for name, own in of_leader.items()}

    def _unread(self, error: MetadataError) -> HeadroomError:
        return HeadroomError(self.subject, str(error), "See that its brokers are up, then run it again.")


def _names(topics: Mapping[str, MigratingTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, own in topics.items() for partition in own.leaders]


def _known(answers: Mapping[TopicPartition, ListedOffset]) -> dict[TopicPartition, ListedOffset]:
    """Return the answers that have an offset."""
    return {name: listed for name, listed in answers.items() if listed.offset >= 0}


def _by_leader(
    topics: Mapping[str, MigratingTopic], names: Iterable[TopicPartition] | None = None
) -> dict[int, list[TopicPartition]]:
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for name in _names(topics) if names is None else names:
        leader = topics[name.topic].leaders[name.partition]
        if leader is not None:
            by_leader[leader].append(name)
    return dict(by_leader)
