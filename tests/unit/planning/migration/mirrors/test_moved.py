"""What the origin has from its end offset on, compared with the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.mirrors.moved import CompareMoved, compare_moved, find_moved, parts_of
from headroom.planning.migration.mirrors.record_digest import RecordDigest


def digests(*numbers: int) -> list[RecordDigest]:
    return [RecordDigest(number, number, 0, 1_000 + number) for number in numbers]


@pytest.mark.parametrize("parts", [1, 3, 100])
def test_records_count_wherever_they_are_on_the_target(parts: int) -> None:
    origin, target = digests(1, 2, 3, 4, 5), digests(90, 3, 91, 1, 2, 5, 92, 5)
    counts = compare_moved(lambda: origin, lambda: target, parts)
    assert counts == MirrorCounts(mirrored=4, missing=1, doubled=1)
    assert not counts.is_whole()
    assert compare_moved(lambda: digests(1, 2), lambda: target, parts) == MirrorCounts(mirrored=2)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("compare", [compare_moved, find_moved])
def test_records_that_are_the_same_differ_in_their_number(compare: CompareMoved, parts: int) -> None:
    assert compare(lambda: digests(7, 7), lambda: digests(7), parts) == MirrorCounts(mirrored=1, missing=1)
    assert compare(lambda: digests(7, 7), lambda: digests(7, 7), parts) == MirrorCounts(mirrored=2)
    # However many others are between them.
    assert compare(lambda: digests(7, 1, 2, 7), lambda: digests(7), parts) == MirrorCounts(mirrored=1, missing=3)
    assert compare(list, lambda: digests(7), parts) == MirrorCounts()


@pytest.mark.parametrize("parts", [1, 3, 100])
def test_what_is_missing_is_found_without_reading_more_of_the_target_than_is_needed(parts: int) -> None:
    read: list[int] = []

    def target() -> Iterator[RecordDigest]:
        for digest in digests(90, 3, 91, 1, 2, 5, 92, 5):
            read.append(digest.key)
            yield digest

    assert find_moved(lambda: digests(1, 2, 3), target, parts) == MirrorCounts(mirrored=3)
    assert 5 not in read
    assert find_moved(lambda: digests(1, 4, 5), target, parts) == MirrorCounts(mirrored=2, missing=1)


def test_the_parts_of_a_long_log_have_200_000_records_or_less() -> None:
    assert [parts_of(offsets) for offsets in (0, 1, 200_000, 200_001, 1_000_000)] == [1, 1, 1, 2, 5]
