"""Throttled replica lists: as Kafka writes, reads and builds them."""

from __future__ import annotations

import pytest

from headroom.planning.throttles.replica_lists import (
    Move,
    ReplicaList,
    TopicLists,
    format_replica_list,
    lists_of_plan,
    parse_replica_list,
)
from headroom.schemas.keys import TopicPartition


def test_lists_of_a_plan_are_those_of_kafkas_own_tool() -> None:
    # The example of Kafka's documentation of the tool, four brokers 101 to 104.
    moves = [
        Move(TopicPartition("t0", 0), (101, 102), (102, 103)),
        Move(TopicPartition("t0", 1), (102, 103), (103, 104)),
        Move(TopicPartition("t0", 2), (103, 101), (104, 101)),
        Move(TopicPartition("t1", 0), (101, 102, 103), (102, 103, 104)),
    ]
    assert lists_of_plan(moves) == {
        "t0": TopicLists("0:101,0:102,1:102,1:103,2:101,2:103", "0:103,1:104,2:104"),
        "t1": TopicLists("0:101,0:102,0:103", "0:104"),
    }


def test_a_plan_that_only_removes_has_no_follower_list() -> None:
    assert lists_of_plan([Move(TopicPartition("t", 0), (1, 2), (1,))]) == {"t": TopicLists("0:1,0:2", None)}


def test_entries_are_sorted_as_text_and_occur_once() -> None:
    # As text 10:1 comes before 2:1.
    assert format_replica_list([(2, 1), (10, 1), (2, 1)]) == "10:1,2:1"


@pytest.mark.parametrize("text", [None, "", "  "])
def test_an_empty_list_lists_nothing(text: str | None) -> None:
    assert parse_replica_list(text) is None


def test_a_star_means_every_replica_of_every_partition() -> None:
    every = parse_replica_list(" * ")
    assert every == ReplicaList(every=True, entries=())
    assert every.brokers(7, (3, 1)) == (3, 1)


def test_a_list_names_brokers_per_partition_replica_or_not() -> None:
    listed = parse_replica_list("0:1, 0:2,1:2,0:1")
    assert listed is not None
    assert listed.brokers(0, (2, 9)) == (1, 2)
    assert listed.brokers(5, (1, 2)) == ()
    assert listed.partitions() == {0, 1}


@pytest.mark.parametrize(
    "text", ["0", "a:b", "0:1;1:2", "0:", "0:1,x", "0:-1", "0:+1", "0:1_0", "０:1", "0:1.0", "0:2147483648", "0:1:2"]
)
def test_an_invalid_replica_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="partition:broker"):
        parse_replica_list(text)
