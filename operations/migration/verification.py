"""Verification of a mirror: every record of the origin is on the target once, unchanged and in order.

Without a mirror, the records of the origin from its end offset on have to be on the target, because nothing reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headroom.cluster.migration.records import RecordReader
from headroom.operations.migration.clusters import MigrationClusters
from headroom.operations.migration.led_partition import PATIENCE_S, LedPartition
from headroom.operations.progress import OnText, ProgressReceiver, with_notes
from headroom.planning.migration.agreement import split_of
from headroom.planning.migration.mirrors.comparison import MirrorCounts, compare_mirror
from headroom.planning.migration.mirrors.moved import CompareMoved, compare_moved, find_moved, parts_of
from headroom.planning.migration.mirrors.record_digest import RecordDigest
from headroom.planning.migration.plan.planned import TopicOnBoth
from headroom.planning.migration.readings import LOG_APPEND_TIME, TopicRules
from headroom.planning.migration.split import Split
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus, PartitionAgreement

OffsetRange = tuple[int, int]
# A router sends what landed behind the end offset to the target as soon as it has the origin's answer.
_MOVED_S = 2.0


@dataclass(frozen=True)
class VerifiedPartition:
    """A partition and its mirror.

    Attributes:
        name: its name on the origin.
        target_name: its name on the target.
        origin: offsets of the origin that were compared, the end exclusive.
        target: those of the target.
        counts: records by what the mirror has of them.
    """

    name: TopicPartition
    target_name: TopicPartition
    origin: OffsetRange
    target: OffsetRange
    counts: MirrorCounts


@dataclass(frozen=True)
class VerifiedMirror:
    """Result of ``headroom migration verify``.

    Attributes:
        topic: name on the origin.
        target_topic: name on the target.
        partitions: every partition, in order.
        with_timestamps: whether timestamps were compared.
        from_end: whether only records from the end offsets on were compared, which routers move.
    """

    topic: str
    target_topic: str
    partitions: tuple[VerifiedPartition, ...]
    with_timestamps: bool
    from_end: bool = False

    def total(self) -> MirrorCounts:
        """Return the counts of all partitions."""
        return sum((partition.counts for partition in self.partitions), MirrorCounts())


def verify_mirror(
    clusters: MigrationClusters,
    topic: str,
    committed: bool,
    progress: ProgressReceiver,
    on_note: OnText,
    wait: Callable[[float], object] = time.sleep,
) -> VerifiedMirror:
    """Return what the mirror of a topic has of its records, up to the ends that both logs have now.

    Partitions are compared one after the other. If another broker has become a leader meanwhile, that one is asked.

    Args:
        clusters: the two clusters.
        topic: name on the origin.
        committed: whether records of transactions that are open, or were aborted, are left out on both.
        progress: gets the steps.
        on_note: gets a sentence if less is compared.
        wait: waits for the given seconds.

    Raises:
        HeadroomError: the topic is not on both with the same number of partitions, or its records could not be read;
            names the partition.
    """
    both = clusters.mirrored_topics([topic], True, on_note)[topic]
    target_topic = str(both.target_name)
    with_timestamps = _has_timestamps([(target_topic, "target", both.target_rules)], on_note)
    if any(rules is not None and rules.compacts() for rules in (both.rules, both.target_rules)):
        on_note("The topic is compacted: what one cluster has removed already counts as missing or foreign.")
    comparing = _Comparing(committed, with_timestamps, progress)
    assert both.target is not None
    numbers = sorted(both.origin.leaders)
    names = [(TopicPartition(topic, number), TopicPartition(target_topic, number)) for number in numbers]
    with (
        clusters.origin.reader(committed=committed, patience_s=PATIENCE_S) as origin_reader,
        clusters.target.reader(committed=committed, patience_s=PATIENCE_S) as target_reader,
    ):
        partitions = tuple(
            comparing.compare(
                _ReadLog(LedPartition(clusters.origin, both.origin, name, wait), origin_reader),
                _ReadLog(LedPartition(clusters.target, both.target, target_name, wait), target_reader),
            )
            for name, target_name in names
        )
    clusters.require_same_topics([both])
    return VerifiedMirror(topic, target_topic, partitions, with_timestamps)


def verify_moved(
    clusters: MigrationClusters,
    topic: str,
    agreed: Mapping[int, PartitionAgreement],
    committed: bool,
    progress: ProgressReceiver,
    on_note: OnText,
    wait: Callable[[float], object] = time.sleep,
    compare: CompareMoved | None = None,
) -> VerifiedMirror:
    """Return which records of the origin from the end offsets on are on the target.

    Args:
        clusters: the two clusters.
        topic: name on both.
        agreed: what was agreed about its partitions, by a method without copies.
        committed: whether records of transactions that are open, or were aborted, are left out on both.
        progress: gets the steps.
        on_note: gets a sentence if less is compared.
        wait: waits for the given seconds.
        compare: compares the records of a partition; None: doubled ones are counted where timestamps show them.

    Raises:
        HeadroomError: no partition's target is in use, the topic is not on both with the same number of partitions or
            is another one than was agreed about, or its records could not be read.
    """
    both = clusters.mirrored_topics([topic], False, on_note)[topic]
    assert both.target is not None
    on_both = [(topic, "origin", both.rules), (topic, "target", both.target_rules)]
    with_timestamps = _has_timestamps(on_both, on_note)
    if not with_timestamps:
        on_note("Records that are the same without them count for each other, and doubled ones are not counted.")
    if both.target_rules is not None and both.target_rules.compacts():
        on_note("The target is compacted: what was moved, and replaced there by a newer record, counts as missing.")
    comparing = _Comparing(committed, with_timestamps, progress)
    # Without timestamps a later record that is the same, and went straight to the target, is no copy.
    find = compare or (compare_moved if with_timestamps else find_moved)
    partitions: list[VerifiedPartition] = []
    with (
        clusters.origin.reader(committed=committed, patience_s=PATIENCE_S) as origin_reader,
        clusters.target.reader(committed=committed, patience_s=PATIENCE_S) as target_reader,
    ):
        for number in sorted(both.origin.leaders):
            name, own = TopicPartition(topic, number), agreed.get(number)
            if own is None or own.status == MigrationStatus.PLANNED or split_of(own).origin_limit is None:
                on_note(f"{name} is left out: its target is not in use.")
                continue
            _require_agreed(own, clusters, both)
            origin = _ReadLog(LedPartition(clusters.origin, both.origin, name, wait), origin_reader)
            target = _ReadLog(LedPartition(clusters.target, both.target, name, wait), target_reader)
            partitions.append(comparing.compare_from_end(origin, target, split_of(own), find, on_note, wait))
    clusters.require_same_topics([both])
    if not partitions:
        rule = "has no partition whose target is in use, so that nothing is moved yet"
        raise HeadroomError(f"topic {topic}", rule, "Verify once headroom migration status shows migrating.")
    return VerifiedMirror(topic, topic, tuple(partitions), comparing.with_timestamps, from_end=True)


def _has_timestamps(topics: Iterable[tuple[str, str, TopicRules | None]], on_note: OnText) -> bool:
    """Return whether timestamps are those of the clients, by name, cluster and settings of topics."""
    for name, cluster, rules in topics:
        if rules is not None and rules.timestamp_type == LOG_APPEND_TIME:
            on_note(f"Timestamps are not compared: {name} has message.timestamp.type LogAppendTime on the {cluster}.")
            return False
    return True


def _require_agreed(own: PartitionAgreement, clusters: MigrationClusters, both: TopicOnBoth) -> None:
    """Check that the clusters and the topics are those that were agreed about: others have other offsets."""
    now = (
        (own.origin_cluster_id, clusters.origin_topics.cluster_id),
        (own.target_cluster_id, clusters.target_topics.cluster_id),
        (own.origin_topic_id, both.origin.topic_id),
        (own.target_topic_id, None if both.target is None else both.target.topic_id),
    )
    if any(None not in ids and ids[0] != ids[1] for ids in now):
        rule = "is on other clusters, or was recreated: its ids are not those that were agreed"
        raise HeadroomError(str(own.name), rule, "See headroom migration status.")


@dataclass(frozen=True)
class _ReadLog:
    """A partition on one cluster, and a reader of its records."""

    led: LedPartition
    reader: RecordReader

    @property
    def name(self) -> TopicPartition:
        return self.led.name

    def first_ms(self, offsets: OffsetRange) -> int | None:
        """Return the timestamp of the first record; None without one."""
        first = next(self.reader.read(self.name, *offsets), None)
        return None if first is None or first.timestamp_ms < 0 else first.timestamp_ms


@dataclass(frozen=True)
class _Comparing:
    """How partitions are compared."""

    committed: bool
    with_timestamps: bool
    progress: ProgressReceiver

    def compare(self, origin: _ReadLog, target: _ReadLog) -> VerifiedPartition:
        with self.progress.step(f"Comparing {origin.name}"):
            # The target before the origin: all that it has is on the origin then.
            target_log = target.led.range(self.committed)
            origin_log = origin.led.range(self.committed)
            origin_range = self._not_deleted(origin, origin_log, target, target_log)
            target_range = self._not_deleted(target, target_log, origin, origin_log)
            counts = compare_mirror(
                self._digests(origin, origin_range, note=True),
                self._digests(target, target_range),
                origin_deletes=origin_log[0] > 0,
                target_deletes=target_log[0] > 0,
            )
        return VerifiedPartition(origin.name, target.name, origin_range, target_range, counts)

    def compare_from_end(
        self,
        origin: _ReadLog,
        target: _ReadLog,
        split: Split,
        find: CompareMoved,
        on_note: OnText,
        wait: Callable[[float], object],
    ) -> VerifiedPartition:
        with self.progress.step(f"Comparing {origin.name} from its end offset on"):
            start, end = origin.led.range(self.committed)
            origin_range = min(max(start, split.origin_limit or 0), end), end
            if origin_range[0] < end:
                # What has just landed there is moved within a moment.
                wait(_MOVED_S)
            target_start, target_end = target.led.range(self.committed)
            if target_start > split.target_base_offset:
                on_note(f"{target.name}: the target has deleted records; those that were moved count as missing.")
            target_range = min(max(target_start, split.target_base_offset), target_end), target_end
            counts = find(
                lambda: self._digests(origin, origin_range, note=True),
                lambda: self._digests(target, target_range),
                parts_of(origin_range[1] - origin_range[0]),
            )
        return VerifiedPartition(origin.name, target.name, origin_range, target_range, counts)

    def _not_deleted(self, log: _ReadLog, own: OffsetRange, other: _ReadLog, theirs: OffsetRange) -> OffsetRange:
        """Return the offsets of a log without those of records that the other cluster has deleted.

        They are before the first record with a timestamp from that of the other's first record on.
        """
        first_ms = other.first_ms(theirs) if theirs[0] > 0 and self.with_timestamps else None
        begin = None if first_ms is None else log.led.offset_at(first_ms)
        return own if begin is None else (min(max(own[0], begin), own[1]), own[1])

    def _digests(self, log: _ReadLog, offsets: OffsetRange, note: bool = False) -> Iterator[RecordDigest]:
        begin, end = offsets
        records = log.reader.read(log.name, begin, end)
        if note:
            text = f"of {end - begin:,} offsets"
            records = with_notes(records, self.progress, lambda record: f"{log.name}: {record.offset - begin:,} {text}")
        for record in records:
            yield record.digest if self.with_timestamps else record.digest._replace(timestamp_ms=0)
