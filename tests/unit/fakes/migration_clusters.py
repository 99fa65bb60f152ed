"""Two clusters of a migration in memory, as the use cases see them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from kafka.admin import NewTopic

from headroom.cluster.migration.records import LogRecord
from headroom.cluster.migration.topic_changes import NewMigrationTopic
from headroom.cluster.migration.topics import ClusterTopics
from headroom.operations.migration.clusters import MigrationClusters
from headroom.planning.migration.mirrors.record_digest import record_digest
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

RULES = TopicRules("delete", 604_800_000, -1, 2, False, "CreateTime", False)


def log_record(offset: int, number: int, key: bytes | None = None, value: bytes | None = None) -> LogRecord:
    """Return a record whose content and timestamp follow from a number."""
    value = b"value %d" % number if value is None else value
    digest = record_digest(key, value, (), 1_000 + number)
    return LogRecord(offset, key, value, digest, 1_000 + number)


def sync_bytes(partition: int, origin: int, target: int, topic: bytes = b"orders") -> tuple[bytes, bytes]:
    """Return key and value of an offset sync, as MirrorMaker writes them."""
    key = struct.pack(">h", len(topic)) + topic + struct.pack(">i", partition)
    return key, struct.pack(">qq", origin, target)


class FakeRecordReader:
    """Reads the records of a fake cluster; ``reads`` has what was asked for."""

    def __init__(self, cluster: FakeMigrationCluster) -> None:
        self._cluster = cluster

    def read(self, name: TopicPartition, begin: int, end: int) -> Iterator[LogRecord]:
        self._cluster.reads.append((name, begin, end))
        for record in self._cluster.logs[name]:
            if begin <= record.offset < end:
                self._cluster.before_record(name, record)
                yield record


class FakeTopicAdmin:
    """Creates the agreement topic."""

    def __init__(self, cluster: FakeMigrationCluster) -> None:
        self._cluster = cluster

    def create_topics(self, topics: Sequence[NewTopic]) -> None:
        for topic in topics:
            own = NewMigrationTopic(topic.name, topic.num_partitions, topic.replication_factor, topic.topic_configs)
            self._cluster.create_topic(own)

    def wait_for_topics(self, names: Sequence[str]) -> None:
        assert set(names) <= {name.topic for name in self._cluster.logs}


@dataclass
class FakeMigrationCluster:
    """A cluster in memory.

    Attributes:
        name: its name.
        cluster_id: its id.
        logs: records by partition.
        starts: log start, 0 if it is not among them.
        ends: log end, that of the last record if it is not among them.
        unreplicated: offsets beyond it that only the leader has; 0 if it is not among them.
        without_leader_end: partitions whose leader does not report where its log ends.
        stables: last stable offset, the log end if it is not among them.
        settings: settings by topic; ``RULES`` if it is not among them.
        replicas: replicas of each partition.
        leaderless: partitions without a leader.
        leaders: broker that leads a partition; 1 if it is not among them. Others do not answer about it.
        before_record: called before each record that is read.
        topic_ids: id of a topic; ``id of NAME`` if it is not among them.
        group_states: whether each group has members.
        offsets: committed offsets by group and partition.
        commits: offsets that were committed, by group.
        refuses: whether commits are refused.
        reads: partitions and offsets that were read.
        now_s: monotonic time.
        down: whether it answers nothing.
        calls: number of times that it was called.
        brokers: number of its brokers.
        kafka_settings: settings by topic and Kafka's key, which a topic on the target takes over.
        created: topics that were created.
        deleted: topics that were deleted.
        before_effect: called before and after each creation and deletion.
        leader_epochs: epoch of the leader of a partition; unknown if it is not among them.
        ended: where earlier epochs end in its log; the present one ends with the log.
        sizes: size of the leader's log, bytes; unknown if it is not among them.
        unsized: why sizes are unknown.
        sized: partitions that were asked for their sizes, by call.
        hidden: topics that are not among the logs, and that the user may not see: they may be there.
    """

    name: str
    cluster_id: str | None = None
    logs: dict[TopicPartition, list[LogRecord]] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    unreplicated: dict[TopicPartition, int] = field(default_factory=dict)
    without_leader_end: set[TopicPartition] = field(default_factory=set)
    stables: dict[TopicPartition, int] = field(default_factory=dict)
    settings: dict[str, TopicRules] = field(default_factory=dict)
    replicas: int = 3
    leaderless: set[TopicPartition] = field(default_factory=set)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    before_record: Callable[[TopicPartition, LogRecord], object] = lambda name, record: None
    topic_ids: dict[str, str] = field(default_factory=dict)
    group_states: dict[str, bool | None] = field(default_factory=dict)
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    commits: list[tuple[str, dict[TopicPartition, int]]] = field(default_factory=list)
    refuses: bool = False
    reads: list[tuple[TopicPartition, int, int]] = field(default_factory=list)
    now_s: float = 0.0
    down: bool = False
    calls: int = 0
    brokers: int = 3
    kafka_settings: dict[str, dict[str, str]] = field(default_factory=dict)
    created: list[NewMigrationTopic] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    before_effect: Callable[[], object] = lambda: None
    leader_epochs: dict[TopicPartition, int] = field(default_factory=dict)
    ended: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    unsized: str = ""
    sized: list[list[TopicPartition]] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    @property
    def subject(self) -> str:
        return f"cluster {self.name}"

    def __enter__(self) -> FakeMigrationCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""

    def fill(self, topic: str, partition: int, numbers: Sequence[int], first: int = 0) -> None:
        """Give a partition records with these numbers, at offsets from the first one on."""
        name = TopicPartition(topic, partition)
        self.logs[name] = [log_record(first + at, number) for at, number in enumerate(numbers)]
        self.starts[name] = first

    def _answer(self) -> None:
        self.calls += 1
        if self.down:
            raise HeadroomError(self.subject, "no broker answered", "See that its brokers are up.")

    def copied_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        return {topic: self.kafka_settings[topic] for topic in topics if topic in self.kafka_settings}

    def broker_count(self) -> int:
        return self.brokers

    def admin(self) -> FakeTopicAdmin:
        return FakeTopicAdmin(self)

    def create_topic(self, topic: NewMigrationTopic) -> None:
        self.before_effect()
        if all(name.topic != topic.name for name in self.logs):
            self.created.append(topic)
            if (policy := topic.settings.get("cleanup.policy")) is not None:
                self.settings[topic.name] = replace(RULES, cleanup_policy=policy)
            self.logs |= {TopicPartition(topic.name, partition): [] for partition in range(topic.partitions)}
        self.before_effect()

    def delete_topic(self, name: str) -> None:
        self.before_effect()
        self.deleted.append(name)
        self.logs = {own: log for own, log in self.logs.items() if own.topic != name}
        self.before_effect()

    def topics(self, names: Collection[str] | None = None) -> ClusterTopics:
        self._answer()
        partitions: dict[str, dict[int, int | None]] = {}
        for name in self.logs:
            if names is not None and name.topic not in names:
                continue
            partitions.setdefault(name.topic, {})[name.partition] = self._leader(name)
        epochs = {topic: {p: e for (t, p), e in self.leader_epochs.items() if t == topic} for topic in partitions}
        topics = {
            topic: MigratingTopic(self.topic_ids.get(topic, f"id of {topic}"), own, self.replicas, epochs[topic])
            for topic, own in partitions.items()
        }
        return ClusterTopics(self.cluster_id or f"id of {self.name}", topics, frozenset(topics))

    def absent(self, names: Collection[str]) -> frozenset[str]:
        self._answer()
        return frozenset(names).difference(name.topic for name in self.logs).difference(self.hidden)

    def rules(self, topics: Collection[str]) -> dict[str, TopicRules]:
        return {topic: self.settings.get(topic, RULES) for topic in topics}

    def end_of(self, name: TopicPartition) -> int:
        own = self.logs[name]
        return self.ends.get(name, own[-1].offset + 1 if own else self.starts.get(name, 0))

    def log_offsets(self, topics: Mapping[str, MigratingTopic]) -> dict[TopicPartition, LogOffsets]:
        self._answer()
        found = {}
        for topic, own in topics.items():
            for partition, leader in own.leaders.items():
                name = TopicPartition(topic, partition)
                newest, at = max(((one.timestamp_ms, one.offset) for one in self.logs[name]), default=(None, None))
                end = self.end_of(name)
                log = LogOffsets(self.starts.get(name, 0), end, self.stables.get(name, end), newest, at)
                found[name] = log if leader is not None and leader == self._leader(name) else LogOffsets()
        return found

    def leader_end_of(self, name: TopicPartition) -> int:
        return self.end_of(name) + self.unreplicated.get(name, 0)

    def leader_ends(self, topics: Mapping[str, MigratingTopic]) -> dict[TopicPartition, int]:
        self._answer()
        led = {TopicPartition(t, p): leader for t, own in topics.items() for p, leader in own.leaders.items() if leader}
        known = {name for name, leader in led.items() if leader == self._leader(name)} - self.without_leader_end
        return {name: self.leader_end_of(name) for name in known}

    def epoch_ends(
        self, topics: Mapping[str, MigratingTopic], epochs: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, dict[int, int]]:
        known = {n: {**self.ended.get(n, {}), self.leader_epochs.get(n, -1): self.leader_end_of(n)} for n in epochs}
        return {name: {e: known[name][e] for e in asked if e in known[name]} for name, asked in epochs.items()}

    def log_sizes(
        self, topics: Mapping[str, MigratingTopic], names: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], str]:
        self.sized.append(list(names))
        return {name: self.sizes[name] for name in names if name in self.sizes}, self.unsized

    def log_ends(self, topics: Mapping[str, MigratingTopic]) -> tuple[dict[TopicPartition, int], float]:
        logs = self.log_offsets(topics)
        return {name: log.end for name, log in logs.items() if log.end is not None}, self.now_s

    def _leader(self, name: TopicPartition) -> int | None:
        return None if name in self.leaderless else self.leaders.get(name, 1)

    def offset_at(self, topics: Mapping[str, MigratingTopic], name: TopicPartition, time_ms: int) -> int | None:
        leader = topics[name.topic].leaders[name.partition]
        if leader is None or leader != self._leader(name):
            raise HeadroomError(f"{name} on {self.subject}", "has no leader that answers", "See that it has a leader.")
        return next((record.offset for record in self.logs[name] if record.timestamp_ms >= time_ms), None)

    def groups(self) -> dict[str, bool | None]:
        return self.group_states

    def committed(
        self, groups: Collection[str], names: Collection[TopicPartition] | None = None
    ) -> dict[str, dict[TopicPartition, int]]:
        return {
            group: {n: o for n, o in self.offsets.get(group, {}).items() if names is None or n in names}
            for group in groups
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self.refuses:
            raise HeadroomError(f"group {group} on {self.subject}", "offsets were not committed", "Stop it.")
        self.commits.append((group, dict(offsets)))
        self.offsets.setdefault(group, {}).update(offsets)

    def reader(self, *, committed: bool = False, patience_s: float = 0.0) -> Any:
        return nullcontext(FakeRecordReader(self))


class QuietProgress:
    """Progress that is kept: steps, and notes."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        self.steps.append(text)
        yield

    def note(self, text: str) -> None:
        self.notes.append(text)

    def print_line(self, text: str) -> None:
        self.notes.append(text)


def clusters_of(origin: FakeMigrationCluster, target: FakeMigrationCluster) -> MigrationClusters:
    """Return the two clusters, with the topics that they have now."""
    return MigrationClusters(origin, target, origin.topics(), target.topics())  # type: ignore[arg-type]
