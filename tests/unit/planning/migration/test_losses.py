"""Losses of a migration, computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration import lost_at_switch, lost_to_retention

UNKNOWN = (None, math.nan, math.inf, -math.inf, -1.0)
OFFSETS = st.integers(0, 2**62)


@pytest.mark.parametrize(
    ("acknowledged_end", "epoch_end", "end", "lost"),
    [
        # Acknowledged up to 999, the new leader has up to 989: 990 to 999 are lost.
        (1_000, 990, 2_000, 10),
        (1_000, 999, 2_000, 1),
        (1_000, 1_000, 2_000, 0),
        (1_000, 1_001, 2_000, 0),
        # From the end offset on, the target has the records: 990 to 994.
        (1_000, 990, 995, 5),
        (1_000, 990, 999, 9),
        (1_000, 990, 1_000, 10),
        (1_000, 990, 1_001, 10),
        (1_000, 990, 991, 1),
        (1_000, 990, 990, 0),
        (1_000, 990, 989, 0),
        (1_000, 990, 0, 0),
        (0, 0, 0, 0),
        (2**62 + 1, 2**62, 2**62 + 5, 1),
    ],
)
def test_lost_are_acknowledged_records_below_the_end_that_the_new_leader_is_without(
    acknowledged_end: int, epoch_end: int, end: int, lost: int
) -> None:
    assert lost_at_switch(acknowledged_end, epoch_end, end) == lost


@pytest.mark.parametrize("unknown", [None, -1])
def test_the_loss_of_a_switch_is_unknown_if_an_end_is(unknown: int | None) -> None:
    assert lost_at_switch(unknown, 990, 2_000) is None
    assert lost_at_switch(1_000, unknown, 2_000) is None
    assert lost_at_switch(1_000, 990, unknown) is None
    # Also where the other two show no loss.
    assert lost_at_switch(1_000, 2_000, unknown) is None


@given(OFFSETS, OFFSETS, OFFSETS)
def test_as_many_offsets_are_lost_as_each_of_the_three_ends_excludes(acknowledged: int, kept: int, end: int) -> None:
    lost = lost_at_switch(acknowledged, kept, end)
    assert lost == len(range(kept, acknowledged)[: max(0, end - kept)])


@pytest.mark.parametrize(
    ("left", "rate", "kept_s", "lost"),
    [
        # 100 a second for 60 s are 6,000.
        (10_000, 100.0, 60.0, 4_000),
        (6_001, 100.0, 60.0, 1),
        (6_000, 100.0, 60.0, 0),
        (5_999, 100.0, 60.0, 0),
        # 10 - 0.5 are rounded up; 100 - 1.1 x 10 is 89, though the product is 11.000000000000002 in floats.
        (10, 1.0, 0.5, 10),
        (100, 1.1, 10.0, 89),
        # A reader that has stopped, and retention that may delete at once.
        (10_000, 0.0, 60.0, 10_000),
        (10_000, 100.0, 0.0, 10_000),
        (2**62 + 1, 1.0, 1.0, 2**62),
    ],
)
def test_retention_deletes_what_is_not_read_in_time(left: int, rate: float, kept_s: float, lost: int) -> None:
    assert lost_to_retention(left, rate, kept_s) == lost


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_nothing_left_is_nothing_lost_and_without_retention_nothing_is(unknown: float | None) -> None:
    assert lost_to_retention(0, unknown, 60.0) == 0
    assert lost_to_retention(0, 100.0, unknown) == 0
    assert lost_to_retention(10_000, unknown, None) == 0
    assert lost_to_retention(None, unknown, None) == 0


def test_a_reader_past_the_end_has_nothing_left() -> None:
    assert lost_to_retention(-5, None, 60.0) == 0


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_the_loss_to_retention_is_unknown_if_an_amount_is(unknown: float | None) -> None:
    assert lost_to_retention(10_000, unknown, 60.0) is None
    assert lost_to_retention(None, 100.0, 60.0) is None
    if unknown is not None:
        assert lost_to_retention(10_000, 100.0, unknown) is None


@given(OFFSETS, st.integers(0, 10**9), st.integers(0, 10**7))
def test_the_loss_to_retention_is_the_least_whole_number_that_covers_the_rest(
    left: int, thousandths: int, tenths: int
) -> None:
    lost = lost_to_retention(left, thousandths / 1000, tenths / 10)
    rest = left * 10_000 - thousandths * tenths
    assert lost is not None
    assert 0 <= lost <= left
    assert rest <= lost * 10_000
    assert lost == 0 or (lost - 1) * 10_000 < rest
