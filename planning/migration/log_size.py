"""Bytes that clients write to a partition, by the size of its leader's log at two times."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planning.migration.known import known_offset
from headroom.planning.migration.readings import TopicRules, growth_per_s


@dataclass(frozen=True)
class LogSize:
    """Size of the log of a partition's leader at one time; None: unknown.

    Attributes:
        read_ms: time of the reading, epoch milliseconds.
        broker: the leader.
        start: first offset that is not deleted.
        end: offset after the last record that all in-sync replicas have.
        size_bytes: bytes of the log.
    """

    read_ms: int
    broker: int | None
    start: int | None
    end: int | None
    size_bytes: int | None


def written_bytes_per_s(before: LogSize | None, now: LogSize | None, rules: TopicRules | None) -> float | None:
    """Return the rate at which clients write to a partition, bytes per second; None if unknown.

    The growth of the log in bytes is exact. If the log start has moved, because retention has deleted records, or if
    another broker leads, or the log got smaller, it is none: then it is the growth of the log end, times the mean size
    of the log's records. Both are unknown for a compacted topic, whose offsets have holes, and for one with remote
    storage, of which only a part is in the log, unless the log end has not grown: then it is 0. A log end that fell
    gives no rate.

    This is the rule of ``streaming/transforms/moves/write_rate.py``, with which a test holds it equal.

    Args:
        before: size at the earlier time.
        now: size at the later time.
        rules: settings of the topic.
    """
    if before is None or now is None:
        return None
    elapsed_s = (now.read_ms - before.read_ms) / 1000
    offsets_per_s = growth_per_s(before.end, now.end, elapsed_s)
    if offsets_per_s is None:
        return None
    is_whole = rules is not None and rules.cleanup_policy is not None and not rules.compacts()
    if rules is None or not is_whole or rules.remote_storage is not False:
        return 0.0 if offsets_per_s == 0 else None
    is_same_log = now.broker == before.broker and now.start is not None and now.start == before.start
    grown = growth_per_s(before.size_bytes, now.size_bytes, elapsed_s) if is_same_log else None
    if grown is not None or offsets_per_s == 0:
        return grown or 0.0
    start, end, size = known_offset(now.start), known_offset(now.end), known_offset(now.size_bytes)
    return (
        None if start is None or end is None or size is None or end <= start else offsets_per_s * size / (end - start)
    )
