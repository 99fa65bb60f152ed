"""Plan of a migration: where each partition changes to the target and when, what is left to read, and what forbids it.

The plan rests on two readings of the origin, some seconds apart, and one of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from headroom.planning.migration.agreed_end import end_offset, reached_in_s
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.planning.migration.retention import ReaderRetention, reader_retention
from headroom.schemas.keys import TopicPartition


class MigrationMethod(str, Enum):
    """How records and readers get to the target.

    DRAINED: nothing is copied; producers are moved by hand. MIRRORED: MirrorMaker 2, or another mirror that keeps
    records but not offsets. LINKED: a cluster link, which keeps offsets too.
    """

    DRAINED = "drained"
    MIRRORED = "mirrored"
    LINKED = "linked"


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
    """

    name: TopicPartition
    earlier_end: int | None
    log: LogOffsets
    elapsed_s: float
    now_ms: int
    target: LogOffsets | None = None
    readers: Sequence[ReaderReading] = ()


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
        is_beyond: whether its committed offset is behind the log end: the topic was created again, or cut.
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


@dataclass(frozen=True)
class Finding:
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
    findings: tuple[Finding, ...] = field(default=())

    def is_forbidden(self) -> bool:
        """Return whether a finding forbids the migration."""
        return any(finding.forbids for finding in self.findings)


def forecast(
    method: MigrationMethod,
    topics: Mapping[str, TopicOnBoth],
    partitions: Sequence[PartitionReading],
    prepare_s: float,
) -> MigrationForecast:
    """Return the plan of a migration.

    Args:
        method: how records and readers get to the target.
        topics: topics by their names on the origin.
        partitions: their partitions.
        prepare_s: time that the switch needs to be prepared, seconds.
    """
    planned = tuple(_planned(reading, topics[reading.name.topic].rules, prepare_s) for reading in partitions)
    findings = [finding for topic in topics.values() for finding in _topic_findings(method, topic)]
    findings += [finding for partition in planned for finding in _partition_findings(method, partition)]
    return MigrationForecast(planned, tuple(sorted(findings, key=lambda finding: not finding.forbids)))


def _rate(before: int | None, after: int | None, elapsed_s: float) -> float | None:
    """Return the growth of an offset per second; None if it is unknown, or if the offset fell."""
    if before is None or after is None or after < before or elapsed_s <= 0:
        return None
    return (after - before) / elapsed_s


def _planned(reading: PartitionReading, rules: TopicRules | None, prepare_s: float) -> PlannedPartition:
    log = reading.log
    rate = _rate(reading.earlier_end, log.end, reading.elapsed_s)
    end = end_offset(log.end, rate, prepare_s)
    switch_in_s = reached_in_s(log.end, rate, end)
    age_s = None if log.newest_ms is None else max(0.0, (reading.now_ms - log.newest_ms) / 1000)
    return PlannedPartition(
        reading.name,
        log,
        reading.target,
        rate,
        end,
        switch_in_s,
        None if end is None or log.end is None else end - log.end,
        None if log.end is None or log.stable is None else max(0, log.end - log.stable),
        tuple(_reader(own, reading, rules, age_s, end, switch_in_s) for own in reading.readers),
    )


def _reader(
    own: ReaderReading,
    reading: PartitionReading,
    rules: TopicRules | None,
    age_s: float | None,
    end: int | None,
    switch_in_s: float | None,
) -> PlannedReader:
    if own.committed is None:
        return PlannedReader(own.group, None, own.active, None, None)
    rate = _rate(own.earlier, own.committed, reading.elapsed_s)
    # A group with members may commit only now and then.
    if rate == 0 and own.active is not False:
        rate = None
    retention = reader_retention(rules, reading.log, age_s, end, switch_in_s, own.committed, rate)
    is_beyond = reading.log.end is not None and own.committed > reading.log.end
    left = None if end is None or is_beyond else max(0, end - own.committed)
    return PlannedReader(own.group, own.committed, own.active, left, rate, retention, is_beyond)


def _topic_findings(method: MigrationMethod, topic: TopicOnBoth) -> list[Finding]:
    findings = []
    own, other = len(topic.origin.leaders), 0 if topic.target is None else len(topic.target.leaders)
    subject = f"topic {topic.topic}"
    if topic.target is None and method is not MigrationMethod.DRAINED:
        remedy = "Start the mirror, and see migration.origin.name: it has to be the alias that the mirror uses."
        findings.append(Finding(subject, "is not on the target", remedy))
    elif topic.target is not None and own != other:
        rule = f"has {own} partitions on the origin, and {other} on the target: keys would change their partitions"
        findings.append(Finding(subject, rule, "Give both the same number of partitions."))
    if topic.rules is not None and topic.rules.compacts() and method is MigrationMethod.DRAINED:
        rule = "is compacted: the last records of its keys stay on the origin, however old they are"
        findings.append(Finding(subject, rule, "Copy it with a mirror or a link: --method mirrored, --method linked."))
    clusters = [("origin", topic.origin, topic.rules)]
    clusters += [] if topic.target is None else [("target", topic.target, topic.target_rules)]
    for cluster, described, rules in clusters:
        findings += _acknowledgement_findings(subject, cluster, described, rules)
    return findings


