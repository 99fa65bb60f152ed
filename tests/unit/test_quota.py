"""Kafka's quota played forward: bursts worked out by hand, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.quota import WINDOW_S, Copy, End, Moving, Part, Window, copied_s

MB = 1_000_000.0
SECONDS = round(WINDOW_S) + 1


def end(counted_mb: float = 0.0, in_sync_mb: float = 0.0, throttle_mb: float | None = None) -> End:
    """One end whose quota has counted that much in every second."""
    throttle = None if throttle_mb is None else throttle_mb * MB
    return End(Window([counted_mb * MB] * SECONDS), in_sync_mb * MB, throttle)


def copy(leader: End | None, destination: End | None, remaining_mb: float, write_mb: float = 0.0) -> Copy:
    return Copy(leader, destination, [Part(remaining_mb * MB, write_mb * MB)])


def seconds(remaining_mb: float, throttle_mb: float, *ends: End | None, write_mb: float = 0.0, at: float = 0) -> float:
    leader, destination = (*ends, None)[:2]
    found = copied_s([copy(leader, destination, remaining_mb, write_mb)], throttle_mb * MB, at)
    assert found is not None
    return found


def test_the_mean_is_over_the_time_since_the_oldest_sample_began() -> None:
    window = Window([1 * MB] * SECONDS)
    # Twelve seconds hold 12 MB; the oldest sample ended eleven seconds ago and leaves at once: 11 MB in 11 s.
    assert window.exceeded(0.0, 1 * MB)
    assert not window.exceeded(0.0, 1.001 * MB)
    # After five seconds without traffic, during which five more samples left: 6 MB in 11 s.
    assert window.exceeded(5.0, 6 / 11 * MB)
    assert not window.exceeded(5.0, 6.1 / 11 * MB)


def test_an_empty_window_lets_ten_seconds_of_the_throttle_through_at_once() -> None:
    # 40 MB at 4 MB/s: one burst of 5 x 1.05 MB every 0.05 s.
    assert seconds(40, 4, end()) == pytest.approx(40 / 1.05 / 5 * 0.05, abs=0.2)


def test_the_next_burst_comes_when_the_first_one_leaves_the_window() -> None:
    # 44 MB at once, as many again from second 12 on, the last 12 MB from second 24 on.
    assert 12 <= seconds(80, 4, end()) <= 15
    assert 23 <= seconds(100, 4, end()) <= 26


def test_a_full_window_lets_through_what_leaves_it() -> None:
    # Every second 4 MB leave, of which in-sync followers take 1.
    assert seconds(30, 4, end(counted_mb=4, in_sync_mb=1)) == pytest.approx(30 / 3, abs=1.5)


def test_in_the_mean_the_throttle_passes() -> None:
    # Beyond what is played step by step, too: 1,200 MB at 4 - 1 MB/s, while 1 MB/s is written. A little more passes:
    # the last fetch of each burst is let through whole.
    assert seconds(1200, 4, end(in_sync_mb=1), write_mb=1) == pytest.approx(1200 / 2, rel=0.08)


def test_either_end_holds_the_copy_back() -> None:
    free = seconds(30, 4, end(), end())
    by_leader = seconds(30, 4, end(counted_mb=4), end())
    by_destination = seconds(30, 4, end(), end(counted_mb=4))
    assert free < 2
    # 7.5 s at 4 MB/s; the destination may look again a second later.
    assert by_leader == pytest.approx(7.5, abs=1.5)
    assert by_destination == pytest.approx(7.5, abs=1.5)


def test_until_it_is_applied_the_old_throttle_holds_and_the_lag_grows() -> None:
    starved = end(counted_mb=2, in_sync_mb=2, throttle_mb=2)
    # In 5 s 10 MB more: 50 MB, of which 5 x 11 go at once.
    assert seconds(40, 7, starved, write_mb=2, at=5.0) < 4
    unlimited = end(throttle_mb=None)
    assert seconds(40, 7, unlimited, write_mb=2, at=5.0) == 0.0


def test_two_copies_share_an_end() -> None:
    shared = end(counted_mb=4)
    one = copied_s([copy(end(), shared, 30)], 4 * MB, 0)
    shared = end(counted_mb=4)
    two = copied_s([copy(end(), shared, 30), copy(end(), shared, 30)], 4 * MB, 0)
    assert one is not None
    assert two == pytest.approx(2 * one, rel=0.3)


def test_a_quota_that_has_never_counted_takes_its_mean_over_its_own_age_only() -> None:
    # 10 MB in the last two seconds: over two seconds 5 MB/s, over the ten of samples that are kept 1 MB/s.
    counted = [5 * MB] * 2 + [0.0] * (SECONDS - 2)
    young, old = Window(counted, old_s=2.0), Window(counted)
    assert young.exceeded(0.0, 5 * MB)
    assert not young.exceeded(0.0, 5.1 * MB)
    assert old.exceeded(0.0, 1 * MB)
    assert not old.exceeded(0.0, 1.1 * MB)


def test_the_fetchers_of_a_destination_bring_some_of_every_partition() -> None:
    destination = end()
    small, large = Part(10 * MB, 0.0), Part(35 * MB, 0.0)
    assert copied_s([Copy(None, destination, [small, large])], 4 * MB, 0) == pytest.approx(12, abs=1)
    # Of the 44 MB of the first burst each got a share, the small one all that it needed.
    assert large.remaining_bytes == 0


def test_what_leaves_when_a_partition_has_moved_makes_room_for_the_others() -> None:
    def both(leaving_mb: float) -> float | None:
        leader = end(counted_mb=4, in_sync_mb=3)
        moved = Moving(1, [(leader, leaving_mb * MB)])
        return copied_s([Copy(leader, None, [Part(1 * MB, 0.0, moved), Part(60 * MB, 0.0)])], 4 * MB, 0)

    # 60 MB at 4 - 3 MB/s; or soon at 4 - 1.
    assert both(0.0) == pytest.approx(60, rel=0.15)
    assert both(2.0) == pytest.approx(20, rel=0.3)


def test_a_partition_has_moved_when_the_last_of_its_replicas_has_caught_up() -> None:
    leader = end(counted_mb=4, in_sync_mb=3)
    moving = Moving(2, [(leader, 3 * MB)])
    copies = [Copy(leader, None, [Part(1 * MB, 0.0, moving)]), Copy(leader, None, [Part(20 * MB, 0.0, moving)])]
    assert copied_s(copies, 4 * MB, 0) == pytest.approx(21, rel=0.15)
    assert moving.behind == 0
    assert leader.in_sync_bytes_per_s == pytest.approx(0)


def test_it_never_ends_where_in_sync_traffic_takes_all() -> None:
    full = end(counted_mb=4, in_sync_mb=4)
    assert copied_s([copy(full, None, 10, 1)], 4 * MB, 0) is None


@given(
    remaining=st.floats(1, 500), throttle=st.floats(1, 50), in_sync=st.floats(0, 0.4), write=st.floats(0, 0.4),
    counted=st.floats(0, 1),
)  # fmt: skip
def test_no_more_passes_than_the_window_has_room_for(
    remaining: float, throttle: float, in_sync: float, write: float, counted: float
) -> None:
    limited = end(counted * throttle, in_sync * throttle)
    took = copied_s([copy(limited, None, remaining, write * throttle)], throttle * MB, 0)
    assert took is not None
    # What is copied is at most a window's room, what may pass since, and a fetch too many (1.05 MB, or 0.1 s) in each.
    fetch_mb = max(1.05, 0.1 * throttle)
    most_mb = throttle * (WINDOW_S + 1 + took * (1 - in_sync)) + fetch_mb * (1 + took / WINDOW_S)
    assert remaining + write * throttle * took <= most_mb * 1.05
