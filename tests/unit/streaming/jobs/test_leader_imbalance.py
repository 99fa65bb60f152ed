"""The balance job: ticks in chunks, and which rows of a chunk belong to its ticks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headroom.streaming.jobs.leader_imbalance import TickEnd, chunks_of, of_read_ticks, offset_ranges


def row(tick_ms: int, broker: int, has_balance: bool, led_partitions: int | None) -> Any:
    return {
        "cluster": "c",
        "tick_ms": tick_ms,
        "broker": broker,
        "has_balance": has_balance,
        "led_partitions": led_partitions,
    }


def test_brokers_of_ticks_whose_partitions_are_not_in_the_chunk_are_left_out() -> None:
    # An empty broker of a tick that was read; a tick with partitions that could not be read; one of another chunk.
    read = [row(1, 1, True, 4), row(1, 2, False, 0)]
    unread = [row(2, 1, False, None), row(2, 2, False, None)]
    other = [row(3, 1, False, 0), row(3, 2, False, 0)]
    assert of_read_ticks([*read, *unread, *other]) == [*read, *unread]
    assert of_read_ticks([]) == []


ENDS = [TickEnd(("c", n), 1, {1: (10 * n, 10 * n + 4), 2: (5 * n, 5 * n + 2)}) for n in range(4)]


def test_ticks_go_in_parts_of_a_bounded_number_of_records_and_one_tick_at_least() -> None:
    # Six records each.
    for most, sizes in ((24, [4]), (17, [2, 2]), (12, [2, 2]), (11, [1] * 4), (1, [1] * 4)):
        assert [len(part) for part in chunks_of(ENDS, most)] == sizes
    assert list(chunks_of([], 10)) == []


def test_the_offset_range_of_a_partition_spans_all_ticks_of_the_chunk() -> None:
    assert offset_ranges(ENDS[1:3]) == {1: (10, 24), 2: (5, 12)}
    assert offset_ranges([ENDS[0], replace(ENDS[1], ranges={3: (0, 1)})]) == {1: (0, 4), 2: (0, 2), 3: (0, 1)}
