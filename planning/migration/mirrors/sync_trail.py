"""Offset syncs of MirrorMaker 2 as they are read from their topic: the newest of each partition, and those to keep.

MirrorMaker holds at most 64 syncs of a partition, and compaction leaves one in the topic. So those that were read are
kept elsewhere, and each is linked to the one before. A link says that no sync in between went back, and that none can
have been missed. After a rewind, or where compaction may have removed one unread, there is no link: earlier syncs do
not count then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headroom.schemas.bounds import LATEST_MS, MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition

# Least time between two kept syncs of a partition, by the times at which they were written. A reader that continues at
# one of them reads at most the records of this time again; MirrorMaker writes a sync after 100 records.
APART_MS = 30_000
# Syncs of a partition that wait to be sent. If there are more, every other one is left out.
_MOST_WAITING = MOST_IN_ARRAY


class SyncRecord(NamedTuple):
    """An offset sync with its place in the topic of the syncs.

    Attributes:
        offset: its offset in that topic.
        name: partition, by its name on the origin.
        origin: offset of a record on the origin.
        target: offset of its copy on the target.
        written_ms: when it was written, epoch milliseconds.
    """

    offset: int
    name: TopicPartition
    origin: int
    target: int
    written_ms: int

    @property
    def is_valid(self) -> bool:
        """Whether it says anything: negative offsets do not."""
        return self.origin >= 0 and self.target >= 0


@dataclass(frozen=True)
class SyncReading:
    """Part of the topic of the syncs.

    Attributes:
        names: partitions that are followed.
        topic_id: id of the topic; None before Kafka 2.8.
        leader_epoch: epoch of its leader, the same before and after the reading; None if unknown.
        is_restart: whether it does not continue the reading before: the first one, or the topic has another log.
        begin: offset at which it began.
        end: offset at which it ended.
        is_all: whether that was the end of the log.
        records: all syncs there, also of other partitions, in the order of the topic.
    """

    names: frozenset[TopicPartition]
    topic_id: str | None
    leader_epoch: int | None
    is_restart: bool
    begin: int
    end: int
    is_all: bool
    records: Sequence[SyncRecord]


class KeptSync(NamedTuple):
    """An offset sync to keep.

    Attributes:
        record: the sync.
        leader_epoch: epoch of the topic's leader that it was read from; None if unknown.
        after: offset in the topic of the kept sync before it, if none in between went back or can have been missed.
            None: earlier syncs do not count.
    """

    record: SyncRecord
    leader_epoch: int | None
    after: int | None


class SyncTrails:
    """The syncs of all followed partitions, from readings one after another, in bounded memory.

    Attributes:
        topic_id: id of the topic of the syncs; None if unknown.
        is_all: whether the last reading reached the end of the topic.
    """

    def __init__(self) -> None:
        self.topic_id: str | None = None
        self.is_all = False
        self._trails: dict[TopicPartition, _Trail] = {}
        self._at = 0
        # Newest offset without a record since the end of the log was last reached; -1 without one.
        self._missing = -1

    def add(self, reading: SyncReading) -> None:
        """Take in a reading.

        What compaction removes of a partition is older than what is left of it. So within a reading nothing is missing
        between two syncs of a partition, and before its first one only if an offset without a record is in between.
        """
        if reading.is_restart:
            self._trails, self._at, self._missing = {}, reading.begin, -1
        self._trails = {name: trail for name, trail in self._trails.items() if name in reading.names}
        self.topic_id = reading.topic_id
        seen: set[TopicPartition] = set()
        for record in reading.records:
            self._pass_to(record.offset)
            self._at = record.offset + 1
            if record.name in reading.names and record.is_valid:
                trail = self._trails.setdefault(record.name, _Trail())
                may_miss = record.name not in seen and self._missing > trail.newest_offset
                trail.add(record, reading.leader_epoch, may_miss)
                seen.add(record.name)
        self._pass_to(reading.end)
        self._at, self.is_all = reading.end, reading.is_all
        if reading.is_all:
            # Of each partition the newest sync is always left, so that it was read.
            self._missing = -1

    def newest(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return the newest sync by partition, as offsets on both clusters; none before the end of the topic."""
        known = self._trails.items() if self.is_all else ()
        return {name: (trail.newest.origin, trail.newest.target) for name, trail in known if trail.newest is not None}

    def waiting(self, name: TopicPartition, most: int, now_ms: int) -> list[KeptSync]:
        """Return the syncs of a partition that are to be kept and are not confirmed yet, the oldest ones first.

        Args:
            name: partition.
            most: longest result.
            now_ms: time now, epoch milliseconds. A sync that no other has followed for a while is kept too.
        """
        trail = self._trails.get(name)
        return [] if trail is None else trail.waiting(most, now_ms)

    def confirm(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forget the syncs that wait, up to these offsets in the topic: they are kept now."""
        for name, offset in offsets.items():
            if name in self._trails:
                self._trails[name].confirm(offset)

    def _pass_to(self, offset: int) -> None:
        if offset > self._at:
            self._missing = offset - 1


class _Trail:
    """Syncs of one partition."""

    def __init__(self) -> None:
        self.newest: SyncRecord | None = None
        self._newest_epoch: int | None = None
        # Kept syncs that wait to be sent. There is no break among them: a break removes those before it.
        self._waiting: list[tuple[SyncRecord, int | None]] = []
        self._last_kept: SyncRecord | None = None
        self._confirmed: int | None = None

    @property
    def newest_offset(self) -> int:
        """Offset of the newest sync in the topic; -1 without one."""
        return -1 if self.newest is None else self.newest.offset

    def add(self, record: SyncRecord, leader_epoch: int | None, may_miss: bool) -> None:
        last = self.newest
        self.newest, self._newest_epoch = record, leader_epoch
        goes_back = last is not None and (record.origin < last.origin or record.target < last.target)
        if last is None or may_miss or goes_back or not _has_time(record):
            self._waiting, self._last_kept, self._confirmed = [], None, None
        if _has_time(record) and (self._last_kept is None or _is_apart(self._last_kept.written_ms, record.written_ms)):
            self._keep()

    def waiting(self, most: int, now_ms: int) -> list[KeptSync]:
        newest = self.newest
        is_kept = newest is None or newest == self._last_kept
        if newest is not None and not is_kept and _has_time(newest) and _is_apart(newest.written_ms, now_ms):
            self._keep()
        kept, after = [], self._confirmed
        for record, leader_epoch in self._waiting[:most]:
            kept.append(KeptSync(record, leader_epoch, after))
            after = record.offset
        return kept

    def confirm(self, offset: int) -> None:
        sent = [record.offset for record, _ in self._waiting if record.offset <= offset]
        if sent:
            self._waiting, self._confirmed = self._waiting[len(sent) :], sent[-1]

    def _keep(self) -> None:
        if self.newest is not None:
            self._waiting.append((self.newest, self._newest_epoch))
            self._last_kept = self.newest
        if len(self._waiting) > _MOST_WAITING:
            # The first one stays, which may be that of a rewind, and the newest one, which compaction leaves.
            self._waiting = [*self._waiting[:-1:2], self._waiting[-1]]


def _has_time(record: SyncRecord) -> bool:
    """Return whether the time of a sync can be stored; one without a time is not kept."""
    return 0 <= record.written_ms <= LATEST_MS


def _is_apart(before_ms: int, after_ms: int) -> bool:
    """Return whether two times are far enough apart; if the clock was set back they are."""
    return not 0 <= after_ms - before_ms < APART_MS


def linked_to(kept: Collection[tuple[int, int | None, int, int]], first: int) -> list[tuple[int, int]]:
    """Return the kept syncs of a partition that count in front of those in the topic, in its order.

    Args:
        kept: offset in the topic, offset that it is linked to (``KeptSync.after``), offset on the origin and on the
            target. Each was read from the present log of the topic; the order is any, and one may be given twice.
        first: offset of the partition's first sync that is still in the topic.

    Returns:
        Offsets on the origin and on the target. Syncs without an unbroken chain of links to the first one are missing.
    """
    pairs: list[tuple[int, int]] = []
    reach: int | None = None
    last: int | None = None
    for offset, after, origin, target in sorted(kept, key=lambda one: one[0], reverse=True):
        if offset < first and offset != last:
            if reach is None or reach > offset:
                break
            pairs.append((origin, target))
        last = offset
        begins = offset if after is None else after
        reach = begins if reach is None else min(reach, begins)
    return pairs[::-1]
