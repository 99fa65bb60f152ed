"""Comparison of a partition with its mirror: by hand, and with faults that a test has made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.mirrors.comparison import MirrorCounts, compare_mirror
from headroom.planning.migration.mirrors.record_digest import RecordDigest, record_digest


def record(number: int, value: str = "") -> RecordDigest:
    return record_digest(b"%d" % number, (value or f"value {number}").encode(), [("h", b"1")], 1_000 + number)


def records(*numbers: int) -> list[RecordDigest]:
    return [record(number) for number in numbers]


def compared(origin: list[int], target: list[int], **options: bool) -> MirrorCounts:
    return compare_mirror(records(*origin), records(*target), **options)


@pytest.mark.parametrize(
    ("origin", "target", "expected"),
    [
        ([], [], MirrorCounts()),
        ([1, 2, 3], [1, 2, 3], MirrorCounts(mirrored=3)),
        # The mirror is behind.
        ([1, 2, 3], [1], MirrorCounts(mirrored=1, pending=2)),
        ([1, 2, 3], [], MirrorCounts(pending=3)),
        # 2 and 3 have no copy, and 4 has.
        ([1, 2, 3, 4], [1, 4], MirrorCounts(mirrored=2, missing=2)),
        # MirrorMaker was killed, and began again at 2.
        ([1, 2, 3, 4], [1, 2, 3, 2, 3, 4], MirrorCounts(mirrored=4, doubled=2)),
        ([1, 2, 3, 4], [1, 4, 2, 3], MirrorCounts(mirrored=4, out_of_order=2)),
        ([1, 2], [1, 9, 2], MirrorCounts(mirrored=2, foreign=1)),
        ([1, 2], [8, 9], MirrorCounts(pending=2, foreign=2)),
        ([], [1], MirrorCounts(foreign=1)),
    ],
)
def test_what_a_mirror_has_of_each_record(origin: list[int], target: list[int], expected: MirrorCounts) -> None:
    assert compared(origin, target) == expected
    assert expected.is_whole() == (expected == MirrorCounts(mirrored=expected.mirrored, pending=expected.pending))


def test_a_record_whose_value_or_headers_were_changed_differs() -> None:
    changed = [record(2, "another"), record(3)._replace(headers=7)]
    expected = MirrorCounts(mirrored=2, differing=2)
    assert compare_mirror(records(1, 2, 3, 4), [record(1), *changed, record(4)]) == expected
    # Also at the end, and where all are.
    assert compare_mirror(records(1, 2, 3), [record(1), *changed]) == MirrorCounts(mirrored=1, differing=2)
    many = [record(number, "another") for number in range(5_000)]
    assert compare_mirror(records(*range(5_000)), many) == MirrorCounts(differing=5_000)


def test_a_changed_record_is_found_beside_one_that_is_missing() -> None:
    found = compare_mirror(records(1, 2, 3, 4), [record(1), record(3, "another"), record(4)])
    assert found == MirrorCounts(mirrored=2, missing=1, differing=1)


def test_each_part_of_a_record_counts() -> None:
    parts = (b"k", b"v", [("h", b"1")], 5)
    others = [
        (None, b"v", [("h", b"1")], 5),
        (b"", b"v", [("h", b"1")], 5),
        (b"k", None, [("h", b"1")], 5),
        (b"k", b"", [("h", b"1")], 5),
        (b"k", b"v", [], 5),
        (b"k", b"v", [("h", None)], 5),
        (b"k", b"v", [("h1", b"")], 5),
        (b"k", b"v", [("h", b"1"), ("h", b"1")], 5),
        (b"k", b"v", [("h", b"1")], 6),
    ]
    digests = [record_digest(*one) for one in (parts, *others)]  # type: ignore[arg-type]
    assert len(set(digests)) == len(digests)
    assert record_digest(*parts) == digests[0]  # type: ignore[arg-type]


def test_records_that_are_the_same_in_all_parts_are_counted_each() -> None:
    assert compared([1, 1, 2, 1], [1, 1, 2, 1]) == MirrorCounts(mirrored=4)
    assert compared([1, 1, 2], [1, 1, 1, 2]) == MirrorCounts(mirrored=3, doubled=1)


def test_what_one_cluster_has_deleted_is_not_missing() -> None:
    # Retention of the origin has deleted 1 and 2, that of the target 3.
    assert compared([3, 4, 5], [1, 2, 3, 4, 5], origin_deletes=True) == MirrorCounts(mirrored=3, older=2)
    assert compared([1, 2, 3, 4, 5], [4, 5], target_deletes=True) == MirrorCounts(mirrored=2, deleted=3)
    assert compared([3, 4, 5], [1, 2, 3, 4, 5]) == MirrorCounts(mirrored=3, foreign=2)
    assert compared([1, 2, 3, 4, 5], [4, 5]) == MirrorCounts(mirrored=2, missing=3)
    # Only before the first record that both have.
    assert compared([3, 4, 6, 7], [3, 7], target_deletes=True) == MirrorCounts(mirrored=2, missing=2)


def test_two_topics_without_a_record_in_common_are_no_mirror_whatever_was_deleted() -> None:
    assert not compared([3, 4], [1, 2], origin_deletes=True, target_deletes=True).is_whole()


def test_no_more_records_than_the_window_are_kept() -> None:
    """The origin is read only as far ahead as a fault needs, and in the end to count what is pending."""
    read: list[int] = []

    def origin() -> Iterator[RecordDigest]:
        for number in range(1_000):
            read.append(number)
            yield record(number)

    def target() -> Iterator[RecordDigest]:
        for number in range(100):
            yield record(number)
            assert len(read) <= number + 1
        yield record(-1)
        assert len(read) == 110
        yield record(100)

    assert compare_mirror(origin(), target(), window=10) == MirrorCounts(mirrored=101, foreign=1, pending=899)
    assert len(read) == 1_000


def test_beyond_the_window_a_doubled_record_is_foreign_and_a_late_one_missing() -> None:
    numbers = list(range(100))
    doubled = compare_mirror(records(*numbers), records(*numbers, 0), window=10)
    assert doubled == MirrorCounts(mirrored=100, foreign=1)
    late = compare_mirror(records(*numbers), records(*numbers[20:], 0), window=30)
    assert late == MirrorCounts(mirrored=81, missing=19, out_of_order=1)
    late = compare_mirror(records(*numbers), records(*numbers[20:]), window=30)
    assert late == MirrorCounts(mirrored=80, missing=20)


@given(st.data(), st.integers(1, 40))
def test_faults_of_different_records_are_counted_each(data: st.DataObject, count: int) -> None:
    """Every tenth record or so is missing, changed, doubled at once, or comes later; and there are foreign ones."""
    target: list[RecordDigest] = [record(0)]
    late: list[RecordDigest] = []
    expected = dict.fromkeys(("missing", "differing", "doubled", "out_of_order", "foreign"), 0)
    for number in range(1, count):
        kind = data.draw(st.sampled_from(["", "", "", *expected]))
        if kind:
            expected[kind] += 1
        if kind == "differing":
            target.append(record(number, "another"))
        elif kind == "out_of_order":
            late.append(record(number))
        elif kind != "missing":
            target += [record(number)] * (2 if kind == "doubled" else 1)
        if kind == "foreign":
            target.append(record(10_000 + number))
    target += [record(count), *late]
    mirrored = count + 1 - expected["missing"] - expected["differing"]
    found = compare_mirror(records(*range(count + 1)), target)
    assert found == MirrorCounts(mirrored=mirrored, **expected)
    assert found.is_whole() == (not any(expected.values()))


@given(st.lists(st.integers(0, 6), max_size=25), st.lists(st.integers(0, 6), max_size=25), st.integers(1, 8))
def test_every_record_is_counted_once(origin: list[int], target: list[int], window: int) -> None:
    found = compare_mirror(records(*origin), records(*target), window=window)
    assert found.mirrored + found.missing + found.pending + found.differing == len(origin)
    assert found.mirrored + found.doubled + found.foreign + found.differing == len(target)
    assert min(vars(found).values()) >= 0
    assert found.is_whole() == (target == origin[: len(target)])
