"""Since when logs end where they do."""

from __future__ import annotations

from headroom.cluster.collector.samples.unchanged_ends import UnchangedEnds
from headroom.schemas.keys import TopicPartition

LOG, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_log_that_is_read_first_is_unchanged_since_now() -> None:
    assert UnchangedEnds().add(1, LOG, 5, 1000) == 1000


def test_an_end_is_unchanged_since_its_first_reading_however_long_ago() -> None:
    ends = UnchangedEnds()
    since = [ends.add(1, LOG, 5, second * 1000) for second in range(1000)]
    assert set(since) == {0}


def test_an_end_that_changes_in_either_direction_begins_again() -> None:
    ends = UnchangedEnds()
    # 5 again at 4,000 is not the 5 of before.
    since = [ends.add(1, LOG, end, second * 1000) for second, end in enumerate((5, 6, 6, 4, 5, 5))]
    assert since == [0, 1000, 1000, 3000, 4000, 4000]


def test_brokers_and_logs_are_apart_and_are_forgotten_apart() -> None:
    ends = UnchangedEnds()
    for broker in (1, 2, 3):
        for name in (LOG, OTHER):
            ends.add(broker, name, 5, 0)
    ends.keep_only(1, {OTHER})
    ends.keep_brokers({1, 2})
    ends.forget_keys([OTHER])
    assert len(ends) == 1
    assert [ends.add(broker, LOG, 5, 9000) for broker in (1, 2, 3)] == [9000, 0, 9000]


def test_times_move_with_the_clock() -> None:
    ends = UnchangedEnds()
    ends.add(1, LOG, 5, 10_000)
    ends.shift(-4000)
    assert ends.add(1, LOG, 5, 7000) == 6000
