"""The balance job: which rows of a chunk belong to its ticks."""

from __future__ import annotations

from typing import Any

from streaming.jobs.leader_imbalance import of_read_ticks


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
