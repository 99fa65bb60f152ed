"""Clusters after a broker is lost, added or drained, or a topic grown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroom.planning.balance.model import BalanceBroker, Resource
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.what_if import (
    brokers_missing,
    with_broker,
    with_broker_drained,
    with_topic_grown,
    without_brokers,
    without_rack,
)
from headroom.schemas.errors import HeadroomError
from tests.unit.planning.balance.clusters import brokers, model_of

MODEL = model_of(brokers(4, 2), [[1, 2], [2, 1], [3, 4]], [1.0, 2.0, 4.0], topics=["a", "a", "b"], size=[10, 20, 40])


def network_in(model) -> list[float]:  # type: ignore[no-untyped-def]
    return ClusterLoads(model).loads[Resource.NETWORK_IN].tolist()


def test_a_lost_broker_leaves_its_leads_to_followers_in_sync() -> None:
    after = without_brokers(MODEL, [1])
    assert after.leader.tolist() == [1, 1, 2]
    assert network_in(after) == [0.0, 3.0, 4.0, 4.0]
    # It leads both now, and sends to no follower.
    assert ClusterLoads(after).loads[Resource.NETWORK_OUT].tolist() == [0.0, 0.0, 4.0, 0.0]
    assert after.is_counted.tolist() == [False, True, True, True]
    with pytest.raises(HeadroomError, match="unknown"):
        without_brokers(MODEL, [9])


def test_a_lost_rack_is_all_of_its_brokers() -> None:
    # Racks r0: 1 and 3; r1: 2 and 4.
    assert network_in(without_rack(MODEL, "r0")) == [0.0, 3.0, 0.0, 4.0]
    with pytest.raises(HeadroomError, match="Known racks: r0, r1"):
        without_rack(MODEL, "r7")


def test_a_new_broker_is_empty_wherever_its_id_sorts() -> None:
    for number, expected in ((0, [0.0, 3.0, 3.0, 4.0, 4.0]), (9, [3.0, 3.0, 4.0, 4.0, 0.0])):
        assert network_in(with_broker(MODEL, BalanceBroker(number, "r0"))) == expected
    with pytest.raises(HeadroomError, match="exists"):
        with_broker(MODEL, BalanceBroker(1))


def test_a_drained_broker_is_empty_and_racks_are_kept() -> None:
    after = with_broker_drained(MODEL, 1)
    # Broker 3 is the only other one on its rack.
    assert network_in(after) == [0.0, 3.0, 7.0, 4.0]
    assert not ClusterLoads(after).crowded.any()
    with pytest.raises(HeadroomError, match="fits on no other"):
        with_broker_drained(model_of(brokers(2), [[1, 2]], [1.0]), 1)


def test_a_drained_broker_fills_disks_within_their_limits_whatever_the_number_of_replicas() -> None:
    """Broker 1 has 17 replicas of 50 GB. Broker 2 has one of 700 of its 1,000 GB; broker 3 has 40 small ones."""
    states = brokers(3, disk_bytes=1000.0)
    model = model_of(states, [[1]] * 17 + [[2]] + [[3]] * 40, [1.0] * 58, size=[50.0] * 17 + [700.0] + [1.0] * 40)
    disk = ClusterLoads(with_broker_drained(model, 1)).loads[Resource.DISK]
    # 1,590 of the 1,600 GB of both limits.
    assert disk.tolist() == [0.0, 800.0, 790.0]


def test_small_replicas_of_a_drained_broker_are_spread_by_number() -> None:
    states = brokers(3, disk_bytes=1000.0)
    model = model_of(states, [[1]] * 100 + [[2], [3]], [1.0] * 102, size=[0.001] * 100 + [400.0, 100.0])
    counts = ClusterLoads(with_broker_drained(model, 1)).loads[Resource.REPLICAS]
    assert counts[1:].min() >= 45


def test_no_drain_of_a_random_cluster_exceeds_a_limit_where_disks_have_room() -> None:
    for seed in range(12):
        draw = np.random.default_rng(seed)
        count = int(draw.integers(40, 120))
        size = draw.exponential(10.0, count)
        # Replicas of very unequal number: large ones on brokers 1 and 2.
        order = np.argsort(-size)
        replicas = np.empty((count, 1), dtype=np.int64)
        replicas[order] = np.sort(draw.choice(6, count, p=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2]) + 1)[:, None]
        disk = ClusterLoads(model_of(brokers(6), replicas.tolist(), [1.0] * count, size=size)).loads[Resource.DISK]
        # All of the limits together have room for a tenth more than there is, and for what each has now.
        capacity = float(max(disk.max() / 0.8, size.sum() / 0.8 / 5 * 1.1)) * 1.05
        model = model_of(brokers(6, disk_bytes=capacity), replicas.tolist(), [1.0] * count, size=size)
        after = ClusterLoads(with_broker_drained(model, 1)).loads[Resource.DISK]
        assert after.max() <= 0.8 * capacity, seed


def test_a_topic_grows_in_all_its_loads() -> None:
    after = with_topic_grown(MODEL, "a", 3.0)
    assert network_in(after) == [9.0, 9.0, 4.0, 4.0]
    assert after.size.tolist() == [30, 60, 40]
    for topic, times in (("c", 2.0), ("a", -1.0), ("a", float("nan"))):
        with pytest.raises(HeadroomError):
            with_topic_grown(MODEL, topic, times)


def test_brokers_missing_are_counted_by_the_limit_that_needs_most() -> None:
    # 2 brokers of 100 hold 150 of 160: none is missing. After growth to 300, 140 more is needed: 2 of 80 each.
    states = brokers(2, disk_bytes=100.0)
    model = model_of(states, [[1], [2]], [1.0, 1.0], size=[75.0, 75.0])
    assert brokers_missing(model) == 0
    assert brokers_missing(with_topic_grown(model, "t", 2.0)) == 2
    assert brokers_missing(model_of(brokers(2), [[1], [2]], [1.0, 1.0])) == 0
    assert np.isfinite(ClusterLoads(model).loads).all()


def test_what_a_drained_broker_could_carry_is_not_there() -> None:
    """3 brokers of 100 hold 56 each of 80. Without one of them the others hold 84: one more is needed."""
    states = brokers(3, disk_bytes=100.0)
    model = model_of(states, [[1], [1], [2], [2], [3], [3]], [1.0] * 6, size=[28.0] * 6)
    assert (brokers_missing(model), brokers_missing(with_broker_drained(model, 3))) == (0, 1)
    assert brokers_missing(without_brokers(model, [3])) == 0
    # One that is cordoned keeps what it has.
    cordoned = replace(model, brokers=(*model.brokers[:2], replace(model.brokers[2], takes="cordoned")))
    assert brokers_missing(cordoned) == 0
    assert brokers_missing(with_topic_grown(cordoned, "t", 1.5)) == 1
