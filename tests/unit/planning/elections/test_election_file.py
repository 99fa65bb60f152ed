"""Files of kafka-leader-election are read as they were written."""

from __future__ import annotations

import pytest

from headroom.planning.elections.election_file import parse_request, request_json
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition


def test_a_file_is_read_as_it_was_written() -> None:
    names = (TopicPartition("a", 1), TopicPartition("b.c-d", 0))
    assert parse_request(request_json(names), "file") == names


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"partitions":[]}',
        '{"partitions":[{"topic":"a"}]}',
        '{"partitions":[{"topic":1,"partition":1}]}',
        '{"partitions":[{"topic":"","partition":1}]}',
        '{"partitions":[{"topic":"a","partition":1.0}]}',
        '{"partitions":[{"topic":"a","partition":"1"}]}',
        '{"partitions":[{"topic":"a","partition":true}]}',
        '{"partitions":[{"topic":"a","partition":-1}]}',
        '{"partitions":[{"topic":"a","partition":1,"partition":2}]}',
    ],
)
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(HeadroomError, match="file: is no"):
        parse_request(text, "file")


def test_a_partition_that_is_named_twice_is_an_error() -> None:
    with pytest.raises(HeadroomError, match="names a-1 more than once"):
        parse_request('{"partitions":[{"topic":"a","partition":1},{"topic":"a","partition":1}]}', "file")
