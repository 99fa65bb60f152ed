"""Place of a reader on a mirror, by the records themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.mirrors.exact_place import FOLLOWING, ExactPlace, exact_place
from headroom.planning.migration.mirrors.record_digest import RecordDigest, record_digest
from tests.unit.planning.migration.mirror import Mirror, mirrors


def record(number: int) -> RecordDigest:
    return record_digest(None, b"%d" % number, (), 1_000)


def placed(origin: list[int], read: int, target: list[int], begin: int = 50) -> ExactPlace | None:
    """Return the place of a reader that has read so many records of the origin; the target's first offset is 50."""
    before = record(origin[read - 1]) if read else None
    following = [record(number) for number in origin[read : read + 1 + FOLLOWING]]
    return exact_place(before, following, [(begin + at, record(number)) for at, number in enumerate(target)])


@pytest.mark.parametrize(
    ("origin", "read", "target", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3, 4, 5, 6, 7, 8], ExactPlace(52, True)),
        ([1, 2, 3, 4, 5, 6, 7, 8], 0, [1, 2, 3, 4, 5, 6, 7, 8], ExactPlace(50, True)),
        # The target ends before all that follow.
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3, 4], ExactPlace(52, True)),
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3], ExactPlace(52, True)),
        # The next record is not mirrored yet, or there is none: behind the one before.
        ([1, 2, 3, 4], 2, [1, 2], ExactPlace(52, False)),
        ([1, 2, 3, 4], 4, [1, 2, 3, 4], ExactPlace(54, False)),
        # Neither is there.
        ([1, 2, 3, 4], 2, [1], None),
        ([1, 2, 3, 4], 0, [], None),
        ([], 0, [1], None),
        # 3 was mirrored twice, and the second time with what follows it.
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 8], ExactPlace(55, True)),
        # The record after the next one is missing on the target: any other place may skip records.
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3, 5, 6, 7, 8], None),
        ([1, 2, 3, 4, 5, 6, 7, 8], 2, [1, 2, 3, 9, 9, 9, 9, 9, 3], None),
        # Records that are the same are told apart by what follows them.
        ([1, 1, 1, 2, 3, 4, 5], 1, [1, 1, 1, 2, 3, 4, 5], ExactPlace(51, True)),
        ([1, 1, 1, 1, 1, 1, 1, 1], 3, [1, 1, 1, 1, 1, 1, 1, 1], ExactPlace(50, True)),
    ],
)
def test_a_reader_continues_at_the_first_copy_that_the_right_records_follow(
    origin: list[int], read: int, target: list[int], expected: ExactPlace | None
) -> None:
    assert placed(origin, read, target) == expected


@given(mirrors(("copy", "copy", "flush", "leave_gap_on_target", "restart")), st.data())
def test_no_record_is_skipped_whatever_was_mirrored_twice(mirror: Mirror, data: st.DataObject) -> None:
    """Records that are pending at the mirror's restart come later, at its end."""
    produced = max([mirror.origin, *(origin + 1 for origin in mirror.copies.values())])
    read = data.draw(st.integers(0, produced))
    target = [(offset, record(origin)) for offset, origin in sorted(mirror.copies.items())]
    before = record(read - 1) if read else None
    following = [record(number) for number in range(read, min(produced, read + 1 + FOLLOWING))]
    place = exact_place(before, following, target)
    if place is not None:
        # What the mirror has not read again after a restart is still to come.
        for number in range(read, mirror.origin):
            assert max(offset for offset, origin in mirror.copies.items() if origin == number) >= place.offset


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.data())
def test_on_a_whole_mirror_a_reader_never_continues_too_late(numbers: list[int], data: st.DataObject) -> None:
    read = data.draw(st.integers(0, len(numbers)))
    place = placed(numbers, read, numbers)
    assert place is None or place.offset <= 50 + read
    assert place is not None or read == 0 or read < len(numbers)
