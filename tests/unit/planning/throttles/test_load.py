"""The arithmetic of throttles: tables worked out by hand, and laws over random clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.throttles.load import BrokerRole, PartitionTraffic, ThrottleLoad, throttle_loads
from schemas.alerts import Role, Verdict
from tests.support.random_clusters import Cluster, clusters

MB = 1_000_000.0
LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER


def traffic(
    partition: int, leader: int | None, followers: tuple[int, ...], in_sync: set[int], rate_mb: float | None
) -> PartitionTraffic:
    """A partition of which every replica stands in the leader list and every one out of sync in the follower list."""
    return PartitionTraffic(
        topic="t",
        partition=partition,
        leader=leader,
        followers=followers,
        in_sync=frozenset(in_sync),
        leader_listed=frozenset({*followers, *([leader] if leader else [])}),
        follower_listed=frozenset(followers) - in_sync,
        write_bytes_per_s=None if rate_mb is None else rate_mb * MB,
    )


def sides(partitions: list[PartitionTraffic], rate_mb: float | None = None) -> dict[BrokerRole, ThrottleLoad]:
    rate = None if rate_mb is None else rate_mb * MB
    throttles = {(broker, role): rate for broker in range(1, 9) for role in Role}
    return by_side(throttle_loads(partitions, throttles))


def by_side(found: list[ThrottleLoad]) -> dict[BrokerRole, ThrottleLoad]:
    return {(d.broker, d.role): d for d in found}


# Two partitions of 2 MB/s, RF 2, led by 1 and 2, each with the other in sync and broker 3 coming in. A leader sends
# 2 to its in-sync follower and needs 2 more for the new one; broker 3 receives 2 + 2, none of it in sync.
TWO = [traffic(0, 1, (2, 3), {1, 2}, 2.0), traffic(1, 2, (1, 3), {1, 2}, 2.0)]


@pytest.mark.parametrize(
    ("side", "in_sync_mb", "required_mb"),
    [((1, LEADER), 2, 4), ((2, LEADER), 2, 4), ((3, FOLLOWER), 0, 4), ((1, FOLLOWER), 0, 0)],
)
def test_two_partitions_with_one_new_replica_each(side: BrokerRole, in_sync_mb: float, required_mb: float) -> None:
    demand = sides(TWO)[side]
    assert (demand.in_sync_bytes_per_s, demand.required_bytes_per_s) == (in_sync_mb * MB, required_mb * MB)


@pytest.mark.parametrize(
    ("throttle_mb", "leader", "destination"),
    [
        (1.5, Verdict.STARVED, Verdict.LOSING),
        (1.999999, Verdict.STARVED, Verdict.LOSING),
        # The quota is exceeded above its bound, not at it.
        (2.0, Verdict.LOSING, Verdict.LOSING),
        (3.0, Verdict.LOSING, Verdict.LOSING),
        (4.0, Verdict.LOSING, Verdict.LOSING),
        (4.000001, Verdict.CATCHING_UP, Verdict.CATCHING_UP),
        (9.0, Verdict.CATCHING_UP, Verdict.CATCHING_UP),
        (None, Verdict.UNTHROTTLED, Verdict.UNTHROTTLED),
    ],
)
def test_the_bands_of_a_throttle(throttle_mb: float | None, leader: Verdict, destination: Verdict) -> None:
    found = sides(TWO, throttle_mb)
    assert (found[(1, LEADER)].verdict, found[(3, FOLLOWER)].verdict) == (leader, destination)


# After a switch broker 2 leads both, 2 x 2 MB/s to each of two followers: in-sync use 4, required 8.
@pytest.mark.parametrize(("throttle_mb", "verdict"), [(5.6, Verdict.LOSING), (11, Verdict.CATCHING_UP)])
def test_a_leader_switch_doubles_what_the_new_leader_needs(throttle_mb: float, verdict: Verdict) -> None:
    found = sides([traffic(0, 2, (1, 3), {1, 2}, 2.0), TWO[1]], throttle_mb)
    demand = found[(2, LEADER)]
    assert (demand.in_sync_bytes_per_s, demand.required_bytes_per_s) == (4 * MB, 8 * MB)
    assert demand.verdict is verdict
    assert (1, LEADER) not in found


# RF 3, broker 2 leads 1.0 (one replica coming in: 3 followers, 2 in sync) and 0.5 MB/s, which has finished but is still
# listed (2 in sync): in-sync use 2 x 1.0 + 2 x 0.5 = 3, required 3 x 1.0 + 2 x 0.5 = 4.
@pytest.mark.parametrize(("throttle_mb", "verdict"), [(3.6, Verdict.LOSING), (5.5, Verdict.CATCHING_UP)])
def test_a_finished_partition_that_is_listed_goes_on_counting(throttle_mb: float, verdict: Verdict) -> None:
    moving, finished = traffic(0, 2, (1, 3, 4), {1, 2, 3}, 1.0), traffic(1, 2, (1, 3), {1, 2, 3}, 0.5)
    demand = sides([moving, finished], throttle_mb)[(2, LEADER)]
    assert (demand.in_sync_bytes_per_s, demand.required_bytes_per_s) == (3 * MB, 4 * MB)
    assert (demand.verdict, demand.limited_replicas) == (verdict, 1)


def test_a_leader_that_the_list_does_not_name_is_unthrottled() -> None:
    added_leads = replace(TWO[0], leader_listed=frozenset({2, 3}))
    demand = sides([added_leads], 0.1)[(1, LEADER)]
    assert (demand.verdict, demand.required_bytes_per_s) == (Verdict.UNTHROTTLED, 0)
    assert (demand.limited_replicas, demand.free_replicas) == (0, 1)


def test_an_unknown_write_rate_forbids_a_verdict_only_where_it_counts() -> None:
    found = sides([replace(TWO[0], write_bytes_per_s=None), TWO[1]], 9.0)
    assert found[(1, LEADER)].verdict is Verdict.NO_DATA
    assert found[(3, FOLLOWER)].verdict is Verdict.NO_DATA
    assert found[(2, LEADER)].verdict is Verdict.CATCHING_UP


def test_a_throttle_that_could_not_be_read_is_no_data_and_not_unthrottled() -> None:
    (leader,) = [d for d in throttle_loads(TWO, {}) if (d.broker, d.role) == (1, LEADER)]
    assert leader.verdict is Verdict.NO_DATA


def test_what_an_unknown_list_may_hold_is_unknown() -> None:
    found = sides([replace(TWO[0], leader_listed=None), replace(TWO[1], leader=1, followers=(2, 3))], 9.0)
    leader = found[(1, LEADER)]
    # Half of what broker 1 must send would pass for all of it.
    assert (leader.in_sync_bytes_per_s, leader.required_bytes_per_s) == (None, None)
    assert leader.verdict is Verdict.NO_DATA
    assert found[(3, FOLLOWER)].verdict is Verdict.CATCHING_UP


def test_a_partition_without_a_leader_asks_nothing_of_any_leader() -> None:
    found = sides([traffic(0, None, (1, 2), {1}, None)], 9.0)
    assert set(found) == {(1, FOLLOWER), (2, FOLLOWER)}
    # Nothing is written to it, so that it hides nothing of what the others are written.
    assert found[(2, FOLLOWER)].required_bytes_per_s == 0
    assert found[(2, FOLLOWER)].verdict is Verdict.CATCHING_UP


def test_what_remains_is_unknown_as_soon_as_a_part_of_it_is() -> None:
    known = [replace(p, remaining_bytes={3: 7}) for p in TWO]
    assert sides(known)[(3, FOLLOWER)].remaining_bytes == 14
    assert sides([known[0], TWO[1]])[(3, FOLLOWER)].remaining_bytes is None


@given(clusters(), st.data())
def test_what_is_required_never_falls_when_a_partition_is_written_faster(cluster: Cluster, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(cluster.partitions) - 1))
    slow = cluster.partitions[index]
    fast = replace(slow, write_bytes_per_s=(slow.write_bytes_per_s or 0.0) + data.draw(st.floats(0, 1e9)))
    if slow.write_bytes_per_s is None:
        slow = replace(slow, write_bytes_per_s=0.0)
    before, after = (
        throttle_loads([*cluster.partitions[:index], p, *cluster.partitions[index + 1 :]], cluster.throttles())
        for p in (slow, fast)
    )
    for less, more in zip(before, after, strict=True):
        assert (less.required_bytes_per_s is None) == (more.required_bytes_per_s is None)
        assert (less.required_bytes_per_s or 0) <= (more.required_bytes_per_s or 0)
        assert (less.in_sync_bytes_per_s or 0) <= (more.in_sync_bytes_per_s or 0)


@given(clusters())
def test_in_sync_followers_are_counted_as_any_other(cluster: Cluster) -> None:
    behind = [replace(p, in_sync=frozenset()) for p in cluster.partitions]
    caught_up = [replace(p, in_sync=frozenset(p.followers)) for p in cluster.partitions]
    some, none, every = (
        by_side(throttle_loads(p, cluster.throttles())) for p in (cluster.partitions, behind, caught_up)
    )
    for side, demand in some.items():
        assert demand.required_bytes_per_s == none[side].required_bytes_per_s == every[side].required_bytes_per_s
        assert every[side].in_sync_bytes_per_s == every[side].required_bytes_per_s
        assert every[side].verdict is Verdict.IDLE


@given(clusters())
def test_partitions_that_no_list_names_need_no_throttle(cluster: Cluster) -> None:
    unlisted = [replace(p, leader_listed=frozenset(), follower_listed=frozenset()) for p in cluster.partitions]
    for demand in throttle_loads(unlisted, cluster.throttles()):
        assert (demand.in_sync_bytes_per_s, demand.required_bytes_per_s, demand.limited_replicas) == (0, 0, 0)


@given(clusters())
def test_the_verdict_follows_from_the_two_marks(cluster: Cluster) -> None:
    for demand in throttle_loads(cluster.partitions, cluster.throttles()):
        in_sync, required = demand.in_sync_bytes_per_s, demand.required_bytes_per_s
        if not demand.limited_replicas or in_sync is None or required is None:
            continue
        assert in_sync <= required
        verdicts = [
            replace(demand, throttle_known=True, throttle_bytes_per_s=rate).verdict
            for rate in (in_sync - 0.5, in_sync, required, required + 0.5)
        ]
        assert verdicts[0] is Verdict.STARVED
        # A quota is exceeded above its bound, not at it: the responses that it then lets through may be enough.
        assert {*verdicts[1:3]} <= {Verdict.LOSING, Verdict.SLOW}
        assert verdicts[3] is Verdict.CATCHING_UP


@given(clusters())
def test_each_side_that_takes_part_stands_once_in_order(cluster: Cluster) -> None:
    found = [(d.broker, d.role) for d in throttle_loads(cluster.partitions, cluster.throttles())]
    assert found == sorted(set(found))
    assert by_side(throttle_loads(cluster.partitions[::-1], cluster.throttles())).keys() == set(found)
