"""When it is quiet enough for elections."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from headroom.planning.elections.quiet_hours import DailyWindow, QuietPolicy


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [
        ("01:00-05:00", "2026-01-15T01:00", True),
        ("01:00-05:00", "2026-01-15T04:59", True),
        ("01:00-05:00", "2026-01-15T05:00", False),
        ("22:00-02:00", "2026-01-15T23:30", True),
        ("22:00-02:00", "2026-01-15T01:59", True),
        ("22:00-02:00", "2026-01-15T02:00", False),
        # Berlin is an hour ahead of UTC in winter and two in summer.
        ("01:00-05:00 Europe/Berlin", "2026-01-15T00:30", True),
        ("01:00-05:00 Europe/Berlin", "2026-01-15T04:30", False),
        ("01:00-05:00 Europe/Berlin", "2026-07-15T23:30", True),
        ("01:00-05:00 Europe/Berlin", "2026-07-15T03:30", False),
        ("01:00-05:00 UTC", "2026-07-15T03:30", True),
    ],
)
def test_a_window_comes_back_every_day_by_the_clock_of_its_zone(window: str, moment: str, inside: bool) -> None:
    assert DailyWindow.of(window).contains(at(moment)) is inside


def test_without_conditions_it_is_always_quiet() -> None:
    assert QuietPolicy().allows(0, None)


def test_a_rate_is_quiet_below_the_limit_only_and_an_unknown_one_never() -> None:
    quiet = QuietPolicy(below_bytes_per_s=100)
    assert quiet.allows(0, 99.9)
    assert not quiet.allows(0, 100)
    assert not quiet.allows(0, None)


def test_either_condition_is_enough() -> None:
    both = QuietPolicy(DailyWindow.of("01:00-05:00"), 100)
    night, noon = at("2026-01-15T03:00"), at("2026-01-15T12:00")
    assert both.allows(night, 500)
    assert both.allows(noon, 50)
    assert not both.allows(noon, 500)
    assert not QuietPolicy(DailyWindow.of("01:00-05:00")).allows(noon, 50)


@pytest.mark.parametrize(
    ("window", "moment", "left_s"),
    [
        ("01:00-05:00", "2026-01-15T04:59", 60),
        ("22:00-02:00", "2026-01-15T23:30", 2.5 * 3600),
        ("22:00-02:00", "2026-01-15T01:30", 1800),
        # At 03:00 of this night clocks are set back from 03:00 to 02:00: the night is an hour longer.
        ("22:00-06:00 Europe/Berlin", "2026-10-24T22:00", 7 * 3600),
    ],
)
def test_what_is_left_of_a_window_ends_by_the_clock_of_its_zone(window: str, moment: str, left_s: float) -> None:
    assert DailyWindow.of(window).left_s(at(moment)) == left_s


def test_the_length_of_a_window_is_that_of_ordinary_days() -> None:
    assert DailyWindow.of("22:00-06:00 Europe/Berlin").length_s() == 8 * 3600
    assert DailyWindow.of("01:00-05:30").length_s() == 4.5 * 3600


def test_what_is_shorter_than_a_window_ends_in_it_and_what_is_longer_begins_at_any_time_in_it() -> None:
    window, moment = DailyWindow.of("01:00-05:00"), at("2024-01-15T04:00:00Z")
    # One of four hours is left.
    late = [window.ends_too_early(moment, hours * 3600) for hours in (0.5, 1, 1.5, 4, 4.5)]
    assert late == [False, False, True, True, False]
