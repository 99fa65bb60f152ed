"""Promised leads and replicas of the group ``proposals``, beside those that came."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.groups.proposals.promise import BalancePromise, PartitionPlace, balance_promise
from benchmarks.groups.proposals.promise_cases import PROMISE_BROKERS, PROMISE_CASES
from headroom.schemas.keys import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
ALL = frozenset({1, 2, 3})
# A and B are led by broker 1; the preferred leader of C, broker 3, was restarted.
BEFORE = {
    A: PartitionPlace((1, 2), 1, ALL),
    B: PartitionPlace((1, 2), 1, ALL),
    C: PartitionPlace((3, 1), 1, ALL),
}


def proposal(leaders: dict[int, int], replicas: dict[int, int]) -> dict[str, Any]:
    """A goes to brokers 2 and 1 in a batch of elections, and B to brokers 1 and 3 in one that copies."""
    return {
        "batches": [
            {"plan": {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1]}]}},
            {"plan": {"partitions": [{"topic": "t", "partition": 1, "replicas": [1, 3]}]}},
        ],
        "after": {
            "brokers": [
                {"broker": b, "loads": {"leaders": {"load": leaders[b]}, "replicas": {"load": replicas[b]}}}
                for b in (1, 2, 3)
            ]
        },
    }


def came(a: PartitionPlace, b: PartitionPlace, c: PartitionPlace) -> dict[TopicPartition, PartitionPlace]:
    # One that was made after the proposal is no part of it.
    return {A: a, B: b, C: c, TopicPartition("later", 0): PartitionPlace((1,), 1, ALL)}


@pytest.fixture
def plain() -> BalancePromise:
    return balance_promise(proposal({1: 2, 2: 1, 3: 0}, {1: 3, 2: 1, 3: 2}), BEFORE, rebalances=False)


def test_what_came_as_promised_does_not_differ(plain: BalancePromise) -> None:
    a, b = PartitionPlace((2, 1), 2, ALL), PartitionPlace((1, 3), 1, ALL)
    assert plain.differences(came(a, b, BEFORE[C]), "") == []
    # Kafka gives the lead of C back to broker 3.
    auto = balance_promise(proposal({1: 1, 2: 1, 3: 1}, {1: 3, 2: 1, 3: 2}), BEFORE, rebalances=True)
    assert auto.differences(came(a, b, PartitionPlace((3, 1), 3, ALL)), "") == []


def test_every_difference_has_its_cause(plain: BalancePromise) -> None:
    # B did not move, the lead of A was not elected, and that of C was by another hand.
    elsewhere = came(PartitionPlace((2, 1), 1, ALL), BEFORE[B], PartitionPlace((3, 1), 3, ALL))
    found = plain.differences(elsewhere, "no")
    assert found == [
        "t-1 has replicas 1,2 instead of 1,3: no",
        "broker 2 has 0 leaders instead of 1: t-0 is led by 1, and broker 2, which is in sync, was not elected: no",
        "broker 2 has 2 replicas instead of 1: t-1 has replicas 1,2",
        "broker 3 has 1 leaders instead of 0: t-2 is led by 3, which no batch elected instead of 1",
        "broker 3 has 1 replicas instead of 2: t-1 has replicas 1,2",
    ]
    other = balance_promise(proposal({1: 1, 2: 1, 3: 1}, {1: 3, 2: 1, 3: 2}), BEFORE, rebalances=False)
    at_end = came(PartitionPlace((2, 1), 2, ALL), PartitionPlace((1, 3), 1, ALL), BEFORE[C])
    assert other.differences(at_end, "") == [
        "broker 1 has 2 leaders instead of 1: its batches lead to other counts",
        "broker 3 has 0 leaders instead of 1: its batches lead to other counts",
    ]
    behind = plain.differences(
        came(PartitionPlace((2, 1), 1, frozenset({1})), PartitionPlace((1, 3), 1, ALL), BEFORE[C]), ""
    )
    assert behind == [
        "broker 1 has 3 leaders instead of 2: t-0 is led by 1, and broker 2 is not in sync",
        "broker 2 has 0 leaders instead of 1: t-0 is led by 1, and broker 2 is not in sync",
    ]


def test_a_partition_that_is_gone_has_no_replicas(plain: BalancePromise) -> None:
    found = plain.differences({A: PartitionPlace((2, 1), 2, ALL), B: PartitionPlace((1, 3), 1, ALL)}, "deleted")
    assert found[0] == "t-2 has replicas none instead of 3,1: deleted"


def test_the_runs_are_those_that_are_described() -> None:
    assert len({case.name for case in PROMISE_CASES}) == len(PROMISE_CASES) == 20
    assert sum(case.by_balance_run for case in PROMISE_CASES) == 10
    for rebalances in (False, True):
        own = [case for case in PROMISE_CASES if case.cluster.rebalances is rebalances]
        assert any(case.returned for case in own)
        assert any(case.dead for case in own)
    for case in PROMISE_CASES:
        for moved in case.partitions:
            assert len(set(moved.before)) == len(moved.before)
            assert set(moved.before) <= set(range(1, PROMISE_BROKERS + 1))
            # A partition that loses its only replica cannot be led by another one.
            assert len(moved.before) > 1 or not (case.returned or case.dead)
