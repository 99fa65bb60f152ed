"""Who leads a migrating partition on the target, and which of its followers a throttle counts."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cluster.collector.migration.throttled import add_throttles
from headroom.cluster.model import Partition, Snapshot, TopicConfig

# Broker 3 is down.
ORDERS = Partition("orders", 0, 1, 5, (1, 2, 3), (1, 2), (3,))
LEADERLESS = Partition("orders", 1, None, 5, (1, 2), (), ())


def added(config: TopicConfig | None, method: str = "routed", **row: Any) -> tuple[int | None, int | None]:
    names = {"topic": "orders", "partition": 0, "target_topic": None, "method": method, **row}
    configs = {} if config is None else {"orders": config}
    partitions = {one.name: one for one in (ORDERS, LEADERLESS)}
    add_throttles([names], Snapshot({}, partitions, {}, configs))
    return names["target_leader"], names["throttled_followers"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (TopicConfig("*", "*", False), (1, 1)),
        (TopicConfig("0:1,0:3", None, False), (1, 1)),
        (TopicConfig("0:2,1:1", None, False), (1, 0)),
        (TopicConfig(None, "*", False), (1, 0)),
        (TopicConfig("*", "*", False, current=False), (1, None)),
        (TopicConfig("nonsense", None, False), (1, None)),
        (None, (1, None)),
    ],
)
def test_the_throttle_of_a_leader_counts_followers_of_partitions_that_its_list_names(
    config: TopicConfig | None, expected: tuple[int | None, int | None]
) -> None:
    assert added(config) == expected


def test_of_a_partition_without_a_leader_or_that_is_not_there_it_is_unknown_what_counts_it() -> None:
    everything = TopicConfig("*", "*", False)
    assert added(everything, partition=1) == (None, None)
    assert added(everything, partition=7) == (None, None)
    assert added(everything, topic="old", target_topic="orders") == (1, 1)
    # A mirror may have another name than its origin.
    assert added(everything, "mirrored") == (None, None)
    assert added(everything, "mirrored", target_topic="orders") == (1, 1)
