"""Throttled copies as a steady flow: computed by hand, and compared with the simulation of fetches."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest

from headroom.planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy
from headroom.planning.finish.flow import Flow
from headroom.planning.finish.simulation import Conditions, Simulation
from headroom.planning.quotas.limits import DEFAULT_WINDOW
from headroom.planning.quotas.long_run import YIELD_RATIOS
from headroom.planning.quotas.samples import steady

MB = 1_000_000.0


def end(throttle_mb: float | None, in_sync_mb: float = 0.0) -> QuotaEndpoint:
    rate = None if throttle_mb is None else throttle_mb * MB
    return QuotaEndpoint(steady(rate or 0.0, 0.0, DEFAULT_WINDOW), in_sync_mb * MB, rate, rate)


def copy(
    leader: QuotaEndpoint | None, destination: QuotaEndpoint | None, *remaining_mb: float, write_mb: float = 0.0
) -> CopyStream:
    return CopyStream(leader, destination, deque(ReplicaCopy(mb * MB, write_mb * MB) for mb in remaining_mb))


def test_the_time_is_the_remaining_bytes_by_the_rate_of_the_scarcest_quota() -> None:
    # In 11.5 s there is room for 23 MB, rounded up to 22 responses of 1.05 MB: 2.006 MB/s, of which 98.5 % are new.
    gained_mb = 22 * 1.048576 / 11.5 * YIELD_RATIOS[1] - 0.5
    assert Flow([copy(end(4, 2), end(40), 300, write_mb=0.5)], 10.0).run() == pytest.approx(10 + 300 / gained_mb)


def test_it_never_ends_without_a_gain() -> None:
    assert Flow([copy(end(4, 4.1), None, 300)], 0.0).run() is None
    assert Flow([copy(end(4, 2), None, 300, write_mb=2.1)], 0.0).run() is None
    # Nor if one of two copies finishes and the other gets nothing.
    assert Flow([copy(end(9), None, 1), copy(end(4, 4.1), None, 300)], 0.0).run() is None


def test_an_unlimited_copy_finishes_at_once() -> None:
    assert Flow([copy(end(None), None, 1e6)], 5.0).run() == pytest.approx(6.0, abs=1)
    assert Flow([], 5.0).run() == 5.0


def test_copies_that_are_done_leave_their_share_to_others() -> None:
    leader = end(4, 1)
    # 3 MB/s for 30 + 60 MB, however they are shared out.
    ended = Flow([copy(leader, None, 30), copy(leader, None, 60)], 0.0).run()
    assert ended == pytest.approx(90 / 3, rel=0.1)


def test_replicas_that_leave_make_room() -> None:
    leader = end(4, 3)
    moved = CopiedPartition(1, [(leader, 2 * MB)])
    parts = deque([ReplicaCopy(2 * MB, 0.0, moved), ReplicaCopy(60 * MB, 0.0)])
    # Both get half of 1 MB/s for 4 s, then one gets 3 MB/s.
    assert Flow([CopyStream(leader, None, parts)], 0.0).run() == pytest.approx(4 + 58 / 3, rel=0.1)


def moves() -> list[list[CopyStream]]:
    """Return three moves: one replica; three destinations of one leader; two leaders to two destinations."""
    leader, other, one, two = end(4.8, 2), end(4.8, 2), end(4.8), end(4.8)
    shared = end(3.0, 1.0)
    return [
        [copy(end(4.8, 2), end(4.8), 400, write_mb=2)],
        [copy(shared, end(3.0), *[40.0] * 4, write_mb=0.05) for _ in range(3)],
        [
            copy(leader, one, 150, 100, write_mb=0.5),
            copy(leader, two, 120, write_mb=0.5),
            copy(other, one, 150, write_mb=0.5),
            copy(other, two, 100, 80, write_mb=0.5),
        ],
    ]


def simulated_s(copies: Sequence[CopyStream]) -> float:
    found = Simulation(copies, 0.0, Conditions()).run(5000)
    assert found is not None
    return found


@pytest.mark.parametrize("number", range(3))
def test_it_ends_about_when_the_simulation_does(number: int) -> None:
    flowed = Flow(moves()[number], 0.0).run()
    assert flowed == pytest.approx(simulated_s(moves()[number]), rel=0.15)
