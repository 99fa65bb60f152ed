"""Rows of the message kind ``migrations``, from what was read of both clusters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.agreement import EndsByEpoch, agreed_numbers, incomplete_migrations, missing_routers
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.bounds import MOST_COUNTED, MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement, RouterReport

Row = dict[str, Any]
_GroupsByTopic = Mapping[str, Collection[str]]
_AGREED = (
    *("topic", "partition", "migration", "number", "status", "method", "end_offset", "target_base_offset"),
    *("ignore_origin", "origin_end", "shielded", "origin_cluster_id", "target_cluster_id", "origin_topic_id"),
    *("target_topic_id", "origin_position", "origin_offsets_per_s", "origin_read_ms", "sealed_ms"),
    "reopened_end",
)
_agreed_values = attrgetter(*_AGREED)
_IN_ORDER = attrgetter("topic", "partition", "origin_cluster_id")
_NO_LOG, _NO_ENDS = LogOffsets(), MappingProxyType[int, int]({})
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
        acknowledged: offset after the last record that is known to be acknowledged.
        slip_ratio: ``alerts.slip_ratio``.
        syncs: MirrorMaker's newest offset sync of partitions that are followed, as offsets on both clusters.
        sync_error: why they are not known; empty if they are, or if none is followed.
        end_newest: greatest timestamp in the origin's log as it got to its end offset, by partition.
        unreported: greatest log end that was seen of a leader, if no router has reported as much.
    """

    agreements: Sequence[PartitionAgreement]
    reports: Mapping[str, RouterReport] = field(default_factory=dict)
    origin: ClusterFacts = ClusterFacts()
    target: ClusterFacts = ClusterFacts()
    earlier_target: ClusterReading | None = None
    acknowledged: EndsByEpoch = field(default_factory=dict)
    slip_ratio: float = 0.5
    syncs: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    sync_error: str = ""
    end_newest: Mapping[TopicPartition, int] = field(default_factory=dict)
    unreported: EndsByEpoch = field(default_factory=dict)


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
    incomplete = incomplete_migrations(facts.reports.values())
    groups = _groups_by_topic(facts.origin.last), _groups_by_topic(facts.target.now)
    topics: dict[tuple[str | bool, ...], _Topic] = {}
    routers: dict[tuple[str, int, tuple[str, ...]], Row] = {}
    rows = []
    for own in sorted(facts.agreements, key=_IN_ORDER):
        # Once for all partitions of a topic, and for all that the same routers have to agree to.
        read = own.topic, own.origin_cluster_id, own.target_cluster_id, own.shielded
        topic = topics.get(read)
        if topic is None:
            topic = topics[read] = _Topic(facts, own, groups, most)
        named = own.migration, own.number, own.routers
        if named not in routers:
            routers[named] = {
                **_router_columns(own, agreed[own.migration], acks[own.migration], most),
                "incomplete_reports": own.migration in incomplete,
            }
        rows.append(_row(own, topic, routers[named]))
    return rows


class _Topic:
    """What the partitions of a topic have in common, if they have the same clusters and are all shielded, or not.

    Args:
        facts: what is known at the tick.
        agreement: what was agreed about one of the partitions.
        groups: groups with committed offsets by topic, in the origin's last reading and in the target's newest one.
        most: longest list of a row.
    """

    def __init__(
        self,
        facts: MigrationFacts,
        agreement: PartitionAgreement,
        groups: tuple[_GroupsByTopic, _GroupsByTopic],
        most: int,
    ) -> None:
        topic = agreement.topic
        origin = _of_agreement(facts.origin, agreement.origin_cluster_id)
        if agreement.shielded:
            origin = ClusterFacts(error="nothing calls it: shielded", last=origin.last)
        target = _of_agreement(facts.target, agreement.target_cluster_id)
        self.facts = facts
        self.most = most
        self.origin = _TopicOnCluster(origin, topic)
        self.target = _TopicOnCluster(target, topic)
        # Beside a target that does not answer now it would be of another time.
        self.earlier_target = None if target.now is None else facts.earlier_target
        self.columns = {
            "origin_error": origin.error or None,
            "target_error": target.error or None,
            **_settings(None if origin.now is None else origin.now.rules.get(topic)),
            "slip_ratio": facts.slip_ratio,
            "target_topic": None if target.last is None else target.last.names.get(topic),
            # Of the metadata of a tick, which is read apart.
            "target_leader": None,
            "throttled_followers": None,
        }
        readers = _readers(topic, (origin.last, target.now), groups, most)
        self.groups = None if readers is None else [_Group(group, origin, target) for group in readers]


