"""What became of acknowledged records, from what was acknowledged and what a reader has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.fixtures.migrations.numbered import AcknowledgedRecord, ReadRecord


@dataclass(frozen=True)
class Tally:
    """Counts of records.

    Attributes:
        acknowledged: records that were acknowledged.
        lost: acknowledged records that were not read.
        doubled: how often acknowledged records were read again.
        out_of_order: acknowledged records that were read behind a later one of the same writer and partition.
        elsewhere: acknowledged records that were first read at another client offset than they were acknowledged with.
        unknown: records that were read and not acknowledged: their writer was killed, or had an error.
        unknown_doubled: how often these were read again.
    """

    acknowledged: int
    lost: int
    doubled: int
    out_of_order: int
    elsewhere: int
    unknown: int
    unknown_doubled: int


def tally(acknowledged: Iterable[AcknowledgedRecord], read: Iterable[ReadRecord]) -> Tally:
    """Return what became of acknowledged records.

    Args:
        acknowledged: records with client offsets, in any order. A record that may or may not be acknowledged, because
            its writer was killed, is not among them: it is neither lost nor doubled.
        read: records in the order in which they were read; only the order within a partition counts.
    """
    offsets = {(one.partition, one.writer, one.number): one.offset for one in acknowledged}
    times: Counter[tuple[int, str, int]] = Counter()
    highest: dict[tuple[int, str], int] = {}
    out_of_order = elsewhere = 0
    for one in read:
        key = (one.partition, one.writer, one.number)
        times[key] += 1
        if key not in offsets or times[key] > 1:
            continue
        elsewhere += one.offset != offsets[key]
        before = highest.get(key[:2], one.number)
        out_of_order += one.number < before
        highest[key[:2]] = max(before, one.number)
    again = {key: number - 1 for key, number in times.items()}
    return Tally(
        acknowledged=len(offsets),
        lost=sum(key not in times for key in offsets),
        doubled=sum(number for key, number in again.items() if key in offsets),
        out_of_order=out_of_order,
        elsewhere=elsewhere,
        unknown=sum(key not in offsets for key in times),
        unknown_doubled=sum(number for key, number in again.items() if key not in offsets),
    )
