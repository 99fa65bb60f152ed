"""What retention does to a reader of the origin, computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.migration.plan.retention import LogRetention, ReaderRetention
from headroom.planning.migration.readings import LogOffsets, TopicRules

HOUR_MS = 3_600_000
LOG = LogOffsets(0, 100_000, 100_000)


def rules(
    retention_ms: int | None = HOUR_MS, retention_bytes: int | None = -1, policy: str | None = "delete"
) -> TopicRules:
    return TopicRules(policy, retention_ms, retention_bytes)


def found(
    own: TopicRules | None,
    committed: int,
    rate: float | None,
    log: LogOffsets = LOG,
    age_s: float | None = 0.0,
    end: int | None = 700_000,
    reached_in_s: float | None = 300.0,
) -> ReaderRetention:
    """The paper's partition: 100,000 + 2,000/s x 300 s = 700,000."""
    return LogRetention(own, log, age_s, end, reached_in_s).of_reader(committed, rate)


def test_a_reader_that_is_slower_than_retention_loses_the_rest() -> None:
    # 650,000 are left. The last of them is kept for 300 + 3,600 s, in which it reads 390,000 at 100 a second.
    lost = found(rules(), 50_000, 100.0)
    assert (lost.kept_s, lost.lost_offsets, lost.gone_offsets) == (3_900.0, 260_000, 0)
    # It needs 6,500 s for all of them, which is 6,200 s after the last is written; 1.2 times that is enough.
    assert lost.enough_retention_ms == 7_440_000
    assert found(rules(lost.enough_retention_ms), 50_000, 100.0).lost_offsets == 0
    # 650,000 / 3,900 s = 166.7 a second is just enough.
    assert found(rules(), 50_000, 166.0).lost_offsets == 2_600
    assert found(rules(), 50_000, 167.0) == ReaderRetention(3_900.0, 0, 0)


def test_a_reader_that_is_overtaken_before_the_switch_loses_what_is_there_now() -> None:
    """40,000 are left of a log of now, kept for 60 s; the rest of 600,000 comes slowly, in 10,000 s."""
    lost = found(rules(60_000), 60_000, 100.0, reached_in_s=10_000.0)
    # 40,000 - 60 s x 100/s; of the later ones none: 640,000 - 10,060 s x 100 is less than 0.
    assert lost.lost_offsets == 34_000
    # 400 s x 1.2.
    assert lost.enough_retention_ms == 480_000


def test_a_log_that_does_not_grow_is_as_old_as_its_newest_record() -> None:
    # Written half an hour ago: kept for another half hour, in which 180,000 are read at 100 a second.
    still = found(rules(), 0, 50.0, age_s=1_800.0, end=100_000, reached_in_s=0.0)
    assert (still.kept_s, still.lost_offsets) == (1_800.0, 10_000)
    # 2,000 s to read it all, and it is 1,800 s old.
    assert still.enough_retention_ms == 4_560_000
    assert found(rules(), 0, 50.0, age_s=None, end=100_000, reached_in_s=0.0).lost_offsets is None
    assert found(rules(), 100_000, None, age_s=None, end=100_000, reached_in_s=0.0).lost_offsets == 0


def test_a_reader_that_has_stopped_loses_all_that_is_left_and_no_retention_is_enough() -> None:
    assert found(rules(), 50_000, 0.0) == ReaderRetention(3_900.0, 650_000, 0, None)


def test_what_is_deleted_already_is_lost() -> None:
    log = LogOffsets(60_000, 100_000, 100_000)
    assert found(rules(), 50_000, 10_000.0, log) == ReaderRetention(3_900.0, 10_000, 10_000)
    # 640,000 are left of those that are there.
    assert found(rules(), 50_000, 100.0, log).lost_offsets == 10_000 + 250_000
    assert found(rules(-1), 50_000, None, log) == ReaderRetention(None, 10_000, 10_000)


@pytest.mark.parametrize("own", [rules(-1), rules(policy="compact"), rules(1, policy="compact")])
def test_without_retention_nothing_is_lost(own: TopicRules) -> None:
    assert found(own, 0, None) == ReaderRetention(None, 0, 0)


@pytest.mark.parametrize(
    "own",
    [None, rules(None), rules(HOUR_MS, None), rules(-1, 10**9), TopicRules(), rules(policy=None, retention_ms=None)],
)
def test_what_retention_does_is_unknown_without_its_settings(own: TopicRules | None) -> None:
    assert found(own, 50_000, 200.0) == ReaderRetention(None, None, 0)


def test_with_retention_by_size_a_loss_by_time_is_known_and_its_absence_is_not() -> None:
    assert found(rules(retention_bytes=10**9), 50_000, 100.0).lost_offsets == 260_000
    assert found(rules(retention_bytes=10**9), 50_000, 1_000.0).lost_offsets is None


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, -1.0])
def test_an_unknown_rate_makes_the_loss_unknown(unknown: float | None) -> None:
    assert found(rules(), 50_000, unknown).lost_offsets is None


def test_an_unknown_log_or_end_makes_it_unknown() -> None:
    assert found(rules(), 50_000, 1.0, LogOffsets()) == ReaderRetention(None, None, None)
    assert found(rules(), 50_000, 1.0, end=None) == ReaderRetention(None, None, 0)
    # 3,600 s are enough for the 50,000 of now, at 14 a second; of those to come nothing is known.
    assert found(rules(), 50_000, 14.0, reached_in_s=None) == ReaderRetention(None, None, 0)


def test_a_log_that_never_gets_to_its_end_deletes_what_it_has() -> None:
    """Of 50,000 that are there now, 3,600 are read in the 3,600 s until the last of them is deleted."""
    stopped = found(rules(), 50_000, 1.0, reached_in_s=None)
    # 50,000 s x 1.2, and the newest record is of now.
    assert stopped == ReaderRetention(None, 46_400, 0, 60_000_000)
    assert found(rules(), 50_000, 0.0, reached_in_s=None) == ReaderRetention(None, 50_000, 0)
    assert found(rules(), 50_000, 1.0, age_s=None, reached_in_s=None).lost_offsets is None
    assert found(rules(policy="compact"), 50_000, None, reached_in_s=None) == ReaderRetention(None, 0, 0)


def test_a_reader_at_the_end_offset_loses_nothing() -> None:
    assert found(rules(1), 700_000, None) == ReaderRetention(None, 0, 0)


@given(st.integers(0, 100_000), st.floats(1.0, 10_000.0), st.integers(1, 10**8), st.floats(0.0, 10_000.0))
def test_the_retention_that_is_enough_is_and_the_present_one_was_not(
    committed: int, rate: float, retention_ms: int, age_s: float
) -> None:
    lost = found(rules(retention_ms), committed, rate, age_s=age_s)
    if lost.enough_retention_ms is not None:
        assert (lost.lost_offsets or 0) > 0
        assert lost.enough_retention_ms > retention_ms
        assert found(rules(lost.enough_retention_ms), committed, rate, age_s=age_s).lost_offsets == 0
