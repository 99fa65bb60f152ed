"""Memory of leader switches."""

from __future__ import annotations

from headroom.cluster.collector.leader_switches import LeaderSwitches, PreviousLeader, Switch
from headroom.cluster.model import Partition
from headroom.schemas.keys import TopicPartition

WINDOW_MS = 10_000
NAME = TopicPartition("orders", 0)
UNDER_1 = PreviousLeader({"broker": 1}, {"bytes_in": 5})
UNDER_2 = PreviousLeader({"broker": 2}, None)


def led_by(leader: int | None) -> dict[TopicPartition, Partition]:
    return {NAME: Partition("orders", 0, leader, 0, (1, 2, 3), (1, 2), ())}


def following(*leaders: int | None, watched: bool = True) -> LeaderSwitches:
    """A memory that saw these leaders, one a second from tick 0 on, with samples under 1 and 2."""
    switches = LeaderSwitches(WINDOW_MS)
    for second, leader in enumerate(leaders):
        switches.observe(second * 1000, led_by(leader), {NAME} if watched else set())
        known = {1: UNDER_1, 2: UNDER_2}.get(leader or 0)
        if known is not None:
            switches.remember(NAME, known)
    return switches


def test_a_leader_that_stays_is_no_switch() -> None:
    assert following(1, 1, 1).of(NAME, 2000) is None


def test_a_switch_names_the_leader_before_its_tick_and_its_last_samples() -> None:
    assert following(1, 1, 2).of(NAME, 2000) == Switch(1, 2000, UNDER_1)


def test_samples_before_a_switch_are_reported_for_one_window() -> None:
    switches = following(1, 2)
    assert switches.of(NAME, 1000 + WINDOW_MS) == Switch(1, 1000, UNDER_1)
    assert switches.of(NAME, 1001 + WINDOW_MS) == Switch(1, 1000, None)


def test_without_a_leader_the_last_one_and_its_samples_stay_known() -> None:
    assert following(1, None, None).of(NAME, 2000) == Switch(1, None, UNDER_1)


def test_after_a_time_without_leader_the_switch_counts_from_the_new_one() -> None:
    assert following(1, None, None, 2).of(NAME, 3000) == Switch(1, 3000, UNDER_1)


def test_a_leader_that_comes_back_is_no_switch_but_its_samples_from_before_are_reported() -> None:
    switches = following(1, None, 1)
    assert switches.of(NAME, 2000) == Switch(None, None, UNDER_1)
    assert switches.of(NAME, 2001 + WINDOW_MS) is None


def test_a_first_leader_is_no_switch() -> None:
    assert following(None, 1).of(NAME, 1000) is None


def test_after_two_switches_in_a_row_the_samples_of_the_leader_that_had_some_are_reported() -> None:
    # 3 led for one tick and was never sampled.
    assert following(1, 3, 2).of(NAME, 2000) == Switch(3, 2000, UNDER_1)


def test_a_switch_of_an_unwatched_partition_is_kept_for_ten_minutes() -> None:
    switches = following(1, 2, watched=False)
    switches.observe(601_000, led_by(2), set())
    assert switches.of(NAME, 601_000) == Switch(1, 1000, None)
    switches.observe(601_001, led_by(2), set())
    assert switches.of(NAME, 601_001) is None


def test_a_switch_of_a_watched_partition_is_remembered_for_as_long_as_it_is_watched() -> None:
    switches = following(1, 2)
    switches.observe(9_000_000, led_by(2), {NAME})
    assert switches.of(NAME, 9_000_000) == Switch(1, 1000, None)


def test_deleted_or_recreated_partitions_are_dropped() -> None:
    switches = following(1, 2)
    switches.forget([NAME])
    assert switches.of(NAME, 2000) is None
    switches = following(1, 2)
    switches.observe(2000, {}, set())
    assert switches.of(NAME, 2000) is None


def test_switches_and_what_is_remembered_for_the_next_one_move_with_the_clock() -> None:
    def rows(read_ms: int) -> PreviousLeader:
        return PreviousLeader(
            {"broker": 1, "read_ms": read_ms, "prev_read_ms": None}, {"bytes_in": 5, "read_ms": read_ms}
        )

    switches = following(3)
    switches.remember(NAME, rows(500))
    switches.shift(60_000)
    switches.observe(61_000, led_by(2), {NAME})
    assert switches.of(NAME, 61_000) == Switch(3, 61_000, rows(60_500))
    switches.shift(-30_000)
    assert switches.of(NAME, 31_000 + WINDOW_MS) == Switch(3, 31_000, rows(30_500))
    assert switches.of(NAME, 31_001 + WINDOW_MS) == Switch(3, 31_000, None)


def test_a_partition_without_a_leader_has_no_time_to_move() -> None:
    switches = following(1, None)
    switches.remember(NAME, UNDER_2)
    switches.shift(60_000)
    assert switches.of(NAME, 61_000) == Switch(1, None, UNDER_1)
