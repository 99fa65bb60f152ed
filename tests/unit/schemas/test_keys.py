"""Keys are equal to plain tuples and hash like them, so that mappings can be read with either."""

from __future__ import annotations

from headroom.schemas.keys import BrokerRole, Role, TopicPartition


def test_a_partition_is_written_as_kafka_writes_it() -> None:
    assert (str(TopicPartition("orders", 0)), f"{TopicPartition('a-b', 12)}") == ("orders-0", "a-b-12")


def test_keys_find_what_tuples_stored_and_sort_like_them() -> None:
    assert {("orders", 0): 1}[TopicPartition("orders", 0)] == 1
    assert {(2, Role.LEADER): 1}[BrokerRole(2, Role.LEADER)] == 1
    assert sorted([BrokerRole(2, Role.LEADER), BrokerRole(2, Role.FOLLOWER), BrokerRole(1, Role.LEADER)]) == [
        (1, Role.LEADER),
        (2, Role.FOLLOWER),
        (2, Role.LEADER),
    ]
