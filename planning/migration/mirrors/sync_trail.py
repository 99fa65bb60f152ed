"""Offset syncs of MirrorMaker 2 as they are read from their topic: the newest of each partition, and those to keep.

MirrorMaker holds at most 64 syncs of a partition, and compaction leaves one in the topic. So those that were read are
kept elsewhere, one every 30 s, and each is linked to the one before. A link says that no sync in between went back, and
that none can have been missed. After a rewind, or where compaction may have removed one unread, there is no link:
earlier syncs do not count then. Between them others are kept where groups have yet to pass (``CloseSyncs``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headroom.planning.migration.mirrors.close_syncs import CloseSyncs, PlacesOfGroups
from headroom.planning.migration.mirrors.sync_record import KeptSync, SyncReading, SyncRecord, is_apart
from headroom.schemas.bounds import LATEST_MS, MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition

# Syncs of a partition that wait to be sent. If there are more, every other one is left out.
_MOST_WAITING = MOST_IN_ARRAY
# Close syncs of all partitions that are held, and that wait: 30 MB each, or, with many partitions, 150 MB. They are
# shared evenly, and up to 256 of a partition are no more than that.
_MOST_CLOSE, _MOST_OF_MANY = 100_000, 500_000


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
        most_held = self._most_held()
        for trail in self._trails.values():
            trail.between.limit(most_held)
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

    def between(self, name: TopicPartition, most: int, now_ms: int, places: PlacesOfGroups) -> list[KeptSync]:
        """Return those syncs between the ones of ``waiting`` that are to be kept too, the oldest ones first.

        Args:
            name: partition.
            most: longest result.
            now_ms: time now, epoch milliseconds.
            places: returns where the groups are.
        """
        trail = self._trails.get(name)
        return [] if trail is None else trail.between.waiting(most, self._most_held(), now_ms, places)

    def confirm(self, offsets: Mapping[TopicPartition, Collection[int]]) -> None:
        """Forget the syncs that wait with these offsets in the topic: they are kept now."""
        for name, own in offsets.items():
            if name in self._trails:
                self._trails[name].confirm(own)

    def _most_held(self) -> int:
        count = max(1, len(self._trails))
        return max(1, _MOST_CLOSE // count, min(MOST_IN_ARRAY, _MOST_OF_MANY // count))

    def _pass_to(self, offset: int) -> None:
        if offset > self._at:
            self._missing = offset - 1


class _Trail:
    """Syncs of one partition.

    Attributes:
        newest: newest sync; None without one.
        between: those between the ones that are 30 s apart.
    """

    def __init__(self) -> None:
        self.newest: SyncRecord | None = None
        self.between = CloseSyncs()
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
            self.between.clear()
        if not _has_time(record):
            return
        self.between.hold(record, leader_epoch)
        if self._last_kept is None or is_apart(self._last_kept.written_ms, record.written_ms):
            self._keep()

    def waiting(self, most: int, now_ms: int) -> list[KeptSync]:
        newest = self.newest
        is_kept = newest is None or newest == self._last_kept
        if newest is not None and not is_kept and _has_time(newest) and is_apart(newest.written_ms, now_ms):
            self._keep()
        kept, after = [], self._confirmed
        for record, leader_epoch in self._waiting[:most]:
            kept.append(KeptSync(record, leader_epoch, after))
            after = record.offset
        return kept

    def confirm(self, offsets: Collection[int]) -> None:
        sent = [record.offset for record, _ in self._waiting if record.offset in offsets]
        if sent:
            self._waiting = [waiting for waiting in self._waiting if waiting[0].offset > sent[-1]]
            self._confirmed = sent[-1]
        self.between.confirm(offsets)

    def _keep(self) -> None:
        if self.newest is not None:
            self._waiting.append((self.newest, self._newest_epoch))
            self._last_kept = self.newest
            self.between.keep_newest_anyway()
        if len(self._waiting) > _MOST_WAITING:
            # The first one stays, which may be that of a rewind, and the newest one, which compaction leaves.
            self.between.release({record.offset for record, _ in self._waiting[1:-1:2]})
            self._waiting = [*self._waiting[:-1:2], self._waiting[-1]]


def _has_time(record: SyncRecord) -> bool:
    """Return whether the time of a sync can be stored; one without a time is not kept."""
    return 0 <= record.written_ms <= LATEST_MS


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
