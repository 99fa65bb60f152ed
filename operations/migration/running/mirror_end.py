"""Whether a mirror has all that a log of the origin has, before clients begin on the target."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.records import LogRecord
from headroom.cluster.migration.sync_topic import NoSyncTopicError
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.syncs import read_newest_syncs
from headroom.planning.migration.readings import LOG_APPEND_TIME, LogOffsets
from headroom.planning.migration.run.growth import LogGrowth
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# The last offsets of a log may be aborted records and ends of transactions, so that more are read if need be.
_LAST_OFFSETS = (1_000, 100_000)
# Most offsets behind a sync whose records are counted.
_MOST_COUNTED = 1_000_000
# Syncs are read for all partitions at once, and not for each of them again.
_SYNCS_S = 10.0


class MirrorEnd:
    """Compares the ends of logs with those of their mirrors.

    Payloads may repeat, as those of heartbeats do. So the target's log has to rest too, the last records have to have
    the same timestamp, and behind MirrorMaker's newest sync there have to be as many records on both.

    Args:
        origin: cluster that topics migrate from.
        target: cluster that they migrate to.
        quiet_s: time without growth after which a log of the target is at rest, seconds.
        clock_s: monotonic seconds.

    Attributes:
        failures: what could not be read at the last look at a partition, and why; without those that were read.
    """

    def __init__(
        self, origin: MigrationCluster, target: MigrationCluster, quiet_s: float, clock_s: Callable[[], float]
    ) -> None:
        self._clusters = RunningClusters(origin, target)
        self._quiet_s = quiet_s
        self._clock_s = clock_s
        self._growth: dict[TopicPartition, LogGrowth] = {}
        self._timestamp_types: dict[str, str] = {}
        self.failures: dict[TopicPartition, str] = {}
        self._syncs: Mapping[TopicPartition, tuple[int, int]] = {}
        self._syncs_failure: HeadroomError | None = None
        # When they were read, and of which partitions.
        self._syncs_of: tuple[float, frozenset[TopicPartition]] = (0.0, frozenset())

    def is_complete(
        self, name: TopicPartition, log: LogOffsets, mirror: TopicPartition, target: LogOffsets
    ) -> bool | None:
        """Return whether a mirror has all records of a log that rests; None if unknown, as while the mirror grows.

        Args:
            name: partition on the origin.
            log: its log.
            mirror: its mirror on the target.
            target: the mirror's log, which was read before.
        """
        self.failures.pop(name, None)
        if log.start is None or log.end is None or target.end is None:
            return None
        growth = self._growth.setdefault(name, LogGrowth(self._quiet_s, self._quiet_s))
        # What only the target's leader has is not compared, so its high watermark is its end here.
        ends = {name: target.end}
        growth.add(self._clock_s(), ends, ends)
        if log.start >= log.end:
            return True
        if not growth.is_quiet(name):
            return None
        try:
            last = _last_record(self._clusters.origin, name, log)
            copied = _last_record(self._clusters.target, mirror, target)
            if last is None:
                # Records of aborted transactions alone, if all of it was read: there is nothing to copy.
                return True if log.end - log.start <= sum(_LAST_OFFSETS) else None
            if copied is None or not self._is_copy(mirror.topic, last, copied):
                return False
            return self._are_all_behind_sync(name, log.end, mirror, target.end)
        except HeadroomError as error:
            self.failures[name] = f"{error.subject} to be read ({error.rule})"
            return None

    def _is_copy(self, mirror: str, record: LogRecord, copied: LogRecord) -> bool:
        if (copied.key, copied.value) != (record.key, record.value):
            # Headers may be the mirror's own.
            return False
        known = self._timestamp_types
        if mirror not in known:
            rules = self._clusters.target.rules([mirror]).get(mirror)
            if rules is not None and rules.timestamp_type is not None:
                known[mirror] = rules.timestamp_type
        return known.get(mirror) == LOG_APPEND_TIME or copied.timestamp_ms == record.timestamp_ms

    def _are_all_behind_sync(
        self, name: TopicPartition, end: int, mirror: TopicPartition, target_end: int
    ) -> bool | None:
        """Return whether the target has as many records behind the newest sync; true without one.

        The ends of transactions on the origin are not copied, so that the offsets alone may seem to be behind.
        """
        sync = self._newest_sync(name)
        if sync is None:
            return True
        begin, copied = sync
        if begin > end or copied > target_end:
            # One of them is another log than the sync is of.
            return None
        if begin + target_end - copied >= end:
            return True
        if end - begin > _MOST_COUNTED:
            return False
        origin, target = self._clusters
        return _count(target, mirror, copied, target_end) >= _count(origin, name, begin, end)

    def _newest_sync(self, name: TopicPartition) -> tuple[int, int] | None:
        """Return the newest sync; None if there is none, as with another mirror.

        Raises:
            HeadroomError: syncs are there, and could not be read: the mirror may be behind them.
        """
        at_s, names = self._syncs_of
        if name not in names or self._clock_s() - at_s >= _SYNCS_S:
            names = frozenset(self._growth)
            self._syncs, self._syncs_failure = {}, None
            try:
                with suppress(NoSyncTopicError):
                    self._syncs = read_newest_syncs(self._clusters.both(), set(names))
            except HeadroomError as error:
                self._syncs_failure = error
            self._syncs_of = self._clock_s(), names
        if self._syncs_failure is not None:
            raise self._syncs_failure
        return self._syncs.get(name)


def _last_record(cluster: MigrationCluster, name: TopicPartition, log: LogOffsets) -> LogRecord | None:
    """Return the last record of a log; None if it has none among its last offsets.

    Raises:
        HeadroomError: it could not be read.
    """
    if log.start is None or log.end is None:
        raise HeadroomError(str(name), "has an unknown log", "See that it has a leader.")
    end = log.end
    for offsets in _LAST_OFFSETS:
        begin = max(log.start, end - offsets)
        with cluster.reader(committed=True) as reader:
            last = deque(reader.read(name, begin, end), maxlen=1)
        if last:
            return last[0]
        if begin == log.start:
            break
        end = begin
    return None


def _count(cluster: MigrationCluster, name: TopicPartition, begin: int, end: int) -> int:
    """Return the number of records; those of aborted transactions do not count.

    Raises:
        HeadroomError: they could not be read.
    """
    with cluster.reader(committed=True) as reader:
        return sum(1 for _ in reader.read(name, begin, end))
