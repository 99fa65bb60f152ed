"""Search for the next record of a consumer group on a mirror."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.records import LogRecord, RecordReader
from headroom.operations.migration.led_partition import LedPartition
from headroom.operations.progress import ProgressReceiver, with_notes
from headroom.planning.migration.mirrors.exact_place import FOLLOWING, ExactPlace, exact_place
from headroom.planning.migration.mirrors.reader_offsets import ReaderOffset
from headroom.planning.migration.offset_syncs import translate
from headroom.planning.migration.plan.planned import TopicOnBoth
from headroom.planning.migration.readings import LogOffsets

# Offsets before the committed one, among which the record before it is looked for: markers of transactions have some.
_BEFORE = 100
# Offsets of the target that are searched for one record.
_SEARCHED = 1_000_000


@dataclass(frozen=True)
class ExactSearch:
    """Search for the next record of one reader on the target.

    Attributes:
        target: the target.
        both: topic of the reader.
        own: the reader.
        syncs: offset syncs of its partition; empty if there are none.
        progress: gets the offset that is read.
        wait: waits for the given seconds.
    """

    target: MigrationCluster
    both: TopicOnBoth
    own: ReaderOffset
    syncs: Sequence[tuple[int, int]]
    progress: ProgressReceiver
    wait: Callable[[float], object] = time.sleep

    def place(
        self, origin_reader: RecordReader, target_reader: RecordReader, log: LogOffsets, target_log: LogOffsets
    ) -> ExactPlace | None:
        """Return where the reader continues; None if that is not known.

        Args:
            origin_reader: reads records of the origin.
            target_reader: reads records of the target.
            log: log of the partition on the origin.
            target_log: its log on the target.

        Raises:
            HeadroomError: records could not be read.
        """
        committed = self.own.committed
        if log.start is None or log.end is None or target_log.start is None or target_log.end is None:
            return None
        if not log.start <= committed <= log.end:
            return None
        begin = max(log.start, committed - _BEFORE)
        earlier = list(origin_reader.read(self.own.name, begin, committed))
        before = earlier[-1] if earlier else None
        following = list(islice(origin_reader.read(self.own.name, committed, log.end), 1 + FOLLOWING))
        sought = [record for record in (before, *following[:1]) if record is not None]
        if not sought:
            return None
        first = self._first(sought, target_log)
        end = min(target_log.end, first + _SEARCHED)
        records = with_notes(target_reader.read(self.own.target_name, first, end), self.progress, self._note)
        digests = ((one.offset, one.digest) for one in records)
        return exact_place(before.digest if before else None, [one.digest for one in following], digests)

    def _first(self, sought: Sequence[LogRecord], target_log: LogOffsets) -> int:
        """Return an offset of the target at or before the copies of the records.

        Neither a sync nor a timestamp is behind a copy. Of two copies, the sync is at or before the later one.
        """
        start, end = target_log.start or 0, target_log.end or 0
        time_ms = min(record.timestamp_ms for record in sought)
        assert self.both.target is not None
        led = LedPartition(self.target, self.both.target, self.own.target_name, self.wait)
        by_time = led.offset_at(time_ms) if time_ms >= 0 else start
        by_sync = translate(self.syncs, sought[0].offset)
        first = max(start, end if by_time is None else by_time, by_sync or 0)
        return min(first, end)

    def _note(self, record: LogRecord) -> str:
        return f"{self.own.target_name}: at offset {record.offset:,}"
