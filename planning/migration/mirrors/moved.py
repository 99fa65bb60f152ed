"""Comparison of what the origin has from its end offset on with the target, which has many other records too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.mirrors.record_digest import RecordDigest

# Records of the origin that are kept at a time, some 60 MB. The target is read once for each such part.
CHUNK = 200_000

ReadRecords = Callable[[], Iterable[RecordDigest]]
CompareMoved = Callable[[Iterable[RecordDigest], ReadRecords], MirrorCounts]


def compare_moved(
    origin: Iterable[RecordDigest], read_target: ReadRecords, chunk: int = CHUNK
) -> MirrorCounts:
    """Return which records of the origin the target has, wherever they are there.

    Records that are the same in all parts are distinguished by their number alone.

    Args:
        origin: records of the origin from its end offset on.
        read_target: reads the records of the target from its base on.
        chunk: records of the origin that are kept at a time.

    Returns:
        Mirrored are those that are on the target, missing those that are not, doubled the further copies.
    """
    total, records = MirrorCounts(), iter(origin)
    while wanted := Counter(islice(records, chunk)):
        found = Counter(record for record in read_target() if record in wanted)
        total += MirrorCounts(
            mirrored=sum(min(number, found[record]) for record, number in wanted.items()),
            missing=sum(max(0, number - found[record]) for record, number in wanted.items()),
            doubled=sum(max(0, found[record] - number) for record, number in wanted.items()),
        )
    return total


def find_moved(origin: Iterable[RecordDigest], read_target: ReadRecords, chunk: int = CHUNK) -> MirrorCounts:
    """Return ``compare_moved`` without doubled records: the target is read no further than to the last that is wanted.

    Args:
        origin: records of the origin from its end offset on.
        read_target: reads the records of the target from its base on.
        chunk: records of the origin that are kept at a time.
    """
    total, records = MirrorCounts(), iter(origin)
    while wanted := Counter(islice(records, chunk)):
        count = left = wanted.total()
        for record in read_target():
            if wanted.get(record):
                wanted[record] -= 1
                left -= 1
                if not left:
                    break
        total += MirrorCounts(mirrored=count - left, missing=left)
    return total