class _TopicOnCluster:
    """One cluster, for the partitions of a topic.

    Args:
        facts: what is known of the cluster.
        topic: name of the topic on the origin.

    Attributes:
        now: newest reading; None if there is none.
        before: an earlier one, for rates; None without one, or if the topic was recreated: it has other logs.
    """

    def __init__(self, facts: ClusterFacts, topic: str) -> None:
        now, before = facts.now, facts.before
        self.now = now
        self._topic_id = None if now is None else now.topic_ids.get(topic)
        is_same = before is not None and before.topic_ids.get(topic) == self._topic_id
        self.before = before if now is not None and is_same else None

    def log(self, name: TopicPartition) -> Row | None:
        """Return the columns of a partition's log; None if the cluster was not read."""
        now, before = self.now, self.before
        if now is None:
            return None
        log, epoch = now.logs.get(name, _NO_LOG), now.leader_epochs.get(name)
        earlier = None if before is None else before.logs.get(name)
        return {
            "read_ms": now.read_ms,
            "topic_id": self._topic_id,
            "leader_epoch": epoch,
            "log_start_offset": log.start,
            "log_end_offset": log.end,
            "stable_offset": log.stable,
            "leader_end_offset": None if epoch is None else now.epoch_ends.get(name, _NO_ENDS).get(epoch),
            "newest_ms": log.newest_ms,
            "prev_read_ms": None if before is None or earlier is None else before.read_ms,
            "prev_log_end_offset": None if earlier is None else earlier.end,
            "newest_offset": log.newest_offset,
        }

    def size(self, name: TopicPartition) -> Row | None:
        """Return the columns of the size of a partition's log; None if it was not read."""
        now = None if self.now is None else self.now.sizes.get(name)
        if now is None:
            return None
        earlier = None if self.before is None else self.before.sizes.get(name)
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
        previous = (earlier.read_ms, earlier.end, earlier.start, size_bytes)
        return columns | dict(zip(_PREVIOUS_SIZE, previous, strict=True))


class _Group:
    """A consumer group, for the partitions of a topic.

    Args:
        group: the group.
        origin: what is known of the origin.
        target: what is known of the target.
    """

    def __init__(self, group: str, origin: ClusterFacts, target: ClusterFacts) -> None:
        times = origin if origin.now is not None else target
        self._group = group
        self._active, self._target_active = (
            None if side.now is None else (side.now.groups or {}).get(group) for side in (origin, target)
        )
        self._read_ms = None if times.now is None else times.now.read_ms
        self._previous_ms = None if times.long_before is None else times.long_before.read_ms
        self._on_origin, self._on_target = _committed(origin.now, group), _committed(target.now, group)
        self._origin_before, self._target_before = (
            _committed(origin.long_before, group),
            _committed(target.long_before, group),
        )

    def columns(self, name: TopicPartition) -> Row:
        """Return its columns at a partition."""
        return {
            "group": self._group,
            "active": self._active,
            "read_ms": self._read_ms,
            "origin_offset": self._on_origin.get(name),
            "target_offset": self._on_target.get(name),
            "prev_read_ms": self._previous_ms,
            "prev_origin_offset": self._origin_before.get(name),
            "prev_target_offset": self._target_before.get(name),
            "target_active": self._target_active,
        }


def _committed(reading: ClusterReading | None, group: str) -> Mapping[TopicPartition, int]:
    return {} if reading is None else reading.committed.get(group, {})


