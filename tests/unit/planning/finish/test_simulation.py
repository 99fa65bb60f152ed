"""Throttled copies, fetch by fetch: bursts computed by hand, and properties."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy
from headroom.planning.finish.simulation import Conditions, Simulation
from headroom.planning.quotas.limits import DEFAULT_WINDOW, FetchLimits
from headroom.planning.quotas.samples import steady

MB = 1_000_000.0
# Batches so small that almost no byte is sent again.
EXACT = Conditions(batch_bytes=0.0)


def end(
    counted_mb: float = 0.0, in_sync_mb: float = 0.0, throttle_mb: float = 4, before_mb: float | None = -1
) -> QuotaEndpoint:
    """Return an endpoint whose quota has counted the same in every second, with a constant rate."""
    before = throttle_mb if before_mb == -1 else before_mb
    window = steady(counted_mb * MB, 0.0, DEFAULT_WINDOW)
    return QuotaEndpoint(window, in_sync_mb * MB, None if before is None else before * MB, throttle_mb * MB)


def copy(
    leader: QuotaEndpoint | None, destination: QuotaEndpoint | None, remaining_mb: float, write_mb: float = 0.0
) -> CopyStream:
    return CopyStream(leader, destination, deque([ReplicaCopy(remaining_mb * MB, write_mb * MB)]))


def ended_s(
    *copies: CopyStream, applied_s: float = 0.0, conditions: Conditions = EXACT, until_s: float = 2000
) -> float:
    found = Simulation(copies, applied_s, conditions).run(until_s)
    assert found is not None
    return found


def test_an_empty_window_has_room_for_eleven_seconds_of_the_throttle() -> None:
    # 40 MB at 4 MB/s: responses of 1.05 MB, each in 10 ms and at 60 MB/s: 38 MB/s.
    assert ended_s(copy(end(), None, 40)) == pytest.approx(40 / 38, abs=0.05)


def test_the_next_burst_follows_when_the_first_one_leaves_the_window() -> None:
    # 46 MB (4 x 11.5) at once, and 4 MB/s as the time of the mean grows; the same again when the first sample expires.
    assert 11 <= ended_s(copy(end(), None, 80)) <= 15
    assert 22 <= ended_s(copy(end(), None, 105)) <= 28


def test_a_full_window_lets_through_what_leaves_it() -> None:
    # Every second 4 MB leave the window, of which in-sync followers use 1.
    assert ended_s(copy(end(4, 1), None, 30)) == pytest.approx(30 / 3, abs=1.0)


def test_in_the_long_run_the_throttle_passes() -> None:
    # 1,200 MB at 4 - 1 MB/s with 1 MB/s of writes; whole responses add half a MB per 11.5 s.
    assert ended_s(copy(end(4, 1), None, 1200, write_mb=1)) == pytest.approx(1200 / 2.05, rel=0.05)


def test_a_quota_cuts_no_response() -> None:
    # There is almost no room, 0.1 MB per window. Each time, a response of 1.05 MB passes: at once, and in each of ten
    # windows of 11 to 12 s.
    assert 110 <= ended_s(copy(end(3.99, 3.99), None, 11 * 1.048)) <= 121
    # With ten partitions, 10 MB pass at once.
    ten = CopyStream(end(3.99, 3.99), None, deque(ReplicaCopy(11 * 1.048 * MB, 0.0) for _ in range(10)))
    assert 110 <= ended_s(ten) <= 121


def test_both_quotas_limit_a_copy() -> None:
    assert ended_s(copy(end(), end(), 30)) < 2
    assert ended_s(copy(end(4), end(), 30)) == pytest.approx(7.5, abs=1)
    # A destination that has exceeded its quota checks it again only a few times per second.
    assert ended_s(copy(end(), end(4), 30)) == pytest.approx(8.3, abs=1)


def test_a_destination_that_checks_more_rarely_gets_less() -> None:
    often, rarely = (ended_s(copy(None, end(4), 200), conditions=replace(EXACT, retry_ratio=r)) for r in (0.1, 1.0))
    assert rarely > 1.02 * often


def test_the_old_throttle_applies_until_the_change_and_the_lag_grows() -> None:
    # For 5 s 2 MB/s are written, and in-sync followers use the whole throttle. Then 50 MB are copied at once.
    starved = end(2.1, 2.1, throttle_mb=7, before_mb=2)
    late = ended_s(copy(starved, None, 40, write_mb=2), applied_s=5.0)
    assert 5.2 < late < 9
    unlimited = end(2, 2, throttle_mb=7, before_mb=None)
    assert ended_s(copy(unlimited, None, 40, write_mb=2), applied_s=5.0) < 1.5


def test_two_copies_share_an_end() -> None:
    shared = end(4)
    one = ended_s(copy(end(), shared, 30))
    shared = end(4)
    assert ended_s(copy(end(), shared, 30), copy(end(), shared, 30)) == pytest.approx(2 * one, rel=0.3)


def test_a_copy_behind_two_scarce_quotas_gets_least() -> None:
    # Leader 1 and destination 3 are shared by two copies each, and both copies from 1 to 4 and 2 to 3 by one.
    one, two, three, four = end(2, throttle_mb=2), end(0), end(2, throttle_mb=2), end(0)
    both, left, right = copy(one, three, 1e5), copy(one, four, 1e5), copy(two, three, 1e5)
    Simulation([both, left, right], 0.0, EXACT).run(120)
    copied = [1e5 - part.remaining_bytes / MB for c in (both, left, right) for part in c.parts]
    assert copied[0] < 0.6 * min(copied[1:])


def test_partitions_get_their_turn() -> None:
    # Each response has data of 10 of 40 partitions: after two responses, 20 partitions have 1 MB, the others nothing.
    window = end(3.99, 3.99)
    many = CopyStream(window, None, deque(ReplicaCopy(50 * MB, 0.0) for _ in range(40)))
    Simulation([many], 0.0, EXACT).run(15)
    left = sorted(round(50 - part.remaining_bytes / MB, 2) for part in many.parts)
    assert left == [0.0] * 20 + [1.05] * 20


def test_the_last_copy_of_many_ends_the_move() -> None:
    def taken(largest_mb: float) -> float:
        parts = [ReplicaCopy(1 * MB, 0.0) for _ in range(20)] + [ReplicaCopy(largest_mb * MB, 0.0)]
        return ended_s(CopyStream(end(4, 3), None, deque(parts)))

    # 20 + 20 MB at 1 MB/s and some more: no longer than two of 20 MB each.
    assert taken(20) == pytest.approx(ended_s(copy(end(4, 3), None, 40)), rel=0.3)
    # With 1 MB per partition the bursts are ten times as large.
    assert taken(1) < 0.6 * taken(20)


def test_a_batch_that_is_cut_off_is_sent_again() -> None:
    exact, large = (ended_s(copy(end(4, 1), None, 300), conditions=Conditions(batch_bytes=b)) for b in (0.0, 209_715.2))
    # Half a batch of 0.2 MB in each MB: a tenth more.
    assert large == pytest.approx(exact / 0.9, rel=0.02)
    # A batch that is not cut is not sent again.
    assert ended_s(copy(end(), None, 1), conditions=Conditions(batch_bytes=1e6)) == ended_s(copy(end(), None, 1))


def test_limits_of_a_fetch_are_settings() -> None:
    small = FetchLimits(partition_bytes=100_000)
    # Ten responses of 0.1 MB; a window has room for 0.12 MB, so two pass in it, or one.
    assert 40 < ended_s(replace(copy(end(3.99, 3.99), None, 1.0), limits=small)) <= 121


def test_traffic_that_ends_with_a_moved_partition_frees_quota_for_others() -> None:
    def both(leaving_mb: float) -> float:
        leader = end(4, 3)
        moved = CopiedPartition(1, [(leader, leaving_mb * MB)])
        return ended_s(CopyStream(leader, None, deque([ReplicaCopy(1 * MB, 0.0, moved), ReplicaCopy(60 * MB, 0.0)])))

    # 60 MB at 4 - 3 MB/s, or at 4 - 1 after the first partition.
    assert both(0.0) == pytest.approx(55, rel=0.15)
    assert both(2.0) == pytest.approx(22, rel=0.3)


def test_an_in_sync_replica_uses_part_of_the_quota() -> None:
    leader = end(4, 2)
    copies = [copy(leader, None, 1, write_mb=1.0), copy(leader, None, 40)]
    # 4 - 2 MB/s until the first is done, then 4 - 3.
    assert ended_s(*copies) > 30


def test_a_partition_has_moved_when_the_last_of_its_replicas_has_caught_up() -> None:
    leader = end(4, 3)
    moving = CopiedPartition(2, [(leader, 3 * MB)])
    copies = [CopyStream(leader, None, deque([ReplicaCopy(mb * MB, 0.0, moving)])) for mb in (1, 20)]
    assert ended_s(*copies) == pytest.approx(19, rel=0.15)
    assert (moving.behind, leader.in_sync_bytes_per_s) == (0, 0.0)


def test_it_never_ends_if_in_sync_traffic_uses_the_whole_quota() -> None:
    simulation = Simulation([copy(end(4.1, 4.1), None, 10, 1)], 0.0, EXACT)
    assert simulation.run(500) is None
    assert simulation.left_bytes(500) == pytest.approx(510 * MB)


def test_a_simulation_that_takes_too_many_events_stops() -> None:
    simulation = Simulation([copy(end(4, 1), None, 1e6)], 0.0, EXACT, most_events=100)
    assert simulation.run(1e6) is None
    assert simulation.events == 100
    assert 0 < simulation.at_s < 200


def test_the_same_seed_gives_the_same_result() -> None:
    def taken(seed: int) -> float:
        shared = end(4)
        copies = [copy(end(4), shared, mb) for mb in (30, 40, 50)]
        return ended_s(*copies, conditions=Conditions(seed=seed))

    assert taken(1) == taken(1)


@given(
    remaining=st.floats(1, 500), throttle=st.floats(1, 50), in_sync=st.floats(0, 0.4), write=st.floats(0, 0.4),
    counted=st.floats(0, 1),
)  # fmt: skip
def test_the_copied_bytes_never_exceed_the_room_by_more_than_a_response(
    remaining: float, throttle: float, in_sync: float, write: float, counted: float
) -> None:
    limited = end(counted * throttle, in_sync * throttle, throttle_mb=throttle)
    took = ended_s(copy(limited, None, remaining, write * throttle))
    # At most the room of one window, the throttle since then, and one additional response per window. From 20 MB/s on,
    # several responses are combined.
    response_mb = 1.05 * max(1, math.floor(throttle * 5 * 0.02))
    most_mb = throttle * (12 + took * (1 - in_sync)) + response_mb * (1 + took / 11)
    assert remaining + write * throttle * took <= most_mb * 1.02
