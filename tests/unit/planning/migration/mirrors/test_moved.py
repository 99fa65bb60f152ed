"""What the origin has from its end offset on, compared with the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headroom.planning.migration.mirrors.comparison import MirrorCounts
from headroom.planning.migration.mirrors.moved import compare_moved, find_moved
from headroom.planning.migration.mirrors.record_digest import RecordDigest


def digests(*numbers: int) -> list[RecordDigest]:
    return [RecordDigest(number, number, 0, 1_000 + number) for number in numbers]


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_records_count_wherever_they_are_on_the_target(chunk: int) -> None:
    origin, target = digests(1, 2, 3, 4, 5), digests(90, 3, 91, 1, 2, 5, 92, 5)
    counts = compare_moved(origin, lambda: target, chunk)
    assert counts == MirrorCounts(mirrored=4, missing=1, doubled=1)
    assert not counts.is_whole()
    assert compare_moved(digests(1, 2), lambda: target, chunk) == MirrorCounts(mirrored=2)


def test_records_that_are_the_same_differ_in_their_number() -> None:
    assert compare_moved(digests(7, 7), lambda: digests(7)) == MirrorCounts(mirrored=1, missing=1)
    assert compare_moved(digests(7, 7), lambda: digests(7, 7)) == MirrorCounts(mirrored=2)
    assert compare_moved([], lambda: digests(7)) == MirrorCounts()


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_what_is_missing_is_found_without_reading_more_of_the_target_than_is_needed(chunk: int) -> None:
    read: list[int] = []

    def target() -> Iterator[RecordDigest]:
        for digest in digests(90, 3, 91, 1, 2, 5, 92, 5):
            read.append(digest.key)
            yield digest

    assert find_moved(digests(1, 2, 3), target, chunk) == MirrorCounts(mirrored=3)
    assert 5 not in read
    assert find_moved(digests(1, 4, 5), target, chunk) == MirrorCounts(mirrored=2, missing=1)
    assert find_moved([], target) == MirrorCounts()
