"""Samples of a replication quota, computed by hand."""

from __future__ import annotations

import pytest

from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from headroom.planning.quotas.samples import QuotaSamples, empty_samples, steady

MB = 1_000_000.0


def full(bytes_per_s: float = MB) -> QuotaSamples:
    """Return twelve samples, started 11 s ago to now, the youngest one empty: 11 MB in 11 s."""
    return steady(bytes_per_s, 0.0, DEFAULT_WINDOW, phase=0.0)


def test_the_mean_is_over_the_time_since_the_oldest_sample_began() -> None:
    window = full()
    assert (window.elapsed_s(0.0), window.total_bytes) == (11.0, 11 * MB)
    assert window.room(0.0, 1.5 * MB) == pytest.approx(5.5 * MB)
    # At 5 s the five samples that ended 11 s before have expired: 6 MB since second -6.
    assert window.room(5.0, MB) == pytest.approx((11 - 6) * MB)


def test_a_quota_is_exceeded_above_its_bound_and_not_at_it() -> None:
    assert full().room(0.0, MB) == 0.0
    assert full().room(0.0, 0.999 * MB) < 0.0 < full().room(0.0, 1.001 * MB)


def test_samples_that_were_reset_shorten_the_time_of_the_mean() -> None:
    window = empty_samples(-4.0, 0.0, DEFAULT_WINDOW)
    assert window.room(0.0, MB) == pytest.approx(4 * MB)
    # Never less than one sample (``SimpleRate``).
    assert empty_samples(-0.2, 0.0, DEFAULT_WINDOW).room(0.0, MB) == pytest.approx(MB)
    # An idle quota is reset after a window: at 7 s for the mean that is read at 9 s.
    assert 1.5 < window.elapsed_s(9.0) <= 2.0


def test_steady_traffic_fills_one_sample_after_the_other() -> None:
    window = full(0.0)
    window.advance(6.0, 2 * MB)
    assert window.total_bytes == pytest.approx(12 * MB)
    window.advance(30.0, 2 * MB)
    # For any phase: the samples of 11 s, and the current one.
    assert 22 * MB <= window.total_bytes <= 24.5 * MB
    assert window.total_bytes / window.elapsed_s(30.0) == pytest.approx(2 * MB, rel=0.03)


def test_an_amount_counts_until_its_sample_expires() -> None:
    window = empty_samples(0.0, 0.0, DEFAULT_WINDOW)
    window.record(0.2, 10 * MB)
    window.record(0.9, 1 * MB)
    assert window.room(11.8, 0.0) == -11 * MB
    assert window.room(11.95, 0.0) == 0.0


def test_later_traffic_does_not_extend_a_complete_sample() -> None:
    window = empty_samples(0.0, 0.0, DEFAULT_WINDOW)
    window.record(0.0, 10 * MB)
    window.advance(8.0, 0.0)
    window.advance(11.5, MB)
    # The 10 MB expired at 11 s; 3.5 MB were counted since second 8.
    assert window.room(11.5, 0.0) == pytest.approx(-3.5 * MB)


@pytest.mark.parametrize(
    ("room_mb", "gains_mb", "at_s"),
    [
        # 2 MB are missing, and 4 - 1 MB/s are gained.
        (-2.0, 3.0, 2 / 3),
        # Nothing is gained, but a sample that ended 10 s ago expires in 1 s.
        (-2.0, 0.0, 1.0),
        (-50.0, 3.0, 1.0),
    ],
)
def test_room_grows_with_the_time_of_the_mean_or_when_a_sample_expires(
    room_mb: float, gains_mb: float, at_s: float
) -> None:
    assert full().next_check_s(0.0, room_mb * MB, gains_mb * MB) == pytest.approx(at_s, abs=0.01)


def test_a_copy_is_independent() -> None:
    window = full()
    other = window.copy()
    other.record(0.5, 5 * MB)
    assert (window.total_bytes, other.total_bytes) == (11 * MB, 16 * MB)
    assert window.elapsed_s(3.0) == other.elapsed_s(3.0)


def test_number_and_length_of_the_samples_are_settings() -> None:
    window = steady(MB, 0.0, QuotaWindow(samples=3, sample_s=2.0), phase=0.0)
    # Four samples of 2 s: those of seconds -6 to 0, and the youngest, still empty.
    assert (window.elapsed_s(0.0), window.total_bytes) == (6.0, 6 * MB)
    # At 3 s the one that ended 6 s before has expired: 4 MB since second -4.
    assert window.room(3.0, MB) == pytest.approx(7 * MB - 4 * MB)


@pytest.mark.parametrize(
    ("limits", "replicas", "burst"),
    [
        (DEFAULT_FETCH, 1, 1_048_576),
        (DEFAULT_FETCH, 7, 7_340_032),
        # A response is full.
        (DEFAULT_FETCH, 200, 10_485_760),
        (FetchLimits(fetchers=4), 200, 41_943_040),
        (FetchLimits(fetchers=4), 2, 2_097_152),
        (FetchLimits(partition_bytes=100, response_bytes=250), 3, 250),
    ],
)
def test_the_size_of_a_round_of_fetches(limits: FetchLimits, replicas: int, burst: int) -> None:
    assert limits.burst_bytes(replicas) == burst
