"""What forbids a migration, and what to know before it."""

from __future__ import annotations

from headroom.planning.migration.plan.planned import (
    MigrationFinding,
    PlannedPartition,
    PlannedReader,
    TopicOnBoth,
)
from headroom.planning.migration.readings import MigratingTopic, TopicRules
from headroom.schemas.migrations import METHODS_WITHOUT_COPIES, MigrationMethod
from headroom.schemas.text.amounts import duration_text


def topic_findings(method: MigrationMethod, topic: TopicOnBoth) -> list[MigrationFinding]:
    """Return what is found about a topic.

    Args:
        method: how records and readers get to the target.
        topic: the topic on both clusters.
    """
    findings = []
    own, other = len(topic.origin.leaders), 0 if topic.target is None else len(topic.target.leaders)
    subject = f"topic {topic.topic}"
    # A mirror or a link creates the topic on the target.
    if topic.target is None and method not in METHODS_WITHOUT_COPIES:
        remedy = "Start the mirror, and see migration.origin.name: it has to be the alias that the mirror uses."
        findings.append(MigrationFinding(subject, "is not on the target", remedy))
    elif topic.target is not None and own != other:
        rule = f"has another number of partitions on the target, {other}, than on the origin, {own}: keys change theirs"
        findings.append(MigrationFinding(subject, rule, "Give both the same number of partitions."))
    if topic.rules is not None and topic.rules.compacts() and method in METHODS_WITHOUT_COPIES:
        rule = "is compacted: the last records of its keys stay on the origin, however old they are"
        remedy = "Copy it with a mirror or a link: --method mirrored, --method linked."
        # Routed readers read them there; only a new reader of the target alone misses them.
        findings.append(MigrationFinding(subject, rule, remedy, forbids=method is MigrationMethod.DRAINED))
    clusters = [("origin", topic.origin, topic.rules)]
    clusters += [] if topic.target is None else [("target", topic.target, topic.target_rules)]
    for cluster, described, rules in clusters:
        findings += _acknowledgement_findings(subject, cluster, described, rules)
    return findings


def _acknowledgement_findings(
    subject: str, cluster: str, topic: MigratingTopic, rules: TopicRules | None
) -> list[MigrationFinding]:
    """Return why an acknowledged record may be lost at a leader switch."""
    if rules is None:
        remedy = "Grant DESCRIBE_CONFIGS on it to this user."
        return [MigrationFinding(subject, f"has unknown settings on the {cluster}", remedy, forbids=False)]
    findings = []
    if rules.unclean_elections:
        rule = f"has unclean.leader.election.enable on the {cluster}: a leader switch may lose acknowledged records"
        findings.append(MigrationFinding(subject, rule, "Set it to false until the migration is over.", forbids=False))
    if topic.least_replicas == 1:
        rule = f"has a partition with one replica on the {cluster}: it is lost with its broker"
        findings.append(MigrationFinding(subject, rule, "Give it three replicas.", forbids=False))
    elif rules.min_insync_replicas == 1:
        rule = (
            f"has min.insync.replicas 1 on the {cluster}: a record that one broker has is acknowledged, also with "
            "acks=all"
        )
        remedy = "Set it to 2, and let producers write with acks=all."
        findings.append(MigrationFinding(subject, rule, remedy, forbids=False))
    return findings


