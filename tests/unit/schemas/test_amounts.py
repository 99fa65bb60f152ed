"""The same amount reads the same wherever it is shown, and no amount reads as none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.schemas.quantities import parse_bytes_per_s
from headroom.schemas.text.amounts import (
    clock_text,
    duration_range_text,
    duration_text,
    percent_text,
    rate_text,
    size_text,
)


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (None, "unknown"),
        (0, "0 MB/s"),
        (12, "12 B/s"),
        (6_144, "6.14 kB/s"),
        (512_000, "512 kB/s"),
        (999_900, "999.9 kB/s"),
        (999_960, "1.00 MB/s"),
        (1_048_576, "1.05 MB/s"),
        (12_345_678, "12.35 MB/s"),
        (123_400_000, "123.4 MB/s"),
        (1_250_000_000, "1,250 MB/s"),
    ],
)
def test_a_rate_is_in_millions_of_bytes_and_a_small_one_in_a_smaller_unit(bytes_per_s: float | None, text: str) -> None:
    assert rate_text(bytes_per_s) == text


@given(st.floats(1, 1e12))
def test_a_rate_that_is_shown_is_the_rate_to_within_half_of_its_last_digit(bytes_per_s: float) -> None:
    shown = parse_bytes_per_s(rate_text(bytes_per_s).replace(",", ""))
    assert shown == pytest.approx(bytes_per_s, rel=0.006, abs=0.51)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (5_600_000, "5.6 MB"),
        (999_960_000, "1.0 GB"),
        (2.5e9, "2.5 GB"),
    ],
)
def test_a_size_has_the_largest_unit_of_which_it_is_one(size_bytes: float | None, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.125, "12.5 %"),
        (0.75, "75 %"),
        (0.0123, "1.2 %"),
        (0.00123, "0.12 %"),
        (0.9996, "100 %"),
        (-1e-9, "0 %"),
        (12.5, "1250 %"),
    ],
)
def test_a_share_has_one_decimal_and_a_small_one_two_digits(ratio: float, text: str) -> None:
    assert percent_text(ratio) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (599, "9 min 59 s"),
        # From ten minutes on, to the nearest minute.
        (629, "10 min"),
        (3599, "1 h"),
        (4800, "1 h 20 min"),
        (7200, "2 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (50.2, 59.4, "50 to 59 s"),
        (50.0, 70.0, "50 s to 1 min 10 s"),
        (3600.0, 5400.0, "1 h to 1 h 30 min"),
        # What is rounded to the same is not a range, and what is rounded to a minute is not 60 s.
        (50.2, 50.4, "50 s"),
        (50.0, 59.7, "50 s to 1 min"),
        (50.0, None, "50 s or more"),
        (None, 60.0, "at most 1 min"),
        (None, None, "unknown"),
    ],
)
def test_a_range_names_both_ends(low_s: float | None, high_s: float | None, text: str) -> None:
    assert duration_range_text(low_s, high_s) == text


# 2027-01-15 08:00:00 UTC, of which day 57,600 s are left.
@pytest.mark.parametrize(
    ("later_s", "text"),
    [
        (0, "08:00:00 UTC"),
        (57_599, "23:59:59 UTC"),
        (57_600, "2027-01-16 00:00:00 UTC"),
        (-28_801, "2027-01-14 23:59:59 UTC"),
    ],
)
def test_a_time_of_another_day_has_its_date(later_s: int, text: str) -> None:
    read_ms = 1_800_000_000_000
    assert clock_text(read_ms + 1000 * later_s, read_ms) == text
    assert clock_text(read_ms + 1000 * later_s) == text[-12:]
