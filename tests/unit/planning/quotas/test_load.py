"""Loads and verdicts of throttles: tables computed by hand, and properties of random clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.quotas.load import PartitionTraffic, ThrottleLoad, throttle_loads
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.support.random_clusters import Cluster, clusters

MB = 1_000_000.0
LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER


def traffic(
    partition: int, leader: int | None, followers: tuple[int, ...], in_sync: set[int], rate_mb: float | None
) -> PartitionTraffic:
    """A partition with every replica in the leader list, and every out-of-sync replica in the follower list."""
    return PartitionTraffic(
        name=TopicPartition("t", partition),
        leader=leader,
        followers=followers,
        in_sync=frozenset(in_sync),
        leader_listed=frozenset({*followers, *([leader] if leader else [])}),
        follower_listed=frozenset(followers) - in_sync,
        write_bytes_per_s=None if rate_mb is None else rate_mb * MB,
    )


def loads_at(partitions: list[PartitionTraffic], rate_mb: float | None = None) -> dict[BrokerRole, ThrottleLoad]:
    rate = None if rate_mb is None else rate_mb * MB
    throttles = {(broker, role): rate for broker in range(1, 9) for role in Role}
    return by_broker_role(throttle_loads(partitions, throttles))


def by_broker_role(found: list[ThrottleLoad]) -> dict[BrokerRole, ThrottleLoad]:
    return {(d.broker, d.role): d for d in found}


# Two partitions of 2 MB/s and RF 2, led by brokers 1 and 2, each with the other one in sync and broker 3 being added. A
# leader sends 2 to its in-sync follower and needs 2 more for the new one. Broker 3 receives 2 + 2, none in sync.
TWO = [traffic(0, 1, (2, 3), {1, 2}, 2.0), traffic(1, 2, (1, 3), {1, 2}, 2.0)]


@pytest.mark.parametrize(
    ("broker_role", "in_sync_mb", "required_mb"),
    [((1, LEADER), 2, 4), ((2, LEADER), 2, 4), ((3, FOLLOWER), 0, 4), ((1, FOLLOWER), 0, 0)],
)
def test_two_partitions_with_one_new_replica_each(
    broker_role: BrokerRole, in_sync_mb: float, required_mb: float
) -> None:
    load = loads_at(TWO)[broker_role]
    assert (load.in_sync_bytes_per_s, load.required_bytes_per_s) == (in_sync_mb * MB, required_mb * MB)


@pytest.mark.parametrize(
    ("throttle_mb", "leader", "destination"),
    [
        (1.5, Verdict.STARVED, Verdict.LOSING),
        (1.999999, Verdict.STARVED, Verdict.LOSING),
        # Kafka exceeds a quota above its bound, not at it.
        (2.0, Verdict.LOSING, Verdict.LOSING),
        (3.0, Verdict.LOSING, Verdict.LOSING),
        (4.0, Verdict.LOSING, Verdict.LOSING),
        (4.000001, Verdict.CATCHING_UP, Verdict.CATCHING_UP),
        (9.0, Verdict.CATCHING_UP, Verdict.CATCHING_UP),
        (None, Verdict.UNTHROTTLED, Verdict.UNTHROTTLED),
    ],
)
def test_the_verdict_changes_at_the_two_thresholds(
    throttle_mb: float | None, leader: Verdict, destination: Verdict
) -> None:
    found = loads_at(TWO, throttle_mb)
    assert (found[(1, LEADER)].verdict, found[(3, FOLLOWER)].verdict) == (leader, destination)


# After a switch broker 2 leads both, 2 x 2 MB/s to each of two followers: in-sync use 4, required 8.
@pytest.mark.parametrize(("throttle_mb", "verdict"), [(5.6, Verdict.LOSING), (11, Verdict.CATCHING_UP)])
def test_a_leader_switch_doubles_the_required_rate_of_the_new_leader(throttle_mb: float, verdict: Verdict) -> None:
    found = loads_at([traffic(0, 2, (1, 3), {1, 2}, 2.0), TWO[1]], throttle_mb)
    load = found[(2, LEADER)]
    assert (load.in_sync_bytes_per_s, load.required_bytes_per_s) == (4 * MB, 8 * MB)
    assert load.verdict is verdict
    assert (1, LEADER) not in found


# RF 3, broker 2 leads 1.0 (one replica being added: 3 followers, 2 in sync) and 0.5 MB/s, which has finished but is
# still listed (2 in sync): in-sync use 2 x 1.0 + 2 x 0.5 = 3, required 3 x 1.0 + 2 x 0.5 = 4.
@pytest.mark.parametrize(("throttle_mb", "verdict"), [(3.6, Verdict.LOSING), (5.5, Verdict.CATCHING_UP)])
def test_a_finished_partition_that_is_still_listed_counts(throttle_mb: float, verdict: Verdict) -> None:
    moving, finished = traffic(0, 2, (1, 3, 4), {1, 2, 3}, 1.0), traffic(1, 2, (1, 3), {1, 2, 3}, 0.5)
    load = loads_at([moving, finished], throttle_mb)[(2, LEADER)]
    assert (load.in_sync_bytes_per_s, load.required_bytes_per_s) == (3 * MB, 4 * MB)
    assert (load.verdict, load.limited_replicas) == (verdict, 1)


def test_a_leader_missing_from_the_list_is_unthrottled() -> None:
    added_leads = replace(TWO[0], leader_listed=frozenset({2, 3}))
    load = loads_at([added_leads], 0.1)[(1, LEADER)]
    assert (load.verdict, load.required_bytes_per_s) == (Verdict.UNTHROTTLED, 0)
    assert (load.limited_replicas, load.free_replicas) == (0, 1)


def test_an_unknown_write_rate_prevents_a_verdict_only_where_it_counts() -> None:
    found = loads_at([replace(TWO[0], write_bytes_per_s=None), TWO[1]], 9.0)
    assert found[(1, LEADER)].verdict is Verdict.NO_DATA
    assert found[(3, FOLLOWER)].verdict is Verdict.NO_DATA
    assert found[(2, LEADER)].verdict is Verdict.CATCHING_UP


def test_a_throttle_that_could_not_be_read_is_no_data_and_not_unthrottled() -> None:
    (leader,) = [d for d in throttle_loads(TWO, {}) if (d.broker, d.role) == (1, LEADER)]
    assert leader.verdict is Verdict.NO_DATA


def test_an_unknown_list_makes_the_sums_unknown() -> None:
    found = loads_at([replace(TWO[0], leader_listed=None), replace(TWO[1], leader=1, followers=(2, 3))], 9.0)
    leader = found[(1, LEADER)]
    # A partial sum would look like the whole traffic of broker 1.
    assert (leader.in_sync_bytes_per_s, leader.required_bytes_per_s) == (None, None)
    assert leader.verdict is Verdict.NO_DATA
    assert found[(3, FOLLOWER)].verdict is Verdict.CATCHING_UP


def test_a_partition_without_a_leader_adds_no_traffic() -> None:
    found = loads_at([traffic(0, None, (1, 2), {1}, None)], 9.0)
    assert set(found) == {(1, FOLLOWER), (2, FOLLOWER)}
    # Nothing can be written to it, so its unknown rate does not make the sum of its followers unknown.
    assert found[(2, FOLLOWER)].required_bytes_per_s == 0
    assert found[(2, FOLLOWER)].verdict is Verdict.CATCHING_UP


def test_remaining_bytes_are_unknown_if_a_part_is() -> None:
    known = [replace(p, remaining_bytes={3: 7}) for p in TWO]
    assert loads_at(known)[(3, FOLLOWER)].remaining_bytes == 14
    assert loads_at([known[0], TWO[1]])[(3, FOLLOWER)].remaining_bytes is None


@given(clusters(), st.data())
def test_the_required_rate_never_falls_when_a_write_rate_rises(cluster: Cluster, data: st.DataObject) -> None:
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
def test_in_sync_followers_count_like_others(cluster: Cluster) -> None:
    behind = [replace(p, in_sync=frozenset()) for p in cluster.partitions]
    caught_up = [replace(p, in_sync=frozenset(p.followers)) for p in cluster.partitions]
    some, none, every = (
        by_broker_role(throttle_loads(p, cluster.throttles())) for p in (cluster.partitions, behind, caught_up)
    )
    for broker_role, load in some.items():
        assert (
            load.required_bytes_per_s
            == none[broker_role].required_bytes_per_s
            == every[broker_role].required_bytes_per_s
        )
        assert every[broker_role].in_sync_bytes_per_s == every[broker_role].required_bytes_per_s
        assert every[broker_role].verdict is Verdict.IDLE


@given(clusters())
def test_partitions_in_no_list_add_no_load(cluster: Cluster) -> None:
    unlisted = [replace(p, leader_listed=frozenset(), follower_listed=frozenset()) for p in cluster.partitions]
    for load in throttle_loads(unlisted, cluster.throttles()):
        assert (load.in_sync_bytes_per_s, load.required_bytes_per_s, load.limited_replicas) == (0, 0, 0)


@given(clusters())
def test_the_verdict_follows_from_the_two_thresholds(cluster: Cluster) -> None:
    for load in throttle_loads(cluster.partitions, cluster.throttles()):
        in_sync, required = load.in_sync_bytes_per_s, load.required_bytes_per_s
        if not load.limited_replicas or in_sync is None or required is None:
            continue
        assert in_sync <= required
        verdicts = [
            replace(load, throttle_known=True, throttle_bytes_per_s=rate).verdict
            for rate in (in_sync - 0.5, in_sync, required, required + 0.5)
        ]
        assert verdicts[0] is Verdict.STARVED
        # Kafka exceeds a quota above its bound, not at it, and the responses that pass may be enough.
        assert {*verdicts[1:3]} <= {Verdict.LOSING, Verdict.SLOW}
        assert verdicts[3] is Verdict.CATCHING_UP


@given(clusters())
def test_each_broker_and_role_occurs_once_in_order(cluster: Cluster) -> None:
    found = [(d.broker, d.role) for d in throttle_loads(cluster.partitions, cluster.throttles())]
    assert found == sorted(set(found))
    assert by_broker_role(throttle_loads(cluster.partitions[::-1], cluster.throttles())).keys() == set(found)
