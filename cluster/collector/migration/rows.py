"""Rows of the message kind ``migrations``, from what was read of both clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.agreement import agreed_numbers, missing_routers
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.bounds import MOST_COUNTED, MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement, RouterReport

Row = dict[str, Any]
_AGREED = (
    *("topic", "partition", "migration", "number", "status", "method", "end_offset", "target_base_offset"),
    *("ignore_origin", "origin_end", "shielded", "origin_cluster_id", "target_cluster_id", "origin_topic_id"),
    *("target_topic_id", "origin_position", "origin_offsets_per_s", "origin_read_ms"),
)
_PREVIOUS_SIZE = ("prev_read_ms", "prev_log_end_offset", "prev_log_start_offset", "prev_size_bytes")


@dataclass(frozen=True)
class ClusterFacts:
    """What is known of one cluster.

    Attributes:
        now: newest reading; None if there is none that is recent enough.
        before: an earlier one, for the rates of logs; None without one.
        long_before: an earlier one, for the rates of groups, which commit now and then; None without one.
        error: why there is no reading; empty if there is one.
        last: last reading, however old, for the groups and the names of topics; None if there is none.
    """

    now: ClusterReading | None = None
    before: ClusterReading | None = None
    long_before: ClusterReading | None = None
    error: str = ""
    last: ClusterReading | None = None


@dataclass(frozen=True)
class MigrationFacts:
    """What is known of the migrations at a tick.

    Attributes:
        agreements: what was agreed.
        reports: reports of the routers by name.
        origin: the origin.
        target: the target.
        earlier_target: reading of the target from before the origin's.
        acknowledged: offset after the last record that is known to be acknowledged, by partition and leader epoch.
        slip_ratio: ``alerts.slip_ratio``.
        syncs: MirrorMaker's newest offset sync of partitions that are followed, as offsets on both clusters.
        sync_error: why they are not known; empty if they are, or if none is followed.
    """

    agreements: Sequence[PartitionAgreement]
    reports: Mapping[str, RouterReport] = field(default_factory=dict)
    origin: ClusterFacts = ClusterFacts()
    target: ClusterFacts = ClusterFacts()
    earlier_target: ClusterReading | None = None
    acknowledged: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    slip_ratio: float = 0.5
    syncs: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    sync_error: str = ""


def migration_rows(facts: MigrationFacts, most: int = MOST_IN_ARRAY) -> list[Row]:
    """Return the rows of the kind ``migrations``, one per partition, in the order of names.

    Args:
        facts: what is known at the tick.
        most: longest list of a row. A topic that more groups read has no list of them.
    """
    migrations = {own.migration for own in facts.agreements}
    agreed = {migration: agreed_numbers(facts.reports, migration) for migration in migrations}
    acks = {
        migration: sorted({report.acks for name in routers if (report := facts.reports[name]).acks is not None})
        for migration, routers in agreed.items()
    }
    readers: dict[tuple[str | bool, ...], list[str] | None] = {}
    rows = []
    for own in sorted(facts.agreements, key=lambda own: (own.name, own.origin_cluster_id)):
        origin = _of_agreement(facts.origin, own.origin_cluster_id)
        if own.shielded:
            origin = ClusterFacts(error="nothing calls it: shielded", last=origin.last)
        target = _of_agreement(facts.target, own.target_cluster_id)
        # Once for all partitions of a topic.
        read = own.topic, own.origin_cluster_id, own.target_cluster_id, own.shielded
        if read not in readers:
            readers[read] = _readers(own.topic, origin, target, most)
        of_it = replace(facts, origin=origin, target=target)
        rows.append(_row(own, of_it, agreed[own.migration], acks[own.migration], readers[read], most))
    return rows


def _row(
    agreement: PartitionAgreement,
    facts: MigrationFacts,
    agreed: Mapping[str, int],
    acks: Sequence[str],
    readers: Sequence[str] | None,
    most: int,
) -> Row:
    name, origin, target = agreement.name, facts.origin, facts.target
    missing = missing_routers(agreement, agreed)
    # Those that are missing come first: what is cut off are routers that have agreed.
    routers = [*missing, *(router for router in agreement.routers if router not in missing)][:most]
    # Beside a target that does not answer now it would be of another time.
    before = None if target.now is None else facts.earlier_target
    earlier = None if before is None else before.logs.get(name)
    rules = None if origin.now is None else origin.now.rules.get(name.topic)
    return {
        **{column: getattr(agreement, column) for column in _AGREED},
        "routers": routers,
        "missing_routers": list(missing)[:most],
        "acks": list(acks),
        "origin": _log_columns(origin, name),
        "target": _log_columns(target, name),
        "origin_error": origin.error or None,
        "target_error": target.error or None,
        "earlier_target_end": None if earlier is None else earlier.end,
        **_settings(rules),
        "origin_size": _size_columns(origin, name),
        "epochs": _epochs(origin.now, name, facts.acknowledged.get(name, {}), most),
        **_sync(facts, agreement, origin.now is not None and target.now is not None),
        "groups": None if readers is None else [_group(group, name, origin, target) for group in readers],
        "slip_ratio": facts.slip_ratio,
        "target_topic": None if target.last is None else target.last.names.get(name.topic),
    }


def _of_agreement(facts: ClusterFacts, agreed_id: str) -> ClusterFacts:
    """Return what is known of a cluster; nothing if it is another one than was agreed."""
    own = None if facts.last is None else facts.last.cluster_id
    if own is None or own == agreed_id:
        return facts
    return ClusterFacts(error=facts.error or f"it is the cluster {own}, and {agreed_id} was agreed")


def _log_before(facts: ClusterFacts, topic: str) -> ClusterReading | None:
    """Return the earlier reading for rates; None without one, or if the topic was recreated: it has other logs."""
    now, before = facts.now, facts.before
    is_same = now is not None and before is not None and before.topic_ids.get(topic) == now.topic_ids.get(topic)
    return before if is_same else None


def _log_columns(facts: ClusterFacts, name: TopicPartition) -> Row | None:
    now = facts.now
    if now is None:
        return None
    log, topic_id = now.logs.get(name, LogOffsets()), now.topic_ids.get(name.topic)
    before = _log_before(facts, name.topic)
    earlier = None if before is None else before.logs.get(name)
    epoch = now.leader_epochs.get(name)
    return {
        "read_ms": now.read_ms,
        "topic_id": topic_id,
        "leader_epoch": epoch,
        "log_start_offset": log.start,
        "log_end_offset": log.end,
        "stable_offset": log.stable,
        "leader_end_offset": None if epoch is None else now.epoch_ends.get(name, {}).get(epoch),
        "newest_ms": log.newest_ms,
        "prev_read_ms": None if before is None or earlier is None else before.read_ms,
        "prev_log_end_offset": None if earlier is None else earlier.end,
    }


def _sync(facts: MigrationFacts, agreement: PartitionAgreement, are_agreed: bool) -> Row:
    """Return the columns of the newest sync; without both clusters that were agreed it may be one of others."""
    is_followed = is_mirrored(agreement)
    sync = facts.syncs.get(agreement.name) if is_followed and are_agreed else None
    return {
        "sync_origin_offset": None if sync is None else sync[0],
        "sync_target_offset": None if sync is None else sync[1],
        "sync_error": (facts.sync_error or None) if is_followed else None,
    }


def is_mirrored(agreement: PartitionAgreement) -> bool:
    """Return whether a partition has offset syncs that are followed; nothing calls the origin about a shielded one."""
    return agreement.method == MigrationMethod.MIRRORED and not agreement.shielded


def _settings(rules: TopicRules | None) -> Row:
    known = rules or TopicRules()
    return {
        "cleanup_policy": known.cleanup_policy,
        "retention_ms": _limit_in_bounds(known.retention_ms),
        "retention_bytes": _limit_in_bounds(known.retention_bytes),
        "min_insync_replicas": known.min_insync_replicas,
        "unclean_elections": known.unclean_elections,
        "remote_storage": known.remote_storage,
    }


def _size_columns(facts: ClusterFacts, name: TopicPartition) -> Row | None:
    now = None if facts.now is None else facts.now.sizes.get(name)
    if now is None:
        return None
    before = _log_before(facts, name.topic)
    earlier = None if before is None else before.sizes.get(name)
    columns = {
        "broker": now.broker,
        "read_ms": now.read_ms,
        "log_end_offset": now.end,
        "log_start_offset": now.start,
        "size_bytes": now.size_bytes,
    }
    # The same size in two readings is one sample.
    if earlier is None or earlier.read_ms == now.read_ms:
        return columns | dict.fromkeys(_PREVIOUS_SIZE)
    size_bytes = earlier.size_bytes if earlier.broker == now.broker else None
    return columns | dict(zip(_PREVIOUS_SIZE, (earlier.read_ms, earlier.end, earlier.start, size_bytes), strict=True))


def _limit_in_bounds(limit: int | None) -> int | None:
    """Return a limit that readers of the message take: Kafka's greatest one, of 2^63 - 1, is beyond their bounds."""
    return None if limit is None else min(limit, MOST_COUNTED)


