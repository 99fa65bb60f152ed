"""Whether retention deletes records of the origin before a reader gets to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.planning.migration.known import known_amount
from headroom.planning.migration.losses import lost_to_retention
from headroom.planning.migration.readings import LogOffsets, TopicRules

# A retention that is just enough at a rate measured over seconds would not be at a slightly lower one.
_MARGIN = 1.2


# Not frozen, and never changed: a tick has tens of thousands, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class ReaderRetention:
    """What retention does to one reader of a partition; offsets are None if unknown.

    Attributes:
        kept_s: seconds until retention by time may delete the last record below the end offset; None if never, or if
            unknown.
        lost_offsets: offsets that are deleted before it has read them, those that are already among them; at least so
            many while it is unknown when the log gets to its end offset, or if it never does.
        gone_offsets: those that are deleted already.
        enough_retention_ms: retention.ms with which it loses no more, at its rate; None if it need not be raised, or
            if no retention is enough.
    """

    kept_s: float | None
    lost_offsets: int | None
    gone_offsets: int | None
    enough_retention_ms: int | None = None


class LogRetention:
    """What retention does to the readers of one partition, of which there may be many.

    Each is compared with retention at two records: the last one in the log now, and the last one below the end offset.
    Between them, and before, a reader at a steady rate is in no more danger than at one of them.

    Args:
        rules: settings of the topic; None if unknown.
        log: log of the partition.
        newest_age_s: age of the newest record below the end offset, seconds; None if unknown.
        end_offset: agreed end offset; None if unknown.
        reached_in_s: seconds until the log gets there; None if unknown.
    """

    __slots__ = ("_age_s", "_end_offset", "_kept_now_s", "_kept_s", "_log", "_reached_in_s", "_rules")

    def __init__(
        self,
        rules: TopicRules | None,
        log: LogOffsets,
        newest_age_s: float | None,
        end_offset: int | None,
        reached_in_s: float | None,
    ) -> None:
        self._rules, self._log, self._age_s = rules, log, newest_age_s
        self._end_offset, self._reached_in_s = end_offset, reached_in_s
        # Time for which the last record in the log now, and the last one below the end offset, are kept.
        self._kept_now_s: float | None = None
        self._kept_s: float | None = None
        limit_ms = None if rules is None else rules.retention_ms
        if limit_ms is not None and log.end is not None and end_offset is not None:
            if newest_age_s is not None:
                self._kept_now_s = max(0.0, limit_ms / 1000 - newest_age_s)
            if reached_in_s is not None:
                self._kept_s = self._kept_now_s if end_offset <= log.end else reached_in_s + limit_ms / 1000

    def of_reader(self, committed: int, read_offsets_per_s: float | None) -> ReaderRetention:
        """Return what it does to a reader that goes on at its rate.

        Args:
            committed: committed offset of the reader.
            read_offsets_per_s: rate at which it reads, offsets per second; None if unknown.
        """
        rules, log, end_offset, reached_in_s = self._rules, self._log, self._end_offset, self._reached_in_s
        if log.start is None:
            return ReaderRetention(None, None, None)
        gone = max(0, log.start - committed)
        if log.end is None or end_offset is None:
            return ReaderRetention(None, None, gone)
        position = max(committed, log.start)
        # What is behind the end offset is read on the target.
        now, later = min(log.end, end_offset) - position, end_offset - position
        if later <= 0 or (rules is not None and not rules.deletes()):
            return ReaderRetention(None, gone, gone)
        if rules is None or rules.retention_ms is None or rules.retention_bytes is None:
            return ReaderRetention(None, None, gone)
        if rules.retention_ms < 0:
            # Retention by size may delete at any time: how much a record takes on the disk is unknown here.
            return ReaderRetention(None, gone if rules.retention_bytes < 0 else None, gone)
        kept_s = self._kept_s
        lost_now = _lost(now, self._kept_now_s, read_offsets_per_s)
        lost_later = _lost(later, kept_s, read_offsets_per_s)
        if lost_now is None:
            return ReaderRetention(kept_s, None, gone)
        # A log that never gets to its end, or at an unknown time, deletes what it has all the same.
        lost = max(lost_now, lost_later or 0)
        if not lost:
            is_known = lost_later is not None and rules.retention_bytes < 0
            return ReaderRetention(kept_s, gone if is_known else None, gone)
        until_s = reached_in_s if end_offset > log.end else None
        enough = _enough_ms(now, later, self._age_s, until_s, read_offsets_per_s)
        return ReaderRetention(kept_s, gone + lost, gone, enough)


def _lost(left: int, kept_s: float | None, read_offsets_per_s: float | None) -> int | None:
    if left <= 0:
        return 0
    return None if kept_s is None else lost_to_retention(left, read_offsets_per_s, kept_s)


def _enough_ms(
    now: int, later: int, age_s: float | None, until_s: float | None, read_offsets_per_s: float | None
) -> int | None:
    rate = known_amount(read_offsets_per_s)
    if not rate:
        return None
    needed_s = [float(now / rate) + (age_s or 0.0)]
    # Of what is yet to be written, if it is known when that will be.
    if until_s is not None:
        needed_s.append(float(later / rate) - until_s)
    return math.ceil(max(needed_s) * _MARGIN) * 1000
