"""Rules of an agreement, by hand and as laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import MigrationStatus, Split, place
from headroom.planning.migration.agreement import (
    NextStep,
    acknowledged_ends,
    incomplete_migrations,
    readiness,
    refused_change,
    resumed_at,
    split_of,
)
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import AcknowledgedEnd, RouterReport
from tests.unit.builders.agreements import agreement

STATUSES = ("planned", "migrating", "migrated", "aged")
NAME = ("old", TopicPartition("orders", 0))
# Routers agree to end at 5 instead of 10.
OPEN = {"end_offset": 5, "reopened_end": 10, "number": 2}


def report(*ends: AcknowledgedEnd, router: str = "writer", **parts: Any) -> RouterReport:
    return RouterReport(router, "1", "producer", "1", acknowledged=ends, **parts)


def note(end: int, epoch: int = 0, **ids: str) -> AcknowledgedEnd:
    return AcknowledgedEnd("orders", 0, epoch, end, **ids)


@pytest.mark.parametrize(
    ("noted", "counts"),
    [
        # As of a library that notes no ids.
        (note(50), True),
        (note(50, origin_topic_id="i"), True),
        (note(50, origin_topic_id="before"), False),
        (note(50, origin_cluster_id="old"), True),
        (note(50, origin_cluster_id="other"), False),
        (note(50, origin_cluster_id="other", origin_topic_id="i"), False),
        (AcknowledgedEnd("orders", 1, 0, 50), False),
    ],
)
def test_reports_count_for_the_agreed_topic_and_not_for_others_of_its_name(
    noted: AcknowledgedEnd, counts: bool
) -> None:
    assert acknowledged_ends([report(noted)], [agreement(origin_topic_id="i")]) == ({NAME: {0: 50}} if counts else {})


def test_a_topic_whose_id_is_not_agreed_has_all_notes_of_its_cluster() -> None:
    noted = report(note(50, origin_topic_id="i"), note(60, origin_topic_id="j"), note(70, origin_cluster_id="other"))
    assert acknowledged_ends([noted], [agreement()]) == {NAME: {0: 60}}


def test_two_origins_with_a_topic_of_one_name_have_their_own_notes() -> None:
    both = [agreement(origin_topic_id="i"), agreement(origin_cluster_id="other", origin_topic_id="j")]
    reports = [report(note(50, origin_topic_id="i"), note(40, 1, origin_topic_id="i")), report(note(70, 2))]
    reports.append(report(note(60, origin_topic_id="j"), router="other-writer"))
    assert acknowledged_ends(reports, both) == {
        NAME: {0: 50, 1: 40, 2: 70},
        ("other", NAME[1]): {0: 60, 2: 70},
    }


def test_a_migration_is_incomplete_if_one_router_says_so() -> None:
    assert incomplete_migrations([report(), report(incomplete=("m",)), report(incomplete=("m", "n"))]) == {"m", "n"}
    assert incomplete_migrations([report()]) == frozenset()


@pytest.mark.parametrize(
    ("agreed", "position", "rate", "step", "missing"),
    [
        ({"a": 2, "b": 2}, 9, 1.0, NextStep.START, ()),
        # At the end offset: the next record is the first that goes to the target.
        ({"a": 2, "b": 3}, 10, 0.0, NextStep.START, ()),
        ({"a": 2, "b": 2}, 11, 1.0, NextStep.AGREE_AGAIN, ()),
        ({"a": 2, "b": 2}, 9, 0.0, NextStep.AGREE_AGAIN, ()),
        ({"a": 2, "b": 2}, 9, None, NextStep.START, ()),
        ({"a": 2, "b": 1}, 9, 1.0, NextStep.WAIT, ("b",)),
        ({"b": 2}, 11, 1.0, NextStep.AGREE_AGAIN, ("a",)),
        ({}, 9, None, NextStep.WAIT, ("a", "b")),
        ({"a": 2, "b": 2}, None, 1.0, NextStep.WAIT, ()),
        ({"a": 2, "b": 2}, -1, 1.0, NextStep.WAIT, ()),
    ],
)
def test_a_migration_starts_once_all_named_routers_agree_before_the_log_is_past_its_end(
    agreed: dict[str, int], position: int | None, rate: float | None, step: NextStep, missing: tuple[str, ...]
) -> None:
    found = readiness(agreement(number=2, routers=("a", "b")), agreed, position, rate)
    assert (found.step, found.missing) == (step, missing)


def test_without_an_end_offset_nothing_starts() -> None:
    assert readiness(agreement(end_offset=None), {"writer": 1}, 0).step == NextStep.WAIT


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 4)),
    st.none() | st.integers(0, 20),
    st.none() | st.floats(0, 5),
)
def test_nothing_starts_that_a_router_does_not_know_or_that_the_log_has_passed(
    agreed: dict[str, int], position: int | None, rate: float | None
) -> None:
    planned = agreement(number=2, routers=("a", "b"))
    if readiness(planned, agreed, position, rate).step == NextStep.START:
        assert min(agreed.get("a", -1), agreed.get("b", -1)) >= 2
        assert position is not None
        assert position <= 10


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, {}),
        ({}, {"number": 2, "end_offset": 20}),
        ({}, {"number": 2, "end_offset": 5}),
        ({}, {"status": "migrating"}),
        ({"target_base_offset": None}, {"number": 2, "target_base_offset": 7}),
        ({"end_offset": None, "status": "migrating"}, {"end_offset": 12, "status": "migrating"}),
        ({"status": "migrating"}, {"status": "migrated"}),
        ({"status": "migrating"}, {"status": "migrating", "ignore_origin": True, "origin_end": 8}),
        ({"status": "migrating"}, {"status": "migrating", "origin_closed": True, "number": 2}),
        ({"status": "migrated"}, {"status": "aged", "number": 2}),
        ({"target_base_offset": None}, {"number": 1}),
        ({"status": "migrating"}, {"status": "migrating", "shielded": True}),
        ({"status": "aged", "shielded": True}, {"status": "aged"}),
        ({}, {"shielded": True}),
        ({"status": "migrating"}, {"end_offset": 5, "reopened_end": 10, "number": 2}),
        (OPEN, {**OPEN, "end_offset": 6, "number": 3}),
        (OPEN, {**OPEN, "shielded": True}),
        (OPEN, {"status": "migrating", "end_offset": 5, "number": 2}),
        (OPEN, {"status": "migrating", "number": 2}),
        (OPEN, {"status": "aged", "ignore_origin": True, "number": 2}),
    ],
)
def test_an_allowed_change(before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    assert refused_change(None if before is None else agreement(**before), agreement(**after)) is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (None, {"status": "migrating"}, "begins as planned"),
        ({}, {"end_offset": 11}, "needs a new agreement"),
        ({"number": 2}, {"number": 1}, "older"),
        ({}, {"status": "migrating", "end_offset": 11, "number": 2}, "end offset is fixed"),
        ({"status": "migrating"}, {"status": "planned"}, "does not become planned"),
        ({"status": "migrating"}, {"status": "migrating", "end_offset": 11}, "end offset is fixed"),
        ({"status": "migrating"}, {"status": "migrating", "target_base_offset": 4}, "base offset is fixed"),
        ({}, {"number": 2, "target_base_offset": 7}, "base offset is fixed"),
        ({}, {"status": "migrating", "target_base_offset": 4}, "base offset is fixed"),
        ({}, {"status": "migrating", "target_base_offset": None}, "base offset is unknown"),
        ({"status": "migrating", "ignore_origin": True}, {"status": "migrating"}, "given up"),
        ({"status": "migrating", "origin_closed": True}, {"status": "migrating"}, "left the origin"),
        ({"status": "migrating", "origin_end": 8}, {"status": "migrating", "origin_end": 9}, "origin's end is fixed"),
        ({"status": "migrating"}, {"status": "migrating", "migration": "other"}, "belongs to the migration move"),
        ({}, {"target_cluster_id": "third"}, "other ones"),
        ({"origin_topic_id": "a"}, {"origin_topic_id": "b"}, "other ones"),
        ({"status": "migrating"}, None, "in use already"),
        ({"status": "migrated"}, {"status": "migrated", "origin_dropped": True}, "needed until"),
        ({"status": "aged", "origin_dropped": True}, {"status": "aged"}, "deleted already"),
        (None, OPEN, "begins as planned"),
        (OPEN, None, "in use already"),
        (OPEN, {**OPEN, "migration": "other"}, "belongs to the migration move"),
        (OPEN, {"end_offset": 5, "number": 2}, "one of the two"),
        (OPEN, {"status": "migrating", "end_offset": 6, "number": 3}, "one of the two"),
        (OPEN, {"status": "migrated", "end_offset": 5, "number": 2}, "one of the two"),
        (OPEN, {**OPEN, "end_offset": 10, "number": 3}, "nearer"),
        (OPEN, {**OPEN, "end_offset": 6}, "needs a new agreement"),
        (OPEN, {**OPEN, "reopened_end": 11}, "nearer"),
        (OPEN, {**OPEN, "target_base_offset": 4}, "base offset is fixed"),
        (OPEN, {**OPEN, "ignore_origin": True}, "not left"),
        (OPEN, {"status": "migrating", "ignore_origin": True, "number": 2}, "not left"),
        (OPEN, {"status": "aged", "ignore_origin": True, "end_offset": 5, "number": 2}, "not left"),
        (OPEN, {**OPEN, "status": "aged", "ignore_origin": True, "end_offset": 10}, "for routers"),
        (OPEN, {"status": "aged", "number": 2}, "one of the two"),
        ({}, OPEN, "not opened again"),
        ({"status": "migrated"}, OPEN, "not opened again"),
        ({"status": "migrating", "origin_closed": True}, OPEN, "not opened again"),
        ({"status": "migrating", "method": "drained"}, {**OPEN, "method": "drained"}, "for routers"),
        ({"status": "migrating"}, {**OPEN, "number": 1}, "needs a new agreement"),
    ],
)
def test_a_refused_change(before: dict[str, Any] | None, after: dict[str, Any] | None, why: str) -> None:
    refused = refused_change(
        None if before is None else agreement(**before), None if after is None else agreement(**after)
    )
    assert refused is not None
    assert why in refused


def test_a_planned_partition_may_be_withdrawn() -> None:
    assert refused_change(agreement(), None) is None
    assert refused_change(None, None) is None


AGREEMENTS = st.builds(
    agreement,
    number=st.integers(1, 3),
    end_offset=st.none() | st.integers(0, 3),
    target_base_offset=st.none() | st.integers(0, 2),
    status=st.sampled_from(STATUSES),
    ignore_origin=st.booleans(),
    origin_end=st.none() | st.integers(0, 3),
    reopened_end=st.none() | st.integers(0, 3),
)


@given(AGREEMENTS, AGREEMENTS)
def test_once_the_target_is_in_use_client_offsets_never_jump(before: Any, after: Any) -> None:
    # None is in use with an end that is open again.
    is_in_use = before.status != "planned" and before.reopened_end is None
    if is_in_use and before.end_offset is not None and refused_change(before, after) is None:
        if after.reopened_end is not None:
            # What is agreed next is the nearer one, or this one again.
            assert (after.reopened_end, after.target_base_offset) == (before.end_offset, before.target_base_offset)
            return
        kept = (before.end_offset, before.target_base_offset)
        assert (after.end_offset, after.target_base_offset) == kept
        assert STATUSES.index(after.status) >= STATUSES.index(before.status)


def test_the_split_of_an_agreement() -> None:
    agreed = agreement(status="migrating", ignore_origin=True, origin_end=8)
    assert split_of(agreed) == Split(10, 3, MigrationStatus.MIGRATING, True, True, 8)
    assert split_of(agreement(status="migrated", origin_closed=True)) == Split(10, 3, "migrated", origin_closed=True)
    assert split_of(agreement(target_base_offset=None), origin_up=False) == Split(10, -1, "planned", False, False)


@pytest.mark.parametrize(
    ("origin", "target", "expected"),
    [
        (None, None, None),
        (4, None, 4),
        # Below the end offset: what is committed on the target is of something else.
        (4, 3, 4),
        (9, 5, 9),
        (10, None, 10),
        (10, 3, 10),
        (10, 5, 12),
        # From before the migration.
        (10, 2, 10),
        (12, None, 10),
        # The group's offsets on the origin have expired.
        (None, 5, 12),
        (-1, -1, None),
    ],
)
def test_a_group_continues_where_it_has_read_to(origin: int | None, target: int | None, expected: int | None) -> None:
    assert resumed_at(Split(10, 3), origin, target) == expected


def test_a_group_continues_on_the_origin_before_the_target_is_in_use() -> None:
    assert resumed_at(None, 4, 7) == 4
    assert resumed_at(Split(10, 3, "planned"), 4, 7) == 4
    assert resumed_at(Split(None), 4, 7) == 4


def test_while_the_origin_is_down_a_group_continues_at_the_target_that_it_has_read() -> None:
    down = replace(Split(10, 3), origin_up=False)
    assert resumed_at(down, 4, 5) == 12
    assert resumed_at(down, 4, None) == 4


@given(
    st.sampled_from(STATUSES[1:]),
    st.booleans(),
    st.none() | st.integers(0, 9),
    st.integers(0, 5),
    st.integers(0, 20),
    st.none() | st.integers(0, 10),
)
def test_a_restart_continues_at_the_place_that_was_committed(
    status: str, ignored: bool, origin_end: int | None, base: int, offset: int, before: int | None
) -> None:
    """As the routed consumer commits: the end offset on the origin first, unless the origin is over."""
    split = Split(10, base, status, ignored, True, origin_end)
    found = place(split, offset)
    assert found is not None
    if found.side == "origin":
        on_origin, on_target = found.offset, None
    else:
        on_origin, on_target = (before if split.is_origin_over else 10), found.offset
    resumed = place(split, resumed_at(split, on_origin, on_target))
    assert resumed is not None
    assert (resumed.side, resumed.offset) == (found.side, found.offset)


@pytest.mark.parametrize(("base", "committed", "expected"), [(3, 3, None), (3, 4, 11), (0, 0, 10)])
def test_the_base_alone_does_not_show_that_an_origin_that_is_down_was_passed(
    base: int, committed: int, expected: int | None
) -> None:
    """A target that was in use before may have that offset of then; one that was not cannot."""
    assert resumed_at(Split(10, base, origin_up=False), None, committed) == expected
