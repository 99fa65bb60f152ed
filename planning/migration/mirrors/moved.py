"""Comparison of what the origin has from its end offset on with the target, which has many other records too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.mirrors.record_digest import RecordDigest

# Records of the origin that are kept at a time, some 60 MB. Both logs are read once for each such part.
_PART = 200_000

ReadRecords = Callable[[], Iterable[RecordDigest]]
CompareMoved = Callable[[ReadRecords, ReadRecords, int], MirrorCounts]


def parts_of(offsets: int) -> int:
    """Return in how many parts so many offsets of the origin are compared, so that little memory is needed."""
    return max(1, -(-offsets // _PART))


def compare_moved(read_origin: ReadRecords, read_target: ReadRecords, parts: int = 1) -> MirrorCounts:
    """Return which records of the origin the target has, wherever they are there.

    Records that are the same in all parts are distinguished by their number alone.

    Args:
        read_origin: reads the records of the origin from its end offset on.
        read_target: reads the records of the target from its base on.
        parts: in how many parts they are compared.

    Returns:
        Mirrored are those that are on the target, missing those that are not, doubled the further copies.
    """
    total = MirrorCounts()
    for wanted in _in_parts(read_origin, parts):
        found = Counter(record for record in read_target() if record in wanted)
        total += MirrorCounts(
            mirrored=sum(min(number, found[record]) for record, number in wanted.items()),
            missing=sum(max(0, number - found[record]) for record, number in wanted.items()),
            doubled=sum(max(0, found[record] - number) for record, number in wanted.items()),
        )
    return total


def find_moved(read_origin: ReadRecords, read_target: ReadRecords, parts: int = 1) -> MirrorCounts:
    """Return ``compare_moved`` without doubled records: the target is read no further than to the last that is wanted.

    Args:
        read_origin: reads the records of the origin from its end offset on.
        read_target: reads the records of the target from its base on.
        parts: in how many parts they are compared.
    """
    total = MirrorCounts()
    for wanted in _in_parts(read_origin, parts):
        count = left = wanted.total()
        for record in read_target():
            if wanted.get(record):
                wanted[record] -= 1
                left -= 1
                if not left:
                    break
        total += MirrorCounts(mirrored=count - left, missing=left)
    return total


def _in_parts(read_origin: ReadRecords, parts: int) -> Iterator[Counter[RecordDigest]]:
    """Yield records with their numbers, those that are the same in one part: each copy counts for one of them."""
    for part in range(parts):
        if wanted := Counter(record for record in read_origin() if hash(record) % parts == part):
            yield wanted
