"""Which throttle is advised: enough on every side, not wasteful, and no number where something is unknown."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.throttles.load import ThrottleLoad, throttle_loads
from planning.throttles.recommendation import ThrottlePolicy, ThrottleRecommendation, recommend
from schemas.alerts import Role, Verdict
from tests.support.random_clusters import Cluster, clusters

MB = 1_000_000.0


def demand(
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


def advised(throttle_loads: list[ThrottleLoad], **wish: float) -> ThrottleRecommendation:
    advice = recommend(throttle_loads, ThrottlePolicy(**wish))
    assert advice is not None
    return advice


def test_it_is_the_greatest_need_times_the_margin() -> None:
    advice = advised([demand(1, 4), demand(2, 8), demand(3, 6, role=Role.FOLLOWER)])
    # 8 MB/s x 1.2
    assert (advice.throttle_bytes_per_s, advice.smallest_bytes_per_s) == (9_600_000, 8 * MB)
    assert advised([demand(1, 4)], margin_ratio=1.5).throttle_bytes_per_s == 6_000_000


def test_it_is_a_whole_number_of_bytes_and_never_rounded_down() -> None:
    # 2,000,000.1 B/s, x 1.2 = 2,400,000.12
    assert advised([demand(1, 2.0000001)]).throttle_bytes_per_s == 2_400_001


def test_it_is_no_less_than_what_kafka_keeps_accurately() -> None:
    assert advised([demand(1, 0.005)]).throttle_bytes_per_s == 1_000_000
    assert advised([demand(1, 0)]).throttle_bytes_per_s == 1_000_000
    # 0.9 MB/s x 1.2
    assert advised([demand(1, 0.9)]).throttle_bytes_per_s == 1_080_000
    # A broker that carries less carries less.
    assert advised([demand(1, 0.005)], capacity_bytes_per_s=500_000).throttle_bytes_per_s == 500_000


def test_a_broker_without_a_rate_holds_nobody_back_and_asks_for_none() -> None:
    unlimited = replace(demand(2, 50), throttle_bytes_per_s=None)
    assert advised([demand(1, 4), unlimited]).throttle_bytes_per_s == 4_800_000
    assert recommend([unlimited], ThrottlePolicy()) is None
    # One whose rate is not known may have one.
    unknown = replace(unlimited, throttle_known=False)
    assert advised([demand(1, 4), unknown]).throttle_bytes_per_s == 60_000_000


def test_without_a_replica_that_is_held_back_there_is_nothing_to_advise() -> None:
    assert recommend([], ThrottlePolicy()) is None
    assert recommend([demand(1, 4, limited=0)], ThrottlePolicy()) is None


def test_one_side_whose_need_is_unknown_forbids_a_number() -> None:
    advice = advised([demand(1, 4), demand(2, None)])
    assert advice.throttle_bytes_per_s is None
    assert advice.unknown == ((2, "leader"),)


def test_capacity_caps_the_advice_and_says_so() -> None:
    capped = advised([demand(1, 8)], capacity_bytes_per_s=9 * MB)
    assert (capped.throttle_bytes_per_s, capped.below_margin, capped.misses_deadline) == (9_000_000, True, False)
    assert not advised([demand(1, 8)], capacity_bytes_per_s=9.6 * MB).below_margin


@pytest.mark.parametrize("capacity_mb", [8, 7.9])
def test_no_throttle_will_do_where_the_need_exceeds_the_capacity(capacity_mb: float) -> None:
    advice = advised([demand(1, 8, 1)], capacity_bytes_per_s=capacity_mb * MB)
    assert (advice.throttle_bytes_per_s, advice.below_margin) == (None, False)
    assert advice.smallest_bytes_per_s == 8 * MB


def test_a_deadline_raises_the_advice_as_far_as_the_capacity_allows() -> None:
    wished = advised([demand(1, 8, 600)], finish_within_s=60)
    # 600 MB within 60 s are 10 MB/s above the 8; the last of six bursts comes some seconds sooner or later.
    assert wished.throttle_bytes_per_s == pytest.approx(18_000_000, rel=0.05)
    assert not wished.misses_deadline
    capped = advised([demand(1, 8, 600)], finish_within_s=60, capacity_bytes_per_s=12 * MB)
    assert (capped.throttle_bytes_per_s, capped.misses_deadline) == (12_000_000, True)


def test_a_deadline_that_no_throttle_meets_is_given_up_and_that_is_told() -> None:
    # The ISR grows and the controller ends the reassignment a second after the last byte, however fast it came.
    advice = advised([demand(1, 8, 600)], finish_within_s=0.5)
    assert (advice.throttle_bytes_per_s, advice.misses_deadline) == (9_600_000, True)


def test_a_deadline_that_the_margin_meets_anyway_changes_nothing() -> None:
    assert advised([demand(1, 8, 1)], finish_within_s=3600).throttle_bytes_per_s == 9_600_000


@given(clusters(), st.floats(1, 3), st.one_of(st.none(), st.floats(1, 1e9)))
def test_the_advice_is_enough_on_every_side_and_not_wasteful(
    cluster: Cluster, margin: float, capacity: float | None
) -> None:
    known = [replace(p, write_bytes_per_s=p.write_bytes_per_s or 0.0) for p in cluster.partitions]
    sides = throttle_loads(known, cluster.throttles())
    advice = recommend(sides, ThrottlePolicy(margin_ratio=margin, capacity_bytes_per_s=capacity))
    if advice is None or advice.throttle_bytes_per_s is None:
        return
    assert advice.smallest_bytes_per_s is not None
    for side in sides:
        if side.limited_replicas and (side.throttle_bytes_per_s is not None or not side.throttle_known):
            applied = replace(side, throttle_known=True, throttle_bytes_per_s=float(advice.throttle_bytes_per_s))
            assert applied.verdict is Verdict.CATCHING_UP
    # One byte more for the rounding up; at least what Kafka keeps.
    assert advice.throttle_bytes_per_s <= max(advice.smallest_bytes_per_s * margin, 1_000_000) + 1
    assert capacity is None or advice.throttle_bytes_per_s <= capacity


@given(clusters(), st.floats(1, 3), st.floats(1, 1e9))
def test_there_is_a_number_unless_the_capacity_or_something_unknown_forbids_it(
    cluster: Cluster, margin: float, capacity: float
) -> None:
    sides = throttle_loads(cluster.partitions, cluster.throttles())
    rated = [d for d in sides if d.throttle_bytes_per_s is not None or not d.throttle_known]
    limited = [d for d in rated if d.limited_replicas]
    advice = recommend(sides, ThrottlePolicy(margin_ratio=margin, capacity_bytes_per_s=capacity))
    assert (advice is None) == (not limited)
    if advice is None:
        return
    assert bool(advice.unknown) == any(d.required_bytes_per_s is None for d in limited)
    over_capacity = not advice.unknown and max(d.required_bytes_per_s or 0 for d in limited) >= math.floor(capacity)
    assert (advice.throttle_bytes_per_s is None) == (bool(advice.unknown) or over_capacity)
