"""Whether a query can continue in a topic: expired records, a new topic of its name, a leader that was behind."""

from __future__ import annotations

import pytest

from headroom.schemas.bounds import TICK_OFF_S
from headroom.streaming.sources.topic_position import PartitionOffsets, TopicPosition, describe_lost

READ_MS = 1_800_000_000_000
LATER_MS = READ_MS + TICK_OFF_S * 1000 + 1


def at(*offsets: int, planned: int = 0, read_ms: int | None = READ_MS) -> TopicPosition:
    """The position of a query by partition; ``planned`` is the end of an unfinished batch of partition 0."""
    ends = dict(enumerate(offsets))
    return TopicPosition(ends, ends | ({0: planned} if planned else {}), read_ms)


@pytest.mark.parametrize(
    ("position", "states", "lost"),
    [
        (at(5, 7), {0: PartitionOffsets(0, 9), 1: PartitionOffsets(7, 9)}, {}),
        (at(5, 7), {0: PartitionOffsets(8, 9), 1: PartitionOffsets(9, 9)}, {0: (5, 8), 1: (7, 9)}),
        # A partition that was added since: its first records may have expired too.
        (at(5), {0: PartitionOffsets(0, 9), 1: PartitionOffsets(3, 9)}, {1: (0, 3)}),
        (at(5), {0: PartitionOffsets(0, 9), 1: PartitionOffsets(0, 9)}, {}),
    ],
)
def test_expired_records_are_those_before_the_first_available_offset(
    position: TopicPosition, states: dict[int, PartitionOffsets], lost: dict[int, tuple[int, int]]
) -> None:
    assert position.lost(states) == lost


@pytest.mark.parametrize(
    ("position", "state", "is_other"),
    [
        # Read up to here; the record before it is older than the read.
        (at(5), PartitionOffsets(0, 9, READ_MS - 1), False),
        (at(5), PartitionOffsets(0, 5, READ_MS), False),
        # The new topic is shorter: empty, or with younger records.
        (at(5), PartitionOffsets(0, 0), True),
        (at(5), PartitionOffsets(0, 3, READ_MS + 1), True),
        # It has grown beyond the position. Clocks may differ by less than this.
        (at(5), PartitionOffsets(0, 9, LATER_MS), True),
        (at(5), PartitionOffsets(0, 9, LATER_MS - 1), False),
        # The leader lacks the newest records; those that it has were read.
        (at(5), PartitionOffsets(0, 4, READ_MS - 1), False),
        # All expired: nothing shows that the topic is another one, and either way the first record comes next.
        (at(5), PartitionOffsets(7, 9), False),
        # A planned batch reaches beyond the end.
        (at(5, planned=8), PartitionOffsets(0, 6, READ_MS + 1), True),
        (at(5, planned=8), PartitionOffsets(0, 8, READ_MS - 1), False),
        (at(5, read_ms=None), PartitionOffsets(0, 9, LATER_MS), False),
        (at(5, read_ms=None), PartitionOffsets(0, 4, LATER_MS), True),
    ],
)
def test_records_younger_than_their_read_are_of_another_topic(
    position: TopicPosition, state: PartitionOffsets, is_other: bool
) -> None:
    assert position.is_of_earlier_topic({0: state}) == is_other


def test_a_partition_that_is_gone_shows_nothing() -> None:
    assert not at(5, 7).is_of_earlier_topic({0: PartitionOffsets(0, 9, READ_MS)})


def test_lost_records_are_named_with_their_partition_and_number() -> None:
    assert (
        describe_lost({0: (5, 10), 2: (0, 1)}) == "offsets 5 to 9 of partition 0 (5), offsets 0 to 0 of partition 2 (1)"
    )
