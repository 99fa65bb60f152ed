"""Finish of a move under a throttle, computed from ticks, and the throttle for a deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.planning.finish import finish_time as duration
from headroom.planning.finish.finish_time import COMPLETE_S, Finish, applied_rate, finish, throttle_for
from headroom.planning.quotas.limits import FetchLimits, QuotaWindow
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.unit.builders.finish_times import finish_s

MB = 1_000_000.0


def load(
    required_mb: float = 4,
    remaining_mb: float | None = 20,
    in_sync_mb: float = 2,
    throttle_mb: float | None = 3,
    used_mb: float | None = None,
    role: Role = Role.LEADER,
    broker: int = 1,
    replicas: int = 1,
) -> ThrottleLoad:
    return ThrottleLoad(
        broker=broker,
        role=role,
        throttle_bytes_per_s=None if throttle_mb is None else throttle_mb * MB,
        in_sync_bytes_per_s=in_sync_mb * MB,
        required_bytes_per_s=required_mb * MB,
        limited_replicas=replicas,
        free_replicas=0,
        remaining_bytes=None if remaining_mb is None else round(remaining_mb * MB),
        used_bytes_per_s=None if used_mb is None else used_mb * MB,
    )


def destination(
    required_mb: float, remaining_mb: float, broker: int = 3, replicas: int = 1, throttle_mb: float | None = 3
) -> ThrottleLoad:
    return load(required_mb, remaining_mb, 0, throttle_mb, 3, Role.FOLLOWER, broker, replicas)


def ticks(*earlier: tuple[float, ThrottleLoad]) -> list[tuple[float, dict[BrokerRole, ThrottleLoad]]]:
    return [(age_s, {(d.broker, d.role): d}) for age_s, d in earlier]


def begun(age_s: int, now: ThrottleLoad) -> list[tuple[float, ThrottleLoad]]:
    """Return one tick per second of a move that started ``age_s`` - 1 to ``age_s`` seconds ago and copied nothing."""
    grown = (now.required_bytes_per_s or 0) - (now.in_sync_bytes_per_s or 0)
    idle = replace(now, in_sync_bytes_per_s=0.0, required_bytes_per_s=0.0, limited_replicas=0, remaining_bytes=0)
    moving = [replace(now, remaining_bytes=round((now.remaining_bytes or 0) - grown * age)) for age in range(1, age_s)]
    return [(float(age), d) for age, d in enumerate(moving, 1)] + [
        (float(age), replace(idle, used_bytes_per_s=0.0)) for age in range(age_s, 13)
    ]


def middle_s(
    throttle_loads: Sequence[ThrottleLoad], throttle_mb: float, earlier: Sequence[tuple[float, ThrottleLoad]] = ()
) -> float:
    found = finish(throttle_loads, throttle_mb * MB, ticks(*earlier))
    assert found is not None
    return found.middle_s


def test_the_first_burst_is_the_unused_part_of_the_window() -> None:
    now = load(required_mb=4, remaining_mb=30, in_sync_mb=2, throttle_mb=1.5, used_mb=1.5)
    # After 3 s 36 MB are left, and the window of 10 MB/s has room for about 8 x 10.
    assert middle_s([now], 10) == pytest.approx(COMPLETE_S + 36 / 40, abs=1)


def test_an_old_burst_that_leaves_the_window_makes_room_before_the_cycle_is_over() -> None:
    now = load(required_mb=3, remaining_mb=20.4, in_sync_mb=2, throttle_mb=2.5, used_mb=3.06)
    assert middle_s([now], 3.6, begun(9, now)) < middle_s([now], 3.6, begun(2, now))


def test_the_time_is_the_remaining_bytes_by_the_long_run_gain() -> None:
    # 200 MB, plus 1 MB/s for the 3 s until then, at 3.6 - 3 MB/s. Half a response of 1.05 MB per window of 11.5 s is
    # added, and 0.8 % of the copied bytes are lost by batches of 16 kB: 0.6 + 0.045 - 0.014.
    now = load(required_mb=3, remaining_mb=200, in_sync_mb=2, throttle_mb=2.5, used_mb=2.5)
    found = finish([now], 3.6 * MB)
    assert found is not None
    assert found.middle_s == pytest.approx(203 / 0.631, rel=0.06)
    assert found.low_s < 203 / 0.631 < found.high_s


def test_a_destination_with_two_leaders_gets_less_than_its_throttle() -> None:
    leaders = [load(4, 30, 2, used_mb=3, broker=broker) for broker in (1, 2)]
    alone, both = middle_s(leaders, 4.8), middle_s([*leaders, destination(4, 60)], 4.8)
    assert both > 1.2 * alone


def replica(
    leader: int, remaining_mb: float, write_mb: float, target: tuple[int, ...], partition: int = 0
) -> CatchingUpReplica:
    """Return a replica of a partition that moves from broker 1 or 2, or both, to its target."""
    replicas = (*target, *(broker for broker in (1, 2) if broker not in target))
    return CatchingUpReplica(
        TopicPartition("t", partition), leader, round(remaining_mb * MB), write_mb * MB, replicas, target
    )


def test_each_destination_copies_from_the_leaders_of_its_own_replicas() -> None:
    small = load(4, 10, 2, used_mb=4, broker=1), destination(2, 10, broker=3)
    large = load(4, 60, 2, used_mb=4, broker=2), destination(2, 60, broker=4)
    known = [
        small[0],
        large[0],
        replace(small[1], catching_up=(replica(1, 10, 2, (1, 3)),)),
        replace(large[1], catching_up=(replica(2, 60, 2, (2, 4), 1),)),
    ]
    # The small copy uses no quota of the large one's leader.
    assert middle_s(known, 5) == pytest.approx(middle_s(large, 5), rel=0.1)


def test_a_removed_replica_frees_quota_when_its_partition_has_moved() -> None:
    leader = load(6, 65, 3, used_mb=6, replicas=2)
    partitions = replica(1, 5, 2, (1, 3)), replica(1, 60, 1, (1, 3), 1)
    gained = destination(3, 65, replicas=2)
    one_by_one = middle_s([leader, replace(gained, catching_up=partitions)], 7)
    # 65 MB at 7 - 6 MB/s, or at 7 - 4 as soon as the follower of 2 MB/s on broker 2 is removed.
    assert middle_s([leader, gained], 7) > 50
    assert one_by_one < 0.7 * middle_s([leader, gained], 7)


def test_the_traffic_of_a_removed_leader_ends_completely() -> None:
    leaving = replica(1, 5, 2, (3, 4)), replica(1, 60, 1, (1, 3), 1)
    staying = replica(1, 5, 2, (1, 3)), leaving[1]
    leader, gained = load(6, 65, 3, used_mb=6, replicas=2), destination(3, 65, replicas=2)
    gone, stays = (middle_s([leader, replace(gained, catching_up=parts)], 7) for parts in (leaving, staying))
    assert gone < stays


def test_the_largest_of_many_replicas_finishes_last() -> None:
    leader, gained = load(3.6, 210, 2, used_mb=3, replicas=100), destination(1.6, 210, replicas=100)

    def taken(largest_mb: float) -> float:
        source = SourceLoad(1, 100, round(210 * MB), 1.6 * MB, round(largest_mb * MB))
        return middle_s([leader, replace(gained, sources=(source,))], 4.4)

    # Equal replicas finish together. One of 150 MB gets 1 MB of every 100 MB until it is the last one.
    assert taken(150) > 1.15 * taken(2.1)


def test_sums_per_leader_are_nearly_as_good_as_the_replicas_one_by_one() -> None:
    # Twelve replicas of 5 MB each from broker 1, and twelve from broker 2 with ten times as much.
    leaders = [load(4, mb, 2, used_mb=3, broker=broker, replicas=12) for broker, mb in ((1, 60), (2, 600))]
    gained = destination(4, 660, replicas=24, throttle_mb=9)
    near = tuple(
        CatchingUpReplica(TopicPartition("t", n), 1, round(5 * MB), 2 / 12 * MB, (1, 3), (1, 3)) for n in range(12)
    )
    far = tuple(
        CatchingUpReplica(TopicPartition("u", n), 2, round(50 * MB), 2 / 12 * MB, (2, 3), (2, 3)) for n in range(12)
    )
    sums = SourceLoad(1, 12, round(60 * MB), 2 * MB, round(5 * MB)), SourceLoad(2, 12, round(600 * MB), 2 * MB)
    one_by_one = middle_s([*leaders, replace(gained, catching_up=near + far)], 5.2)
    assert middle_s([*leaders, replace(gained, sources=sums)], 5.2) == pytest.approx(one_by_one, rel=0.1)
    # Distributed over both leaders, the copies would never end.
    assert finish([*leaders, gained], 5.2 * MB) is None


def test_a_rate_that_is_higher_stays_and_none_stays_none() -> None:
    rates = [applied_rate(load(throttle_mb=mb), 5 * MB) for mb in (3, 5, 8, None)]
    assert rates == [5 * MB, 5 * MB, 8 * MB, None]


def test_each_broker_keeps_its_own_rate_where_that_is_higher() -> None:
    low, high = (load(4, 60, 2, throttle_mb=mb, used_mb=3) for mb in (3, 8))
    assert middle_s([high], 5) == middle_s([high], 8) < 0.5 * middle_s([low], 5)
    # A destination without a rate limits nothing; with 5 MB/s its copies would share that rate.
    free, limited = (destination(2, 60, throttle_mb=mb) for mb in (None, 3))
    assert middle_s([high, free], 5) < middle_s([high, limited], 5)


def test_settings_of_the_brokers_decide_the_bursts() -> None:
    now = load(4, 90, 2, used_mb=3)
    usual = finish([now], 5 * MB)
    long = finish([replace(now, quota_window=QuotaWindow(samples=60))], 5 * MB)
    assert usual is not None
    assert long is not None
    # A window of 60 s at 5 MB/s has room for all of it once its contents are replaced: no cycle of 11 s.
    assert long.middle_s < 0.7 * usual.middle_s
    small = load(1.0, 4, 0.5, throttle_mb=0.7, used_mb=0.7, role=Role.FOLLOWER)
    bursts = [replace(small, fetch=FetchLimits(partition_bytes=size)) for size in (8_388_608, 65_536)]
    large_s, small_s = (finish_s([d], 0.8 * MB) for d in bursts)
    # Below the required rate it ends only because no quota cuts a response.
    assert large_s is not None
    assert small_s is None


def test_batches_that_are_known_narrow_the_range_and_large_ones_move_it() -> None:
    # 200 MB at 4.8 - 2 MB/s minus 2 MB/s of writes: 0.8 MB/s. With batches of 200 kB, a tenth of 2.8 is sent again.
    now = load(4, 200, 2, used_mb=3)
    unknown, small, large = (finish([replace(now, batch_bytes=b)], 4.8 * MB) for b in (None, 8e3, 2e5))
    assert unknown is not None
    assert small is not None
    assert large is not None
    assert small.high_s - small.low_s < unknown.high_s - unknown.low_s
    assert large.middle_s > 1.3 * small.middle_s


@pytest.mark.parametrize(("throttle_mb", "ends"), [(1.9, False), (2.0, False), (3.0, False), (4.8, True)])
def test_it_never_ends_if_the_copy_rate_is_below_the_write_rate(throttle_mb: float, ends: bool) -> None:
    now = load(4, 20, 2, throttle_mb=1.5, used_mb=1.5)
    assert (finish([now], throttle_mb * MB) is not None) is ends


def test_ten_small_partitions_finish_below_the_required_rate() -> None:
    # In-sync traffic 0.51, required 1.01, throttle 0.8 MB/s, seen on real brokers: 10.5 MB pass in each window of
    # 11.2 s, in which 5.6 MB are written. Of 26.5 MB remain 16, 11.1, 6.2 and 1.3 MB after four bursts; five end it.
    now = load(1.01, 25, 0.51, throttle_mb=0.6, used_mb=0.6, replicas=10)
    found = finish([now], 0.8 * MB)
    assert found is not None
    assert found.middle_s == pytest.approx(4 * 11.2, abs=6)
    # A single partition with the same rate gets a tenth of that.
    assert finish([replace(now, limited_replicas=1)], 0.8 * MB) is None


def test_unknown_remaining_bytes_give_no_finish() -> None:
    assert finish([load(), load(remaining_mb=None, broker=2)], 9 * MB) is None
    assert finish_s([load(remaining_mb=None)], 9 * MB) is None
    assert finish([load(remaining_mb=0)], 9 * MB) == Finish(0.0, 0.0, 0.0)


def test_a_later_throttle_leaves_more_to_copy() -> None:
    now = load(4, 30, 2, throttle_mb=1.5, used_mb=2)
    soon, late = (finish([now], 5 * MB, applied_s=s) for s in (3.0, 14.5))
    assert soon is not None
    assert late is not None
    # 11.5 s x 2 MB/s more, at 1 MB/s.
    assert late.middle_s - soon.middle_s == pytest.approx(23, abs=6)


@settings(max_examples=30)
@given(st.floats(1, 500), st.floats(0.1, 20), st.floats(0, 1), st.floats(1.1, 4))
def test_the_middle_is_within_the_range(remaining: float, required: float, in_sync_ratio: float, times: float) -> None:
    now = load(required, remaining, in_sync_ratio * required, throttle_mb=required / 2, used_mb=required / 2)
    found = finish([now], times * required * MB)
    assert found is None or 0 <= found.low_s < found.middle_s < found.high_s


@settings(max_examples=30)
@given(st.floats(1, 500), st.floats(0.1, 20), st.floats(0, 1), st.floats(1.1, 4))
def test_twice_the_throttle_takes_no_longer(
    remaining: float, required: float, in_sync_ratio: float, times: float
) -> None:
    now = load(required, remaining, in_sync_ratio * required, throttle_mb=required / 2, used_mb=required / 2)
    slow, fast = (finish_s([now], times * factor * required * MB) for factor in (1, 2))
    assert slow is None or (fast is not None and fast <= slow + 1)


@settings(max_examples=15)
@given(st.floats(1, 500), st.floats(0.1, 20), st.floats(0, 1), st.floats(13, 500))
def test_the_throttle_for_a_deadline_meets_it_and_lower_rates_do_not(
    remaining: float, required: float, in_sync_ratio: float, within: float
) -> None:
    now = load(required, remaining, in_sync_ratio * required, throttle_mb=required / 2, used_mb=required / 2)
    throttle = throttle_for([now], within)
    kept = finish_s([now], throttle)
    assert kept is not None
    assert kept <= within
    missed = finish_s([now], max(required * MB * 1.0001, throttle * 0.7))
    assert throttle < required * MB * 1.05 or missed is None or missed > 0.5 * within


def test_an_impossible_deadline_needs_an_infinite_throttle() -> None:
    assert throttle_for([load()], COMPLETE_S / 2) == math.inf
    assert throttle_for([load(remaining_mb=None)], 100.0) == math.inf


@pytest.mark.parametrize("within", [0.0, -1.0, float("nan")])
def test_a_deadline_must_be_positive(within: float) -> None:
    with pytest.raises(ValueError, match="within_s must be positive"):
        throttle_for([load()], within)


def between_brokers(brokers: int, partitions: int) -> list[ThrottleLoad]:
    """A move of RF 3 between many brokers: each partition from one leader to one new broker."""
    known: dict[int, list[CatchingUpReplica]] = {broker: [] for broker in range(brokers)}
    for number in range(partitions):
        leader, new = number % brokers, (number * 7 + 1 + number // brokers) % brokers
        target = (leader, (leader + 1) % brokers, new)
        remaining = round((10 + number % 20) * MB)
        known[new].append(
            CatchingUpReplica(TopicPartition("t", number), leader, remaining, 0.2 * MB, (*target, -1), target)
        )
    led = {broker: [r for found in known.values() for r in found if r.leader == broker] for broker in known}
    leaders = [
        load(
            0.6 * len(led[b]),
            sum(r.remaining_bytes for r in led[b]) / MB,
            0.4 * len(led[b]),
            15,
            15,
            broker=b,
            replicas=len(led[b]),
        )
        for b in known
    ]
    destinations = [
        replace(
            destination(0.2 * len(found), sum(r.remaining_bytes for r in found) / MB, b, len(found), 15),
            catching_up=tuple(found),
        )
        for b, found in known.items()
    ]
    return leaders + destinations


def test_a_move_between_many_brokers_is_computed_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle_loads = between_brokers(20, 600)
    earlier = [(5.0 * age, {(d.broker, d.role): d for d in throttle_loads}) for age in (1, 2, 3)]
    began_s = time.process_time()
    found = finish(throttle_loads, 1.2 * 18 * MB, earlier)
    # 0.2 s on a busy machine with two cores.
    assert time.process_time() - began_s < 1.0
    assert found is not None
    # The result is close to that of more simulations.
    monkeypatch.setattr(duration, "_MOST_EVENTS", 10**6)
    monkeypatch.setattr(duration, "_EVENTS_EACH", 10**6)
    more = finish(throttle_loads, 1.2 * 18 * MB, earlier)
    assert more is not None
    assert found.low_s < more.middle_s < found.high_s
