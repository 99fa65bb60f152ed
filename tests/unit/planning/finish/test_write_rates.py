"""Forecast of write rates from the last ticks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planning.finish.write_rates import at_rate, forecast
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

MB = 1_000_000.0


def load(required_mb: float | None, broker: int = 1, replicas: int = 1, in_sync_ratio: float = 0.25) -> ThrottleLoad:
    required = None if required_mb is None else required_mb * MB
    in_sync = None if required is None else in_sync_ratio * required
    return ThrottleLoad(broker, Role.LEADER, 3 * MB, in_sync, required, replicas, 0, 10**8)


def ticks(*throttle_loads: ThrottleLoad) -> list[tuple[float, dict[BrokerRole, ThrottleLoad]]]:
    return [(float(age), {(d.broker, d.role): d}) for age, d in enumerate(throttle_loads, 1)]


def test_a_single_tick_is_no_better_than_the_ticks_before_it() -> None:
    found = forecast([load(3.6)], ticks(load(4.0), load(4.4)))
    # The mean is 4.0; 3.6, 4.0 and 4.4 are 0.327 from it on average, of which half lasts.
    assert found.ratio == pytest.approx(4.0 / 3.6)
    assert found.spread == pytest.approx(0.5 * 0.3266 / 3.6, rel=0.001)


def test_brokers_are_weighted_by_their_traffic() -> None:
    now = [load(9.0), load(1.0, broker=2)]
    earlier = [(1.0, {(1, Role.LEADER): load(9.0), (2, Role.LEADER): load(2.0, broker=2)})]
    # 9 and 9 MB/s, 1 and 2 MB/s: 10.5 for 10.
    assert forecast(now, earlier).ratio == pytest.approx(1.05)


@pytest.mark.parametrize(
    "before",
    [
        [],
        # Before a leader switch, or before another replica finished, the broker had other replicas.
        [load(8.0, replicas=2), load(3.0)],
        [load(8.0, broker=2)],
        [load(None)],
    ],
)
def test_incomparable_ticks_are_ignored(before: list[ThrottleLoad]) -> None:
    assert forecast([load(4.0)], ticks(*before)).ratio == 1.0


def test_traffic_added_by_a_leader_switch_is_no_growth_of_writes() -> None:
    # On real brokers: the write rate to the copying replica was 2 MB/s, and the switch added as much in-sync traffic.
    # Read as growing writes, it gave an estimate of 23 s for a move of 44 s.
    found = forecast([load(6.0, in_sync_ratio=4 / 6)], ticks(load(4.0, in_sync_ratio=2 / 4)))
    assert found.ratio == pytest.approx(1.0)


def test_the_spread_has_a_minimum_and_a_maximum() -> None:
    assert 0 < forecast([load(4.0)], ticks(load(4.0))).spread < 0.01
    assert forecast([load(4.0)], ticks(load(400.0))).spread == 0.2
    assert forecast([], []).ratio == 1.0


def test_only_write_rates_are_scaled() -> None:
    replica = CatchingUpReplica(TopicPartition("t", 0), 1, 10**7, 2 * MB, (1, 2, 3), (1, 3))
    source = SourceLoad(1, 3, 10**7, 6 * MB, 10**6, 2 * MB)
    found = at_rate(replace(load(4.0), catching_up=(replica,), sources=(source,)), 1.5)
    assert (found.in_sync_bytes_per_s, found.required_bytes_per_s) == (1.5 * MB, 6 * MB)
    assert found.catching_up == (replace(replica, write_bytes_per_s=3 * MB),)
    assert found.sources == (replace(source, write_bytes_per_s=9 * MB, leaving_bytes_per_s=3 * MB),)
    assert (found.throttle_bytes_per_s, found.remaining_bytes) == (3 * MB, 10**8)
    assert at_rate(load(None), 1.5).required_bytes_per_s is None


def receives(*rates_mb: tuple[int, float]) -> ThrottleLoad:
    """A destination that copies partitions by number, each at its write rate."""
    copies = tuple(CatchingUpReplica(TopicPartition("t", n), 1, 10**8, mb * MB, (3, 1), (3,)) for n, mb in rates_mb)
    total = sum(copy.write_bytes_per_s for copy in copies)
    return ThrottleLoad(3, Role.FOLLOWER, 9 * MB, 0.0, total, len(copies), 0, 10**8, catching_up=copies)


def test_a_partition_that_has_ended_does_not_count_in_earlier_ticks() -> None:
    found = forecast([receives((0, 1.0))], ticks(receives((0, 1.2), (1, 5.0))))
    assert found.ratio == pytest.approx(1.1)


def test_another_partition_in_place_of_one_that_has_ended_has_no_earlier_rate() -> None:
    assert forecast([receives((0, 1.0))], ticks(receives((1, 0.5)))).ratio == 1.0


# Its lag grew by 60 MB in a second, of which 1 MB was written.
def test_a_lag_that_has_grown_by_more_than_was_written_is_that_of_other_replicas() -> None:
    now = replace(load(4.0), remaining_bytes=70_000_000)
    assert forecast([now], ticks(replace(load(2.0), remaining_bytes=10_000_000))).ratio == 1.0
    assert forecast([now], ticks(replace(load(2.0), remaining_bytes=68_000_000))).ratio == pytest.approx(0.75)