def partition_findings(method: MigrationMethod, partition: PlannedPartition) -> list[MigrationFinding]:
    """Return what is found about a partition and its readers.

    Args:
        method: how records and readers get to the target.
        partition: the partition.
    """
    findings = []
    subject = str(partition.name)
    if partition.log.end is None:
        remedy = "See that it has a leader, and that this user has DESCRIBE on its topic."
        return [MigrationFinding(subject, "has an unknown log end on the origin", remedy)]
    if partition.write_offsets_per_s is None:
        rule = "has an unknown write rate: its log end fell, or was not read twice, so the end offset is unknown"
        findings.append(MigrationFinding(subject, rule, "Run the command again once its leader stays the same."))
    elif partition.end_offset is None:
        rule = "would have an end offset beyond 2^63 - 1, the greatest that Kafka has"
        findings.append(MigrationFinding(subject, rule, "Set migration.prepare to less."))
    if partition.unstable_offsets is None:
        remedy = "See that it has a leader, and run the command again."
        findings.append(MigrationFinding(subject, "has an unknown last stable offset on the origin", remedy))
    elif partition.unstable_offsets:
        rule = f"has an open transaction: its last {partition.unstable_offsets:,} offsets may still be aborted"
        remedy = "Let its producers end it, or abort it: kafka-transactions.sh."
        findings.append(MigrationFinding(subject, rule, remedy))
    if not partition.is_leader_end_known:
        rule = "has an unknown log end on its leader on the origin: a run would never start"
        remedy = (
            "Run the command again if its leader has just changed. OffsetForLeaderEpoch needs Kafka 2.3, and a "
            "message.format.version of 0.11 or later."
        )
        findings.append(MigrationFinding(subject, rule, remedy))
    findings += _target_findings(method, partition)
    return findings + [finding for reader in partition.readers for finding in _reader_findings(partition, reader)]


def _target_findings(method: MigrationMethod, partition: PlannedPartition) -> list[MigrationFinding]:
    subject, target = str(partition.name), partition.target
    if target is None:
        return []
    is_empty = target.is_empty()
    if is_empty is None:
        return [MigrationFinding(subject, "has an unknown log on the target", "See that it has a leader there.")]
    if method in METHODS_WITHOUT_COPIES and not is_empty:
        rule = f"is not empty on the target: it has offsets {target.start:,} to {target.end:,}"
        remedy = "Create the topic again there. If it is a mirror: --method mirrored, or --method linked."
        return [MigrationFinding(subject, rule, remedy)]
    if method is MigrationMethod.LINKED and (target.end or 0) > (partition.log.end or 0):
        rule = f"has diverged: the target ends at {target.end:,}, beyond the origin's {partition.log.end:,}"
        remedy = "See who writes to the target, or whether the origin was recreated."
        return [MigrationFinding(subject, rule, remedy)]
    return []


def _reader_findings(partition: PlannedPartition, reader: PlannedReader) -> list[MigrationFinding]:
    subject = f"group {reader.group} at {partition.name}"
    kept = reader.retention
    if reader.committed is None or kept is None:
        if partition.log.is_empty():
            return []
        rule = "has no committed offset: it begins where auto.offset.reset says, here as on the target"
        return [MigrationFinding(subject, rule, "Commit one first if it must not skip records.", forbids=False)]
    if reader.is_beyond:
        rule = f"has committed {reader.committed:,}, beyond the log end {partition.log.end:,}"
        remedy = "The topic was recreated or truncated: reset the group's offsets there first."
        return [MigrationFinding(subject, rule, remedy)]
    lost, gone, findings = kept.lost_offsets, kept.gone_offsets, []
    if gone:
        rule = f"is behind the log start: {gone:,} offsets that it has not read are deleted"
        remedy = "They are lost on the origin, whatever comes next."
        findings.append(MigrationFinding(subject, rule, remedy, forbids=False))
    left = 0 if lost is None else lost - (gone or 0)
    if left and reader.active is False and reader.read_offsets_per_s == 0:
        within = duration_text(kept.kept_s)
        rule = f"has no consumers: {left:,} offsets are deleted unread unless they start within {within}"
        remedy = "Start them in time. A group that is not needed any more can be left out: migration.groups."
        findings.append(MigrationFinding(subject, rule, remedy, forbids=False))
    elif left:
        rule = f"is overtaken by retention: it would lose {left:,} of {reader.left_offsets:,} offsets"
        remedy = "Start its consumers, or raise retention.ms of the topic until they have read it."
        if kept.enough_retention_ms is not None:
            remedy = f"Set retention.ms of the topic to {kept.enough_retention_ms}, or let the group read faster."
        findings.append(MigrationFinding(subject, rule, remedy))
    return findings
