"""Preferred leader elections: balances by hand, elected and skipped partitions, and properties of random clusters."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.elections.election_file import request_json
from headroom.planning.elections.planner import (
    Balance,
    Batch,
    BatchLimits,
    ClusterConstraints,
    ElectionPlan,
    PartitionState,
    Reason,
    RequiredThrottleIncrease,
    SkippedPartition,
    balances,
    out_of_balance,
    plan_elections,
)
from headroom.planning.quotas.load import PartitionTraffic, throttle_loads
from headroom.schemas.alerts import Verdict
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

MB = 1_000_000.0
BROKERS = (1, 2, 3, 4)
ALIVE = frozenset(BROKERS)
ANY = ClusterConstraints(ALIVE)
NO_LIMIT = BatchLimits()


def led(partition: int, leader: int | None, *replicas: int, topic: str = "t", **more: Any) -> PartitionState:
    """A partition with all its replicas in sync."""
    fields: dict[str, Any] = {"isr": replicas} | more
    return PartitionState(TopicPartition(topic, partition), leader, replicas, **fields)


def away(
    preferred: int, leader: int, count: int, rate_mb: float | None = 1.0, topic: str = "t"
) -> list[PartitionState]:
    """Return partitions of one preferred leader that another broker leads; their numbers contain both broker ids."""
    rate = None if rate_mb is None else rate_mb * MB
    return [
        led(1000 * preferred + 100 * leader + n, leader, preferred, leader, topic=topic, write_bytes_per_s=rate)
        for n in range(count)
    ]


def at_home(broker: int, count: int, rate_mb: float = 1.0) -> list[PartitionState]:
    return [led(100_000 * broker + n, broker, broker, 9, write_bytes_per_s=rate_mb * MB) for n in range(count)]


def plan(some: Iterable[PartitionState], constraints: ClusterConstraints = ANY, **limits: Any) -> ElectionPlan:
    return plan_elections(some, BatchLimits(**limits), constraints)


def elected(found: ElectionPlan) -> list[list[TopicPartition]]:
    return [list(batch.partitions) for batch in found.batches]


def reasons(found: ElectionPlan) -> dict[TopicPartition, Reason]:
    return {left.name: left.reason for left in found.left_out}


def balance(preferred: int, electable: int, waiting: int = 0) -> Balance:
    return Balance(1, preferred, electable + waiting, electable, waiting)


# Kafka's percentage is 10 by default, and must be exceeded.
@pytest.mark.parametrize(
    ("preferred", "away", "out"),
    [(10, 1, False), (10, 2, True), (30, 3, False), (30, 4, True), (1, 0, False), (1, 1, True)],
)
def test_a_broker_is_out_of_balance_when_it_misses_more_than_the_threshold(
    preferred: int, away: int, out: bool
) -> None:
    assert out_of_balance(balance(preferred, away), 0.1) is out


def test_no_rounding_decides_whether_a_threshold_is_exceeded() -> None:
    for percent in range(101):
        for preferred in range(1, 61):
            for missing in range(preferred + 1):
                exact = Fraction(missing, preferred) > Fraction(percent, 100)
                assert out_of_balance(balance(preferred, missing), percent / 100) is exact


def test_partitions_in_a_move_cause_no_imbalance() -> None:
    moving = balance(10, electable=1, waiting=8)
    assert moving.imbalance_ratio == 0.9
    assert not out_of_balance(moving, 0.1)


def test_the_balance_of_a_broker_counts_as_kafka_does() -> None:
    found = balances(
        [
            led(0, 1, 1, 2, write_bytes_per_s=1 * MB),
            led(1, 2, 1, 2, write_bytes_per_s=2 * MB),
            led(2, 2, 1, 2, moving=True, write_bytes_per_s=4 * MB),
            led(3, 2, 1, 2, isr=(2,), write_bytes_per_s=8 * MB),
            # Counts among those that prefer broker 1 and nowhere else.
            led(4, None, 1, 2, isr=(), write_bytes_per_s=0.0),
            # Count nowhere: being deleted, and without a replica.
            led(5, 2, 1, 2, deleting=True, write_bytes_per_s=99 * MB),
            led(6, None),
            # Broker 2 is preferred for nothing, broker 9 for this one.
            led(7, 1, 9, 1, write_bytes_per_s=16 * MB),
        ],
        ALIVE,
    )
    assert found == (
        Balance(1, 5, 3, 1, 1, write_bytes_per_s=17 * MB, preferred_write_bytes_per_s=15 * MB),
        # Dead: it misses its lead, and no election would give it back.
        Balance(9, 1, 1, 0, 0, write_bytes_per_s=0.0, preferred_write_bytes_per_s=16 * MB),
    )


def test_a_sum_of_rates_is_unknown_if_one_rate_is() -> None:
    (one, two) = balances([led(0, 1, 1, 2, write_bytes_per_s=MB), led(1, 1, 2, 1)], ALIVE)
    assert (one.write_bytes_per_s, one.preferred_write_bytes_per_s) == (None, MB)
    assert (two.write_bytes_per_s, two.preferred_write_bytes_per_s) == (0.0, None)


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (led(0, 2, 1, 2), None),
        (led(0, 2, 1, 2, moving=True), Reason.MOVING),
        (led(0, 2, 9, 2), Reason.PREFERRED_DOWN),
        (led(0, 2, 1, 2, isr=(2,)), Reason.PREFERRED_OUT_OF_SYNC),
        (led(0, None, 1, 2, isr=(2,)), Reason.LEADERLESS),
        (led(0, 2, 1, 2, deleting=True), Reason.DELETING),
        # A replica short: two in sync are not more than min.insync.replicas of 2, and more than 1.
        (led(0, 2, 1, 2, 3, isr=(1, 2), min_insync_replicas=2), Reason.AT_MIN_INSYNC),
        (led(0, 2, 1, 2, 3, isr=(1, 2), min_insync_replicas=1), None),
        (led(0, 2, 1, 2, 3, isr=(1, 2)), None),
        # All are in sync: it would wait for ever.
        (led(0, 2, 1, 2, min_insync_replicas=2), None),
        # A dead broker elsewhere in the list is just a replica that lacks.
        (led(0, 2, 1, 2, 9, isr=(1, 2), min_insync_replicas=1), None),
        (led(0, 2, 1, 2, topic="other"), Reason.NOT_CHOSEN),
        (led(0, 2, 3, 2), Reason.NOT_CHOSEN),
        # What was not chosen needs no further reason.
        (led(0, 2, 3, 2, moving=True), Reason.NOT_CHOSEN),
    ],
)
def test_a_partition_is_elected_or_has_one_reason_why_not(partition: PartitionState, reason: Reason | None) -> None:
    constraints = ClusterConstraints(ALIVE, chosen_topics=frozenset({"t"}), chosen_brokers=frozenset({1, 9}))
    found = plan([partition], constraints)
    assert elected(found) == ([] if reason else [[partition.name]])
    assert found.left_out == ((SkippedPartition(partition.name, partition.replicas[0], reason),) if reason else ())


@pytest.mark.parametrize("partitions", [[], [led(0, None)], at_home(1, 3), [led(0, 1, 1)]])
def test_a_balanced_cluster_has_no_elections(partitions: list[PartitionState]) -> None:
    found = plan(partitions)
    assert (found.batches, found.left_out, found.raise_first) == ((), (), ())
    assert found.before == found.after


def test_brokers_with_the_highest_imbalance_come_first() -> None:
    # Broker 1 misses 4 of 4 leaders, broker 2 misses 2 of 4, broker 3 1 of 4. With equal ratios, the lower id is first.
    found = plan([*away(1, 4, 4), *away(2, 4, 2), *away(3, 4, 1), *at_home(2, 2), *at_home(3, 3)], partitions=3)
    assert [[name[1] // 1000 for name in batch] for batch in elected(found)] == [[1, 1, 1], [2, 1, 2], [3]]
    assert [batch.imbalance_ratios for batch in found.batches] == [
        {1: 0.25, 2: 0.5, 3: 0.25},
        {1: 0.0, 2: 0.0, 3: 0.25},
        {1: 0.0, 2: 0.0, 3: 0.0},
    ]


def test_a_full_broker_does_not_end_the_batch() -> None:
    found = plan([*away(1, 2, 6), *away(3, 4, 2)], partitions_per_broker=2)
    # Broker 1 gets two per batch. Broker 3 is in the first batch too, although its imbalance is never the highest.
    assert [len(batch) for batch in elected(found)] == [4, 2, 2]
    assert {name[1] // 1000 for name in elected(found)[0]} == {1, 3}


def test_leaders_come_from_the_broker_with_the_greatest_surplus_and_highest_write_rate_first() -> None:
    # Brokers 2 and 3 lead 6 and 5 MB/s of other brokers.
    few = [
        led(0, 2, 1, 2, write_bytes_per_s=1 * MB),
        led(1, 2, 1, 2, write_bytes_per_s=5 * MB),
        led(2, 3, 1, 3, write_bytes_per_s=5 * MB),
    ]
    assert elected(plan(few)) == [[("t", 1), ("t", 0), ("t", 2)]]
    # With one election per batch, broker 3 is next after the first: it has 5 left, and broker 2 only 1.
    assert elected(plan(few, partitions=1)) == [[("t", 1)], [("t", 2)], [("t", 0)]]


def test_without_rates_leaders_come_from_the_broker_with_the_greatest_surplus_of_partitions() -> None:
    found = plan([*away(1, 2, 1, None), *away(1, 3, 2, None)], partitions=1)
    assert elected(found)[0] == [("t", 1300)]
    assert [batch.unknown_rates for batch in found.batches] == [1, 1, 1]
    assert {batch.write_bytes_per_s for batch in found.batches} == {0}


def test_internal_topics_come_last() -> None:
    found = plan([*away(1, 2, 9, 50.0, topic="__consumer_offsets"), *away(3, 4, 1), *at_home(3, 99)])
    assert [{topic for topic, _ in batch} for batch in elected(found)] == [{"t"}, {"__consumer_offsets"}]


def test_a_partition_above_the_limit_of_writes_has_a_batch_to_itself() -> None:
    rates_mb = [9.0, 2.0, 2.0, 1.0, 0.0]
    found = plan(
        [led(n, 2, 1, 2, write_bytes_per_s=rate * MB) for n, rate in enumerate(rates_mb)], write_bytes_per_s=4 * MB
    )
    assert elected(found) == [[("t", 0)], [("t", 1), ("t", 2)], [("t", 3), ("t", 4)]]
    assert [batch.write_bytes_per_s for batch in found.batches] == [9 * MB, 4 * MB, 1 * MB]


def test_smaller_elections_fill_the_rest_of_a_batch() -> None:
    found = plan([*away(1, 2, 2, 3.0), *away(3, 4, 1, 1.0), *at_home(3, 9)], write_bytes_per_s=4 * MB)
    assert elected(found) == [[("t", 1200), ("t", 3400)], [("t", 1201)]]


def test_a_request_is_as_long_as_it_may_be_and_no_longer() -> None:
    some = away(1, 2, 40)
    for limit in range(313, 900, 7):
        *whole, last = (len(request_json(batch)) for batch in elected(plan(some, request_bytes=limit)))
        # `,{"topic":"t","partition":1200}` has 31 characters.
        assert all(limit - 31 < size <= limit for size in whole)
        assert last <= limit


def test_a_request_is_what_kafkas_tool_reads() -> None:
    assert request_json([("foo", 1), ("b.a_r", 20)]) == (
        '{"partitions":[{"topic":"foo","partition":1},{"topic":"b.a_r","partition":20}],"version":1}'
    )


@pytest.mark.parametrize(
    "limits",
    [
        {"partitions": 0},
        {"partitions_per_broker": 0},
        {"request_bytes": 312},
        {"write_bytes_per_s": 0.0},
        {"capacity_bytes_per_s": -1.0},
        {"capacity_bytes_per_s": float("nan")},
    ],
)
def test_a_limit_that_allows_no_election_is_rejected(limits: dict[str, Any]) -> None:
    (name,) = limits
    with pytest.raises(HeadroomError, match=f"{name} of a batch: must be (at least|above) "):
        BatchLimits(**limits)


def test_no_election_exceeds_the_capacity_of_a_broker() -> None:
    # Broker 1 leads 3 MB/s and has a capacity of 5: two of the three elections fit.
    found = plan([*at_home(1, 3), *away(1, 2, 3)], capacity_bytes_per_s=5 * MB)
    assert [len(batch) for batch in elected(found)] == [2]
    assert list(reasons(found).values()) == [Reason.OVER_CAPACITY]
    assert found.after[0].write_bytes_per_s == 5 * MB


def test_a_broker_that_lost_leaders_can_get_others_in_a_later_batch() -> None:
    # In a chain of full brokers only 4 has capacity: it gets a leader from 3, then 3 from 2, then 2 from 1. The
    # ratios give the same order. In one batch, broker 3 would exceed its capacity if the first election failed.
    chain = [*away(4, 3, 1, 5.0), *away(3, 2, 1, 5.0), *away(2, 1, 1, 5.0), *at_home(3, 1, 0.0), *at_home(2, 2, 0.0)]
    found = plan(chain, capacity_bytes_per_s=5 * MB)
    assert elected(found) == [[("t", 4300)], [("t", 3200)], [("t", 2100)]]


def test_capacity_that_one_election_cannot_use_goes_to_another() -> None:
    # Broker 1 leads 9 MB/s and has a capacity of 10. Without partition 2, one of its two preferred partitions fits.
    # With partition 0 its throttle would be too low: 1 MB/s to the replica that catches up, and 2 more.
    partitions = [
        led(0, 3, 1, 3, write_bytes_per_s=2 * MB),
        led(1, 3, 1, 3, write_bytes_per_s=2 * MB),
        led(2, 1, 2, 1, write_bytes_per_s=2 * MB),
        *at_home(1, 7),
    ]
    listed = frozenset({1, 3, 4})
    traffic = (
        PartitionTraffic(TopicPartition("t", 0), 3, (1,), frozenset({1, 3}), frozenset(), listed, frozenset(), 2 * MB),
        PartitionTraffic(
            TopicPartition("t", 3), 1, (4,), frozenset({1}), frozenset({4}), listed, frozenset({4}), 1 * MB
        ),
    )
    constraints = ClusterConstraints(ALIVE, traffic, {(b, role): 2 * MB for b in BROKERS for role in Role})
    found = plan(partitions, constraints, capacity_bytes_per_s=10 * MB)
    assert elected(found) == [[("t", 2)], [("t", 1)]]
    # Then broker 1 has reached its capacity too.
    assert reasons(found) == {("t", 0): Reason.OVER_CAPACITY}


def test_two_full_brokers_cannot_swap() -> None:
    found = plan([*away(1, 2, 1, 5.0), *away(2, 1, 1, 5.0)], capacity_bytes_per_s=9 * MB)
    assert elected(found) == []
    assert set(reasons(found).values()) == {Reason.OVER_CAPACITY}


def test_a_broker_over_its_capacity_loses_leaders_and_gets_idle_ones() -> None:
    # Broker 2 leads 9 and loses 1. Of its preferred partitions, only the one without writes can be elected.
    partitions = [*away(1, 2, 1), *away(2, 1, 1, 0.0), *away(2, 3, 1), *at_home(2, 8)]
    found = plan(partitions, capacity_bytes_per_s=5 * MB)
    assert [sorted(batch) for batch in elected(found)] == [[("t", 1200), ("t", 2100)]]
    assert reasons(found) == {("t", 2300): Reason.OVER_CAPACITY}


# Brokers 1 and 2 lead 2 MB/s each. Partition 0 has moved and is still listed; broker 3 is being added to partition 1.
# Broker 2 sends 2 to each of two replicas. As the preferred leader of partition 0 it would send 4 more.
def switching(throttle_mb: float | None, **more: Any) -> tuple[list[PartitionState], ClusterConstraints]:
    rate = 2 * MB
    partitions = [
        led(0, 1, 2, 1, 3, write_bytes_per_s=rate),
        led(1, 2, 3, 2, 1, isr=(2, 1), moving=True, write_bytes_per_s=rate),
    ]
    listed = frozenset({1, 2})
    finished = PartitionTraffic(
        TopicPartition("t", 0), 1, (2, 3), frozenset({1, 2, 3}), frozenset(), listed, frozenset({3}), rate
    )
    traffic = [
        replace(finished, **more),
        PartitionTraffic(
            TopicPartition("t", 1), 2, (1, 3), frozenset({1, 2}), frozenset({3}), listed, frozenset({3}), rate
        ),
    ]
    rates = {(broker, role): None if throttle_mb is None else throttle_mb * MB for broker in BROKERS for role in Role}
    return partitions, ClusterConstraints(ALIVE, throttled=tuple(traffic), throttles=rates)


def test_no_election_makes_a_throttle_too_low() -> None:
    partitions, constraints = switching(5.6)
    found = plan_elections(partitions, NO_LIMIT, constraints)
    assert elected(found) == []
    assert reasons(found) == {("t", 0): Reason.OVER_THROTTLE, ("t", 1): Reason.MOVING}
    assert found.raise_first == (RequiredThrottleIncrease((2, Role.LEADER), 5.6 * MB, 8 * MB),)


@pytest.mark.parametrize(
    ("throttle_mb", "more"),
    [
        (8.000001, {}),
        (None, {}),
        # Nothing is written to it, or no list names it as a leader's.
        (5.6, {"write_bytes_per_s": 0.0}),
        (5.6, {"leader_listed": frozenset({1, 3})}),
    ],
)
def test_an_election_is_planned_if_the_throttle_stays_sufficient(
    throttle_mb: float | None, more: dict[str, Any]
) -> None:
    partitions, constraints = switching(throttle_mb, **more)
    found = plan_elections(partitions, NO_LIMIT, constraints)
    assert elected(found) == [[("t", 0)]]
    assert found.raise_first == ()


@pytest.mark.parametrize("more", [{"write_bytes_per_s": None}, {"leader_listed": None}])
def test_an_unknown_throttle_defers_elections_and_gives_no_rate(more: dict[str, Any]) -> None:
    partitions, constraints = switching(9.0, **more)
    found = plan_elections(partitions, NO_LIMIT, constraints)
    assert reasons(found)[("t", 0)] is Reason.OVER_THROTTLE
    assert found.raise_first == ()


def test_no_election_adds_load_to_a_losing_throttle() -> None:
    # Broker 2 requires 4 before any election.
    partitions, constraints = switching(4.0)
    found = plan_elections(partitions, NO_LIMIT, constraints)
    assert reasons(found)[("t", 0)] is Reason.OVER_THROTTLE
    assert found.raise_first == (RequiredThrottleIncrease((2, Role.LEADER), 4 * MB, 8 * MB),)


def test_a_throttle_may_be_too_low_for_the_old_leader_as_follower() -> None:
    # Once broker 2 leads partition 0, broker 1 receives its listed 2 MB/s in addition to 1 MB/s that it copies.
    partitions, constraints = switching(None, follower_listed=frozenset({1, 3}))
    copied = PartitionTraffic(
        TopicPartition("t", 2), 4, (1,), frozenset({4}), frozenset({1}), frozenset({4}), frozenset({1}), 1 * MB
    )
    throttles = {**constraints.throttles, (1, Role.FOLLOWER): 2.5 * MB}
    found = plan(partitions, replace(constraints, throttled=(*constraints.throttled, copied), throttles=throttles))
    assert reasons(found)[("t", 0)] is Reason.OVER_THROTTLE
    assert found.raise_first == (RequiredThrottleIncrease((1, Role.FOLLOWER), 2.5 * MB, 3 * MB),)


def test_a_throttle_that_lost_traffic_allows_other_traffic_in_a_later_batch() -> None:
    # Broker 2 also leads partition 2, with 2 MB/s to one in-sync replica, whose preferred leader is broker 4. It
    # requires 6, and 4 without partition 2. Broker 2 leads one preferred partition, so broker 4 is first.
    partitions, constraints = switching(9.0)
    listed = frozenset({2, 4})
    resting = PartitionTraffic(TopicPartition("t", 2), 2, (4,), listed, frozenset(), listed, frozenset(), 2 * MB)
    constraints = replace(constraints, throttled=(*constraints.throttled, resting))
    found = plan([*partitions, led(2, 2, 4, 2, write_bytes_per_s=2 * MB), *at_home(2, 1)], constraints)
    # With partition 2, partition 0 would increase the required rate to 10.
    assert elected(found) == [[("t", 2)], [("t", 0)]]


def test_a_leader_that_is_dead_does_not_fetch_from_the_next_one() -> None:
    # Of the replicas 1 and 3 of partition 0, only 3 fetches 2 MB/s from broker 2: 6 required, not 8.
    partitions, constraints = switching(7.0)
    found = plan(partitions, replace(constraints, alive=ALIVE - {1}))
    assert elected(found) == [[("t", 0)]]


def test_sums_that_depend_on_their_order_make_no_difference() -> None:
    # Broker 2 leads the first three, and 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1.
    home = [led(n, 2, 2, 3, write_bytes_per_s=rate) for n, rate in enumerate((0.1, 0.2, 0.3))]
    some = [*home, led(3, 1, 2, 1, write_bytes_per_s=0.1)]
    followers, listed = [(3,), (3,), (3,), (2,)], frozenset({1, 2})
    traffic = [
        PartitionTraffic(
            TopicPartition("t", n),
            p.leader,
            follower,
            frozenset(),
            frozenset(),
            listed,
            frozenset(),
            p.write_bytes_per_s,
        )
        for n, (p, follower) in enumerate(zip(some, followers, strict=True))
    ]
    throttles = {(b, role): 0.5 for b in BROKERS for role in Role}
    first, *others = (
        plan([some[n] for n in order], ClusterConstraints(ALIVE, tuple(traffic[n] for n in order), throttles))
        for order in permutations(range(4))
    )
    assert first.raise_first
    assert all(other == first for other in others)


_RATES = tuple(hundreds * 100.0 for hundreds in range(6))
_rate = st.sampled_from(_RATES)


@st.composite
def leds(draw: st.DrawFn, number: int) -> PartitionState:
    """Any partition; the broker 5 is dead. Rates are few whole hundreds: their sums are exact and often on a mark."""
    replicas = tuple(draw(st.lists(st.sampled_from((*BROKERS, 5)), max_size=3, unique=True)))
    leader = draw(st.sampled_from((*(replicas * 4), None))) if replicas else None
    usual = draw(st.integers(0, 3)) > 0
    isr = tuple(b for b in replicas if b == leader or usual or draw(st.booleans()))
    return PartitionState(
        name=TopicPartition(draw(st.sampled_from(("a", "b.long-name", "__consumer_offsets"))), number),
        leader=leader,
        replicas=replicas,
        isr=isr if leader is not None else (),
        moving=draw(st.integers(0, 5)) == 0,
        deleting=draw(st.integers(0, 9)) == 0,
        min_insync_replicas=draw(st.sampled_from((None, 1, 2))),
        write_bytes_per_s=draw(st.one_of(_rate, _rate, _rate, st.none())),
    )


def fetching(p: PartitionState, leader: int | None) -> tuple[int, ...]:
    return tuple(b for b in p.replicas if b != leader and b in ALIVE)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints]:
    """Partitions of four brokers, limits, and throttled replica lists."""
    partitions = tuple(draw(leds(number)) for number in range(draw(st.integers(0, 14))))
    limits = BatchLimits(
        partitions=draw(st.integers(1, 6)),
        partitions_per_broker=draw(st.integers(1, 4)),
        write_bytes_per_s=draw(st.sampled_from((None, 100.0, 600.0))),
        request_bytes=draw(st.sampled_from((313, 900_000))),
        capacity_bytes_per_s=draw(st.sampled_from((None, 300.0, 800.0, 1500.0))),
    )
    listed = st.one_of(st.just(frozenset(BROKERS)), st.frozensets(st.sampled_from(BROKERS)), st.none())
    traffic = tuple(
        PartitionTraffic(
            name=p.name,
            leader=p.leader,
            followers=fetching(p, p.leader),
            in_sync=frozenset(p.isr),
            leader_listed=draw(listed),
            follower_listed=draw(listed),
            write_bytes_per_s=p.write_bytes_per_s,
        )
        for p in partitions
        if draw(st.booleans())
    )
    throttle = st.sampled_from((None, *(hundreds * 100.0 for hundreds in range(1, 16))))
    throttles = {(b, role): draw(throttle) for b in BROKERS for role in Role if draw(st.integers(0, 9))}
    return partitions, limits, ClusterConstraints(ALIVE, throttled=traffic, throttles=throttles)


class Cluster:
    """A cluster in which batches are elected one after the other, and counted again each time."""

    def __init__(self, partitions: Iterable[PartitionState], constraints: ClusterConstraints) -> None:
        self.leds = {p.name: p for p in partitions}
        self.constraints = constraints

    def elect(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            self.leds[name] = replace(self.leds[name], leader=self.leds[name].replicas[0])

    def ratios(self) -> dict[int, float]:
        preferred: Counter[int] = Counter()
        missing: Counter[int] = Counter()
        for p in self.leds.values():
            if p.replicas and not p.deleting:
                preferred[p.replicas[0]] += 1
                missing[p.replicas[0]] += p.leader not in (None, p.replicas[0])
        return {broker: missing[broker] / preferred[broker] for broker in preferred}

    def carried(self, broker: int) -> float:
        own = [p for p in self.leds.values() if p.leader == broker and not p.deleting]
        return sum(p.write_bytes_per_s or 0.0 for p in own)

    def traffic(self) -> list[PartitionTraffic]:
        found = []
        for p in self.constraints.throttled:
            now = self.leds[p.name]
            found.append(replace(p, leader=now.leader, followers=fetching(now, now.leader)))
        return found

    def too_low(self) -> dict[BrokerRole, tuple[int, float]]:
        """Return the brokers and roles whose throttle is certainly too low, with its severity and the required rate.

        The required rate is infinite if the write rate of a partition is unknown.
        """
        grades = {Verdict.LOSING: 1, Verdict.STARVED: 2}
        return {
            (d.broker, d.role): (grades[d.verdict], math.inf if (need := d.required_bytes_per_s) is None else need)
            for d in throttle_loads(self.traffic(), self.constraints.throttles)
            if d.verdict in grades
        }

    def unknown(self) -> dict[BrokerRole, int]:
        """Return the brokers and roles without a verdict, with the number of replicas that their throttle limits."""
        found = throttle_loads(self.traffic(), self.constraints.throttles)
        return {(d.broker, d.role): d.limited_replicas for d in found if d.verdict is Verdict.NO_DATA}


@given(cases())
def test_each_non_preferred_partition_is_elected_or_skipped_once(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, constraints = case
    found = plan_elections(partitions, limits, constraints)
    listed = [*(name for batch in found.batches for name in batch.partitions), *reasons(found)]
    wanted = [p.name for p in partitions if p.replicas and p.leader != p.replicas[0]]
    assert sorted(listed) == sorted(wanted)
    assert len(found.left_out) == len(reasons(found))


@given(cases())
def test_only_electable_partitions_are_elected(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, constraints = case
    by_name = {p.name: p for p in partitions}
    for batch in plan_elections(partitions, limits, constraints).batches:
        for p in map(by_name.__getitem__, batch.partitions):
            assert p.replicas[0] in p.isr
            assert p.replicas[0] in ALIVE
            assert p.leader not in (None, p.replicas[0])
            assert not p.moving
            assert not p.deleting
            assert len(p.isr) == len(p.replicas) or len(p.isr) > (p.min_insync_replicas or 1)


@given(cases())
def test_no_batch_is_empty_or_over_a_limit(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, constraints = case
    by_name = {p.name: p for p in partitions}
    for batch in plan_elections(partitions, limits, constraints).batches:
        of_batch = [by_name[name] for name in batch.partitions]
        touched = Counter(broker for p in of_batch for broker in (p.leader, p.replicas[0]))
        moved = sum(p.write_bytes_per_s or 0.0 for p in of_batch)
        assert 1 <= len(of_batch) <= limits.partitions
        assert max(touched.values()) <= limits.partitions_per_broker
        assert len(of_batch) == 1 or moved <= (limits.write_bytes_per_s or moved)
        assert len(request_json(batch.partitions)) <= limits.request_bytes
        assert batch.write_bytes_per_s == moved
        assert batch.unknown_rates == sum(p.write_bytes_per_s is None for p in of_batch)


@given(cases())
def test_the_forecast_balances_are_those_after_the_elections(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, constraints = case
    found = plan_elections(partitions, limits, constraints)
    cluster = Cluster(partitions, constraints)
    assert {b.broker: b.imbalance_ratio for b in found.before} == cluster.ratios()
    assert found.before == balances(partitions, ALIVE)
    for batch in found.batches:
        cluster.elect(batch.partitions)
        assert batch.imbalance_ratios == cluster.ratios()
    assert found.after == balances(cluster.leds.values(), ALIVE)


def some_of(batch: Batch, chance: random.Random) -> list[TopicPartition]:
    return [name for name in batch.partitions if chance.random() < 0.5]


@given(cases(), st.randoms(use_true_random=False))
def test_no_broker_exceeds_its_capacity_even_if_other_elections_fail(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints], chance: random.Random
) -> None:
    partitions, limits, constraints = case
    cluster = Cluster(partitions, constraints)
    for batch in plan_elections(partitions, limits, constraints).batches:
        before = {broker: cluster.carried(broker) for broker in BROKERS}
        for names in (some_of(batch, chance), batch.partitions):
            cluster.elect(names)
            for broker in BROKERS:
                most = max(limits.capacity_bytes_per_s or float("inf"), before[broker])
                assert cluster.carried(broker) <= most


@given(cases(), st.randoms(use_true_random=False))
def test_no_batch_makes_a_throttle_too_low_even_if_some_of_its_elections_fail(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints], chance: random.Random
) -> None:
    partitions, limits, constraints = case
    cluster = Cluster(partitions, constraints)
    for batch in plan_elections(partitions, limits, constraints).batches:
        before, unknown = cluster.too_low(), cluster.unknown()
        for names in (some_of(batch, chance), batch.partitions):
            cluster.elect(names)
            for broker_role, (grade, required) in cluster.too_low().items():
                # An unknown verdict may become known once a partition of unknown rate has another leader.
                assert broker_role in unknown or (grade, required) <= before[broker_role]
            assert {broker_role for broker_role, limited in cluster.unknown().items() if limited} <= {*unknown, *before}


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_makes_no_difference(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints], chance: random.Random
) -> None:
    partitions, limits, constraints = case
    # Rates whose sums depend on their order.
    uneven = [
        p if p.write_bytes_per_s is None else replace(p, write_bytes_per_s=p.write_bytes_per_s * 1.1 + 0.3)
        for p in partitions
    ]
    traffic = list(constraints.throttled)
    expected = plan_elections(uneven, limits, constraints)
    chance.shuffle(uneven)
    chance.shuffle(traffic)
    assert plan_elections(uneven, limits, replace(constraints, throttled=tuple(traffic))) == expected


@given(cases())
def test_a_second_plan_after_all_batches_elects_nothing(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, constraints = case
    found = plan_elections(partitions, limits, constraints)
    cluster = Cluster(partitions, constraints)
    for batch in found.batches:
        cluster.elect(batch.partitions)
    after = plan_elections(cluster.leds.values(), limits, replace(constraints, throttled=tuple(cluster.traffic())))
    assert after.batches == ()
    assert after.left_out == found.left_out


@given(cases())
def test_throttles_raised_as_planned_allow_the_deferred_elections(
    case: tuple[tuple[PartitionState, ...], BatchLimits, ClusterConstraints],
) -> None:
    partitions, limits, some = case
    known = tuple(p for p in some.throttled if None not in (p.write_bytes_per_s, p.leader_listed, p.follower_listed))
    throttles = {(b, role): some.throttles.get((b, role)) for b in BROKERS for role in Role}
    constraints = replace(some, throttled=known, throttles=throttles)
    found = plan_elections(partitions, limits, constraints)
    cluster = Cluster(partitions, constraints)
    for batch in found.batches:
        cluster.elect(batch.partitions)
    for increase in found.raise_first:
        assert increase.throttle_bytes_per_s == throttles[increase.broker_role]
        assert increase.required_bytes_per_s >= increase.throttle_bytes_per_s
        throttles[increase.broker_role] = increase.required_bytes_per_s + 1
    raised = replace(constraints, throttled=tuple(cluster.traffic()), throttles=throttles)
    after = plan_elections(cluster.leds.values(), limits, raised)
    assert Reason.OVER_THROTTLE not in reasons(after).values()


def test_a_request_can_be_read_again() -> None:
    (batch,) = plan(away(1, 2, 3)).batches
    read = json.loads(request_json(batch.partitions))
    assert [(p["topic"], p["partition"]) for p in read["partitions"]] == list(batch.partitions)
