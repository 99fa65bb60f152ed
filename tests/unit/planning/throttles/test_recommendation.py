"""Recommended throttles: sufficient for every broker and role, not too high, and none if an input is unknown."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.finish.finish_time import COMPLETE_S
from headroom.planning.quotas.load import ThrottleLoad, throttle_loads
from headroom.planning.throttles.recommendation import ThrottlePolicy, ThrottleRecommendation, recommend
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import Role
from tests.support.random_clusters import Cluster, clusters

MB = 1_000_000.0


def load(
    broker: int, required_mb: float | None, remaining_mb: float | None = 0, role: Role = Role.LEADER, limited: int = 1
) -> ThrottleLoad:
    return ThrottleLoad(
        broker=broker,
        role=role,
        throttle_bytes_per_s=MB,
        in_sync_bytes_per_s=0.0,
        required_bytes_per_s=None if required_mb is None else required_mb * MB,
        limited_replicas=limited,
        free_replicas=0,
        remaining_bytes=None if remaining_mb is None else round(remaining_mb * MB),
    )


def recommended(throttle_loads: list[ThrottleLoad], **policy: float) -> ThrottleRecommendation:
    found = recommend(throttle_loads, ThrottlePolicy(**policy))
    assert found is not None
    return found


def test_it_is_the_highest_required_rate_times_the_margin() -> None:
    found = recommended([load(1, 4), load(2, 8), load(3, 6, role=Role.FOLLOWER)])
    # 8 MB/s x 1.2
    assert (found.throttle_bytes_per_s, found.smallest_bytes_per_s) == (9_600_000, 8 * MB)
    assert recommended([load(1, 4)], margin_ratio=1.5).throttle_bytes_per_s == 6_000_000


def test_it_is_a_whole_number_of_bytes_and_never_rounded_down() -> None:
    # 2,000,000.1 B/s, x 1.2 = 2,400,000.12
    assert recommended([load(1, 2.0000001)]).throttle_bytes_per_s == 2_400_001


def test_it_is_at_least_the_lowest_rate_that_kafka_enforces_accurately() -> None:
    assert recommended([load(1, 0.005)]).throttle_bytes_per_s == 1_000_000
    assert recommended([load(1, 0)]).throttle_bytes_per_s == 1_000_000
    # 0.9 MB/s x 1.2
    assert recommended([load(1, 0.9)]).throttle_bytes_per_s == 1_080_000
    # Except if the capacity of a broker is lower.
    assert recommended([load(1, 0.005)], capacity_bytes_per_s=500_000).throttle_bytes_per_s == 500_000


def test_a_broker_without_a_rate_limits_nothing_and_is_ignored() -> None:
    unlimited = replace(load(2, 50), throttle_bytes_per_s=None)
    assert recommended([load(1, 4), unlimited]).throttle_bytes_per_s == 4_800_000
    assert recommend([unlimited], ThrottlePolicy()) is None
    # An unknown rate may be in force.
    unknown = replace(unlimited, throttle_known=False)
    assert recommended([load(1, 4), unknown]).throttle_bytes_per_s == 60_000_000


def test_without_a_limited_replica_there_is_no_recommendation() -> None:
    assert recommend([], ThrottlePolicy()) is None
    assert recommend([load(1, 4, limited=0)], ThrottlePolicy()) is None


def test_an_unknown_required_rate_prevents_a_recommendation() -> None:
    found = recommended([load(1, 4), load(2, None)])
    assert found.throttle_bytes_per_s is None
    assert found.unknown == ((2, "leader"),)


def test_capacity_limits_the_recommendation_and_is_reported() -> None:
    capped = recommended([load(1, 8)], capacity_bytes_per_s=9 * MB)
    assert (capped.throttle_bytes_per_s, capped.below_margin, capped.misses_deadline) == (9_000_000, True, False)
    assert not recommended([load(1, 8)], capacity_bytes_per_s=9.6 * MB).below_margin


@pytest.mark.parametrize("capacity_mb", [8, 7.9])
def test_no_throttle_is_sufficient_above_the_capacity(capacity_mb: float) -> None:
    found = recommended([load(1, 8, 1)], capacity_bytes_per_s=capacity_mb * MB)
    assert (found.throttle_bytes_per_s, found.below_margin) == (None, False)
    assert found.smallest_bytes_per_s == 8 * MB


def test_a_deadline_raises_the_throttle_within_the_capacity() -> None:
    in_time = recommended([load(1, 8, 600)], finish_within_s=60)
    # 600 MB within 60 s are 10 MB/s above the 8. The last of six bursts may come some seconds earlier or later.
    assert in_time.throttle_bytes_per_s == pytest.approx(18_000_000, rel=0.05)
    assert not in_time.misses_deadline
    capped = recommended([load(1, 8, 600)], finish_within_s=60, capacity_bytes_per_s=12 * MB)
    assert (capped.throttle_bytes_per_s, capped.misses_deadline) == (12_000_000, True)


def test_a_deadline_that_no_throttle_meets_is_ignored_and_reported() -> None:
    # At any rate, the reassignment ends some time after the last byte.
    found = recommended([load(1, 8, 600)], finish_within_s=COMPLETE_S / 2)
    assert (found.throttle_bytes_per_s, found.misses_deadline) == (9_600_000, True)


def test_a_deadline_that_the_margin_meets_changes_nothing() -> None:
    assert recommended([load(1, 8, 1)], finish_within_s=3600).throttle_bytes_per_s == 9_600_000


@given(clusters(), st.floats(1, 3), st.one_of(st.none(), st.floats(1, 1e9)))
def test_the_throttle_is_sufficient_everywhere_and_not_too_high(
    cluster: Cluster, margin: float, capacity: float | None
) -> None:
    known = [replace(p, write_bytes_per_s=p.write_bytes_per_s or 0.0) for p in cluster.partitions]
    loads = throttle_loads(known, cluster.throttles())
    found = recommend(loads, ThrottlePolicy(margin_ratio=margin, capacity_bytes_per_s=capacity))
    if found is None or found.throttle_bytes_per_s is None:
        return
    assert found.smallest_bytes_per_s is not None
    for one in loads:
        if one.limited_replicas and (one.throttle_bytes_per_s is not None or not one.throttle_known):
            applied = replace(one, throttle_known=True, throttle_bytes_per_s=float(found.throttle_bytes_per_s))
            assert applied.verdict is Verdict.CATCHING_UP
    # One byte for rounding up; at least the lowest accurate rate.
    assert found.throttle_bytes_per_s <= max(found.smallest_bytes_per_s * margin, 1_000_000) + 1
    assert capacity is None or found.throttle_bytes_per_s <= capacity


@given(clusters(), st.floats(1, 3), st.floats(1, 1e9))
def test_there_is_a_throttle_unless_the_capacity_or_an_unknown_rate_prevents_it(
    cluster: Cluster, margin: float, capacity: float
) -> None:
    loads = throttle_loads(cluster.partitions, cluster.throttles())
    rated = [d for d in loads if d.throttle_bytes_per_s is not None or not d.throttle_known]
    limited = [d for d in rated if d.limited_replicas]
    found = recommend(loads, ThrottlePolicy(margin_ratio=margin, capacity_bytes_per_s=capacity))
    assert (found is None) == (not limited)
    if found is None:
        return
    assert bool(found.unknown) == any(d.required_bytes_per_s is None for d in limited)
    over_capacity = not found.unknown and max(d.required_bytes_per_s or 0 for d in limited) >= math.floor(capacity)
    assert (found.throttle_bytes_per_s is None) == (bool(found.unknown) or over_capacity)