def _epochs(now: ClusterReading | None, name: TopicPartition, acknowledged: Mapping[int, int], most: int) -> list[Row]:
    ends = {} if now is None else now.epoch_ends.get(name, {})
    return [
        {"leader_epoch": epoch, "acknowledged_end": end, "epoch_end": ends.get(epoch)}
        for epoch, end in sorted(acknowledged.items())
    ][-most:]


def _readers(topic: str, origin: ClusterFacts, target: ClusterFacts, most: int) -> list[str] | None:
    """Return the groups that have committed offsets of a topic on either cluster; None if they are not known.

    While the origin does not answer, its last groups count: their places are unknown, and they are not gone. Without
    the target's offsets a group that has moved would seem to read the origin.
    """
    on_origin, on_target = _groups_of(origin.last, topic), _groups_of(target.now, topic)
    if on_origin is None or on_target is None:
        return None
    groups = sorted(on_origin | on_target)
    # A list that was cut would let a group be overlooked.
    return None if len(groups) > most else groups


def _groups_of(reading: ClusterReading | None, topic: str) -> set[str] | None:
    # A topic that was not asked about may have groups.
    if reading is None or reading.groups is None or topic not in reading.topic_ids:
        return None
    return {group for group, own in reading.committed.items() if any(name.topic == topic for name in own)}


def _group(group: str, name: TopicPartition, origin: ClusterFacts, target: ClusterFacts) -> Row:
    times = origin if origin.now is not None else target
    return {
        "group": group,
        "active": None if origin.now is None else (origin.now.groups or {}).get(group),
        "read_ms": None if times.now is None else times.now.read_ms,
        "origin_offset": _committed_offset(origin.now, group, name),
        "target_offset": _committed_offset(target.now, group, name),
        "prev_read_ms": None if times.long_before is None else times.long_before.read_ms,
        "prev_origin_offset": _committed_offset(origin.long_before, group, name),
        "prev_target_offset": _committed_offset(target.long_before, group, name),
    }


def _committed_offset(reading: ClusterReading | None, group: str, name: TopicPartition) -> int | None:
    return None if reading is None else reading.committed.get(group, {}).get(name)
