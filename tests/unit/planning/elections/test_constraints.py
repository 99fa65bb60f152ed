"""Constraints of throttles in force on elections."""

from __future__ import annotations

from headroom.planning.elections.constraints import Throttles
from headroom.planning.elections.leadership import Election
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import Role, TopicPartition

MB = 1_000_000.0
BOTH = frozenset({1, 2})


def traffic(number: int, leader: int, write_mb: float | None, in_sync: frozenset[int] = BOTH) -> PartitionTraffic:
    """A listed partition of brokers 1 and 2."""
    follower = 3 - leader
    rate = None if write_mb is None else write_mb * MB
    return PartitionTraffic(TopicPartition("t", number), leader, (follower,), in_sync, frozenset(), BOTH, BOTH, rate)


def test_a_throttle_certainly_too_low_for_an_unknown_load_defers_elections_and_gives_no_rate() -> None:
    # Broker 2 leads a partition whose follower is out of sync and whose rate is unknown; 3 MB/s more exceed its 2 MB/s.
    unknown, elected = traffic(0, 2, None, in_sync=frozenset({2})), traffic(1, 1, 3.0)
    guard = Throttles([unknown, elected], {(2, Role.LEADER): 2 * MB, (1, Role.LEADER): 9 * MB}, BOTH)
    election = Election(TopicPartition("t", 1), 2, 1, 3 * MB, True)
    assert guard.defers(1, election)
    assert guard.too_low([election]) == []
    known = traffic(0, 2, 1.0, in_sync=frozenset({2}))
    (too_low,) = Throttles([known, elected], {(2, Role.LEADER): 2 * MB}, BOTH).too_low([election])
    assert (too_low.broker, too_low.required_bytes_per_s) == (2, 4 * MB)