def _acknowledgement_findings(
    subject: str, cluster: str, topic: MigratingTopic, rules: TopicRules | None
) -> list[Finding]:
    """Return why an acknowledged record may be lost at a leader switch."""
    if rules is None:
        remedy = "Grant DESCRIBE_CONFIGS on it to this user."
        return [Finding(subject, f"has unknown settings on the {cluster}", remedy, forbids=False)]
    findings = []
    if rules.unclean_elections:
        rule = f"has unclean.leader.election.enable on the {cluster}: a leader switch may lose acknowledged records"
        findings.append(Finding(subject, rule, "Set it to false until the migration is over.", forbids=False))
    if topic.least_replicas == 1:
        rule = f"has a partition with one replica on the {cluster}: it is lost with its broker"
        findings.append(Finding(subject, rule, "Give it three replicas.", forbids=False))
    elif rules.min_insync_replicas == 1:
        rule = (
            f"has min.insync.replicas 1 on the {cluster}: a record that one broker has is acknowledged, also with "
            "acks=all"
        )
        findings.append(Finding(subject, rule, "Set it to 2, and let producers write with acks=all.", forbids=False))
    return findings


def _partition_findings(method: MigrationMethod, partition: PlannedPartition) -> list[Finding]:
    findings = []
    subject = str(partition.name)
    if partition.log.end is None:
        remedy = "See that it has a leader, and that this user has DESCRIBE on its topic."
        return [Finding(subject, "has an unknown log end on the origin", remedy)]
    if partition.write_offsets_per_s is None:
        rule = "has an unknown write rate: its log end fell, or was not read twice, so the end offset is unknown"
        findings.append(Finding(subject, rule, "Run the command again once its leader stays the same."))
    if partition.unstable_offsets is None:
        remedy = "See that it has a leader, and run the command again."
        findings.append(Finding(subject, "has an unknown last stable offset on the origin", remedy))
    elif partition.unstable_offsets:
        rule = f"has an open transaction: its last {partition.unstable_offsets:,} offsets may still be aborted"
        findings.append(Finding(subject, rule, "Let its producers end it, or abort it: kafka-transactions.sh."))
    findings += _target_findings(method, partition)
    return findings + [finding for reader in partition.readers for finding in _reader_findings(partition, reader)]


def _target_findings(method: MigrationMethod, partition: PlannedPartition) -> list[Finding]:
    subject, target = str(partition.name), partition.target
    if target is None:
        return []
    is_empty = target.is_empty()
    if is_empty is None:
        return [Finding(subject, "has an unknown log on the target", "See that it has a leader there.")]
    if method is MigrationMethod.DRAINED and not is_empty:
        rule = f"is not empty on the target: it has offsets {target.start:,} to {target.end:,}"
        remedy = "Create the topic again there. If it is a mirror: --method mirrored, or --method linked."
        return [Finding(subject, rule, remedy)]
    if method is MigrationMethod.LINKED and (target.end or 0) > (partition.log.end or 0):
        rule = f"has diverged: the target ends at {target.end:,}, beyond the origin's {partition.log.end:,}"
        return [Finding(subject, rule, "See who writes to the target, or whether the origin was created again.")]
    return []


def _reader_findings(partition: PlannedPartition, reader: PlannedReader) -> list[Finding]:
    subject = f"group {reader.group} at {partition.name}"
    kept = reader.retention
    if reader.committed is None or kept is None:
        if partition.log.is_empty():
            return []
        rule = "has no committed offset: it begins where auto.offset.reset says, here as on the target"
        return [Finding(subject, rule, "Commit one first if it must not skip records.", forbids=False)]
    if reader.is_beyond:
        rule = f"has committed {reader.committed:,}, beyond the log end {partition.log.end:,}"
        remedy = "The topic was created again, or cut: reset the group's offsets there first."
        return [Finding(subject, rule, remedy)]
    lost, gone, findings = kept.lost_offsets, kept.gone_offsets, []
    if gone:
        rule = f"is behind the log start: {gone:,} offsets that it has not read are deleted"
        findings.append(Finding(subject, rule, "They are lost on the origin, whatever comes next.", forbids=False))
    if lost is not None and lost > (gone or 0):
        enough = kept.enough_retention_ms
        remedy = "Start its consumers, or raise retention.ms of the topic until they have read it."
        if enough is not None:
            remedy = f"Set retention.ms of the topic to {enough}, or let the group read faster."
        rule = f"is overtaken by retention: it would lose {lost - (gone or 0):,} of {reader.left_offsets:,} offsets"
        findings.append(Finding(subject, rule, remedy))
    return findings
