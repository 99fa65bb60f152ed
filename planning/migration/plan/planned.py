"""What a plan of a migration is made from, and what it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headroom.planning.migration.plan.retention import ReaderRetention
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class ReaderReading:
    """A consumer group at one partition.

    Attributes:
        group: the group.
        earlier: committed offset at the first reading; None if it had none.
        committed: committed offset at the second one; None if it has none, but has one of another partition.
        active: whether the group has members; None if unknown.
    """

    group: str
    earlier: int | None
    committed: int | None
    active: bool | None


@dataclass(frozen=True)
class PartitionReading:
    """A partition on both clusters.

    Attributes:
        name: its name on the origin.
        earlier_end: log end of the origin at the first reading; None if unknown.
        log: log of the origin at the second one.
        elapsed_s: time between the two, seconds.
        now_ms: time of the second one, epoch milliseconds.
        target: log of the target; None if it is not there.
        readers: groups that have committed offsets of its topic.
        is_leader_end_known: whether its leader on the origin has reported where its own log ends.
    """

    name: TopicPartition
    earlier_end: int | None
    log: LogOffsets
    elapsed_s: float
    now_ms: int
    target: LogOffsets | None = None
    readers: Sequence[ReaderReading] = ()
    is_leader_end_known: bool = True


@dataclass(frozen=True)
class PlannedReader:
    """What a consumer group still has to read of a partition on the origin.

    Attributes:
        group: the group.
        committed: its committed offset; None if it has none.
        active: whether it has members; None if unknown.
        left_offsets: offsets below the end offset that it has not read; None if unknown.
        read_offsets_per_s: rate at which its committed offset grew; None if unknown, as of a group with members that
            has committed nothing in that time.
        retention: what retention does to it; None without a committed offset.
        is_beyond: whether its committed offset is behind the log end: the topic was recreated or truncated.
    """

    group: str
    committed: int | None
    active: bool | None
    left_offsets: int | None
    read_offsets_per_s: float | None
    retention: ReaderRetention | None = None
    is_beyond: bool = False


@dataclass(frozen=True)
class PlannedPartition:
    """Where a partition changes to the target, and when.

    Attributes:
        name: its name on the origin.
        log: its log on the origin.
        target: its log on the target; None if it is not there.
        write_offsets_per_s: rate at which the log grows; None if unknown.
        end_offset: offset that the log has when the switch is prepared; None if unknown.
        switch_in_s: seconds until then; None if unknown.
        left_offsets: offsets that are still to be written below it; None if unknown.
        unstable_offsets: offsets from the first open transaction on; None if unknown.
        readers: consumer groups.
        is_leader_end_known: whether its leader on the origin has reported where its own log ends.
    """

    name: TopicPartition
    log: LogOffsets
    target: LogOffsets | None
    write_offsets_per_s: float | None
    end_offset: int | None
    switch_in_s: float | None
    left_offsets: int | None
    unstable_offsets: int | None
    readers: tuple[PlannedReader, ...] = ()
    is_leader_end_known: bool = True


@dataclass(frozen=True)
class MigrationFinding:
    """Something that a plan has found.

    Attributes:
        subject: topic or partition.
        rule: what is so.
        remedy: what to do.
        forbids: whether the migration must not begin like this; False: it may lose records, or the plan may be wrong.
    """

    subject: str
    rule: str
    remedy: str
    forbids: bool = True


@dataclass(frozen=True)
class TopicOnBoth:
    """A topic on both clusters.

    Attributes:
        topic: its name on the origin.
        origin: the topic there.
        rules: its settings there; None if unknown.
        target_name: its name on the target; None if it is not there.
        target: the topic there.
        target_rules: its settings there; None if unknown.
    """

    topic: str
    origin: MigratingTopic
    rules: TopicRules | None
    target_name: str | None = None
    target: MigratingTopic | None = None
    target_rules: TopicRules | None = None


@dataclass(frozen=True)
class MigrationForecast:
    """Plan of a migration.

    Attributes:
        partitions: every partition, in order.
        findings: what forbids the migration, and what to know before it.
    """

    partitions: tuple[PlannedPartition, ...]
    findings: tuple[MigrationFinding, ...] = field(default=())

    def is_forbidden(self) -> bool:
        """Return whether a finding forbids the migration."""
        return any(finding.forbids for finding in self.findings)
