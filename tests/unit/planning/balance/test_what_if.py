"""Clusters after a broker is lost, added or drained, or a topic grown."""

from __future__ import annotations

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
    assert after.counted.tolist() == [False, True, True, True]
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
