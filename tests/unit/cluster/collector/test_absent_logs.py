"""Replicas without a log on a broker that answers."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from headroom.cluster.collector.samples.absent_logs import AbsentLogs
from headroom.cluster.model import Partition

MOVING = Partition("orders", 0, 1, 5, (2, 3, 1), (1, 2), (), adding=(3,), removing=(1,))
ALL = (1, 2, 3)


def said(absent: AbsentLogs, *ticks: tuple[int, Collection[int], Collection[int]]) -> list[list[int]]:
    """Runs ticks one second apart, with the brokers that answered and those that reported a log."""
    return [absent.of(second * 1000, MOVING, answered, shown) for second, answered, shown in ticks]


def test_a_replica_is_without_a_log_once_its_broker_has_shown_none_for_ten_seconds() -> None:
    absent = AbsentLogs()
    ticks = [(second, ALL, (1, 2)) for second in (0, 5, 9, 10, 11)]
    assert said(absent, *ticks) == [[], [], [], [3], [3]]
    # It is back; and gone once more.
    assert said(absent, (12, ALL, ALL), (13, ALL, (1, 2)), (22, ALL, (1, 2)), (23, ALL, (1, 2))) == [[], [], [], [3]]


@pytest.mark.parametrize(
    ("answered", "shown"),
    [((1, 2), (1, 2)), (ALL, ()), (ALL, (2,))],
    ids=["its broker does not answer", "nobody shows logs", "the leader's is not shown"],
)
def test_unknown_logs_are_not_reported_as_absent(answered: Collection[int], shown: Collection[int]) -> None:
    absent = AbsentLogs()
    assert said(absent, *[(second, answered, shown) for second in range(30)]) == [[]] * 30
    # The known absence does not end either: the broker reported no log before, and reports none now.
    absent = AbsentLogs()
    assert said(absent, (0, ALL, (1, 2)), (9, answered, shown), (10, ALL, (1, 2))) == [[], [], [3]]


def test_a_replica_in_the_isr_has_its_log_whatever_is_shown() -> None:
    # Broker 2 is in the ISR.
    assert said(AbsentLogs(), *[(second, ALL, (1, 3)) for second in range(30)]) == [[]] * 30


def test_times_move_with_a_clock_that_is_set_and_are_forgotten_with_the_partition() -> None:
    absent = AbsentLogs()
    said(absent, (100, ALL, (1, 2)))
    absent.shift(-60_000)
    assert said(absent, (49, ALL, (1, 2)), (50, ALL, (1, 2))) == [[], [3]]
    absent.keep_only([MOVING.name])
    assert len(absent) == 1
    absent.keep_only([])
    assert len(absent) == 0
