"""Places and routes of one partition, by hand and as laws."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import MigrationStatus, Place, Routed, Split, client_offset, place, route

END = 700_000
BASE = 40
IN_USE = ("migrating", "migrated")
STATUSES = ("planned", *IN_USE, "aged")
UNKNOWN = (None, -1, -700_000)

OFFSETS = st.integers(0, 30)
SPLITS = st.builds(
    Split,
    end_offset=st.none() | st.integers(-1, 20),
    target_base_offset=st.integers(0, 5),
    status=st.sampled_from(STATUSES),
    ignore_origin=st.booleans(),
    origin_up=st.booleans(),
    origin_end=st.none() | st.integers(-1, 25),
)


def test_a_split_is_by_default_one_that_migrates_from_a_healthy_origin_to_an_empty_target() -> None:
    assert Split(END) == Split(END, 0, "migrating", False, True, None)
    with pytest.raises(FrozenInstanceError):
        Split(END).status = "aged"  # type: ignore[misc]


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_a_word_or_its_member(status: str) -> None:
    assert Split(END, status=status) == Split(END, status=MigrationStatus(status))
    assert Split(END, status=status).status == status == MigrationStatus(status)


def test_another_status_is_an_error() -> None:
    with pytest.raises(ValueError, match="paused"):
        Split(END, status="paused")


def test_clients_count_on_from_the_end_offset_on_the_target() -> None:
    assert client_offset(Split(END), 0) == 700_000
    assert client_offset(Split(END), 1) == 700_001
    assert client_offset(Split(END, BASE), 40) == 700_000
    assert client_offset(Split(END, BASE), 41) == 700_001
    assert client_offset(Split(2**62 + 1), 1) == 2**62 + 2


def test_a_record_from_before_the_migration_has_no_client_offset() -> None:
    assert client_offset(Split(END, BASE), 39) is None
    assert client_offset(Split(END, BASE), 0) is None


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_without_an_offset_there_is_no_client_offset(unknown: int | None) -> None:
    assert client_offset(Split(unknown), 0) is None
    assert client_offset(Split(END), unknown) is None
    assert client_offset(Split(END, -1), 0) is None


@pytest.mark.parametrize("status", IN_USE)
@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, Place("origin", 0, 0)),
        (699_999, Place("origin", 699_999, 0)),
        (700_000, Place("target", 40, 0)),
        (700_001, Place("target", 41, 0)),
    ],
)
def test_the_origin_is_read_below_the_end_and_the_target_from_there(status: str, offset: int, expected: Place) -> None:
    assert place(Split(END, BASE, status), offset) == expected


def test_a_planned_migration_is_read_below_the_end_alone() -> None:
    split = Split(END, BASE, "planned")
    assert place(split, 699_999) == Place("origin", 699_999)
    assert place(split, 700_000) is None
    assert place(split, 700_001) is None


@pytest.mark.parametrize("status", IN_USE)
def test_while_the_origin_is_down_the_target_alone_is_read(status: str) -> None:
    split = Split(END, BASE, status, origin_up=False)
    assert place(split, 0) is None
    assert place(split, 699_999) is None
    assert place(split, 700_000) == Place("target", 40)
    assert place(split, 700_001) == Place("target", 41)


@pytest.mark.parametrize("origin_up", [True, False])
@pytest.mark.parametrize(
    "split", [Split(END, BASE, "aged"), *(Split(END, BASE, status, ignore_origin=True) for status in IN_USE)]
)
def test_readers_of_an_aged_or_ignored_origin_continue_at_the_targets_first_record(
    split: Split, origin_up: bool
) -> None:
    split = replace(split, origin_up=origin_up)
    assert place(split, 0) == Place("target", 40, 700_000)
    assert place(split, 699_999) == Place("target", 40, 1)
    assert place(split, 700_000) == Place("target", 40, 0)
    assert place(split, 700_001) == Place("target", 41, 0)


@pytest.mark.parametrize("status", IN_USE)
@pytest.mark.parametrize(
    ("origin_end", "offset", "expected"),
    [
        # The origin has lost 699,990 to 699,999.
        (699_990, 699_989, Place("origin", 699_989)),
        (699_990, 699_990, Place("target", 40, 10)),
        (699_990, 699_991, Place("target", 40, 9)),
        (699_990, 699_999, Place("target", 40, 1)),
        (699_990, 700_000, Place("target", 40)),
        (699_999, 699_998, Place("origin", 699_998)),
        (699_999, 699_999, Place("target", 40, 1)),
        (0, 0, Place("target", 40, 700_000)),
        # Nothing below the end is lost.
        (700_000, 699_999, Place("origin", 699_999)),
        (700_000, 700_000, Place("target", 40)),
        (700_001, 699_999, Place("origin", 699_999)),
        (700_001, 700_000, Place("target", 40)),
        (-1, 699_999, Place("origin", 699_999)),
    ],
)
def test_readers_pass_over_what_the_origin_has_lost(status: str, origin_end: int, offset: int, expected: Place) -> None:
    assert place(Split(END, BASE, status, origin_end=origin_end), offset) == expected


def test_what_is_lost_is_passed_over_also_while_the_origin_is_down() -> None:
    split = Split(END, BASE, origin_up=False, origin_end=699_990)
    assert place(split, 699_989) is None
    assert place(split, 699_990) == Place("target", 40, 10)


def test_a_planned_migration_sends_no_reader_to_the_target() -> None:
    lost = Split(END, BASE, "planned", origin_end=699_990)
    assert place(lost, 699_989) == Place("origin", 699_989)
    assert [place(lost, offset) for offset in (699_990, 699_999, 700_000)] == [None] * 3
    ignored = Split(END, BASE, "planned", ignore_origin=True)
    down = Split(END, BASE, "planned", origin_up=False)
    for split in (ignored, down):
        assert [place(split, offset) for offset in (0, 699_999, 700_000)] == [None] * 3


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("unknown", UNKNOWN)
def test_nothing_is_read_without_the_end_or_the_offset(status: str, unknown: int | None) -> None:
    for ignore_origin in (False, True):
        split = Split(unknown, BASE, status, ignore_origin)
        assert [place(split, offset) for offset in (0, 699_999, 700_000)] == [None] * 3
        assert route(split, [0, 699_999, 700_000]) == Routed((), (), (0, 1, 2))
        assert place(Split(END, BASE, status, ignore_origin), unknown) is None


def test_without_the_base_the_origin_alone_is_read() -> None:
    split = Split(END, -1)
    assert place(split, 699_999) == Place("origin", 699_999)
    assert place(split, 700_000) is None
    assert route(split, [699_999, 700_000]) == Routed((0,), (), (1,))


ANSWERS = [699_998, 699_999, None, 700_000, -1, 700_001]


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (Split(END), Routed(kept=(0, 1), moved=(3, 5), held=(2, 4))),
        (Split(END, BASE, "migrated"), Routed((0, 1), (3, 5), (2, 4))),
        (Split(END, status="planned"), Routed((0, 1), (), (2, 3, 4, 5))),
        # 699,999 was lost after it had been answered.
        (Split(END, origin_end=699_999), Routed((0,), (1, 3, 5), (2, 4))),
        (Split(END, origin_end=700_000), Routed((0, 1), (3, 5), (2, 4))),
        (Split(END, origin_end=700_001), Routed((0, 1), (3, 5), (2, 4))),
        (Split(END, status="planned", origin_end=699_999), Routed((0,), (), (1, 2, 3, 4, 5))),
        # Readers do not see 699,998 and 699,999 on the origin, now or ever.
        (Split(END, origin_up=False), Routed((), (3, 5), (0, 1, 2, 4))),
        (Split(END, ignore_origin=True), Routed((), (0, 1, 3, 5), (2, 4))),
        (Split(END, status="aged"), Routed((), (0, 1, 3, 5), (2, 4))),
        (Split(END, status="planned", ignore_origin=True), Routed((), (), (0, 1, 2, 3, 4, 5))),
        (Split(None), Routed((), (), (0, 1, 2, 3, 4, 5))),
    ],
)
def test_records_are_routed_to_where_they_are_read(split: Split, expected: Routed) -> None:
    assert route(split, ANSWERS) == expected


def test_no_records_need_no_route() -> None:
    assert route(Split(END), []) == Routed((), (), ())


@given(SPLITS, OFFSETS, OFFSETS)
def test_a_later_offset_is_never_read_before_an_earlier_one(split: Split, offset: int, other: int) -> None:
    """Origin before target, and only offsets that are skipped have the place of another one."""
    earlier, later = place(split, min(offset, other)), place(split, max(offset, other))
    if earlier is None or later is None:
        return
    order = [(found.side == "target", found.offset) for found in (earlier, later)]
    assert order == sorted(order)
    assert offset == other or order[0] < order[1] or earlier.skipped


@given(SPLITS, OFFSETS)
def test_a_place_leads_back_to_its_client_offset(split: Split, offset: int) -> None:
    found = place(split, offset)
    if found is None:
        return
    if found.side == "origin":
        assert (found.offset, found.skipped) == (offset, 0)
    else:
        assert client_offset(split, found.offset) == offset + found.skipped


@given(SPLITS, OFFSETS)
def test_a_record_on_the_target_is_read_where_it_is(split: Split, target_offset: int) -> None:
    offset = client_offset(split, target_offset)
    if offset is not None:
        assert place(split, offset) == (None if split.status == "planned" else Place("target", target_offset))


@given(SPLITS, st.lists(st.none() | st.integers(-1, 30)))
def test_every_record_has_one_route_and_is_read_there(split: Split, offsets: list[int | None]) -> None:
    """The moved records are appended to the target, in their order, behind those that it has."""
    routed = route(split, offsets)
    assert sorted(routed.kept + routed.moved + routed.held) == list(range(len(offsets)))
    for indexes in (routed.kept, routed.moved, routed.held):
        assert list(indexes) == sorted(indexes)
    read_by = Counter(place(split, offset) for offset in range(80))
    for index in routed.kept:
        assert read_by[Place("origin", offsets[index] or 0)] == 1
    free = split.target_base_offset + 7
    for target_offset in range(free, free + min(len(routed.moved), 20)):
        assert read_by[Place("target", target_offset)] == 1
    assert not any(place(split, offsets[index]) for index in routed.held)
    assert not any((offsets[index] is None or offsets[index] == -1) for index in routed.kept + routed.moved)


@given(SPLITS, st.lists(st.none() | st.integers(-1, 30)))
def test_records_are_kept_below_both_ends_and_moved_from_there(split: Split, offsets: list[int | None]) -> None:
    split = replace(split, ignore_origin=False, origin_up=True)
    if split.end_offset in (None, -1) or split.status == "aged":
        return
    ends = [end for end in (split.end_offset, split.origin_end) if end not in (None, -1)]
    below = [index for index, offset in enumerate(offsets) if offset not in (None, -1) and offset < min(ends)]
    above = [index for index, offset in enumerate(offsets) if offset not in (None, -1) and offset >= min(ends)]
    routed = route(split, offsets)
    assert list(routed.kept) == below
    assert list(routed.moved) == ([] if split.status == "planned" else above)
