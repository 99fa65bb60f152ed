"""When a move is done under a throttle, from what ticks tell; and the throttle for a deadline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.duration import COMPLETE_S, finish_s, throttle_for, window
from planning.throttle import CatchingUp, Demand, Side
from schemas.findings import Role

MB = 1_000_000.0


def demand(
    required_mb: float = 4,
    remaining_mb: float | None = 20,
    in_sync_mb: float = 2,
    throttle_mb: float = 3,
    used_mb: float | None = None,
    role: Role = Role.LEADER,
    broker: int = 1,
) -> Demand:
    return Demand(
        broker=broker,
        role=role,
        throttle_bytes_per_s=throttle_mb * MB,
        in_sync_bytes_per_s=in_sync_mb * MB,
        required_bytes_per_s=required_mb * MB,
        limited_replicas=1,
        free_replicas=0,
        remaining_bytes=None if remaining_mb is None else round(remaining_mb * MB),
        used_bytes_per_s=None if used_mb is None else used_mb * MB,
    )


def ticks(*earlier: tuple[float, Demand]) -> list[tuple[float, dict[Side, Demand]]]:
    return [(age_s, {(d.broker, d.role): d}) for age_s, d in earlier]


def begun(age_s: int, now: Demand) -> list[tuple[float, Demand]]:
    """Ticks of every second, the move having begun between ``age_s`` - 1 and ``age_s`` seconds ago; none was copied."""
    grown = (now.required_bytes_per_s or 0) - (now.in_sync_bytes_per_s or 0)
    idle = replace(now, in_sync_bytes_per_s=0.0, required_bytes_per_s=0.0, limited_replicas=0, remaining_bytes=0)
    moving = [replace(now, remaining_bytes=round((now.remaining_bytes or 0) - grown * age)) for age in range(1, age_s)]
    return [(float(age), d) for age, d in enumerate(moving, 1)] + [(float(age), idle) for age in range(age_s, 13)]


def amounts(demand: Demand, earlier: Sequence[tuple[float, Demand]]) -> list[float]:
    """What a window holds per second of age, in MB."""
    return [round(amount / MB, 3) for amount in reversed(window(demand, earlier)._amounts)]


def test_what_came_when_the_move_began_lies_where_it_began() -> None:
    now = demand(remaining_mb=50, in_sync_mb=2, used_mb=3)
    # 3 MB/s x 11 s were counted, 2 x 3 of them by in-sync followers in the last three seconds.
    assert amounts(now, begun(4, now)) == [2, 2, 2, 33 - 6] + [0] * 8


def test_a_quota_that_had_no_gauge_before_counts_since_then_only() -> None:
    now = demand(remaining_mb=50, in_sync_mb=2, used_mb=3)
    before = [(age, replace(d, used_bytes_per_s=d.used_bytes_per_s if age < 4 else None)) for age, d in begun(4, now)]
    # 3 MB/s over the 3.5 s since half way between the ticks with and without a gauge.
    assert amounts(now, before) == [2, 2, 2, 10.5 - 6] + [0] * 8


def test_what_passed_between_two_ticks_lies_between_them() -> None:
    now = demand(remaining_mb=40, in_sync_mb=2, used_mb=3)
    # 2 MB/s were written for 5 s and the lag fell by 5 MB: 15 MB were copied, and in-sync followers took 10 MB.
    before = [(5.0, replace(now, remaining_bytes=round(45 * MB)))]
    # The rest of 3 x 11.5 = 34.5 MB came in the seven seconds before.
    assert amounts(now, before) == [5] * 5 + [round(9.5 / 7, 3)] * 7


def test_without_earlier_ticks_it_is_spread_evenly() -> None:
    assert amounts(demand(used_mb=2.4), []) == [round(2.4 * 11.5 / 12, 3)] * 12
    # No gauge: no room.
    assert amounts(demand(throttle_mb=3), []) == [round(3 * 11.5 / 12, 3)] * 12


def test_the_first_burst_is_what_the_window_has_unused() -> None:
    now = demand(required_mb=4, remaining_mb=30, in_sync_mb=2, throttle_mb=1.5, used_mb=1.5)
    # 3 s later 36 MB are left, and the window of 10 MB/s has room for some 8 x 10.
    assert finish_s([now], 10 * MB) == pytest.approx(COMPLETE_S + 36 / 40, abs=1)


def test_an_old_burst_that_leaves_the_window_makes_room_before_the_cycle_is_over() -> None:
    now = demand(required_mb=3, remaining_mb=20.4, in_sync_mb=2, throttle_mb=2.5, used_mb=3.06)
    early, late = (finish_s([now], 3.6 * MB, ticks(*begun(age, now))) for age in (9, 2))
    assert early is not None
    assert late is not None
    assert early < late


def test_a_destination_that_draws_on_two_leaders_gets_less_than_its_throttle() -> None:
    leaders = [demand(4, 30, 2, used_mb=3, broker=broker) for broker in (1, 2)]
    destination = demand(4, 60, 0, used_mb=3, role=Role.FOLLOWER, broker=3)
    alone, both = finish_s(leaders, 4.8 * MB), finish_s([*leaders, destination], 4.8 * MB)
    assert alone is not None
    assert both is not None
    assert both > 1.2 * alone


def replica(
    leader: int, remaining_mb: float, write_mb: float, target: tuple[int, ...], partition: int = 0
) -> CatchingUp:
    """One that moves from broker 1 or 2, or both, to its target."""
    replicas = (*target, *(broker for broker in (1, 2) if broker not in target))
    return CatchingUp("t", partition, leader, round(remaining_mb * MB), write_mb * MB, replicas, target)


def test_each_destination_draws_on_the_leaders_of_its_own_replicas() -> None:
    small = demand(4, 10, 2, used_mb=4, broker=1), demand(2, 10, 0, used_mb=3, role=Role.FOLLOWER, broker=3)
    large = demand(4, 60, 2, used_mb=4, broker=2), demand(2, 60, 0, used_mb=3, role=Role.FOLLOWER, broker=4)
    told = [
        small[0],
        large[0],
        replace(small[1], catching_up=(replica(1, 10, 2, (1, 3)),)),
        replace(large[1], catching_up=(replica(2, 60, 2, (2, 4), 1),)),
    ]
    alone = finish_s(large, 5 * MB)
    # The small copy takes nothing from the large one's leader.
    assert alone is not None
    assert finish_s(told, 5 * MB) == pytest.approx(alone, rel=0.1)


def test_a_replica_that_leaves_makes_room_when_its_partition_has_moved() -> None:
    leader = demand(6, 65, 3, used_mb=6)
    partitions = replica(1, 5, 2, (1, 3)), replica(1, 60, 1, (1, 3), 1)
    destination = demand(3, 65, 0, used_mb=3, role=Role.FOLLOWER, broker=3)
    one_by_one = finish_s([leader, replace(destination, catching_up=partitions)], 7 * MB)
    together = finish_s([leader, destination], 7 * MB)
    assert together is not None
    assert one_by_one is not None
    # 65 MB at 7 - 6 MB/s; but soon at 7 - 4, when the follower of 2 MB/s on broker 2 has left.
    assert together > 50
    assert one_by_one < 0.7 * together


def test_a_leader_that_leaves_takes_all_its_traffic_along() -> None:
    leaving = replica(1, 5, 2, (3, 4)), replica(1, 60, 1, (1, 3), 1)
    staying = replica(1, 5, 2, (1, 3)), leaving[1]
    leader = demand(6, 65, 3, used_mb=6)
    destination = demand(3, 65, 0, used_mb=3, role=Role.FOLLOWER, broker=3)
    gone, stays = (finish_s([leader, replace(destination, catching_up=parts)], 7 * MB) for parts in (leaving, staying))
    assert gone is not None
    assert stays is not None
    assert gone < stays


@pytest.mark.parametrize("throttle_mb", [3.9, 4.0])
def test_it_never_ends_at_what_is_required_or_below(throttle_mb: float) -> None:
    assert finish_s([demand(required_mb=4)], throttle_mb * MB) is None


def test_what_is_not_known_is_not_promised() -> None:
    assert finish_s([demand(), demand(remaining_mb=None, broker=2)], 9 * MB) is None
    assert finish_s([demand(remaining_mb=0)], 9 * MB) == 0.0


@given(st.floats(1, 500), st.floats(0.1, 50), st.floats(0, 1), st.floats(1.1, 4))
def test_twice_the_throttle_takes_no_longer(
    remaining: float, required: float, in_sync_ratio: float, times: float
) -> None:
    now = demand(required, remaining, in_sync_ratio * required, throttle_mb=required / 2, used_mb=required / 2)
    slow, fast = (finish_s([now], times * factor * required * MB) for factor in (1, 2))
    assert slow is None or (fast is not None and fast <= slow + 1)


@given(st.floats(1, 500), st.floats(0.1, 50), st.floats(0, 1), st.floats(13, 1000))
def test_the_throttle_for_a_deadline_keeps_it_and_less_than_its_mean_would_not(
    remaining: float, required: float, in_sync_ratio: float, within: float
) -> None:
    now = demand(required, remaining, in_sync_ratio * required, throttle_mb=required / 2, used_mb=required / 2)
    throttle = throttle_for([now], within)
    kept = finish_s([now], throttle)
    assert kept is not None
    assert kept <= within
    missed = finish_s([now], max(required * MB * 1.0001, throttle * 0.7))
    assert throttle < required * MB * 1.05 or missed is None or missed > 0.5 * within


def test_what_nothing_ends_in_time_asks_for_an_endless_throttle() -> None:
    assert throttle_for([demand()], 0.5) == math.inf
    assert throttle_for([demand(remaining_mb=None)], 100.0) == math.inf


@pytest.mark.parametrize("within", [0.0, -1.0, float("nan")])
def test_a_deadline_must_lie_ahead(within: float) -> None:
    with pytest.raises(ValueError, match="within_s must be positive"):
        throttle_for([demand()], within)
