"""Copies between brokers, reconstructed from the loads of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headroom.planning.finish.copies import CopyStream, QuotaEndpoint
from headroom.planning.finish.copies_under_way import copies_between
from headroom.planning.quotas.limits import DEFAULT_WINDOW, FetchLimits
from headroom.planning.quotas.load import CatchingUpReplica, SourceLoad, ThrottleLoad
from headroom.planning.quotas.samples import steady
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

MB = 1_000_000


def load(broker: int, role: Role, replicas: int, remaining_mb: float, behind_mb: float = 1.0) -> ThrottleLoad:
    return ThrottleLoad(
        broker=broker,
        role=role,
        throttle_bytes_per_s=3.0 * MB,
        in_sync_bytes_per_s=1.0 * MB,
        required_bytes_per_s=(1.0 + behind_mb) * MB,
        limited_replicas=replicas,
        free_replicas=0,
        remaining_bytes=round(remaining_mb * MB),
    )


def leader(broker: int, replicas: int, remaining_mb: float, behind_mb: float = 1.0) -> ThrottleLoad:
    return load(broker, Role.LEADER, replicas, remaining_mb, behind_mb)


def destination(broker: int, replicas: int, remaining_mb: float, behind_mb: float = 1.0) -> ThrottleLoad:
    return load(broker, Role.FOLLOWER, replicas, remaining_mb, behind_mb)


def replica(
    number: int, leader: int, remaining_mb: float, replicas: tuple[int, ...], target: tuple[int, ...]
) -> CatchingUpReplica:
    return CatchingUpReplica(TopicPartition("t", number), leader, round(remaining_mb * MB), 0.5 * MB, replicas, target)


class Found:
    """The copies between some brokers."""

    def __init__(self, throttle_loads: Sequence[ThrottleLoad]) -> None:
        self.ends: dict[BrokerRole, QuotaEndpoint] = {
            (d.broker, d.role): QuotaEndpoint(steady(0.0, 0.0, DEFAULT_WINDOW), 1.0 * MB, 3.0 * MB, 3.0 * MB)
            for d in throttle_loads
        }
        self.copies = copies_between(throttle_loads, self.ends)

    def name(self, end: QuotaEndpoint | None) -> int | None:
        return next((broker for (broker, _), one in self.ends.items() if one is end), None)

    def parts(self) -> dict[tuple[int | None, int | None], list[float]]:
        """Return the remaining MB of each replica, by leader and destination."""
        return {self._pair(c): [round(part.remaining_bytes / MB, 3) for part in c.parts] for c in self.copies}

    def writes(self) -> dict[tuple[int | None, int | None], float]:
        """Return the write rates in MB/s, by leader and destination."""
        return {self._pair(c): round(sum(p.write_bytes_per_s for p in c.parts) / MB, 3) for c in self.copies}

    def leaving(self) -> list[list[tuple[int | None, float]]]:
        """Return the in-sync traffic that ends with each replica of the first copy: broker and MB/s."""
        parts = [part.moving.leaving if part.moving else () for part in self.copies[0].parts]
        return [[(self.name(end), rate / MB) for end, rate in ended] for ended in parts]

    def _pair(self, copy: CopyStream) -> tuple[int | None, int | None]:
        return self.name(copy.leader), self.name(copy.destination)


def test_a_partition_that_leaves_the_lists_counts_no_longer_at_both_ends() -> None:
    """Leader 1 sends to 2, in sync, and to the copies 3 and 4: 3 x 0.5 MB/s; each destination receives 0.5 MB/s."""
    known = [replace(replica(0, 1, 5, (1, 2, 3, 4), (1, 3, 4)), leaves_lists=True)]
    copying = [replace(destination(b, 1, 5, 0.5), catching_up=tuple(known)) for b in (3, 4)]
    assert Found([leader(1, 2, 10), *copying]).leaving()[0] == [(1, 1.5), (3, 0.5), (4, 0.5)]
    # Otherwise only replica 2 stops fetching.
    stays = [replace(one, catching_up=(replace(known[0], leaves_lists=False),)) for one in copying]
    assert Found([leader(1, 2, 10), *stays]).leaving()[0] == [(1, 0.5)]


def test_replicas_that_are_known_copy_from_their_own_leaders() -> None:
    known = (
        replica(0, 1, 5, (1, 2, 3), (1, 3)),
        replica(1, 1, 7, (1, 2, 3), (1, 3)),
        replica(2, 2, 9, (2, 1, 3), (2, 3)),
    )
    found = Found([leader(1, 2, 12), leader(2, 1, 9, 0.5), replace(destination(3, 3, 21, 1.5), catching_up=known)])
    assert found.parts() == {(1, 3): [5, 7], (2, 3): [9]}
    assert found.writes() == {(1, 3): 1.0, (2, 3): 0.5}


def test_a_leader_without_a_limit_limits_no_copy() -> None:
    known = (replica(0, 9, 5, (9, 2, 3), (9, 3)),)
    assert Found([replace(destination(3, 1, 5), catching_up=known)]).parts() == {(None, 3): [5]}


def test_traffic_that_ends_with_a_partition_is_subtracted_from_the_quotas_that_count_it() -> None:
    # Broker 2 is removed from the first. Leader 1 is removed from the second, so all followers stop fetching from it.
    stays, goes = replica(0, 1, 5, (1, 2, 3), (1, 3)), replica(1, 1, 5, (2, 3, 1, 9), (2, 3))
    found = Found([leader(1, 2, 10), replace(destination(3, 2, 10), catching_up=(stays, goes))])
    assert found.leaving() == [[(1, 0.5)], [(1, 1.5)]]


def test_a_new_replica_that_becomes_the_leader_stops_fetching() -> None:
    # On real brokers, counting its traffic led to an estimate of 258 s for a move of four that took 181 s.
    alone, first, second = replica(0, 1, 5, (3, 1), (3,)), replica(1, 1, 5, (3, 4, 1), (3, 4)), (4, 3, 1)
    known = (alone, first, replace(first, name=TopicPartition("t", 2), replicas=second, target=(4, 3)))
    found = Found([leader(1, 3, 15), replace(destination(3, 3, 15), catching_up=known)])
    assert found.leaving() == [[(1, 0.5), (3, 0.5)], [(1, 1.0), (3, 0.5)], [(1, 1.0)]]


def test_sums_per_leader_give_every_replica_its_part_and_one_the_largest() -> None:
    sources = (SourceLoad(1, 3, 20 * MB, 0.9 * MB, 10 * MB), SourceLoad(2, 2, 8 * MB, 0.4 * MB))
    found = Found([leader(1, 3, 20), leader(2, 2, 8, 0.4), replace(destination(3, 5, 28, 1.3), sources=sources)])
    assert found.parts() == {(1, 3): [10, 5, 5], (2, 3): [4, 4]}
    assert found.writes() == {(1, 3): 0.9, (2, 3): 0.4}


def test_sums_per_leader_contain_the_traffic_that_ends() -> None:
    sources = (SourceLoad(1, 2, 20 * MB, 1.0 * MB, leaving_bytes_per_s=3.0 * MB, leading_bytes_per_s=1.0 * MB),)
    found = Found([leader(1, 2, 20), replace(destination(3, 2, 20), sources=sources)])
    assert found.leaving() == [[(1, 1.5), (3, 0.5)]] * 2


def test_without_sums_a_destination_copies_from_all_leaders_in_proportion() -> None:
    found = Found([leader(1, 3, 30), leader(2, 1, 10), destination(3, 4, 40, 2.0)])
    assert found.parts() == {(1, 3): [10, 10, 10], (2, 3): [10]}
    assert found.writes() == {(1, 3): 1.5, (2, 3): 0.5}
    assert Found([destination(3, 2, 40)]).parts() == {(None, 3): [20, 20]}


def test_further_copies_of_a_leader_go_to_destinations_without_a_limit() -> None:
    known = (replica(0, 1, 5, (1, 2, 3), (1, 3)),)
    found = Found([leader(1, 3, 25, 1.5), replace(destination(3, 1, 5, 0.5), catching_up=known)])
    assert found.parts() == {(1, None): [10, 10], (1, 3): [5]}
    assert found.writes() == {(1, None): 1.0, (1, 3): 0.5}


@pytest.mark.parametrize("fetchers", [1, 2, 8])
def test_the_partitions_of_a_leader_are_spread_over_the_fetchers(fetchers: int) -> None:
    limits = FetchLimits(fetchers=fetchers)
    sources = (SourceLoad(1, 5, 10 * MB, 1.0 * MB),)
    found = Found([leader(1, 5, 10), replace(destination(3, 5, 10), sources=sources, fetch=limits)])
    assert sorted(len(copy.parts) for copy in found.copies) == {1: [5], 2: [2, 3], 8: [1] * 5}[fetchers]
    assert all(copy.limits is limits for copy in found.copies)
