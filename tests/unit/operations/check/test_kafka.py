"""Whether the ticks topic can be written now, which rights alone do not say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headroom.operations.check.kafka import ticks_in_sync
from headroom.operations.check.result import CheckStatus


def partition(number: int, replicas: Sequence[int], isr: Sequence[int], leader: int = 1) -> dict[str, Any]:
    return {"partition_index": number, "leader_id": leader, "replica_nodes": replicas, "isr_nodes": isr}


WHOLE = partition(0, [1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    ("partitions", "min_in_sync", "finding"),
    [
        ([WHOLE, partition(1, [1, 2, 3], [1, 3])], 2, "2 or more in each partition, 2 needed"),
        ([partition(0, [1], [1])], None, "1 or more in each partition, 1 needed"),
    ],
)
def test_a_topic_with_enough_replicas_in_sync_can_be_written(
    partitions: list[dict[str, Any]], min_in_sync: int | None, finding: str
) -> None:
    check = ticks_in_sync("headroom.ticks", partitions, min_in_sync)
    assert (check.answer, check.found) == (CheckStatus.OK, finding)


# Kafka goes on with one replica in sync, but acknowledges no tick.
@pytest.mark.parametrize(
    ("short", "min_in_sync", "away"),
    [
        (partition(1, [1, 2, 4], [1]), 2, "brokers 2, 4"),
        (partition(1, [4], [4], leader=-1), None, "broker 4"),
        (partition(1, [4], [], leader=-1), 1, "broker 4"),
    ],
)
def test_a_topic_that_acknowledges_no_tick_is_a_no_with_the_brokers_to_bring_back(
    short: dict[str, Any], min_in_sync: int | None, away: str
) -> None:
    check = ticks_in_sync("headroom.ticks", [WHOLE, short], min_in_sync)
    assert check.answer is CheckStatus.FAILED
    assert check.found.startswith("no tick can be written: 1 of 2 partitions have fewer than ")
    assert f"such as headroom.ticks-1 with {len(short['isr_nodes'])}" in check.found
    assert check.remedy.startswith(f"Bring {away} back, or set a lower min.insync.replicas")