def _router_columns(agreement: PartitionAgreement, agreed: Mapping[str, int], acks: Sequence[str], most: int) -> Row:
    missing = missing_routers(agreement, agreed)
    # Those that are missing come first: what is cut off are routers that have agreed.
    routers = [*missing, *(router for router in agreement.routers if router not in missing)][:most]
    return {"routers": routers, "missing_routers": list(missing)[:most], "acks": acks}


def _row(agreement: PartitionAgreement, topic: _Topic, routers: Row) -> Row:
    name, facts = agreement.name, topic.facts
    origin, target, before = topic.origin, topic.target, topic.earlier_target
    earlier = None if before is None else before.logs.get(name)
    return {
        **dict(zip(_AGREED, _agreed_values(agreement), strict=True)),
        **routers,
        **topic.columns,
        "origin": origin.log(name),
        "target": target.log(name),
        "earlier_target_end": None if earlier is None else earlier.end,
        "origin_size": origin.size(name),
        "epochs": _epochs(origin.now, (agreement.origin_cluster_id, name), facts, topic.most),
        **_sync(facts, agreement, origin.now is not None and target.now is not None),
        "groups": None if topic.groups is None else [group.columns(name) for group in topic.groups],
        "end_newest_ms": None if origin.now is None else facts.end_newest.get(name),
    }


def _of_agreement(facts: ClusterFacts, agreed_id: str) -> ClusterFacts:
    """Return what is known of a cluster; nothing if it is another one than was agreed."""
    own = None if facts.last is None else facts.last.cluster_id
    if own is None or own == agreed_id:
        return facts
    return ClusterFacts(error=facts.error or f"it is the cluster {own}, and {agreed_id} was agreed")


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


def _limit_in_bounds(limit: int | None) -> int | None:
    """Return a limit that readers of the message take: Kafka's greatest one, of 2^63 - 1, is beyond their bounds."""
    return None if limit is None else min(limit, MOST_COUNTED)


def _epochs(now: ClusterReading | None, key: tuple[str, TopicPartition], facts: MigrationFacts, most: int) -> list[Row]:
    ends = _NO_ENDS if now is None else now.epoch_ends.get(key[1], _NO_ENDS)
    acknowledged, unreported = facts.acknowledged.get(key, _NO_ENDS), facts.unreported.get(key, _NO_ENDS)
    return [
        {
            "leader_epoch": epoch,
            "acknowledged_end": end,
            "epoch_end": ends.get(epoch),
            "unreported_end": unreported.get(epoch),
        }
        for epoch, end in sorted(acknowledged.items())
    ][-most:]


def _groups_by_topic(reading: ClusterReading | None) -> _GroupsByTopic:
    """Return the groups that have committed offsets of each topic, from one pass over all of them."""
    by_topic: dict[str, set[str]] = defaultdict(set)
    for group, own in ({} if reading is None else reading.committed).items():
        for topic in {name.topic for name in own}:
            by_topic[topic].add(group)
    return by_topic


def _readers(
    topic: str,
    readings: tuple[ClusterReading | None, ClusterReading | None],
    groups: tuple[_GroupsByTopic, _GroupsByTopic],
    most: int,
) -> list[str] | None:
    """Return the groups that have committed offsets of a topic on either cluster; None if they are not known.

    While the origin does not answer, its last groups count: their places are unknown, and they are not gone. Without
    the target's offsets a group that has moved would seem to read the origin. A named group that neither cluster lists
    may have another name, or may have lost its offsets: it is a reader at an unknown place.
    """
    origin, target = readings
    if origin is None or target is None or not all(_has_groups(reading, topic) for reading in readings):
        return None
    readers = {group for by_topic in groups for group in by_topic.get(topic, ())}
    names = sorted(readers | (origin.unlisted & target.unlisted))
    # A list that was cut would let a group be overlooked.
    return None if len(names) > most else names


def _has_groups(reading: ClusterReading | None, topic: str) -> bool:
    # A topic that was not asked about may have groups.
    return reading is not None and reading.groups is not None and topic in reading.topic_ids
