"""Consumer of an application, which passes the switch of its partitions to another cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError, NoOffsetForPartitionError

from headroom.planning.migration import Split
from headroom.planning.migration.agreement import resumed_at
from headroom.routing.agreement import AgreementReader
from headroom.routing.clients import keep_joins, require_options, require_two_clusters, require_version
from headroom.routing.consumer.routed_partition import RoutedPartition
from headroom.routing.follower import AgreementFollower
from headroom.routing.reporter import Reporter
from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)
# Interval at which agreements are read, seconds; and longest part of a poll on one cluster while both are read.
_FOLLOW_S = 0.1
_PART_MS = 20
# Interval at which the target is polled for its group's sake, while nothing is read there, seconds.
_GROUP_S = 0.1
_COMMITTED_TIMEOUT_MS = 5_000
# Interval at which what is committed on the origin is committed again, seconds.
_KEEP_S = 60.0


class _Pausing(ConsumerRebalanceListener):
    """Keeps new partitions from being read before their place is known."""

    def __init__(self, target: KafkaConsumer) -> None:
        self._target = target
        self.new: set[TopicPartition] = set()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        return

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._target.pause(*assigned)
        self.new.update(assigned)


class RoutedConsumer:
    """Reads the origin up to the end offset of each partition, and then the target.

    Its group is on the target, which assigns the partitions. Positions, and offsets of records, are client offsets.
    They are committed on the cluster on which they are read. Not thread-safe, as ``KafkaConsumer``.
    """

    def __init__(
        self, origin: KafkaConsumer, target: KafkaConsumer, reports: KafkaProducer, reader: AgreementReader, name: str
    ) -> None:
        """Read what is agreed, and keep to it.

        Args:
            origin: consumer of the origin, with the group's id, auto_offset_reset as on the target, and without
                enable_auto_commit.
            target: consumer of the target, likewise.
            reports: producer of the target.
            reader: reader of the agreement topic, for this consumer alone.
            name: name of this process among all routers.

        Raises:
            HeadroomError: a client has another option, the clusters are one, or the agreements cannot be read.
        """
        require_version()
        group = target.config["group_id"]
        if group is None:
            raise HeadroomError("consumer of the target", "group_id is None", "Set group_id on both consumers.")
        needed = {"enable_auto_commit": False, "group_id": group}
        require_options("consumer of the target", target.config, needed)
        needed["auto_offset_reset"] = target.config["auto_offset_reset"]
        require_options("consumer of the origin", origin.config, needed)
        clusters = require_two_clusters(origin._cluster, target._cluster)
        # While the origin is read, polls of the target do not wait.
        keep_joins(target)
        self._origin = origin
        self._target = target
        self._reader = reader
        self._follower = AgreementFollower(reader, Reporter(name, "consumer", None, reports), clusters)
        self._splits: dict[Any, Split] = {}
        self._readings: dict[TopicPartition, RoutedPartition] = {}
        self._listener = _Pausing(target)
        self._next_follow = 0.0
        self._next_group_poll = 0.0
        self._next_origin_call = 0.0
        self._next_keep = 0.0
        self._is_adopted = False
        self._has_passed = False
        self._is_origin_first = False
        self.follow()

    def subscribe(self, topics: Collection[str]) -> None:
        """Let the group on the target assign partitions of topics, which exist on both clusters."""
        self._target.subscribe(topics, listener=self._listener)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions, without the group's assignment."""
        self._target.assign(partitions)
        self._target.pause(*(partition for partition in partitions if partition not in self._readings))

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        assigned: set[TopicPartition] = self._target.assignment()
        return assigned

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[Any]]:
        """Return records of assigned partitions, as ``KafkaConsumer.poll``.

        Args:
            timeout_ms: longest wait for a record, milliseconds.
            max_records: greatest number of records; None: the consumers' max_poll_records.

        Raises:
            HeadroomError: the agreements cannot be read any more, so nothing is read.
            KafkaError: as ``KafkaConsumer.poll``.
        """
        if max_records is None:
            max_records = self._target.config["max_poll_records"]
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            if time.monotonic() >= self._next_follow:
                self._follow_or_wait()
                self._keep_commits()
            self._place_assigned()
            left_ms = max(0, int((deadline - time.monotonic()) * 1000))
            records = self._poll_clusters(left_ms, max_records)
            if records or time.monotonic() >= deadline:
                return records

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit client offsets of assigned partitions.

        Args:
            offsets: client offset of the next record to read; None: of all that ``poll`` has returned.

        Raises:
            KafkaError: as ``KafkaConsumer.commit``.
        """
        assigned = self._target.assignment()
        if offsets is None:
            offsets = {partition: reading.next_offset for partition, reading in self._readings.items()}
        on_origin: dict[TopicPartition, OffsetAndMetadata] = {}
        on_target: dict[TopicPartition, OffsetAndMetadata] = {}
        passed: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition, offset in offsets.items():
            # The origin has no members of the group, so it would take a commit of another member's partition.
            if partition not in assigned or partition not in self._readings:
                continue
            reading = self._readings[partition]
            place = reading.place(offset)
            if place is None or place.side == "origin":
                end = reading.end_in_use()
                on_origin[partition] = OffsetAndMetadata(offset if end is None else min(offset, end))
                # The origin has another offset than the end from now on, whatever was committed there before.
                reading.is_passed = False
            else:
                on_target[partition] = OffsetAndMetadata(place.offset)
                if not reading.is_passed and _asks_origin(reading.split):
                    passed[partition] = OffsetAndMetadata(reading.split.end_offset)  # type: ignore[union-attr]
        failure: KafkaError | None = None
        if on_origin:
            try:
                self._origin.commit(on_origin)
                self._note_commits(on_origin)
            except KafkaError as error:
                # What was read on the target does not depend on it.
                failure = error
        if passed:
            self._commit_passed(passed)
        if on_target:
            self._target.commit(on_target)
        if failure is not None:
            raise failure

    def position(self, partition: TopicPartition) -> int | None:
        """Return the client offset of the next record; None while it is unknown."""
        reading = self._readings.get(partition)
        return None if reading is None else reading.next_offset

    def skipped(self, partition: TopicPartition) -> int:
        """Return how many offsets were missed on the origin by continuing on the target."""
        return self._readings[partition].skipped

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at a client offset.

        Args:
            partition: an assigned partition that was polled.
            offset: client offset.
        """
        reading = self._readings[partition]
        self._go(partition, reading, offset)

    def follow(self) -> None:
        """Adopt what is newly agreed, and report it; ``poll`` does so too.

        Raises:
            HeadroomError: the agreements cannot be read, or another process has taken the name.
            KafkaError: a cluster did not answer.
        """
        self._next_follow = time.monotonic() + _FOLLOW_S
        if self._follower.read():
            self._is_adopted = False
        self._follower.require_same(self._origin._cluster, self._target._cluster)
        if not self._is_adopted:
            self._splits = dict(self._follower.splits())
            for partition, reading in self._readings.items():
                split = self._splits.get(partition)
                split = split and split.kept_at(reading.next_offset)
                if split != reading.split:
                    self._adopt(partition, reading, split)
            self._has_passed = any(reading.split != self._splits.get(p) for p, reading in self._readings.items())
            self._is_adopted = True
        # Whoever has passed an end offset agrees to no nearer one.
        if not self._has_passed:
            self._follower.report()

    def close(self) -> None:
        """Close both consumers and the reader, without a commit. The producer of reports is its owner's."""
        self._target.close(autocommit=False)
        self._origin.close(autocommit=False)
        self._reader.close()

    def __enter__(self) -> RoutedConsumer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _follow_or_wait(self) -> None:
        try:
            self.follow()
        except (KafkaError, HeadroomError) as error:
            if self._follower.is_final(error):
                raise
            # What is not known here has not started: it waits for this router.
            log.warning("agreements are read again later: %s", error)

    def _adopt(self, partition: TopicPartition, reading: RoutedPartition, split: Split | None) -> None:
        reading.split = split
        # What was read on the origin beyond the end offset comes again from the target: that is no gap. But a planned
        # end may still be moved on, past what was read.
        end = reading.end_in_use()
        if reading.cluster != "target" and end is not None:
            reading.next_offset = min(reading.next_offset, end)
        place = reading.place(reading.next_offset)
        if (place and place.side) != reading.cluster:
            self._go(partition, reading, reading.next_offset)

    def _place_assigned(self) -> None:
        """Find the place of new partitions, and forget those that were revoked."""
        assigned = self._target.assignment()
        if assigned == self._readings.keys() and not self._listener.new:
            return
        # A partition that was revoked and came back continues where it was committed, as with any consumer.
        for partition in self._readings.keys() - assigned | self._readings.keys() & self._listener.new:
            del self._readings[partition]
        self._listener.new.clear()
        self._assign_origin()
        for partition in sorted(assigned - self._readings.keys()):
            self._target.pause(partition)
            split = self._splits.get(partition)
            # What was committed beyond an end offset counts while a nearer one is to be agreed too.
            start = self._start(partition, split and split.kept_at(split.reopened_end or 0))
            if start is not None:
                own = split and split.kept_at(start)
                reading = self._readings[partition] = RoutedPartition(own, start, kept_s=time.monotonic())
                self._go(partition, reading, start)

    def _start(self, partition: TopicPartition, split: Split | None) -> int | None:
        """Return the client offset at which the group continues; None while that cannot be read."""
        on_target = self._target.committed(partition, timeout_ms=_COMMITTED_TIMEOUT_MS)
        if split is not None and split.is_in_use and not _asks_origin(split):
            # The origin may be gone, and each partition would wait for it.
            known = resumed_at(split, None, on_target)
            if known is not None:
                return known
        is_up, on_origin = self._committed_on_origin(partition)
        start = resumed_at(split and replace(split, origin_up=is_up), on_origin, on_target)
        if start is not None:
            return start
        if not _asks_origin(split):
            return None if split is None else split.end_offset
        return self._reset(partition, split) if is_up else None

    def _committed_on_origin(self, partition: TopicPartition) -> tuple[bool, int | None]:
        """Return whether the origin answered, and what the group has committed there.

        One that hangs is asked a fifth of the time at most: a poll with many partitions would take minutes.
        """
        began_s = time.monotonic()
        if began_s < self._next_origin_call:
            return False, None
        try:
            return True, self._origin.committed(partition, timeout_ms=_COMMITTED_TIMEOUT_MS)
        except KafkaError as error:
            now_s = time.monotonic()
            self._next_origin_call = now_s + 4 * (now_s - began_s)
            log.warning("%s: the origin did not answer (%s)", partition, type(error).__name__)
            return False, None

    def _reset(self, partition: TopicPartition, split: Split | None) -> int | None:
        """Return the client offset for a group that has committed none."""
        policy = self._target.config["auto_offset_reset"]
        if policy == "earliest":
            first: int = self._origin.beginning_offsets([partition])[partition]
            return first if split is None or split.end_offset is None else min(first, split.end_offset)
        if policy != "latest":
            raise NoOffsetForPartitionError(partition)
        last: int = self._origin.end_offsets([partition])[partition]
        if split is None or split.end_offset is None or last < split.end_offset:
            return last
        if not split.is_in_use:
            return split.end_offset
        return RoutedPartition(split, 0).client_position(self._target.end_offsets([partition])[partition])

    def _go(self, partition: TopicPartition, reading: RoutedPartition, offset: int) -> None:
        """Continue at a client offset, on its cluster."""
        place = reading.place(offset)
        before, reading.cluster = reading.cluster, None if place is None else place.side
        reading.next_offset = offset
        if place is None or place.side == "origin":
            self._target.pause(partition)
        if place is not None and place.side == "target":
            reading.skipped += place.skipped
            reading.next_offset = offset + place.skipped
            self._target.seek(partition, place.offset)
            self._target.resume(partition)
        if "origin" in (before, reading.cluster):
            self._assign_origin()
        if place is not None and place.side == "origin":
            self._origin.seek(partition, place.offset)

    def _assign_origin(self) -> None:
        read = [partition for partition, reading in self._readings.items() if reading.cluster == "origin"]
        if set(read) != self._origin.assignment():
            self._origin.assign(read)

    def _poll_clusters(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        clusters = {reading.cluster for reading in self._readings.values()}
        if "origin" not in clusters:
            return self._poll_target(timeout_ms, max_records)
        # The target is polled also while nothing is read there: its group would take the partitions away. But a poll
        # takes a part of the time that reading some records takes.
        now = time.monotonic()
        if "target" not in clusters and now < self._next_group_poll:
            return self._poll_origin(timeout_ms, max_records)
        self._next_group_poll = now + _GROUP_S
        waits = {"origin": min(timeout_ms, _PART_MS if "target" in clusters else timeout_ms), "target": 0}
        # In turn, because one of them may have records enough for all polls.
        self._is_origin_first = not self._is_origin_first
        polls = [("origin", self._poll_origin), ("target", self._poll_target)]
        records: dict[TopicPartition, list[Any]] = {}
        for cluster, poll in polls if self._is_origin_first else polls[::-1]:
            left = max_records - sum(map(len, records.values()))
            if left > 0:
                for partition, polled in poll(0 if records else waits[cluster], left).items():
                    # A partition that has just left the origin may have records of both.
                    records[partition] = records.get(partition, []) + polled
        return records

    def _poll_target(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        # Until agreements have to be read again, at most.
        timeout_ms = min(timeout_ms, int(_FOLLOW_S * 1000))
        records = self._target.poll(timeout_ms=timeout_ms, max_records=max_records)
        # New partitions may come with records from where the group has not been placed yet.
        return {
            partition: self._readings[partition].of_target(polled)
            for partition, polled in records.items()
            if self._is_placed(partition) and self._readings[partition].cluster == "target"
        }

    def _poll_origin(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        timeout_ms = min(timeout_ms, int(_FOLLOW_S * 1000))
        records = self._origin.poll(timeout_ms=timeout_ms, max_records=max_records)
        counted = {
            partition: kept
            for partition, polled in records.items()
            if self._is_placed(partition) and (kept := self._readings[partition].of_origin(polled))
        }
        for partition, reading in list(self._readings.items()):
            if reading.cluster == "origin":
                self._pass_limit(partition, reading)
        return counted

    def _is_placed(self, partition: TopicPartition) -> bool:
        """Return whether a partition is still the one that was placed: polls of the target may reassign it."""
        is_assigned = partition in self._readings and partition in self._target.assignment()
        return is_assigned and partition not in self._listener.new

    def _pass_limit(self, partition: TopicPartition, reading: RoutedPartition) -> None:
        """Leave the origin at the end offset, also if there is no record right before it."""
        limit = reading.origin_limit()
        if limit is None or (self._origin.highwater(partition) or 0) < limit:
            return
        if reading.next_offset >= limit:
            self._go(partition, reading, reading.next_offset)
        elif self._origin.position(partition) >= limit:
            reading.skipped += self._deleted_before(partition, reading, limit)
            self._go(partition, reading, limit)

    def _deleted_before(self, partition: TopicPartition, reading: RoutedPartition, limit: int) -> int:
        """Return how many offsets below the limit retention has deleted unread; holes count for none."""
        try:
            first: int = self._origin.beginning_offsets([partition])[partition]
        except KafkaError as error:
            log.warning("%s: how many records were missed is unknown (%s)", partition, type(error).__name__)
            return 0
        return max(0, min(first, limit) - reading.next_offset)

    def _keep_commits(self) -> None:
        """Commit again what is committed on the origin, of one partition at a time.

        The group has no members there. So Kafka deletes its offsets, although it reads by them: all, however new they
        are, a week after its last member has left (``offsets.retention.minutes``), and those of a group that never had
        one a week after their commit. After a restart it would begin where auto_offset_reset says.
        """
        now_s = time.monotonic()
        if now_s < self._next_keep:
            return
        assigned = self._target.assignment()
        due = (p for p, r in self._readings.items() if r.cluster != "target" and now_s - r.kept_s >= _KEEP_S)
        partition = next((p for p in due if p in assigned and p not in self._listener.new), None)
        if partition is None:
            return
        is_up, committed = self._committed_on_origin(partition)
        reading = self._readings[partition]
        if not is_up:
            self._next_keep = time.monotonic() + _KEEP_S
            return
        offset = reading.on_origin if committed is None else committed
        reading.kept_s = now_s
        if offset is None:
            return
        kept = {partition: OffsetAndMetadata(offset)}
        try:
            self._origin.commit(kept, timeout_ms=_COMMITTED_TIMEOUT_MS)
            self._note_commits(kept)
        except KafkaError as error:
            log.warning("%s: the origin did not take a commit (%s)", partition, type(error).__name__)

    def _note_commits(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for partition, committed in offsets.items():
            reading = self._readings[partition]
            reading.on_origin, reading.kept_s = committed.offset, time.monotonic()

    def _commit_passed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit on the origin that the end offset was passed, before anything is committed on the target."""
        try:
            self._origin.commit(offsets, timeout_ms=_COMMITTED_TIMEOUT_MS)
        except KafkaError as error:
            # Tried again with each commit. Meanwhile a restart may read records below the end offset again.
            log.warning("the origin did not take a commit (%s)", type(error).__name__)
            return
        for partition in offsets:
            self._readings[partition].is_passed = True


def _asks_origin(split: Split | None) -> bool:
    """Return whether the origin still has something for readers."""
    return split is None or not split.is_origin_over
